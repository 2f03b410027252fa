"""The vectorised sampler draws the law it states, and its grid covers the rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ldp_aggregator.trainers.noise.integers import STEPS, discrete_laplace, drawable, release
from ldp_aggregator.trainers.noise.randomness import PrivacyWarning, SeededCoins, coins_of, word_array
from protocols.exact.coins import SYSTEM_COINS, ScriptedCoins


def seeded(seed):
    with pytest.warns(PrivacyWarning, match="never for release"):
        return coins_of(seed)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(40)])
def test_draws_follow_the_discrete_laplace_law(scale):
    """A chi-square test at a false-alarm rate of 1e-4 for each of the four scales; the seed is fixed."""
    draws = discrete_laplace(scale, 100_000, seeded(11))
    edge = int(4 * scale) + 1
    rate = np.exp(-1 / float(scale))
    inside = np.arange(-edge, edge + 1)
    share = (1 - rate) / (1 + rate) * rate ** np.abs(inside)
    tail = rate ** (edge + 1) / (1 + rate)
    expected = np.array([tail, *share, tail]) * draws.size
    observed = np.bincount(np.clip(draws, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_a_wide_law_has_its_variance():
    """200,000 draws: the relative error of the variance has sd 0.5 %, so that 2.5 % is five of them."""
    scale = Fraction(1 << 20) / Fraction(1, 10)
    draws = discrete_laplace(scale, 200_000, seeded(5)).astype(float)
    assert draws.var() == pytest.approx(2 * float(scale) ** 2, rel=0.025)


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(10**13 + 1, 3), Fraction(1 << 49) / Fraction(999, 1000)])
def test_the_scale_that_is_drawn_is_hardly_above_the_promised_one(scale):
    rounded = drawable(scale)
    assert scale <= rounded <= scale * (1 + Fraction(1, 10**9))


def test_a_hopeless_scale_is_refused():
    with pytest.raises(ValueError, match="epsilon is too small"):
        discrete_laplace(Fraction(1 << 51), 1, SYSTEM_COINS)


def test_a_release_is_the_value_where_the_noise_is_zero():
    zero = ScriptedCoins([0, 1, 1, 1, 0, 1] * 100)  # offset 0, no period, positive
    released = release(Fraction(1, 3), Fraction(1), Fraction(1), zero)
    assert abs(released - Fraction(1, 3)) <= Fraction(1, 2 * STEPS)
    assert (released * STEPS).denominator == 1


def test_a_query_that_nobody_moves_needs_no_noise():
    assert release(Fraction(1, 3), Fraction(0), Fraction(1), SYSTEM_COINS) == Fraction(1, 3)


def test_the_same_seed_repeats_and_the_system_does_not():
    first, second = (discrete_laplace(Fraction(1000), 50, seeded(3)) for _ in range(2))
    assert (first == second).all()
    drawn = [discrete_laplace(Fraction(1000), 50, coins_of(None)) for _ in range(2)]
    assert (drawn[0] != drawn[1]).any()


def test_known_coins_give_the_same_words_as_an_array():
    words = SeededCoins(np.random.default_rng(6)).words(100)
    assert word_array(SeededCoins(np.random.default_rng(6)), 100).tolist() == list(words)
    assert word_array(ScriptedCoins(words), 100).tolist() == list(words)
    drawn = word_array(SYSTEM_COINS, 1000)
    assert len(set(drawn.tolist())) == 1000
    assert (drawn >> np.uint64(63)).mean() == pytest.approx(0.5, abs=0.1)
