"""The samplers draw the laws they state, and the calibration is what density ratios say."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ldp_aggregator.trainers.noise import smoothness
from ldp_aggregator.trainers.noise.randomness import (
    STEPS,
    PrivacyWarning,
    SeededCoins,
    coins_of,
    discrete_laplace,
    drawable,
    release,
    word_array,
)
from ldp_aggregator.trainers.noise.smoothness import calibrate, largest_beta, rounded_draw
from protocols.exact import SYSTEM_COINS, ScriptedCoins


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


def test_the_scale_that_is_drawn_is_hardly_above_the_promised_one_and_a_hopeless_one_is_refused():
    for scale in (Fraction(1, 7), Fraction(10**13 + 1, 3), Fraction(1 << 49) / Fraction(999, 1000)):
        assert scale <= drawable(scale) <= scale * (1 + Fraction(1, 10**9))
    with pytest.raises(ValueError, match="epsilon is too small"):
        discrete_laplace(Fraction(1 << 51), 1, SYSTEM_COINS)


def test_a_release_is_on_the_grid_and_near_a_value_that_hardly_moves():
    zero = ScriptedCoins([0, 1, 1, 1, 0, 1] * 100)  # offset 0, no period, positive
    released = release(Fraction(1, 3), Fraction(1), Fraction(1), zero)
    assert abs(released - Fraction(1, 3)) <= Fraction(1, 2 * STEPS)
    assert (released * STEPS).denominator == 1
    unmoved = release(Fraction(1, 3), Fraction(0), Fraction(1), SYSTEM_COINS)
    assert unmoved == Fraction(1, 3), "a query that nobody moves needs no noise"
    step = Fraction(1, 1 << 30)
    released = smoothness.release(Fraction(1, 3), 1e-15, 1.0, step, SYSTEM_COINS)
    assert (released / step).denominator == 1
    assert abs(float(released) - 1 / 3) < 1e-3  # Live: Cauchy noise is that far off once in 10**12 runs.


def test_the_same_seed_repeats_and_the_system_does_not_and_known_coins_give_the_same_words_as_an_array():
    first, second = (discrete_laplace(Fraction(1000), 50, seeded(3)) for _ in range(2))
    assert (first == second).all()
    first, second = (discrete_laplace(Fraction(1000), 50, coins_of(None)) for _ in range(2))
    assert (first != second).any()
    words = SeededCoins(np.random.default_rng(6)).words(100)
    assert word_array(SeededCoins(np.random.default_rng(6)), 100).tolist() == list(words)
    assert word_array(ScriptedCoins(words), 100).tolist() == list(words)
    drawn = word_array(SYSTEM_COINS, 1000)  # Live: two are equal, or a bit is so uneven, once in 10**9 runs.
    assert len(set(drawn.tolist())) == 1000
    assert (drawn >> np.uint64(63)).mean() == pytest.approx(0.5, abs=0.1)


EPSILONS = (0.05, 0.5, 1.0, 4.0)


def worst_log_ratio(alpha, beta):
    """The largest log density ratio between any neighbours: S in [1, exp(beta)], places apart by at most 1."""
    x = np.concatenate([np.linspace(-30, 30, 30_001), np.tan(np.linspace(-1.5707, 1.5707, 10_001))])
    worst = 0.0
    for ratio in np.exp(np.linspace(0, beta, 9)):
        for apart in (0.0, 0.5, 1.0):
            first = stats.cauchy.logpdf(x, 0, 1 / alpha)
            second = stats.cauchy.logpdf(x, apart, ratio / alpha)
            worst = max(worst, np.abs(first - second).max())
    return worst


def true_loss(alpha, beta):
    """Loss of noise S / alpha, S beta-smooth, in closed form: the inverse of the calibration."""
    ratio = math.exp(beta)
    return math.acosh(max(1 + alpha**2 / 2, (alpha**2 + 1 + ratio**2) / (2 * ratio)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_calibration_is_sound_and_tight(epsilon, share):
    beta = share * largest_beta(epsilon)
    alpha = calibrate(epsilon, beta)
    assert epsilon * 0.999 <= worst_log_ratio(alpha, beta) <= epsilon * (1 + 1e-9)
    assert true_loss(alpha, beta) == pytest.approx(epsilon)


def test_the_published_noise_loses_what_is_stated():
    """Noise sqrt(2) S / epsilon: sound with beta = epsilon / sqrt(2), not with beta = epsilon."""
    alpha = 1 / math.sqrt(2)
    assert true_loss(alpha, 1 / math.sqrt(2)) == pytest.approx(0.85, abs=0.005)
    assert true_loss(alpha, 1.0) == pytest.approx(1.075, abs=0.0005)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_largest_beta_is_free_and_no_larger_one_is(epsilon):
    beta = largest_beta(epsilon)
    assert beta < epsilon
    assert calibrate(epsilon, beta) == pytest.approx(2 * math.sinh(epsilon / 2)) == calibrate(epsilon, 0.0)
    assert calibrate(epsilon, (beta + epsilon) / 2) < calibrate(epsilon, beta)
    with pytest.raises(ValueError, match="below epsilon"):
        calibrate(epsilon, epsilon)


def test_draws_follow_the_rounded_cauchy_law():
    """A chi-square test at a false-alarm rate of 1e-4 with a fixed seed."""
    coins = SeededCoins(np.random.default_rng(8))
    draws = np.array([rounded_draw(Fraction(1, 3), Fraction(5, 2), Fraction(1), coins) for _ in range(20_000)])
    edges = np.array([-np.inf, *np.arange(-12.5, 13.5), np.inf])
    expected = np.diff(stats.cauchy.cdf(edges, 1 / 3, 2.5)) * draws.size
    observed = np.histogram(draws, edges)[0]
    assert stats.chisquare(observed, expected).pvalue > 1e-4
