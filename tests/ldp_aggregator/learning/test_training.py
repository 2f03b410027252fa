"""From tallies to models: priors, several campaigns, thin classes, ordered values and values that are missing."""

import json

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text

from ldp_aggregator import NaiveBayes, Tally, estimate, train
from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.evaluation.rounds import evaluation_draft
from ldp_aggregator.guarantees import LOCAL_RELATION
from ldp_aggregator.learning.projections import fit_projection, moments_of_round
from ldp_client import Classifier
from ldp_protocols import Campaign
from ldp_simulations import simulate

BINARY = {"kind": "categorical", "missing": False, "values": ["a", "b"]}
GAUSSIAN = {"kind": "continuous", "missing": False, "low": 0, "high": 100}


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    classes = rng.choice(["c0", "c1"], size=n, p=[0.7, 0.3])
    x = np.where(rng.random(n) < np.where(classes == "c0", 0.9, 0.2), "a", "b")
    return pd.DataFrame({"x": x}), classes


def test_a_model_finds_the_signal_through_the_noise(make_campaign):
    campaign = make_campaign(BINARY)
    frame, labels = people(40_000)
    model = train(campaign, simulate(campaign, frame, labels, rng=1))
    assert (model.predict(frame) == labels).mean() == pytest.approx(0.87, abs=0.01)
    assert model.class_prior_ == pytest.approx([0.7, 0.3], abs=0.03)


def test_features_that_tell_nothing_seldom_outvote_a_class_of_seven_tenths():
    """Ten seeded models of 1,500 reports at epsilon 1: nine in ten records are given the most frequent class. `train`
    publishes none of these models.
    """
    classes, values = [f"c{i}" for i in range(4)], [f"v{i}" for i in range(4)]
    label = {"name": "y", "classes": classes, "weight": 0}
    campaign, said = Campaign.compile(draft(*(text(f"x{i}", *values) for i in range(6)), label=label)), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({f"x{i}": rng.choice(values, 1_500) for i in range(6)})
        labels = rng.choice(classes, 1_500, p=[0.7, 0.2, 0.05, 0.05])
        model = train(campaign, simulate(campaign, frame, labels, rng=rng))
        said.append((model.predict(frame) == "c0").mean())
        assert not model.model_.training["expected"]["tells_something"]
    assert np.mean(said) > 0.87


def test_the_model_states_its_guarantee_how_it_was_trained_and_how_its_reports_came_where_that_is_known(make_campaign):
    campaign = make_campaign(BINARY, epsilon=1.5)
    tally = simulate(campaign, *people(1_000), rng=2)
    model = train(campaign, tally, post="floor", prior="label")
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (1.5, 0)
    assert model.guarantee_.relation == LOCAL_RELATION
    training = json.loads(model.to_json())["training"]
    assert training["campaigns"] == [campaign.id]
    assert (training["reports"], training["post"], training["prior"]) == (1_000, "floor", "label")
    assert not {"relayed", "counted_twice"} & training.keys()
    known = train([(campaign, tally)], arrivals=[Arrivals(1_000, 1_000, 700, overlap=3, unchecked=2)])
    training = json.loads(known.to_json())["training"]
    assert training["counted_twice"] == {"known": 3, "at_most": 5}
    assert training["relayed"][0]["guarantee"]["reports"] == 700 - 5
    assert training["published"]["colluding"] == 10
    with pytest.raises(ValueError, match="told of 2 campaigns, and there are 1"):
        train([(campaign, tally)], arrivals=[Arrivals(), Arrivals()])


def test_the_pooled_prior_has_less_variance_than_the_label_question(make_campaign):
    campaign = make_campaign(BINARY)
    frame, labels = people(5_000)
    found = [estimate(campaign, simulate(campaign, frame, labels, rng=seed)) for seed in range(200)]
    pooled = np.array([one.class_prior.value[0] for one in found])
    alone = np.array([one.questions[0].cells.value[0] for one in found])
    assert pooled.var() < 0.8 * alone.var()
    assert abs(pooled.mean() - (labels == "c0").mean()) < 5 * pooled.std() / np.sqrt(200)
    stated = np.mean([one.class_prior.variance[0] for one in found])
    assert pooled.var() == pytest.approx(stated, rel=0.35)  # 200 runs: 10 % standard error.


def test_several_campaigns_are_combined_by_inverse_variance_and_rounds_of_one_study_cost_one_round(make_campaign):
    few, many = make_campaign(BINARY, epsilon=0.5), make_campaign(BINARY, epsilon=4, discrete="oue")
    frame, labels = people(4_000)
    pairs = [(few, simulate(few, frame, labels, rng=3)), (many, simulate(many, frame, labels, rng=4))]
    together, best = train(pairs), train(*pairs[1])
    assert together.class_prior_ == pytest.approx(best.class_prior_, abs=0.05)
    assert together.guarantee_.epsilon == 4.5  # Without a common study a device may have answered both.
    assert json.loads(together.to_json())["training"]["reports"] == 8_000
    campaigns = [
        Campaign.compile(draft(text("x", "a", "b", weight=weight), privacy={"epsilon": epsilon}, study="s"))
        for weight, epsilon in ((1, 1), (5, 2))
    ]
    assert train([(campaign, Tally(campaign)) for campaign in campaigns]).guarantee_.epsilon == 2


@pytest.mark.parametrize("feature", [BINARY, {**BINARY, "missing": True}, {**GAUSSIAN, "bins": 5}, GAUSSIAN])
def test_a_model_of_no_reports_is_uninformed_but_finite(make_campaign, feature):
    campaign = make_campaign(feature, classes=3)
    model = train(campaign, Tally(campaign))
    assert model.class_prior_ == pytest.approx([1 / 3] * 3)
    proba = model.predict_proba(pd.DataFrame({"x": [3.0, np.nan, "a"]}))
    assert proba == pytest.approx(np.full((3, 3), 1 / 3))
    assert all(len(one.table) == one.feature.size for one in model.model_.likelihoods if hasattr(one, "table"))


@pytest.mark.parametrize("continuous", ["laplace", "onebit", "sign"])
def test_a_class_hardly_seen_is_insufficient_and_never_divides_by_almost_nothing(make_campaign, continuous):
    campaign = make_campaign(GAUSSIAN, classes=3, continuous=continuous)
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": np.clip(rng.normal(40, 15, size=20_000), 0, 100)})
    labels = np.where(rng.random(20_000) < 0.6, "c0", "c1")
    tally = simulate(campaign, frame, labels, rng=6)
    model = train(campaign, tally)
    assert json.loads(model.to_json())["training"]["insufficient"] == {"x": ["c2"]}
    likelihood = model.model_.likelihoods[0]
    assert all(0 <= mean <= 100 for mean in likelihood.mean)
    assert min(likelihood.variance) > 0
    moments = estimate(campaign, tally).moments["x"]
    assert moments.insufficient.tolist() == [False, False, True]
    assert abs(moments.mean[0] - 40) < 5 * np.sqrt(moments.mean_variance[0])
    assert abs(moments.variance[0] - 225) < 5 * np.sqrt(moments.variance_variance[0])


def test_the_variance_floor_is_relative_to_the_range_and_stated_and_options_that_cannot_be_are_refused(make_campaign):
    campaign = make_campaign(GAUSSIAN, label_weight=0)
    frame = pd.DataFrame({"x": np.full(30_000, 50.0)})
    labels = np.array(["c0", "c1"] * 15_000)
    model = train(campaign, simulate(campaign, frame, labels, rng=7), variance_floor=0.01)
    assert min(model.model_.likelihoods[0].variance) >= 0.01 * 100**2 * (1 - 1e-12)
    assert json.loads(model.to_json())["training"]["variance_floor"] == 0.01
    for options, message in (
        ({"post": "none"}, "posterior, norm_sub or floor"),
        ({"prior": "guess"}, "pooled or label"),
        ({"variance_floor": 0}, "above 0 and below 0.25"),
        ({"variance_floor": 0.3}, "above 0 and below 0.25"),
        ({"prior": "label"}, "needs a label question"),
    ):
        with pytest.raises(ValueError, match=message):
            train(campaign, Tally(campaign), **options)


def test_values_in_their_order_are_said_by_campaigns_and_not_by_their_models():
    age, size = text("age", "young", "medium", "old"), number("size", high=9, bins=3)
    ordered, unordered = (
        Campaign.compile(draft({**age, "ordered": said}, size, study="s", privacy={"epsilon": 4.0}))
        for said in (True, False)
    )
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"age": rng.choice(["young", "medium", "old"], 2000), "size": rng.uniform(0, 9, 2000)})
    labels = np.where((frame["age"] == "old") ^ (rng.random(2000) < 0.1), "a", "b")
    tally = simulate(ordered, frame, labels, rng=7)
    model = train(ordered, tally)
    text_of_model = model.to_json()
    assert "ordered" not in json.dumps(json.loads(text_of_model)["features"])
    assert NaiveBayes.from_json(text_of_model).to_json() == text_of_model
    assert Classifier.from_json(text_of_model).predict({"age": "old"}) == "a"
    with pytest.raises(ValueError, match="do not have the same label and features"):
        train([(ordered, tally), (ordered, tally), (unordered, tally)])
    following = Campaign.compile(evaluation_draft([ordered], model.model_))
    assert [feature.ordered for feature in following.features] == [True, True]
    assert following.asks == "score"


KINDS = [
    {"name": "c", "kind": "categorical", "values": ["r", "g", "b"]},
    {"name": "d", "kind": "continuous", "low": 0, "high": 10, "bins": 4},
    {"name": "x", "kind": "continuous", "low": 0, "high": 10},
]
CLEAR = 30
"""An epsilon at which reports say what they mean."""


def clear_campaign(features=KINDS, **changes):
    return Campaign.compile(draft(*features, **{"privacy": {"epsilon": CLEAR}, **changes}))


def signed(name, **said):
    return number(name, -1, missing=True, **said)


def people_with_gaps(count=6_000, seed=1):
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
    frame, labels = people_with_gaps()
    campaign = clear_campaign()
    model = train(campaign, simulate(campaign, frame, labels, rng=2, fidelity="counts", devices=3_000_000), post=post)
    table = NaiveBayes(schema=json.loads(campaign.document), smoothing=0).fit(frame, labels)
    for mine, theirs in zip(model.model_.likelihoods, table.model_.likelihoods, strict=True):
        if hasattr(mine, "table"):
            assert len(mine.table) == mine.feature.size
            assert np.array(mine.table) == pytest.approx(np.array(theirs.table), abs=0.01)
        else:
            assert mine.mean == pytest.approx(theirs.mean, abs=0.05)
            assert mine.variance == pytest.approx(theirs.variance, abs=0.15)


def test_a_projection_of_a_private_round_with_missing_inputs_is_that_of_the_complete_records_where_there_are_any():
    rng = np.random.default_rng(3)
    count = 4_000
    labels = np.where(rng.random(count) < 0.5, "a", "b")
    u = rng.normal(np.where(labels == "a", -0.3, 0.3), 0.2)
    frame = pd.DataFrame({"u": u, "v": (u + rng.normal(0, 0.1, count)), "w": rng.normal(0, 0.1, count)}).clip(-1, 1)
    campaign = clear_campaign([signed(name) for name in "uvw"], asks="moments", study="s")
    holes = frame.mask(rng.random(frame.shape) < 0.3)
    tally = simulate(campaign, holes, labels, rng=4, fidelity="counts", devices=4_000_000)
    moments = moments_of_round(campaign, tally)
    assert moments.mean == pytest.approx(frame.mean().to_numpy(), abs=0.02)
    assert moments.covariance == pytest.approx(np.cov(frame.T.to_numpy()), abs=0.02)
    outputs = fit_projection(moments, "pca", 2)["outputs"]
    assert [output["missing"] for output in outputs] == [True, True]
    campaign = clear_campaign([signed(name) for name in "uv"], asks="moments", study="s")
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
        "outputs": [signed("out", bins=4)], "fitted_on": "public",
    }  # fmt: skip
    campaign = clear_campaign([signed(name) for name in "uv"], projection=projection)
    tally = simulate(campaign, frame, labels, rng=7, fidelity="counts", devices=1_000_000)
    table = np.array(train(campaign, tally, post="norm_sub").model_.likelihoods[0].table)
    held = frame.notna().any(axis=1).to_numpy()
    outputs = (frame.fillna(0) @ [0.6, 0.8]).to_numpy()
    bins = np.clip(((outputs + 1) * 2).astype(int), 0, 3)
    for k, name in enumerate("ab"):
        members = held & (labels == name)
        assert table[:, k] == pytest.approx(np.bincount(bins[members], minlength=4) / members.sum(), abs=0.01)


def test_what_is_expected_of_a_model_falls_where_values_are_missing():
    frame, labels = people_with_gaps()
    campaign = clear_campaign()
    holes = frame.mask(np.random.default_rng(8).random(frame.shape) < 0.8)
    whole, rare = (
        train(campaign, simulate(campaign, one, labels, rng=9)).model_.training["expected"]["independent"]
        for one in (frame, holes)
    )
    assert rare < whole - 0.02
