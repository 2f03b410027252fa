"""k-means: finds clusters where the noise allows it, and exposes nothing exact."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ldp_aggregator.trainers import PrivateKMeans

pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.noise.randomness.PrivacyWarning")

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
def test_it_finds_clusters_that_are_there(points, split):
    fitted = PrivateKMeans(SCHEMA, n_clusters=3, epsilon=20.0, split=split, random_state=1).fit(points)
    found = fitted.cluster_centers_[np.argsort(fitted.cluster_centers_[:, 0])]
    assert found == pytest.approx(CENTRES[np.argsort(CENTRES[:, 0])], abs=0.2)
    assert fitted.predict(points).max() == 2
    assert sum(fitted.budget_.values()) == pytest.approx(20.0)
    assert len(fitted.budget_) == 10


def test_nothing_exact_is_exposed(points):
    fitted = PrivateKMeans(SCHEMA).fit(points)
    assert not {"labels_", "inertia_", "n_iter_"} & set(vars(fitted))
    with pytest.raises(NotImplementedError, match="labels of the training rows are not private"):
        PrivateKMeans(SCHEMA).fit_predict(points)
    assert str(fitted.guarantee_).startswith("epsilon = 1; relation: add or remove one row")


def test_the_start_does_not_look_at_the_data(points):
    """With hardly any epsilon and one iteration, the centres do not depend on where the points are."""
    moved = points.assign(x=10 - points["x"])
    trainer = PrivateKMeans(SCHEMA, epsilon=1e-6, iterations=1, random_state=5)
    assert clone(trainer).fit(points).cluster_centers_ == pytest.approx(
        clone(trainer).fit(moved).cluster_centers_, abs=0.05
    )


def test_empty_and_far_away_points_are_no_trouble():
    frame = pd.DataFrame({"x": [1e9, np.nan], "y": [-np.inf, 0.0]})
    centres = PrivateKMeans(SCHEMA, n_clusters=6, random_state=2).fit(frame).cluster_centers_
    assert ((centres >= [0, -1]) & (centres <= [10, 1])).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"schema": None}, "needs a schema"),
        ({"split": "odd"}, "split must be even or optimal"),
        ({"n_clusters": 0}, "at least 1"),
        ({"epsilon": -1}, "finite number above 0"),
    ],
)
def test_wrong_parameters_are_refused(points, parameters, message):
    with pytest.raises(ValueError, match=message):
        PrivateKMeans(**{"schema": SCHEMA, **parameters}).fit(points)
