"""Training and prediction agree on missing values: a model is of those who hold one, and looks at nothing else."""

import json

import numpy as np
import pandas as pd
import pytest
from drafts import draft

from ldp_aggregator import NaiveBayes, train
from ldp_aggregator.learning.projections import fit_projection, moments_of_round
from ldp_client import Classifier
from protocols import Campaign
from simulations import simulate

FEATURES = [
    {"name": "c", "kind": "categorical", "values": ["r", "g", "b"]},
    {"name": "d", "kind": "continuous", "low": 0, "high": 10, "bins": 4},
    {"name": "x", "kind": "continuous", "low": 0, "high": 10},
]
CLEAR = 30
"""An epsilon at which reports say what they mean."""


def campaign_of(features=FEATURES, **changes):
    return Campaign.compile(draft(*features, **{"privacy": {"epsilon": CLEAR}, **changes}))


def number(name, **said):
    return {"name": name, "kind": "continuous", "low": -1, "high": 1, **said}


def people(count=6_000, seed=1):
    """More values of class a are missing, and different ones."""
    rng = np.random.default_rng(seed)
    of_a = rng.random(count) < 0.4
    places = (rng.random(count)[:, None] > np.where(of_a[:, None], [0.2, 0.5], [0.6, 0.7])).sum(axis=1)
    x = rng.normal(np.where(of_a, 7, 4), 1.5).clip(0, 10)
    columns = {"c": np.array(["r", "g", "b"], dtype=object)[places], "d": rng.normal(np.where(of_a, 3, 5), 2), "x": x}
    frame = pd.DataFrame(columns)
    holes = rng.random(frame.shape) < np.where(of_a[:, None], 0.4, 0.05)
    return frame.mask(holes), np.where(of_a, "a", "b")


@pytest.mark.parametrize("post", ["posterior", "norm_sub", "floor"])
def test_a_model_from_reports_is_that_of_the_table_in_which_missing_cells_are_skipped(post):
    """A random value in place of a missing one drew every mean to the middle, and variances apart."""
    frame, labels = people()
    campaign = campaign_of()
    model = train(campaign, simulate(campaign, frame, labels, rng=2, fidelity="counts", devices=3_000_000), post=post)
    table = NaiveBayes(schema=json.loads(campaign.document), smoothing=0).fit(frame, labels)
    for mine, theirs in zip(model.model_.likelihoods, table.model_.likelihoods, strict=True):
        if hasattr(mine, "table"):
            assert len(mine.table) == mine.feature.size
            assert np.array(mine.table) == pytest.approx(np.array(theirs.table), abs=0.01)
        else:
            assert mine.mean == pytest.approx(theirs.mean, abs=0.05)
            assert mine.variance == pytest.approx(theirs.variance, abs=0.15)


def test_who_wants_what_is_missing_as_evidence_lists_it_among_the_values():
    frame, labels = people()
    listed = campaign_of([{**FEATURES[0], "values": ["r", "g", "b", "missing"]}])
    model = train(listed, simulate(listed, frame, labels, rng=2, fidelity="counts", devices=1_000_000))
    shares = Classifier.from_json(model.to_json()).predict_proba({})
    assert shares["a"] > 0.8  # .4 of class a lack it, and .05 of class b


def test_a_projection_of_a_private_round_with_missing_inputs_is_that_of_the_complete_records_where_there_are_any():
    rng = np.random.default_rng(3)
    count = 4_000
    labels = np.where(rng.random(count) < 0.5, "a", "b")
    u = rng.normal(np.where(labels == "a", -0.3, 0.3), 0.2)
    frame = pd.DataFrame({"u": u, "v": (u + rng.normal(0, 0.1, count)), "w": rng.normal(0, 0.1, count)}).clip(-1, 1)
    campaign = campaign_of([number(name) for name in "uvw"], asks="moments", study="s")
    holes = frame.mask(rng.random(frame.shape) < 0.3)
    tally = simulate(campaign, holes, labels, rng=4, fidelity="counts", devices=4_000_000)
    moments = moments_of_round(campaign, tally)
    assert moments.mean == pytest.approx(frame.mean().to_numpy(), abs=0.02)
    assert moments.covariance == pytest.approx(np.cov(frame.T.to_numpy()), abs=0.02)
    outputs = fit_projection(moments, "pca", 2)["outputs"]
    assert [output["missing"] for output in outputs] == [True, True]
    campaign = campaign_of([number(name) for name in "uv"], asks="moments", study="s")
    frame = pd.DataFrame({"u": [0.5] * 400, "v": [np.nan] * 400})
    with pytest.raises(ValueError, match="leave it out"):
        moments_of_round(campaign, simulate(campaign, frame, ["a", "b"] * 200, rng=5))


def test_a_projections_outputs_are_trained_on_what_they_are_computed_as_when_classifying():
    """Both take an input's mean where it is missing; where all are, the output is missing."""
    rng = np.random.default_rng(6)
    count = 6_000
    labels = np.where(rng.random(count) < 0.5, "a", "b")
    numbers = {name: rng.normal(np.where(labels == "a", -0.4, 0.4), 0.2).clip(-1, 1) for name in "uv"}
    frame = pd.DataFrame(numbers).mask(rng.random((count, 2)) < 0.4)
    projection = {
        "method": "pca", "inputs": ["u", "v"], "mean": [0, 0], "scale": [1, 1], "matrix": [[0.6, 0.8]],
        "outputs": [number("out", bins=4)], "fitted_on": "public",
    }  # fmt: skip
    campaign = campaign_of([number(name) for name in "uv"], projection=projection)
    tally = simulate(campaign, frame, labels, rng=7, fidelity="counts", devices=1_000_000)
    table = np.array(train(campaign, tally, post="norm_sub").model_.likelihoods[0].table)
    held = frame.notna().any(axis=1).to_numpy()
    outputs = (frame.fillna(0) @ [0.6, 0.8]).to_numpy()
    bins = np.clip(((outputs + 1) * 2).astype(int), 0, 3)
    for k, name in enumerate("ab"):
        members = held & (labels == name)
        assert table[:, k] == pytest.approx(np.bincount(bins[members], minlength=4) / members.sum(), abs=0.01)


def test_what_is_expected_of_a_model_falls_where_values_are_missing():
    frame, labels = people()
    campaign = campaign_of()
    holes = frame.mask(np.random.default_rng(8).random(frame.shape) < 0.8)
    whole, rare = (
        train(campaign, simulate(campaign, one, labels, rng=9)).model_.training["expected"]["independent"]
        for one in (frame, holes)
    )
    assert rare < whole - 0.02
