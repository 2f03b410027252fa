"""The bound against the truth, for all neighbouring data sets of few devices."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from shuffled import Array, law_of, mixture, worst_delta

from ldp_aggregator.amplification import (
    INFLATION,
    blanket_of,
    delta_bound,
    fair_excess,
    interval_probability,
    log_probability,
    lower_end,
    mixed,
    upper_end,
)
from ldp_aggregator.mechanisms.analysis import Blanket
from protocols.mechanisms import (
    AnyMechanism,
    DirectEncoding,
    LaplaceVector,
    OneBit,
    OptimalUnaryEncoding,
    SubsetSelection,
    SummingHistogramEncoding,
    SymmetricUnaryEncoding,
    ThresholdingHistogramEncoding,
)
from protocols.mechanisms.noisy_vector import least_scale

EPSILONS = ("0.5", "1", "2", "4")
SHARES = (0.02, 0.1, 0.3, 0.6, 0.9)
ROUNDING = 1e-13
"""Of the truth, which is a sum of doubles."""


def laplace(cells: int, epsilon: Fraction, grid: int) -> LaplaceVector:
    return LaplaceVector(cells, grid, least_scale(epsilon, grid))


def mechanisms(epsilon: Fraction) -> list[AnyMechanism]:
    others = (SymmetricUnaryEncoding, OptimalUnaryEncoding, ThresholdingHistogramEncoding, SummingHistogramEncoding)
    return [
        DirectEncoding.make(2, epsilon),
        DirectEncoding.make(3, epsilon),
        DirectEncoding.make(4, epsilon),
        SubsetSelection(4, 2, SubsetSelection.make(4, epsilon).include if epsilon < 1 else (1 << 63) + (1 << 61)),
        SubsetSelection(3, 2, (1 << 63) + (1 << 62)),
        *(mechanism.make(2, epsilon) for mechanism in others),
        OptimalUnaryEncoding.make(3, epsilon),
        OneBit.make(1, epsilon),
        OneBit.make(2, epsilon),
        laplace(1, epsilon, 0),
        laplace(1, epsilon, 1),
        laplace(2, epsilon, 0),
    ]


def never_below(law: Array, row: Blanket, devices: int, epsilon: float) -> list[float]:
    """How many times the truth the bound is; fails where it is less."""
    tried = [epsilon * share for share in SHARES]
    truth = worst_delta(law, devices, tried)
    bounds = np.array([delta_bound(row, devices, one) for one in tried])
    assert (bounds >= truth - ROUNDING).all(), (bounds, truth)
    return [float(bound / true) for bound, true in zip(bounds, truth, strict=True) if true > 1e-6]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("position", range(len(mechanisms(Fraction(1)))))
def test_no_mechanism_reveals_more_than_its_bound_says(position: int, epsilon: str) -> None:
    mechanism = mechanisms(Fraction(epsilon))[position]
    law = law_of(mechanism)
    most = 5 if law.size <= 24 else 4 if law.size < 54 else 3
    for devices in range(3, most + 1):
        never_below(law, blanket_of(mechanism), devices, float(epsilon))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_mixture_of_questions_reveals_more_than_its_bound_says(epsilon: str) -> None:
    exact = Fraction(epsilon)
    drawn = [
        (DirectEncoding.make(2, exact), OptimalUnaryEncoding.make(2, exact)),
        (DirectEncoding.make(2, exact), DirectEncoding.make(3, exact)),
        (OneBit.make(1, exact), ThresholdingHistogramEncoding.make(2, exact)),
        (DirectEncoding.make(2, exact), DirectEncoding.make(2, exact / 2)),
        (laplace(1, exact, 0), SummingHistogramEncoding.make(2, exact)),
    ]
    for first, second in drawn:
        for share in (Fraction(1, 2), Fraction(1, 5)):
            parts = ((share, first), (1 - share, second))
            law = mixture([(weight, law_of(one)) for weight, one in parts])
            row = mixed((weight, blanket_of(one)) for weight, one in parts)
            never_below(law, row, 3, float(epsilon))


def test_the_bound_is_near_the_truth() -> None:
    ratios: list[float] = []
    for epsilon in EPSILONS:
        for mechanism in (DirectEncoding.make(2, Fraction(epsilon)), OneBit.make(2, Fraction(epsilon))):
            ratios += never_below(law_of(mechanism), blanket_of(mechanism), 5, float(epsilon))
    assert np.median(ratios) < 1.5
    assert min(ratios) >= 1 - 1e-9


PROBABILITIES = (Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000))


def exact_law(trials: int, p: Fraction) -> list[Fraction]:
    return [math.comb(trials, j) * p**j * (1 - p) ** (trials - j) for j in range(trials + 1)]


@pytest.mark.parametrize("trials", [1, 2, 3, 7, 30, 200])
@pytest.mark.parametrize("p", PROBABILITIES)
def test_no_probability_is_below_the_exact_one(trials: int, p: Fraction) -> None:
    exact = np.array([float(one) for one in exact_law(trials, p)])
    found = np.exp(log_probability(np.arange(trials + 1.0), trials, float(p)))
    assert (found * INFLATION >= exact).all()
    seen = exact > 1e-300
    assert (found[seen] <= exact[seen] * 1.01).all()


@pytest.mark.parametrize("width", [1, 3, 20])
@pytest.mark.parametrize("p", PROBABILITIES)
def test_no_interval_is_below_the_exact_one(width: int, p: Fraction) -> None:
    law, first = exact_law(200, p), np.arange(0.0, 201.0, width)
    exact = [float(sum(law[int(at) : int(at) + width])) for at in first]
    assert (interval_probability(first, width, 200, float(p)) * INFLATION >= np.array(exact)).all()


@pytest.mark.parametrize("trials", [1, 2, 9, 200, 1001])
def test_no_excess_is_below_the_exact_one_and_none_is_far_above(trials: int) -> None:
    law = exact_law(trials, Fraction(1, 2))
    for share in (0.0, 0.01, 0.1, 0.3, 0.7, 0.99, 1.0):
        threshold = trials / 2 * (1 + share)
        exact = float(sum(max(Fraction(0), j - Fraction(threshold)) * one for j, one in enumerate(law)))
        found = float(fair_excess(np.array([float(trials)]), np.array([threshold]))[0])
        assert exact <= found * INFLATION
        assert found <= exact * 1.02 + 1e-300


def test_excesses_of_a_hundred_million_agree_with_scipy() -> None:
    trials = 1e8
    for deviations in (0.0, 1.0, 4.0, 6.0):
        threshold = trials / 2 + deviations * math.sqrt(trials) / 2
        found = float(fair_excess(np.array([trials]), np.array([threshold]))[0])
        j = np.floor(threshold) + 1 + np.arange(60_000)
        exact = float(((j - threshold) * stats.binom.pmf(j, trials, 0.5)).sum())
        assert exact <= found * INFLATION <= exact * 1.02


@pytest.mark.parametrize("trials", [1, 5, 1000, 10**6])
@pytest.mark.parametrize("p", [1e-9, 0.001, 0.3, 0.999])
@pytest.mark.parametrize("tail", [1e-3, 1e-14])
def test_beyond_the_ends_lies_no_more_than_the_tail(trials: int, p: float, tail: float) -> None:
    low, high = lower_end(trials, p, tail), upper_end(trials, p, tail)
    assert 0 <= low <= trials * p + 1
    assert stats.binom.cdf(low - 1, trials, p) <= tail
    assert stats.binom.sf(high - 1, trials, p) <= tail
