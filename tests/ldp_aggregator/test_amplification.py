"""The bound for many devices: the truth about few, known values, its direction, distinguishers that do their best."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from ldp_aggregator.amplification import (
    blanket_of,
    delta_bound,
    epsilon_bound,
    fair_excess,
    interval_probability,
    log_probability,
    lower_end,
    mixed,
    upper_end,
)
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.analysis import Blanket
from ldp_protocols.mechanisms import (
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
from ldp_protocols.mechanisms.noisy_vector import least_scale

INFLATION = 1 + 1e-6
MOST_REPORTS = 2**40


Array = NDArray[np.float64]


def law_of(mechanism):
    """P(report | item), shape (items, reports), from the definition; noise beyond the items' range is one report."""
    if isinstance(mechanism, LaplaceVector):
        steps = 1 << mechanism.grid
        means = [
            tuple(value if cell == own else 0 for cell in range(mechanism.domain_size))
            for own in range(mechanism.domain_size)
            for value in range(-steps, steps + 1)
        ]
        return _noisy(means, float(mechanism.scale), -steps, steps)
    if isinstance(mechanism, SummingHistogramEncoding):
        d = mechanism.domain_size
        return _noisy([tuple(int(cell == own) for cell in range(d)) for own in range(d)], float(mechanism.scale), -1, 2)
    return np.array([[float(p) for p in law] for law in analysis_of(mechanism).laws()]).T


def mixture(parts):
    """Records with an item for every question; a report is the question drawn and its answer."""
    records = product(*(range(len(law)) for _, law in parts))
    return np.array(
        [
            np.concatenate([float(share) * law[item] for (share, law), item in zip(parts, record, strict=True)])
            for record in records
        ]
    )


def worst_delta(law, devices, epsilons):
    """The largest delta at each epsilon over all pairs of data sets of so many devices that differ in one."""
    worst = np.zeros(len(epsilons))
    for laws_of_all in shuffled_laws(law, devices):
        for epsilon_at, epsilon in enumerate(epsilons):
            excess = laws_of_all[:, None, :] - math.exp(epsilon) * laws_of_all[None, :, :]
            worst[epsilon_at] = max(worst[epsilon_at], float(np.maximum(excess, 0).sum(axis=2).max()))
    return worst


def shuffled_laws(law, devices):
    """For every multiset of the other devices' items: the laws of the multiset of reports, one row for each item."""
    items, reports = law.shape
    steps = [_steps(reports, number) for number in range(devices)]
    for others in combinations_with_replacement(range(items), devices - 1):
        here = np.ones(1)
        for step, item in zip(steps, others, strict=False):
            here = _one_more(here, law[item], step)
        yield np.array([_one_more(here, one, steps[-1]) for one in law])


def _one_more(here, law, step):
    return np.bincount(step.ravel(), (here[:, None] * law[None, :]).ravel())


def _steps(reports, number):
    """Which multiset of ``number + 1`` reports each of ``number`` becomes with one more report."""
    larger = {one: at for at, one in enumerate(combinations_with_replacement(range(reports), number + 1))}
    smaller = combinations_with_replacement(range(reports), number)
    return np.array([[larger[tuple(sorted((*one, report)))] for report in range(reports)] for one in smaller])


def _noisy(means, scale, low, high):
    """Products over the cells; a cell's report is its number, at most ``high`` and at least ``low``."""
    a = math.exp(-1 / scale)

    def cell_law(mean):
        inner = [(1 - a) / (1 + a) * a ** abs(z - mean) for z in range(low + 1, high)]
        return np.array([a ** (mean - low) / (1 + a), *inner, a ** (high - mean) / (1 + a)])

    return np.array([reduce(np.kron, map(cell_law, mean)) for mean in means])


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "3", "8"])
def test_the_exponentials_of_noisy_vectors_are_taken_from_the_side_that_reveals_more(epsilon):
    """To 120 digits, of which the code takes fewer: the ratio is never below the one of the noise, and hardly above."""
    laplace = LaplaceVector.make(2, Fraction(epsilon))
    she = SummingHistogramEncoding.make(4, Fraction(epsilon))
    for mechanism, step in ((laplace, 1 << laplace.grid), (she, 1)):
        exponent = 2 * Fraction(step) / mechanism.scale
        with localcontext() as context:
            context.prec = 120
            exact = Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())
        assert exact <= blanket_of(mechanism).ratio < exact * (1 + Fraction(1, 10**15))


DELTA = 1e-9
REPORTS = (10**4, 10**5, 10**6, 10**8)

KNOWN = {
    ("0.5", "de"): (0.0269, 0.0081, 0.0024, 0.0002),
    ("0.5", "ss"): (0.0209, 0.0061, 0.0018, 0.0002),
    ("0.5", "oue"): (0.0196, 0.0057, 0.0017, 0.0002),
    ("1", "de"): (0.0622, 0.0188, 0.0056, 0.0005),
    ("1", "ss"): (0.0483, 0.0141, 0.0042, 0.0004),
    ("1", "oue"): (0.0461, 0.0133, 0.0040, 0.0004),
    ("2", "de"): (0.1598, 0.0482, 0.0145, 0.0013),
    ("2", "ss"): (0.1248, 0.0368, 0.0110, 0.0010),
    ("2", "oue"): (0.1199, 0.0344, 0.0102, 0.0009),
    ("4", "de"): (0.5612, 0.1649, 0.0497, 0.0045),
    ("4", "ss"): (0.5413, 0.1574, 0.0473, 0.0043),
    ("4", "oue"): (0.3982, 0.1172, 0.0350, 0.0031),
}
"""Published epsilon at delta 1e-9, by an implementation of the same formula that shares no code; four decimals."""

HALF_DIGIT = 0.5e-4

FALSE_ALARM = 1e-6
"""Of a whole test below: each of its comparisons gets its part."""


def made(name: str, epsilon: Fraction) -> AnyMechanism:
    if name == "de":
        return DirectEncoding.make(2, epsilon)
    return SubsetSelection.make(8, epsilon) if name == "ss" else OptimalUnaryEncoding.make(8, epsilon)


@pytest.mark.parametrize(("epsilon", "name"), KNOWN)
def test_known_values_are_reproduced(epsilon: str, name: str) -> None:
    row = blanket_of(made(name, Fraction(epsilon)))
    for reports, wanted in zip(REPORTS, KNOWN[epsilon, name], strict=True):
        found = epsilon_bound(row, reports, DELTA)
        assert found is not None
        assert abs(found - wanted) <= 0.02 * wanted + HALF_DIGIT


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "8", "40"])
def test_more_reports_never_reveal_more(epsilon: str) -> None:
    row, known = blanket_of(DirectEncoding.make(4, Fraction(epsilon))), math.inf
    for reports in (1, 2, 10, 100, 1000, 10**5, 10**8, 10**11, MOST_REPORTS, 10**30):
        found = epsilon_bound(row, reports, DELTA)
        if found is not None:
            assert 0 < found <= min(known, float(epsilon)) * (1 + 3e-4)
            known = found


def test_the_epsilon_found_has_the_delta_it_was_found_for() -> None:
    row = blanket_of(SubsetSelection.make(16, Fraction(1)))
    for delta in (1e-3, 1e-6, 1e-9, 1e-12):
        found = epsilon_bound(row, 10**5, delta)
        assert found is not None
        tail = min(1e-14, delta * 1e-5)
        assert delta_bound(row, 10**5, found, tail) <= delta < delta_bound(row, 10**5, found * 0.99, tail)


def test_nobody_and_one_device_have_no_crowd_to_hide_in() -> None:
    row = blanket_of(DirectEncoding.make(2, Fraction(1)))
    assert epsilon_bound(row, 0, DELTA) is epsilon_bound(row, 1, DELTA) is None
    assert delta_bound(row, 1, 0.0) >= math.tanh(0.5) * (1 - 1e-9)


def test_the_bound_is_the_exact_sum_where_that_can_be_added_up() -> None:
    """Direct encoding on two cells has no R: 1/n E[(N10 A - N01 B)+] term by term, from scipy's laws."""
    row = blanket_of(DirectEncoding.make(2, Fraction(1)))
    for reports in (10, 300, 2000):
        for epsilon in (0.05, 0.2, 0.6):
            e0, e = float(row.ratio), math.exp(epsilon)
            told = np.arange(reports + 1)
            first = np.arange(reports + 1)[:, None]
            gain = np.maximum(first * (e0 - e) - (told - first) * (e * e0 - 1), 0) * (first <= told)
            inner = (stats.binom.pmf(first, told, 0.5) * gain).sum(axis=0)
            exact = float(stats.binom.pmf(told, reports, float(2 * row.single)) @ inner) / reports
            assert exact <= delta_bound(row, reports, epsilon) <= 1.05 * exact + 1e-13


@pytest.mark.parametrize("name", ["ss", "oue"])
def test_the_bound_is_never_below_the_whole_multinomial_sum(name: str) -> None:
    """With reports of all four kinds, added up one by one."""
    reports, row = 24, blanket_of(made(name, Fraction(1)))
    e0 = float(row.ratio)
    kinds = [float(row.single), float(row.single), float(row.both), float(row.neither), float(1 - row.mass)]
    counts = np.array(
        [
            (a, b, c, d, reports - a - b - c - d)
            for a in range(reports + 1)
            for b in range(reports + 1 - a)
            for c in range(reports + 1 - a - b)
            for d in range(reports + 1 - a - b - c)
        ]
    )
    probability = stats.multinomial.pmf(counts, reports, np.array(kinds) / sum(kinds))
    for epsilon in (0.0, 0.1, 0.4, 0.8):
        e = math.exp(epsilon)
        gain = counts[:, :4] @ np.array([e0 - e, 1 - e * e0, -(e - 1) * e0, -(e - 1)])
        exact = float(probability @ np.maximum(gain, 0)) / reports
        assert exact * (1 - 1e-9) <= delta_bound(row, reports, epsilon)


@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "3", "20", "44"])
def test_no_epsilon_and_no_crowd_is_too_small_or_too_large_to_be_bounded(epsilon: str) -> None:
    exact = Fraction(epsilon)
    for mechanism in (*(made(name, exact) for name in ("de", "ss", "oue")), OneBit.make(1000, exact)):
        row = blanket_of(mechanism)
        for reports in (2, 1000, 10**12):
            found = epsilon_bound(row, reports, 1e-100)
            assert found is None or 0 < found < float(exact) + 1e-9


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


def test_a_mixture_has_the_shares_of_its_parts_at_the_larger_ratio() -> None:
    weak, strong = (blanket_of(OptimalUnaryEncoding.make(3, Fraction(epsilon))) for epsilon in (1, 2))
    share = Fraction(1, 3)
    assert mixed([(share, weak), (1 - share, weak)]) == weak
    raised = weak.at_ratio(strong.ratio)
    assert mixed([(share, weak), (1 - share, strong)]) == mixed([(share, raised), (1 - share, strong)])
    assert mixed([(share, weak), (1 - share, strong)]).mass == share * raised.mass + (1 - share) * strong.mass


TRIED = (0.0, 0.01, 0.05, 0.2)


def surest_deltas(law: Array, devices: int, rng: np.random.Generator, alarm: float) -> list[float]:
    """Deltas that the best distinguisher of two people surely reaches, one for each of TRIED: everybody else has the
    last item.

    The shuffled reports, h of each kind, are sum_y h_y mu_x(y) / mu_z(y) times as likely with x among the z as without,
    so the event in which x is exp(epsilon) times as likely as x' is known, and has the largest delta of all.
    """
    trials, best = 40_000, [0.0] * len(TRIED)
    others = law[-1]
    crowds = []
    for mine in (0, 1):
        crowd = rng.multinomial(devices - 1, others, size=trials)
        crowd[np.arange(trials), rng.choice(len(others), size=trials, p=law[mine])] += 1
        crowds.append([crowd @ (law[x] / others) for x in (0, 1)])
    for x, other in ((0, 1), (1, 0)):
        for place, ratio in enumerate(np.exp(TRIED)):
            of_x, of_other = (int((crowds[mine][x] > ratio * crowds[mine][other]).sum()) for mine in (x, other))
            at_least = stats.beta.ppf(alarm / 2, of_x, trials - of_x + 1) if of_x else 0.0
            at_most = stats.beta.ppf(1 - alarm / 2, of_other + 1, trials - of_other)
            best[place] = max(best[place], float(at_least - ratio * at_most))
    return best


@pytest.mark.parametrize("position", range(len(mechanisms(Fraction(1)))))
def test_the_best_distinguisher_of_shuffled_reports_stays_below_the_bound(position: int) -> None:
    """Fails by chance with probability at most 1e-6 for each crowd; the seeds are fixed."""
    mechanism, rng = mechanisms(Fraction(1))[position], np.random.default_rng(position)
    law, row = law_of(mechanism), blanket_of(mechanism)
    law = law / law.sum(axis=1, keepdims=True)
    sizes = (30, 300, 3000)
    for devices in sizes:
        reached = surest_deltas(law, devices, rng, FALSE_ALARM / (2 * len(sizes) * len(TRIED)))
        for delta, epsilon in zip(reached, TRIED, strict=True):
            assert delta <= delta_bound(row, devices, epsilon)


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
