"""Seeded coins and the array draws follow the laws they state."""

from fractions import Fraction

import numpy as np
import pytest

from ldp_aggregator.mechanisms.sampling import bernoulli, bernoulli_bits, bernoulli_each, discrete_laplace
from protocols import exact
from protocols.exact import ONE
from simulations import SeededCoins


def test_the_same_seed_gives_the_same_words_and_another_seed_gives_others():
    assert list(SeededCoins(7).words(50)) == list(SeededCoins(7).words(50))
    assert list(SeededCoins(7).words(50)) != list(SeededCoins(8).words(50))
    assert all(0 <= word < ONE for word in SeededCoins("device 1").words(1000))


@pytest.mark.parametrize("probability", [1 << 56, (1 << 63) + 12345, ONE - (1 << 50), 3 << 54, ONE // 3])
def test_flags_are_set_as_often_as_their_probability_says(probability):
    flags = bernoulli(probability, (1000, 1000), np.random.default_rng(2))
    p = probability / ONE
    assert abs(flags.mean() - p) < 5 * np.sqrt(p * (1 - p) / flags.size)  # False alarm: 6e-7.
    each = bernoulli_each(np.full(1_000_000, probability, dtype=np.uint64), np.random.default_rng(2))
    assert abs(each.mean() - p) < 5 * np.sqrt(p * (1 - p) / each.size)


@pytest.mark.parametrize("probability", [1, 1 << 50, 1 << 56, (1 << 63) + 12345, ONE - (1 << 50), 3 << 54, ONE // 3])
def test_bits_are_set_as_often_as_their_probability_says_in_every_place(probability):
    """Eight places, false alarm 5e-6 together."""
    found = np.unpackbits(bernoulli_bits(probability, 250_001, np.random.default_rng(2)).reshape(-1, 1), axis=1)
    p = probability / ONE
    assert found.shape == (250_001, 8)
    assert (np.abs(found.mean(axis=0) - p) < 5 * np.sqrt(p * (1 - p) / 250_001) + 1e-15).all()


def test_a_bit_tells_nothing_about_its_neighbours():
    """Correlations of each place with the next, in the byte and across bytes; false alarm 5e-6 together."""
    bits = np.unpackbits(bernoulli_bits(ONE // 5, 200_000, np.random.default_rng(6)))
    for distance in (1, 2, 8, 64, 512):
        correlation = np.corrcoef(bits[:-distance], bits[distance:])[0, 1]
        assert abs(correlation) < 5 / np.sqrt(len(bits))


def test_a_probability_below_one_byte_is_not_rounded_away_and_impossible_and_certain_flags_take_no_coin():
    """P = 2**50 is a 16384th: only the words after a first byte of zero can decide it."""
    flags = bernoulli(1 << 50, 1 << 24, np.random.default_rng(4))
    expected = (1 << 24) / (1 << 14)
    assert abs(flags.sum() - expected) < 5 * np.sqrt(expected)
    assert not bernoulli(0, 100, np.random.default_rng(0)).any()
    assert bernoulli(ONE, 100, np.random.default_rng(0)).all()


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(8192, 5)])
def test_noise_is_the_discrete_laplace_law_of_the_device(scale, same_distribution):
    coins = SeededCoins(3)
    step = max(1, int(scale / 2))
    real = [exact.discrete_laplace(scale, coins) // step for _ in range(6_000)]
    drawn = discrete_laplace(scale, 60_000, np.random.default_rng(3)) // step
    same_distribution(real, drawn.tolist())
