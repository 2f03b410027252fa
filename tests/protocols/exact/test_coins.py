import itertools
import os
from fractions import Fraction
from math import comb

import pytest
from exact_coins import SeededCoins, enumerate_outcomes
from hypothesis import given
from hypothesis import strategies as st

from protocols import SYSTEM_COINS, ScriptedCoins
from protocols.exact import ONE


@pytest.mark.parametrize("bound", range(2, 70))
def test_below_meets_every_value_once_and_rejects_the_rest(bound):
    bits = (bound - 1).bit_length()
    results = []
    for low in range(1 << bits):
        # The bits above the b lowest are ignored, so they may be anything.
        coins = ScriptedCoins([low | 0xDEADBEEF << bits & (ONE - 1), 0])
        value = coins.below(bound)
        if coins.taken == 1:
            results.append(value)
        else:
            assert low >= bound, "only a value that is not below the bound is rejected"
    assert results == list(range(bound)), "never modulo: each value comes from exactly one b-bit word"


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


def test_the_system_coins_have_no_constant_bit():
    """False alarm: 128 events of probability 2**-200."""
    words = SYSTEM_COINS.words(200)
    ever_set, always_set = 0, ONE - 1
    for word in words:
        ever_set |= word
        always_set &= word
    assert (ever_set, always_set) == (ONE - 1, 0)


def test_scripted_coins_fail_when_the_script_ends():
    coins = ScriptedCoins([1, 2])
    assert list(coins.words(2)) == [1, 2]
    with pytest.raises(LookupError, match="2 words"):
        coins.words(1)
