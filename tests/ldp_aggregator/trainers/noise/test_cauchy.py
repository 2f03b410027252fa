"""The calibration against density ratios on a grid and quadrature; the exact draws against the law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from ldp_aggregator.trainers.noise.randomness import SeededCoins
from ldp_aggregator.trainers.noise.smoothness import calibrate, largest_beta, release, rounded_draw, true_loss
from protocols.exact.coins import SYSTEM_COINS

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


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_calibration_is_sound_and_tight(epsilon, share):
    beta = share * largest_beta(epsilon)
    alpha = calibrate(epsilon, beta)
    assert epsilon * 0.999 <= worst_log_ratio(alpha, beta) <= epsilon * (1 + 1e-9)
    assert true_loss(alpha, beta) == pytest.approx(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_largest_beta_is_free_and_no_larger_one_is(epsilon):
    beta = largest_beta(epsilon)
    assert beta < epsilon
    assert calibrate(epsilon, beta) == pytest.approx(2 * math.sinh(epsilon / 2)) == calibrate(epsilon, 0.0)
    assert calibrate(epsilon, (beta + epsilon) / 2) < calibrate(epsilon, beta)
    with pytest.raises(ValueError, match="below epsilon"):
        calibrate(epsilon, epsilon)


def test_the_published_noise_loses_what_is_stated():
    """Noise sqrt(2) S / epsilon: sound with beta = epsilon / sqrt(2), not with beta = epsilon."""
    alpha = 1 / math.sqrt(2)
    assert true_loss(alpha, 1 / math.sqrt(2)) == pytest.approx(0.85, abs=0.005)
    assert true_loss(alpha, 1.0) == pytest.approx(1.075, abs=0.0005)


def test_the_largest_ratio_is_the_hyperbolic_distance_by_quadrature():
    """The chance of the best set of outcomes, integrated: P(A) - exp(epsilon) Q(A) is 0 at the loss, above 0 below."""
    alpha, ratio = calibrate(1.0, largest_beta(1.0)), math.exp(largest_beta(1.0))
    first, second = stats.cauchy(0, 1 / alpha), stats.cauchy(1, ratio / alpha)

    def excess(loss):
        factor = math.exp(loss)
        return integrate.quad(lambda x: max(first.pdf(x) - factor * second.pdf(x), 0), -50, 50, limit=400)[0]

    assert excess(1.0) == pytest.approx(0, abs=1e-9)
    assert excess(0.9) > 1e-5


def test_draws_follow_the_rounded_cauchy_law():
    """A chi-square test at a false-alarm rate of 1e-4 with a fixed seed."""
    coins = SeededCoins(np.random.default_rng(8))
    draws = np.array([rounded_draw(Fraction(1, 3), Fraction(5, 2), Fraction(1), coins) for _ in range(20_000)])
    edges = np.array([-np.inf, *np.arange(-12.5, 13.5), np.inf])
    expected = np.diff(stats.cauchy.cdf(edges, 1 / 3, 2.5)) * draws.size
    observed = np.histogram(draws, edges)[0]
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_a_release_is_on_the_grid_and_near_a_value_that_hardly_moves():
    step = Fraction(1, 1 << 30)
    released = release(Fraction(1, 3), 1e-15, 1.0, step, SYSTEM_COINS)
    assert (released / step).denominator == 1
    assert abs(float(released) - 1 / 3) < 1e-3
