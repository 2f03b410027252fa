"""Sensitivities against brute force, samplers that draw the laws they state, a calibration as density ratios say."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ldp_aggregator.trainers import randomness, sensitivities, smoothness
from ldp_aggregator.trainers.randomness import (
    PrivacyWarning,
    SeededCoins,
    coins_of,
    discrete_laplace,
    drawable,
    release,
    word_array,
)
from ldp_aggregator.trainers.smoothness import calibrate, largest_beta, rounded_draw
from ldp_protocols.exact import SYSTEM_COINS, ScriptedCoins

STEPS = 2**20


GRID = tuple(i / 4 for i in range(5))
FINE = np.linspace(0, 1, 21)


def replaced(rows):
    """All pairs of tables of ``rows`` values that differ in one value."""
    for others in itertools.combinations_with_replacement(GRID, rows - 1):
        for p, q in itertools.combinations(GRID, 2):
            yield (*others, p), (*others, q)


def extended(rows):
    """All pairs of a table of ``rows`` values and one with one more."""
    for values in itertools.combinations_with_replacement(GRID, rows):
        for more in GRID:
            yield values, (*values, more)


def largest_change(query, pairs):
    return max(abs(query(first) - query(second)) for first, second in pairs)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_replacing_and_adding_move_mean_variance_and_deviation_exactly_this_far(rows):
    """The published sensitivities are those of adding."""
    mean = sensitivities.mean_replacing(rows, Fraction(1))
    variance = sensitivities.variance_replacing(rows, Fraction(1))
    assert largest_change(np.mean, replaced(rows)) == pytest.approx(float(mean))
    assert largest_change(np.var, replaced(rows)) == pytest.approx(float(variance), abs=1e-15)
    assert largest_change(np.mean, extended(rows)) == pytest.approx(sensitivities.mean_adding(rows, 1.0))
    assert largest_change(np.std, extended(rows)) == pytest.approx(sensitivities.deviation_adding(rows, 1.0))


@pytest.mark.parametrize("relation", sensitivities.RELATIONS)
def test_tables_and_sum_and_square_together_move_exactly_this_far(relation):
    def most_moved(of_rows):
        moved = of_rows[:, None] - of_rows[None] if relation == "replace" else of_rows
        return np.abs(moved).sum(axis=-1).max()

    assert most_moved(np.eye(9)) == sensitivities.table_cells(relation)
    t = np.linspace(-1, 1, 401)
    pair = np.stack([t, float(sensitivities.SQUARE_WEIGHT) * (1 - t**2)], axis=1)
    assert most_moved(pair) == pytest.approx(float(sensitivities.sum_and_square(relation)), abs=1e-12)
    assert sensitivities.sum_and_square("add-remove") == Fraction(25, 24)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_resampling_loses_what_is_stated(epsilon):
    def density(x, centre):
        return math.exp(-epsilon * abs(x - centre)) / (1 - math.exp(-epsilon * centre) / 2)

    worst = max(
        abs(math.log(density(x, centre) / density(x, centre + 1)))
        for x in np.linspace(0, 5, 101)
        for centre in np.linspace(0, 5, 101)
    )
    assert worst == pytest.approx(sensitivities.resampling_loss(epsilon))
    assert sensitivities.resampling_loss(1.0) == pytest.approx(1.49, abs=0.005)


def test_an_unknown_relation_is_refused_and_no_rows_or_one_row_have_nothing_to_move():
    with pytest.raises(ValueError, match="relation must be add-remove or replace, not 'both'"):
        sensitivities.sum_and_square("both")
    assert smoothness.smooth_mean(np.array([]), 1.0) == 0
    assert smoothness.smooth_mean(np.array([0.3]), 1.0) == pytest.approx(0.7)
    assert smoothness.smooth_variance(np.array([0.3]), 1.0) == 0


def local(query, values):
    """The largest change of a query when one value is replaced; variance peaks inside, so all of a fine grid."""
    return max(
        abs(query(values) - query((*values[:i], new, *values[i + 1 :])))
        for i in range(len(values))
        for new in (*FINE, sum(values[:i] + values[i + 1 :]) / max(len(values) - 1, 1))
    )


def changed(values, k):
    """All tables on the grid within k replacements."""
    for places in itertools.combinations(range(len(values)), k):
        for new in itertools.product((0.0, 1.0, 0.5), repeat=k):
            table = list(values)
            for place, value in zip(places, new, strict=True):
                table[place] = value
            yield tuple(table)


def by_definition(query, values, beta):
    return max(
        math.exp(-beta * k) * max(local(query, table) for table in set(changed(values, k)))
        for k in range(len(values) + 1)
    )


def some_tables(seed, count):
    rng = np.random.default_rng(seed)
    return [tuple(np.sort(np.round(rng.beta(0.7, 0.9, size=rng.integers(2, 5)), 2)).tolist()) for _ in range(count)]


@pytest.mark.parametrize("beta", [0.1, 1.0])
@pytest.mark.parametrize("values", some_tables(3, 4), ids=str)
def test_mean_and_variance_are_exact(values, beta):
    ascending = np.array(values)
    assert smoothness.smooth_mean(ascending, beta) == pytest.approx(by_definition(np.mean, values, beta))
    assert smoothness.smooth_variance(ascending, beta) == pytest.approx(by_definition(np.var, values, beta))


@pytest.mark.parametrize("name", ["smooth_mean", "smooth_variance"])
@pytest.mark.parametrize("beta", [0.05, 0.5, 2.0])
def test_neighbours_differ_by_at_most_beta(name, beta):
    """Exhaustive: every table of 5 values on a grid of 5 points against every neighbour on it."""
    smooth = getattr(smoothness, name)
    tables = {values: smooth(np.array(values), beta) for values in itertools.combinations_with_replacement(GRID, 5)}
    for values, here in tables.items():
        for i, new in itertools.product(range(5), GRID):
            there = tables[tuple(sorted((*values[:i], new, *values[i + 1 :])))]
            assert there <= here * math.exp(beta) * (1 + 1e-12)


@pytest.mark.parametrize("beta", [0.05, 0.5, 2.0])
def test_sizes_alone_bound_adding_and_removing(beta):
    queries = {
        "smooth_mean_of_size": lambda values: np.mean(values) if len(values) else 0.5,
        "smooth_variance_of_size": lambda values: np.var(values) if len(values) else 0.0,
    }
    for name, query in queries.items():
        smooth = [getattr(smoothness, name)(rows, beta) for rows in range(40)]
        for first, second in itertools.pairwise(smooth):
            assert abs(math.log(first / second)) <= beta + 1e-12
        for rows in range(5):
            for values in itertools.combinations_with_replacement(GRID, rows):
                for more in GRID:
                    moved = abs(query(values) - query((*values, more)))
                    assert moved <= min(smooth[rows], smooth[rows + 1]) + 1e-12


def change_after(values, k):
    """The largest change of m^2/(m - 1) times the variance by one value more, k having gone to one end."""
    m, largest = len(values), 0.0
    for side in (values, 1 - values[::-1]):
        tables = [np.concatenate([np.zeros(k), side[: m - k]])]
        if k >= 1:
            tables.append(np.concatenate([np.zeros(k - 1), [1], side[: m - k]]))
        if k < m:
            tables.append(np.concatenate([np.zeros(k), side[: m - 1 - k], side[-1:]]))
        for p in tables:
            mean = (p.sum(axis=-1) - p) / (m - 1)
            largest = max(largest, *(float((abs(q - p) * abs(q + p - 2 * mean)).max()) for q in (0.0, 1.0, mean)))
    return largest


@pytest.mark.parametrize("beta", [0.0005, 0.05])
@pytest.mark.parametrize("spread", [0.0, 0.02, 0.3])
def test_long_columns_stop_early_and_agree_with_every_k(spread, beta):
    rng = np.random.default_rng(2)
    ascending = np.sort(np.clip(0.4 + spread * rng.standard_normal(200), 0, 1))
    every = max(math.exp(-beta * k) * change_after(ascending, k) for k in range(201)) * 199 / 200**2
    assert smoothness.smooth_variance(ascending, beta) == pytest.approx(every, rel=1e-12)


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


def test_the_noise_of_a_release_covers_the_step_by_which_its_value_is_rounded(monkeypatch):
    """Neighbours that are a sensitivity apart are 2**20 steps apart, or one more where rounding parts them."""
    drawn = []
    monkeypatch.setattr(randomness, "discrete_laplace", lambda scale, count, coins: drawn.append(scale) or [0])
    assert randomness.release(Fraction(1, 3), Fraction(1, 7), Fraction(1, 2), SYSTEM_COINS) != Fraction(1, 3)
    assert drawn == [Fraction(2 * (2**20 + 1))]
    assert randomness.release(Fraction(1, 3), Fraction(0), Fraction(1, 2), SYSTEM_COINS) == Fraction(1, 3)


def test_the_scale_of_a_release_is_rounded_to_the_safe_side(monkeypatch):
    """Sensitivity and alpha are doubles that may each be off by as much as one part in 10**12."""
    drawn = []
    monkeypatch.setattr(smoothness, "rounded_draw", lambda place, scale, step, coins: drawn.append(scale) or 0)
    for smooth, alpha in ((0.1, 0.3), (1e-9, 2.0), (7.0, 1e-3)):
        smoothness.release(Fraction(1, 3), smooth, alpha, Fraction(1, 1024), SYSTEM_COINS)
        least = Fraction(smooth) * (1 + Fraction(1, 10**12)) / (Fraction(alpha) * (1 - Fraction(1, 10**12)))
        assert least < drawn[-1] < least * (1 + Fraction(3, 10**9))


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


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("share", [0.3, 1.0, 1.003])
def test_the_calibration_is_sound_and_tight(epsilon, share):
    beta = share * largest_beta(epsilon)
    alpha = calibrate(epsilon, beta)
    assert epsilon * 0.999 <= worst_log_ratio(alpha, beta) <= epsilon * (1 + 1e-9)


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
