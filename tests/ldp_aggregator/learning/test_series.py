"""Levels over windows: as near as can be, in intervals that hold, and with jumps where there are jumps.

All series are drawn with fixed seeds; a bound of a mean is five standard errors from it or more.
"""

import numpy as np
import pytest

from ldp_aggregator.learning.series import foreseen_variances, smooth

WINDOWS, CELLS = 40, 8
LEVELS = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])
EVERYBODY = np.full(WINDOWS, np.inf)


def walks(drift, noise, cells, seed, windows=WINDOWS):
    """Random walks from anywhere between 0 and 1, and their estimates."""
    rng = np.random.default_rng(seed)
    levels = rng.random(cells) + np.cumsum(rng.normal(0, drift**0.5, (windows, cells)), axis=0)
    return levels, levels + rng.normal(0, noise**0.5, levels.shape)


def sampled(levels, answers, noise, seed):
    """Estimates of people who are drawn anew in every window."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(answers, np.broadcast_to(levels, (WINDOWS, CELLS))) / answers
    return drawn + rng.normal(0, noise**0.5, drawn.shape)


@pytest.mark.parametrize("ratio", [0.03, 0.3, 3.0])
def test_errors_are_those_that_are_told_and_those_that_are_foreseen(ratio):
    """600 cells have a mean square error of its own relative standard error of about 2 %; the grid of drifts adds 5."""
    noise = 1e-3
    levels, estimates = walks(ratio * noise, noise, 600, seed=1)
    found = smooth(estimates, np.full(estimates.shape, noise), EVERYBODY)
    assert found.drift == pytest.approx(ratio * noise, rel=0.5)
    foreseen = foreseen_variances(ratio * noise, noise, WINDOWS)
    for cells, place, variance in zip((found.filtered, found.smoothed), (-1, WINDOWS // 2), foreseen, strict=True):
        squares = (cells.value - levels) ** 2
        assert (squares / cells.variance).mean() == pytest.approx(1, rel=0.1)
        assert cells.variance[place].mean() == pytest.approx(variance, rel=0.1)
        assert ((cells.low <= levels) & (levels <= cells.high)).mean() == pytest.approx(0.95, abs=0.01)


def test_the_present_is_the_same_in_both():
    _, estimates = walks(1e-5, 1e-3, CELLS, seed=2)
    found = smooth(estimates, np.full(estimates.shape, 1e-3), EVERYBODY)
    assert found.filtered.value[-1] == pytest.approx(found.smoothed.value[-1], rel=1e-12)
    assert found.filtered.variance[-1] == pytest.approx(found.smoothed.variance[-1], rel=1e-12)


def test_who_is_asked_is_not_taken_for_drift():
    """Nearly all that moves the estimates at a large epsilon is who was asked, and more so in frequent cells."""
    answers, noise = 2_000, 1e-6
    estimates = sampled(LEVELS, answers, noise, seed=3)
    noises = np.full(estimates.shape, noise)
    found = smooth(estimates, noises, np.full(WINDOWS, float(answers)))
    least = np.sqrt(np.mean(LEVELS * (1 - LEVELS)) / answers / WINDOWS)
    assert np.sqrt(np.mean((found.smoothed.value - LEVELS) ** 2)) < 1.5 * least
    without = smooth(estimates, noises, EVERYBODY)
    assert np.sqrt(np.mean((without.smoothed.value - LEVELS) ** 2)) > 5 * least


@pytest.mark.parametrize("drift", [0.0, 1e-4])
def test_a_jump_is_found_at_its_window_and_left_out_of_the_drift(drift):
    levels, estimates = walks(drift, 1e-3, CELLS, seed=4)
    step = np.where(np.arange(WINDOWS) >= 25, 1.0, 0.0)[:, None] * np.array([0.2, -0.2, 0.1, -0.1, 0.1, -0.1, 0, 0])
    found = smooth(estimates + step, np.full(estimates.shape, 1e-3), EVERYBODY)
    assert found.jumps == (25,)
    assert found.drift <= 2 * drift + 1e-6
    inside = (found.smoothed.low <= levels + step) & (levels + step <= found.smoothed.high)
    assert inside[20:30].mean() > 0.9


def test_two_jumps_are_two():
    _, estimates = walks(0.0, 1e-4, CELLS, seed=5)
    estimates[10:] += 0.1 * (-1) ** np.arange(CELLS)
    estimates[30:] -= 0.05 * (-1) ** np.arange(CELLS)
    assert smooth(estimates, np.full(estimates.shape, 1e-4), EVERYBODY).jumps == (10, 30)


@pytest.mark.parametrize("ratio", [0.0, 0.1])
def test_there_is_hardly_ever_a_jump_without_one(ratio):
    """At a hundredth each, 9 of 200 or more have a chance of 2e-4."""
    found = 0
    for seed in range(200):
        _, estimates = walks(ratio * 1e-3, 1e-3, CELLS, seed=[6, seed], windows=16)
        found += bool(smooth(estimates, np.full(estimates.shape, 1e-3), EVERYBODY[:16]).jumps)
    assert found < 9


def test_a_window_without_answers_tells_nothing():
    _, estimates = walks(1e-4, 1e-3, CELLS, seed=7)
    noise, answers = np.full(estimates.shape, 1e-3), np.full(WINDOWS, 1e6)
    answers[[0, 1, 20, 21, 22]] = 0
    found = smooth(estimates, noise, answers)
    estimates[answers == 0] = np.nan
    noise[answers == 0] = np.inf
    again = smooth(estimates, noise, answers)
    for first, second in ((found.filtered, again.filtered), (found.smoothed, again.smoothed)):
        assert (first.value == second.value).all()
        assert (first.variance == second.variance).all()
    assert np.isinf(found.filtered.variance[:2]).all()
    assert np.isfinite(found.filtered.variance[2:]).all()
    assert (np.diff(found.filtered.variance[19:23], axis=0) > 0).all()
    assert found.filtered.value[20:23] == pytest.approx(found.filtered.value[[19] * 3])
    assert (found.smoothed.variance[21] > found.smoothed.variance[19]).all()


def test_nothing_is_known_where_nobody_answered():
    found = smooth(np.full((3, 2), np.nan), np.full((3, 2), np.inf), np.zeros(3))
    assert np.isinf(found.smoothed.variance).all()
    assert np.isinf(found.filtered.variance).all()
    assert (found.drift, found.jumps) == (0.0, ())


def test_one_window_is_itself():
    found = smooth(np.array([[0.25, 0.75]]), np.array([[0.01, 0.02]]), np.array([100.0]))
    assert found.smoothed.value == pytest.approx(np.array([[0.25, 0.75]]), rel=1e-5)
    assert found.smoothed.variance == pytest.approx(np.array([[0.011875, 0.021875]]), rel=1e-5)


@pytest.mark.parametrize("windows", [4, 12, 52])
def test_what_is_foreseen_is_at_most_a_sixth_below_the_standard_error_of_the_recursions(windows):
    noise = 2e-3
    for drift in [0.0, *np.geomspace(1e-9, 1e-2, 30)]:
        kept, spread = [], np.inf
        for _ in range(windows):
            spread = noise if np.isinf(spread) else (spread + drift) * noise / (spread + drift + noise)
            kept.append(spread)
        back = kept[:]
        for t in range(windows - 2, -1, -1):
            ahead = kept[t] + drift
            back[t] = kept[t] + (kept[t] / ahead) ** 2 * (back[t + 1] - ahead)
        filtered, smoothed = foreseen_variances(drift, noise, windows)
        assert 1 - 1e-6 <= (kept[-1] / filtered) ** 0.5 < 7 / 6
        assert 0.98 <= (back[windows // 2] / smoothed) ** 0.5 < 7 / 6
