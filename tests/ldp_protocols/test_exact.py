import itertools
import math
import os
from bisect import bisect_right
from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import comb

import pytest
from exact_coins import SeededCoins, enumerate_outcomes
from hypothesis import given
from hypothesis import strategies as st

from ldp_protocols import SYSTEM_COINS, ScriptedCoins, exact
from ldp_protocols.exact import (
    divide_down,
    exact_epsilon,
    exp_bounds,
    float_up,
    log_upper,
    probability_down,
    probability_up,
)

ONE = 2**64


@given(
    st.integers(1, 1 << 130) | st.integers(0, 130).flatmap(lambda bits: st.sampled_from([1 << bits, (1 << bits) + 1])),
    st.integers(0, 1 << 32),
)
def test_below_takes_the_low_bits_of_as_many_words_as_it_needs_the_least_significant_first(bound, seed):
    """Again until a value is below the bound."""
    words = SeededCoins(seed).words(150)
    bits = (bound - 1).bit_length()
    each = -(-bits // 64)
    tries = [words[start : start + each] for start in range(0, len(words), each)] if each else [[]]
    values = [sum(word << 64 * place for place, word in enumerate(one)) & ((1 << bits) - 1) for one in tries]
    first = next(number for number, value in enumerate(values) if value < bound)
    coins = ScriptedCoins(words)
    assert coins.below(bound) == values[first]
    assert coins.taken == each * (first + 1)


def test_a_draw_of_two_words_that_equals_its_bound_is_drawn_again():
    assert ScriptedCoins([1, 1, 0, 1]).below(2**64 + 1) == 2**64


@pytest.mark.parametrize("bound", [0, -1])
def test_below_refuses_a_bound_that_nothing_is_below(bound):
    with pytest.raises(ValueError, match="at least 1"):
        SYSTEM_COINS.below(bound)


@pytest.mark.parametrize("probability", [1, 2, 1 << 63, ONE - 1])
def test_bernoulli_is_true_exactly_for_the_words_below_the_probability(probability):
    assert ScriptedCoins([probability - 1]).bernoulli(probability) is True
    assert ScriptedCoins([probability]).bernoulli(probability) is False
    assert ScriptedCoins([0]).bernoulli(0) is False
    assert ScriptedCoins([ONE - 1]).bernoulli(ONE) is True


@pytest.mark.parametrize("population", range(1, 7))
def test_every_subset_of_a_size_is_equally_likely(population):
    for size in range(population + 1):
        distribution = enumerate_outcomes(lambda coins, size=size: frozenset(coins.subset(population, size)))
        assert set(distribution) == set(map(frozenset, itertools.combinations(range(population), size)))
        assert set(distribution.values()) == {Fraction(1, comb(population, size))}


def test_the_system_coins_read_exactly_the_bytes_of_their_words_and_buffer_nothing(monkeypatch):
    asked = []

    def urandom(count):
        asked.append(count)
        return bytes(range(count))

    monkeypatch.setattr(os, "urandom", urandom)
    assert list(SYSTEM_COINS.words(2)) == [0x0706050403020100, 0x0F0E0D0C0B0A0908]
    SYSTEM_COINS.below(3)
    SYSTEM_COINS.bernoulli(1)
    assert asked == [16, 8, 8]


def test_scripted_coins_fail_when_the_script_ends():
    coins = ScriptedCoins([1, 2])
    assert list(coins.words(2)) == [1, 2]
    with pytest.raises(LookupError, match="2 words"):
        coins.words(1)


FLOOR = Fraction(1, 200_000)
"""Paths through the coins less probable than this are not followed."""


def mass(value, scale):
    return math.tanh(1 / (2 * float(scale))) * math.exp(-abs(value) / float(scale))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3, 2)])
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
    """Chi-square on up to twelve bins of at least five draws; false-alarm rate 1e-6 a scale, fixed seed."""
    stats = pytest.importorskip("scipy.stats")
    coins, law = SeededCoins(20_27), stats.dlaplace(1 / float(scale))
    draws = [exact.discrete_laplace(scale, coins) for _ in range(8_000)]
    spread = max(1, round(float(scale) / 3))
    edges = [edge for edge in range(-5 * spread, 6 * spread, spread) if min(law.cdf(edge - 1), law.sf(edge - 1)) > 1e-3]
    below = [0, *(law.cdf(edge - 1) for edge in edges), 1]
    expected = [8_000 * (high - low) for low, high in pairwise(below)]
    placed = Counter(bisect_right(edges, draw) for draw in draws)
    statistic, _ = stats.chisquare([placed[place] for place in range(len(expected))], expected)
    assert min(expected) >= 5
    assert statistic < stats.chi2.isf(1e-6, len(expected) - 1)


@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1), Fraction(2), Fraction(40), Fraction(8192)])
def test_the_variance_is_the_second_moment_of_the_mass_function(scale):
    reach = math.ceil(40 * scale) + 40
    moment = math.fsum(2 * mass(value, scale) * value * value for value in range(1, reach))
    assert exact.discrete_laplace_variance(scale) == pytest.approx(moment, rel=1e-9)


EXPONENTS = [Fraction(text) for text in ("0", "1e-9", "0.01", "1/3", "0.5", "1", "2", "10", "63.999", "64")]


def exponential(exponent):
    """Lower and upper bound of exp(exponent), |exponent| <= 256, by more digits than the code computes with."""
    context = Context(prec=150)
    near = Fraction(context.exp(context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))))
    return near * (1 - Fraction(1, 10**140)), near * (1 + Fraction(1, 10**140))


@pytest.mark.parametrize(
    ("epsilon", "promised"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (Fraction(1, 3), Fraction(3333333333333333, 10**16)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("0.30000000000000000001"), Fraction(0.3)),
        (True, Fraction(1)),
    ],
)
def test_any_real_number_is_an_epsilon_and_none_is_exceeded(epsilon, promised):
    assert exact_epsilon(epsilon) == promised <= Fraction(epsilon)


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int64", "uint8", "longdouble"])
def test_numpys_numbers_are_the_numbers_they_are(kind):
    numpy = pytest.importorskip("numpy")
    assert exact_epsilon(getattr(numpy, kind)(1)) == 1
    assert exact_epsilon(numpy.float64(0.1)) == exact_epsilon(0.1)


@pytest.mark.parametrize("epsilon", [math.nan, math.inf, -math.inf, "one", None, [1]])
def test_what_is_no_finite_number_is_no_epsilon(epsilon):
    with pytest.raises((ValueError, OverflowError, TypeError)):
        exact_epsilon(epsilon)


@pytest.mark.parametrize("exponent", EXPONENTS + [-exponent for exponent in EXPONENTS])
def test_exp_bounds_enclose_the_exponential(exponent):
    low, high = exp_bounds(exponent)
    least, most = exponential(exponent)
    assert low <= least
    assert most <= high
    assert exp_bounds(1000 * exponent) == exp_bounds(max(min(1000 * exponent, Fraction(64)), Fraction(-64)))
    assert (high - low) / low < Fraction(1, 10**56)


@given(st.fractions(min_value=-64, max_value=64, max_denominator=10**12))
def test_exp_bounds_enclose_at_any_rational_exponent(exponent):
    low, high = exp_bounds(exponent)
    least, most = exponential(exponent)
    assert low <= least <= most <= high


@given(st.fractions(min_value=1, max_value=10**12, max_denominator=10**12))
def test_log_upper_is_an_upper_bound_and_a_tight_one(ratio):
    bound = log_upper(ratio)
    assert exponential(bound)[0] >= ratio or ratio == 1
    assert exponential(bound - Fraction(1, 10**50))[1] < ratio


@pytest.mark.parametrize("bit", [1, 20, 63, 64, 127])
def test_log_upper_bounds_ratios_next_to_one_and_enormous_ones(bit):
    assert exponential(log_upper(1 + Fraction(1, 1 << bit)))[0] >= 1 + Fraction(1, 1 << bit)
    assert exponential(log_upper(Fraction(1 << bit)))[0] >= 1 << bit
    assert log_upper(Fraction(1)) == 0
    with pytest.raises(ValueError, match="at least 1"):
        log_upper(1 - Fraction(1, 1 << bit))


@given(st.floats(min_value=1e-6, max_value=1e6), st.integers(min_value=1, max_value=1001))
def test_divided_parts_never_add_up_to_more_than_the_whole(epsilon, parts):
    part = divide_down(epsilon, parts)
    assert exact_epsilon(part) * parts <= exact_epsilon(epsilon)
    assert exact_epsilon(part) * parts >= exact_epsilon(epsilon) * (1 - Fraction(2, 10**11))
    assert divide_down(epsilon, 1) == epsilon


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_exact_epsilon_is_neither_above_the_double_nor_above_its_decimal_text(epsilon):
    exact = exact_epsilon(epsilon)
    assert exact <= Fraction(epsilon)
    assert exact <= Fraction(repr(epsilon))
    assert exact in (Fraction(epsilon), Fraction(repr(epsilon)))


@given(st.fractions(min_value=0, max_value=1))
def test_probabilities_round_to_the_promised_side_by_less_than_one_step(probability):
    down, up = probability_down(probability), probability_up(probability)
    assert Fraction(down, ONE) <= probability < Fraction(down + 1, ONE) or (probability == 1 and down == ONE - 1)
    assert Fraction(up - 1, ONE) < probability <= Fraction(up, ONE) or (probability == 0 and up == 1)


@given(st.fractions())
def test_float_up_is_the_least_double_not_below(value):
    up = float_up(value)
    assert Fraction(up) >= value
    assert Fraction(math.nextafter(up, -math.inf)) < value


@pytest.mark.parametrize("exact_number", [Fraction(1, 10) - Fraction(1, 10**30), Decimal("0." + "09" + "9" * 30)])
def test_an_exact_epsilon_is_never_exceeded_though_text_and_double_of_it_are_above(exact_number):
    assert float(exact_number) == 0.1
    assert exact_epsilon(exact_number) == Fraction(exact_number) < Fraction(1, 10)


@pytest.mark.parametrize(("bound", "words"), [(2**64, [5]), (2**128, [5, 0]), (2**64 + 1, [5, 0])])
def test_a_bound_takes_no_word_more_than_the_bits_below_it(bound, words):
    assert ScriptedCoins(words).below(bound) == 5
