"""The noise sampler against its probability mass function, tanh(1 / (2 t)) exp(-|x| / t)."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from exact_coins import SeededCoins, enumerate_outcomes

from protocols import ScriptedCoins, exact
from protocols.exact import ONE

FLOOR = Fraction(1, 200_000)
"""Paths through the coins less probable than this are not followed."""


def mass(value, scale):
    return math.tanh(1 / (2 * float(scale))) * math.exp(-abs(value) / float(scale))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5)])
def test_algorithm_2_turns_exponential_coins_into_the_mass_function(scale, monkeypatch):
    """Enumerates the sampler above ``_bernoulli_exp``, which the next test enumerates by itself."""

    def ideal(numerator, denominator, coins):
        return coins.bernoulli(round(math.exp(-numerator / denominator) * ONE))

    monkeypatch.setattr(exact, "_bernoulli_exp", ideal)
    distribution = enumerate_outcomes(lambda coins: exact.discrete_laplace(scale, coins), floor=FLOOR)
    cut = 1 - float(sum(distribution.values()))
    assert cut < 0.03, "nearly all of the mass must have been enumerated, or the check below says little"
    for value in range(-6, 7):
        assert -1e-12 <= mass(value, scale) - float(distribution.get(value, 0)) <= cut + 1e-12
    assert distribution[3] == distribution[-3], "the sign is a fair coin"


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 2), (1, 7), (3, 4), (2, 3)])
def test_bernoulli_exp_is_true_with_the_exponential_of_the_negative_ratio(numerator, denominator):
    distribution = enumerate_outcomes(
        lambda coins: exact._bernoulli_exp(numerator, denominator, coins), floor=FLOOR, alike=numerator
    )
    cut = 1 - float(sum(distribution.values()))
    assert cut < 0.002
    assert 0 <= math.exp(-numerator / denominator) - float(distribution.get(True, 0)) <= cut + 1e-12
    assert 0 <= 1 - math.exp(-numerator / denominator) - float(distribution.get(False, 0)) <= cut + 1e-12


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(81920, 7), Fraction(2**53 + 1, 2**40)])
def test_draws_follow_the_mass_function(scale):
    """Chi-square on twelve bins of about equal mass; false-alarm rate 1e-6 a scale, fixed seed."""
    coins = SeededCoins(20_27)
    draws = Counter(exact.discrete_laplace(scale, coins) for _ in range(8_000))
    spread = max(1, round(float(scale) / 3))
    edges = range(-5 * spread, 6 * spread, spread)

    def below(edge):
        """P(X < edge)."""
        rate = 1 / float(scale)
        if edge <= 0:
            return math.exp((edge - 1) * rate) / (1 + math.exp(-rate))
        return 1 - math.exp(-edge * rate) / (1 + math.exp(-rate))

    bounds = [(-math.inf, edges[0]), *pairwise(edges), (edges[-1], math.inf)]
    expected, observed = [], []
    for low, high in bounds:
        share = (below(high) if high < math.inf else 1) - (below(low) if low > -math.inf else 0)
        if share * 8_000 >= 5:
            expected.append(share)
            observed.append(sum(count for value, count in draws.items() if low <= value < high))
    rest = 1 - sum(expected)
    if rest * 8_000 >= 5:
        expected.append(rest)
        observed.append(8_000 - sum(observed))
    stats = pytest.importorskip("scipy.stats")
    statistic, _ = stats.chisquare(observed, [share / sum(expected) * sum(observed) for share in expected])
    assert statistic < stats.chi2.isf(1e-6, len(expected) - 1)
    assert sum(observed) >= 7_990, "hardly a draw lies outside the bins that were compared"


@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1), Fraction(2), Fraction(40), Fraction(8192)])
def test_the_variance_is_the_second_moment_of_the_mass_function(scale):
    reach = math.ceil(40 * scale) + 40
    moment = math.fsum(2 * mass(value, scale) * value * value for value in range(1, reach))
    assert exact.discrete_laplace_variance(scale) == pytest.approx(moment, rel=1e-9)


def test_a_negative_zero_is_drawn_again_so_that_zero_is_not_counted_twice():
    # Scale 1: below(1) takes no word; _bernoulli_exp(0, 1) takes none either and is true; the words are
    # below(2) >= 1 -> stop of _bernoulli_exp(1, 1) after two trials, false: no period; then the sign.
    period_ends, negative, positive = 1, 1, 0
    coins = ScriptedCoins([period_ends, negative, period_ends, positive])
    assert exact.discrete_laplace(Fraction(1), coins) == 0
    assert coins.taken == 4
