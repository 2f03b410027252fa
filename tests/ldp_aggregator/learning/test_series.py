"""Levels over windows: as near as can be, in intervals that hold, whichever cells drift, jump or follow a trend.

All series are drawn with fixed seeds; a bound of a mean is five standard errors from it or more.
"""

import itertools

import numpy as np
import pytest

from ldp_aggregator.learning import series
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
    """600 cells have a mean square error of its own relative standard error of about 2 %."""
    noise = 1e-3
    levels, estimates = walks(ratio * noise, noise, 600, seed=1)
    found = smooth(estimates, np.full(estimates.shape, noise), EVERYBODY)
    foreseen = foreseen_variances(ratio * noise, noise, WINDOWS)
    for cells, place, variance in zip((found.filtered, found.smoothed), (-1, WINDOWS // 2), foreseen, strict=True):
        squares = (cells.value - levels) ** 2
        assert 0.75 < (squares / cells.variance).mean() < 1.05
        assert squares[place].mean() < 1.3 * variance
        assert cells.variance[place].mean() == pytest.approx(variance, rel=0.5)
        assert 0.945 < ((cells.low <= levels) & (levels <= cells.high)).mean() < 0.98


def normal(at, mean, covariance):
    """The log density of a normal vector, but for its constant."""
    apart = at - mean
    return -0.5 * (np.linalg.slogdet(covariance)[1] + apart @ np.linalg.solve(covariance, apart))


def by_hand(values, noise, windows):
    """Means and variances of one cell's levels from its first ``windows``, by the joint law under each hypothesis."""
    time, typical = np.arange(len(values)), 1 / np.mean(1 / noise)
    shapes, chances = series._shapes(len(values), 1)
    told = [(1 - chances.sum(), 0 * time), *zip(chances, shapes.T, strict=True)]
    size, seen = max(10 * typical, np.ptp(values) ** 2), slice(windows)
    logs, means, squares = [], [], []
    for drift in series._drifts(values[:, None], typical):
        for chance, shape in told:
            law = series._VAGUE + drift * np.minimum.outer(time, time) + size * np.outer(shape, shape)
            whole = law[seen, seen] + np.diag(noise[seen])
            gain = np.linalg.solve(whole, law[seen]).T
            pooled = values @ (1 / noise) / (1 / noise).sum()
            logs.append(np.log(chance) + series._CAUTION * normal(values[seen], pooled, whole))
            means.append(pooled + gain @ (values[seen] - pooled))
            squares.append(means[-1] ** 2 + np.diag(law - gain @ law[seen]))
    weights = np.exp(np.array(logs) - max(logs))
    mean, square = weights @ np.array(means) / weights.sum(), weights @ np.array(squares) / weights.sum()
    return mean, square - mean**2


def test_levels_are_those_of_all_hypotheses_by_the_laws_of_whole_series(monkeypatch):
    """One cell, whose prior is its own."""
    monkeypatch.setattr(series, "_VAGUE", 1.0)  # Matrices of 1e4 and 1e-3 leave few digits.
    noise, rng = np.linspace(1e-3, 3e-3, 9), np.random.default_rng(8)
    values = 0.4 + 0.1 * (np.arange(9) > 4) + rng.normal(0, noise**0.5)
    found = smooth(values[:, None], noise[:, None], np.full(9, np.inf))
    mean, variance = by_hand(values, noise, 9)
    assert found.smoothed.value[:, 0] == pytest.approx(mean, rel=1e-9)
    assert found.smoothed.variance[:, 0] == pytest.approx(variance, rel=1e-6)
    for window in range(9):
        mean, variance = (part[window] for part in by_hand(values, noise, window + 1))
        assert found.filtered.value[window, 0] == pytest.approx(mean, rel=1e-9)
        assert found.filtered.variance[window, 0] == pytest.approx(variance, rel=1e-6)


def test_cells_are_smoothed_alike_however_many_at_a_time(monkeypatch):
    _, estimates = walks(1e-5, 1e-3, CELLS, seed=2, windows=12)
    told = smooth(estimates, np.full(estimates.shape, 1e-3), EVERYBODY[:12])
    monkeypatch.setattr(series, "_MOST", 12 * 12 * 20)
    few = smooth(estimates, np.full(estimates.shape, 1e-3), EVERYBODY[:12])
    assert few.smoothed.value == pytest.approx(told.smoothed.value, rel=1e-12)
    assert few.filtered.variance == pytest.approx(told.filtered.variance, rel=1e-9)
    monkeypatch.setattr(series, "_MOST", 1)  # A jump is looked for in one place.
    least = smooth(estimates, np.full(estimates.shape, 1e-3), EVERYBODY[:12])
    assert least.smoothed.value == pytest.approx(told.smoothed.value, abs=0.02)


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


STEP = np.where(np.arange(WINDOWS) >= 25, 1.0, 0.0)[:, None] * np.array([0.2, -0.2, 0.1, -0.1, 0.1, -0.1, 0, 0])


@pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-9])
def test_a_jump_is_followed_at_once_and_the_present_is_made_of_what_came_after(noise):
    """Also where it is thousands of standard errors, and nothing else moves: intervals stay those of many windows."""
    levels, estimates = walks(0.0, noise, CELLS, seed=4)
    found = smooth(estimates + STEP, np.full(estimates.shape, noise), EVERYBODY)
    inside = (found.smoothed.low <= levels + STEP) & (levels + STEP <= found.smoothed.high)
    assert inside[20:30].mean() > 0.85
    assert found.smoothed.variance[[5, 35], 0].max() < 0.15 * noise
    assert found.weights.sum() == pytest.approx(1)
    assert found.weights[:25].sum() < 0.25
    assert found.missed[25] < 0.2 or noise > 1e-4


def test_a_jump_of_one_cell_is_missed_below_what_is_told():
    """40 series of four cells, one of which jumps by a half of it, or by a half more than it."""
    held = {0.5: [], 1.5: []}
    for seed, share in itertools.product(range(40), held):
        levels, estimates = walks(0.0, 1e-3, 4, seed=[5, seed], windows=16)
        size = share * 6 * (1e-3 / 8 * 2) ** 0.5
        step = size * (np.arange(16) >= 8)[:, None] * np.array([1, -1 / 3, -1 / 3, -1 / 3])
        found = smooth(estimates + step, np.full(estimates.shape, 1e-3), EVERYBODY[:16])
        inside = (found.smoothed.low <= levels + step) & (levels + step <= found.smoothed.high)
        held[share].append(inside[:, 0].mean())
    assert found.missed[8] == pytest.approx(6 * (1e-3 / 8 * 2) ** 0.5, rel=0.5)
    assert found.missed[8] < found.missed[-1]
    assert np.mean(held[1.5]) > 0.9 > np.mean(held[0.5])


TREND = np.linspace(-0.5, 0.5, 24)[:, None] * np.array([0.2, -0.05, -0.1, 0.05, -0.05, -0.05])
WAVE = np.sin(np.arange(24) * np.pi / 6)[:, None] * np.array([0.12, 0, -0.1, 0, 0.04, -0.06])
LATE = (np.arange(24) >= 15)[:, None] * np.array([-0.15, 0.05, 0.05, 0.05, 0, 0])


@pytest.mark.long
@pytest.mark.parametrize("moved", [TREND, WAVE, LATE, 0 * TREND], ids=["trend", "wave", "jump", "still"])
@pytest.mark.parametrize("noise", [2e-3, 2e-4])
def test_intervals_hold_in_the_cell_that_moves_most(moved, noise):
    """60 series of six cells: a cell's share of intervals has a standard error of about .01."""
    held, widths = [], []
    for seed in range(60):
        rng = np.random.default_rng([9, seed])
        estimates = 0.2 + moved + rng.normal(0, noise**0.5, moved.shape)
        found = smooth(estimates, np.full(moved.shape, noise), EVERYBODY[:24])
        levels = [found.filtered, found.smoothed]
        held.append([(cells.low <= 0.2 + moved) & (0.2 + moved <= cells.high) for cells in levels])
        widths.append([(cells.high - cells.low).mean() for cells in levels])
    for covered, cells in zip(np.mean(held, axis=0), ("filtered", "smoothed"), strict=True):
        assert covered.mean() > 0.93, cells
        assert covered.mean(axis=0).min() > 0.86, cells
        assert covered[-1].mean() > 0.92, cells
    if not moved.any():
        drifts_alone = [0.439, 0.257]  # A mixture of drifts that all cells have in common, and nothing else.
        assert (np.mean(widths, axis=0) / (2 * 1.96 * noise**0.5) < np.multiply(1.1, drifts_alone)).all()


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
    assert found.filtered.value[20:23] == pytest.approx(found.filtered.value[[19] * 3], abs=0.02)
    assert (found.weights[answers == 0] == 0).all()
    assert (found.smoothed.variance[21] > found.smoothed.variance[19]).all()


def test_nothing_is_known_where_nobody_answered():
    found = smooth(np.full((3, 2), np.nan), np.full((3, 2), np.inf), np.zeros(3))
    assert np.isinf(found.smoothed.variance).all()
    assert np.isinf(found.filtered.variance).all()
    assert (found.weights == 0).all()
    assert np.isinf(found.missed).all()


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
