"""k-means: finds clusters where the noise allows it, and exposes nothing exact."""

import json
import runpy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans

from ldp_aggregator.trainers import PrivateKMeans, kmeans, private_count, private_mean
from ldp_aggregator.trainers.accountant import Accountant, BudgetError
from ldp_aggregator.trainers.kmeans import _improved, _nearest, _public_points
from ldp_aggregator.trainers.randomness import PrivacyWarning
from ldp_protocols import DocumentError

_BLOCK = 8192
GRID = 2**20


pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.randomness.PrivacyWarning")

SCHEMA = {
    "label": {"name": "class", "classes": ["a", "b"]},
    "features": [
        {"name": "x", "kind": "continuous", "low": 0, "high": 10},
        {"name": "y", "kind": "continuous", "low": -1, "high": 1},
    ],
}
CENTRES = np.array([[2.0, 0.5], [8.0, 0.6], [5.0, -0.7]])


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    owners = rng.integers(0, 3, size=3000)
    xy = CENTRES[owners] + rng.normal(0, [0.5, 0.05], size=(3000, 2))
    return pd.DataFrame(xy, columns=["x", "y"])


@pytest.mark.parametrize("split", ["even", "optimal"])
def test_it_finds_clusters_that_are_there_and_exposes_nothing_exact(points, split):
    fitted = PrivateKMeans(SCHEMA, n_clusters=3, epsilon=20.0, split=split, random_state=1).fit(points)
    found = fitted.cluster_centers_[np.argsort(fitted.cluster_centers_[:, 0])]
    assert found == pytest.approx(CENTRES[np.argsort(CENTRES[:, 0])], abs=0.2)
    assert fitted.predict(points).max() == 2
    assert sum(fitted.budget_.values()) == pytest.approx(20.0)
    assert list(fitted.budget_)[:3] == ["start: counts", "iteration 1: counts", "iteration 1: sums"]
    assert len(fitted.budget_) == 5
    assert str(fitted.guarantee_).startswith("epsilon = 20; relation: add or remove one row")
    assert not {"labels_", "inertia_", "n_iter_"} & set(vars(fitted))
    with pytest.raises(NotImplementedError, match="labels of the training rows are not private"):
        PrivateKMeans(SCHEMA).fit_predict(points)


def noiseless(monkeypatch):
    """No noise; gives the list of scales and numbers of what would have been drawn."""
    drawn = []

    def draw(scale, count, coins):
        drawn.append((scale, count))
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(kmeans, "discrete_laplace", draw)
    return drawn


def test_with_hardly_any_epsilon_the_centres_are_far_from_the_points_wherever_these_are(points):
    """Two neighbours of the law: with the same seed and epsilon 1e-6 the noise decides alone."""
    trainer = PrivateKMeans(SCHEMA, epsilon=1e-6, random_state=5)
    first, moved = (clone(trainer).fit(one).cluster_centers_ for one in (points, points.assign(x=10 - points["x"])))
    assert first == pytest.approx(moved, abs=0.05)


@pytest.mark.parametrize("epsilon", [10.0, 0.5])
def test_three_clean_clusters_are_found_from_every_seed(points, epsilon):
    """A start without a look at the data ended above 1.5 times the best inertia from 17 % of all seeds."""
    scaled = points / [5.0, 1.0]

    def inertia(centres):
        return (((scaled.to_numpy()[:, None] - centres / [5.0, 1.0]) ** 2).sum(axis=2).min(axis=1)).sum()

    best = inertia(KMeans(3, n_init=10, random_state=0).fit(scaled).cluster_centers_ * [5.0, 1.0])
    found = (PrivateKMeans(SCHEMA, epsilon=epsilon, random_state=seed).fit(points) for seed in range(12))
    assert sum(inertia(one.cluster_centers_) > 1.5 * best for one in found) == 0


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), dimensions=st.integers(1, 4), split=st.sampled_from(["even", "optimal"]))
def test_what_one_row_moves_in_units_of_the_noise_is_at_most_epsilon(seed, dimensions, split):
    """The loss of a discrete Laplace release is at most the move over the scale: all of a fit's add up to epsilon,
    which a row at a corner of the box reaches. The centres after the start are given, as they are to who has seen them.
    """
    rng = np.random.default_rng(seed)
    rows = np.vstack([on_grid(rng, 20, dimensions), [GRID * rng.choice([-1, 1], dimensions)]])
    schema = {**SCHEMA, "features": [{**SCHEMA["features"][1], "name": f"x{i}"} for i in range(dimensions)]}
    loss = Fraction(0)
    with pytest.MonkeyPatch.context() as patch:
        drawn = noiseless(patch)
        PrivateKMeans(schema, epsilon=3.0, split=split, random_state=1).fit(
            pd.DataFrame(rows / GRID, columns=[f"x{i}" for i in range(dimensions)])
        )
    public = _public_points(3, dimensions)
    centres = [public, *([on_grid(rng, 3, dimensions)] * 2)]
    scales = iter(Fraction(scale) for scale, _ in drawn)
    for place, fixed in enumerate(centres):
        full, less = (_nearest(one.T.copy(), fixed) for one in (rows, rows[:-1]))
        counts = np.bincount(full, minlength=len(fixed)) - np.bincount(less, minlength=len(fixed))
        loss += int(np.abs(counts).sum()) / next(scales)
        if place:
            sums = np.zeros_like(fixed)
            np.add.at(sums, full, rows)
            np.add.at(sums, less, -rows[:-1])
            loss += int(np.abs(sums).sum()) / next(scales)
    assert loss == 3


def test_the_public_points_fill_the_box_evenly_and_there_are_eight_for_each_cluster():
    for dimensions in (1, 2, 3):
        found = _public_points(3, dimensions)
        assert (found.shape, np.abs(found).max() < GRID) == ((128, dimensions), True)
        assert (np.histogramdd(found, bins=[2] * dimensions)[0] == 128 // 2**dimensions).all()
    assert np.diff(np.sort(_public_points(3, 1).ravel())) == pytest.approx(2 * GRID / 128)
    assert [len(_public_points(clusters, 1)) for clusters in (16, 17, 1000)] == [128, 256, 8192]


def test_centres_are_on_the_grid_after_every_iteration_and_within_the_bounds_whatever_is_empty_or_far_away(points):
    """What makes the distances integers; y has the bounds -1 and 1, so that its centres show the grid."""
    for iterations in (1, 2, 5):
        fitted = PrivateKMeans(SCHEMA, iterations=iterations, random_state=iterations).fit(points)
        steps = fitted.cluster_centers_[:, 1] * GRID
        assert (steps == np.rint(steps)).all()
    frame = pd.DataFrame({"x": [1e9, np.nan], "y": [-np.inf, 0.0]})
    centres = PrivateKMeans(SCHEMA, n_clusters=6, random_state=2).fit(frame).cluster_centers_
    assert ((centres >= [0, -1]) & (centres <= [10, 1])).all()


def on_grid(rng, count, dimensions):
    return rng.integers(-GRID, GRID + 1, size=(count, dimensions))


@given(
    seed=st.integers(0, 2**32 - 1),
    dimensions=st.sampled_from([1, 2, 3, 5, 8, 20, 64]),
    clusters=st.integers(1, 9),
    rows=st.integers(2, 70),
)
def test_removing_any_other_row_never_changes_whose_a_row_is(seed, dimensions, clusters, rows):
    """Centres are mirrored, and rows equal in all coordinates: these stand exactly between the two."""
    rng = np.random.default_rng(seed)
    centres = on_grid(rng, clusters, dimensions)
    centres[1::2] = centres[0 : 2 * (clusters // 2) : 2, ::-1]
    points = on_grid(rng, rows, dimensions)
    points[rng.random(rows) < 0.5] = points[0, 0]
    owners = _nearest(points.T.copy(), centres)
    for removed in range(rows):
        kept = np.delete(np.arange(rows), removed)
        assert (_nearest(points[kept].T.copy(), centres) == owners[kept]).all()
    by_definition = [
        min(range(clusters), key=lambda c: sum((int(a) - int(b)) ** 2 for a, b in zip(point, centres[c], strict=True)))
        for point in points
    ]
    assert owners.tolist() == by_definition


def test_blocks_of_rows_are_as_good_as_one_and_distances_at_the_corners_of_a_thousand_dimensions_are_exact():
    rng = np.random.default_rng(3)
    many, centres = on_grid(rng, 2 * _BLOCK + 5, 2).T.copy(), on_grid(rng, 4, 2)
    in_blocks = [_nearest(many[:, i : i + 1000], centres) for i in range(0, many.shape[1], 1000)]
    assert (np.concatenate(in_blocks) == _nearest(many, centres)).all()
    corner = np.full((1, 1000), GRID)
    centres = np.vstack([-corner, corner - 1, corner])
    assert _nearest(corner.T.copy(), centres).tolist() == [2]
    assert _nearest(-corner.T.copy(), centres).tolist() == [0]


def test_an_improved_centre_is_the_mean_of_its_points_on_the_grid(monkeypatch):
    monkeypatch.setattr(kmeans, "discrete_laplace", lambda scale, count, coins: np.zeros(count, dtype=np.int64))
    rng = np.random.default_rng(4)
    points, centres = on_grid(rng, 500, 3), np.array([[-GRID, 0, 0], [GRID, 0, 0], [0, GRID, 0], [0, 0, 0]])
    owners = _nearest(points.T.copy(), centres)
    improved = _improved(points.T.copy(), centres, 1, 1, None)
    for cluster in range(4):
        assert improved[cluster] == pytest.approx(points[owners == cluster].mean(axis=0), abs=0.5)


def test_start_and_every_iteration_draw_the_noise_that_they_book_one_for_each_count_and_each_sum_of_all_features(
    points, monkeypatch
):
    """A row moves one count by 1, and two sums by at most 1 each, which is 2^20 steps of the grid. Epsilon 16: 2 for
    the start, and in seven iterations 1 for counts and 1 for sums, or as cbrt(4 d rho^2) to d.
    """
    drawn = noiseless(monkeypatch)
    for split, counts, sums in (("even", 1.0, 1.0), ("optimal", 0.5400733206, 1.4599266794)):
        drawn.clear()
        fitted = PrivateKMeans(SCHEMA, epsilon=16.0, iterations=7, split=split, random_state=1).fit(points)
        found = [(float(scale), count) for scale, count in drawn]
        assert found == [pytest.approx(one) for one in [(1 / 2, 128), *[(1 / counts, 3), (2 * 1048576 / sums, 6)] * 7]]
        assert list(fitted.budget_.values()) == pytest.approx([2, *[counts, sums] * 7])


def test_a_centre_whose_noisy_count_is_below_one_stays_where_it_is(monkeypatch):
    """Noise over noise would throw it anywhere."""
    monkeypatch.setattr(kmeans, "discrete_laplace", lambda scale, count, coins: np.full(count, -10, dtype=np.int64))
    points, centres = np.array([[GRID // 2] * 11]), np.array([[GRID // 4], [-7]])
    improved = _improved(points, centres, 1, 1, None)
    assert improved.tolist() == [[GRID], [-7]], "the sum of eleven over a count of one, cut to the box; and nobody's"


def test_a_second_fit_of_a_table_is_warned_of_and_its_relation_is_add_or_remove(points):
    accountant = Accountant(2.0)
    trainer = PrivateKMeans(SCHEMA, epsilon=1.0, accountant=accountant)
    trainer.fit(points)
    with pytest.raises(BudgetError, match="its relation is replace"):
        accountant.spend_fit("another", Fraction(1), "replace")
    accountant.spend_fit("another", Fraction(1), "add-remove")
    table = points.copy()
    PrivateKMeans(SCHEMA).fit(table)
    with pytest.warns(PrivacyWarning, match="was learned from before"):
        PrivateKMeans(SCHEMA).fit(table)


@pytest.mark.parametrize("changes", [{"n_clusters": 0}, {"iterations": 0}])
def test_neither_clusters_nor_iterations_may_be_none(changes, points):
    with pytest.raises(ValueError, match="must be at least 1"):
        PrivateKMeans(SCHEMA, **changes).fit(points)


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("grid", GRID // 2, "grid"),
        ("centres", [[0]], "centres"),
        ("centres", [[0, 0, 0]], "centres"),
        ("centres", [[0, GRID + 1]], "centres"),
        ("centres", [[0, -GRID - 1]], "centres"),
        ("centres", [[0, 0.5]], "centres"),
        ("centres", [[0, True]], "centres"),
        ("version", 2, "version"),
        ("kind", "naive-bayes", "kind"),
    ],
)
def test_a_stored_model_of_other_clusters_is_refused_by_its_field(name, value, field, points):
    stored = json.loads(PrivateKMeans(SCHEMA, random_state=1).fit(points).to_json())
    assert PrivateKMeans.from_json(json.dumps(stored)).n_features_in_ == 2
    with pytest.raises(DocumentError, match=field):
        PrivateKMeans.from_json(json.dumps({**stored, name: value}))


ROOT = Path(__file__).resolve().parents[3]


def test_a_count_is_unbiased_with_the_variance_of_its_noise_and_that_of_a_mean_is_the_range_over_n():
    """2,000 counts: mean within 4 standard errors, variance within 5 (20 %). 500 means of 1,000 values; the relative
    error of a mean absolute deviation has sd 4.5 %, 20 % is four.
    """
    flags = [True] * 30 + [False] * 70
    rng = np.random.default_rng(1)
    counts = np.array([private_count(flags, epsilon=0.5, random_state=rng) for _ in range(2000)])
    expected = 2 * np.exp(-0.5) / np.expm1(-0.5) ** 2
    assert counts.mean() == pytest.approx(30, abs=4 * np.sqrt(expected / 2000))
    assert counts.var() == pytest.approx(expected, rel=0.2)
    means = [private_mean([0.5] * 1000, low=0, high=1, epsilon=0.1, random_state=rng) for _ in range(500)]
    assert np.abs(np.array(means) - 0.5).mean() == pytest.approx(1 / 1000 / 0.1, rel=0.2)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_mean_comes_near_with_a_large_epsilon_and_stays_in_its_bounds_with_a_small_one(relation):
    values = [1.0, 2.0, 3.0, 1e9]
    near = private_mean(values, low=0, high=10, epsilon=1e6, relation=relation, random_state=1)
    assert near == pytest.approx(4.0, abs=0.01)
    for seed in range(20):
        far = private_mean(values, low=0, high=10, epsilon=1e-3, relation=relation, random_state=seed)
        assert 0 <= far <= 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [], "low": 0, "high": 1}, "the mean of no values"),
        ({"values": [1], "low": 1, "high": 1}, "low must be below high"),
        ({"values": [1], "low": 0, "high": 1, "relation": "?"}, "relation must be"),
    ],
)
def test_what_has_no_mean_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        private_mean(epsilon=1.0, **arguments)


def test_the_salary_example_shows_the_attack_and_the_defence(capsys):
    example = runpy.run_path(str(ROOT / "examples" / "salary_attack.py"))
    assert example["deduce"](60_500.0, 66_033.333333333333, 6) == pytest.approx(93_700, abs=0.01)
    example["main"]()
    first, *private = capsys.readouterr().out.splitlines()
    assert first.endswith("Mallory earns 93,700")
    guesses = {line.split("earns ")[1].split(" ")[0] for line in private}
    assert len(private) == 3
    assert "93,700" not in guesses
