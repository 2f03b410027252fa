"""Binomial laws from above: against exact fractions where these can be added up, against scipy where not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ldp_aggregator.amplification import (
    INFLATION,
    fair_excess,
    interval_probability,
    log_probability,
    lower_end,
    upper_end,
)

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
