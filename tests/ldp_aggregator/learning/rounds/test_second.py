"""A second round asks more about what tells the class, of the same study, and both rounds train one model."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from evaluated import FEATURES, draft, evaluation
from voters import people

from ldp_aggregator import Tally, train
from ldp_aggregator.learning.rounds.second import (
    SecondRoundError,
    feature_shares,
    interactions,
    second_round_draft,
)
from protocols import Campaign
from simulations import simulate


def study(devices=100_000, noise=6, **changes):
    features = [*FEATURES, *({**FEATURES[0], "name": f"noise {n}"} for n in range(noise))]
    campaign = Campaign.compile(draft(features=features, **changes))
    frame, labels = people()
    rng = np.random.default_rng(2)
    for n in range(noise):
        frame[f"noise {n}"] = rng.choice(["1", "2", "3"], size=len(frame))
    return campaign, simulate(campaign, frame, labels, rng=1, fidelity="counts", devices=devices), frame, labels


def test_shares_are_nine_tenths_by_the_root_of_the_strength_and_a_tenth_alike():
    assert feature_shares({"a": 4.0, "b": 1.0, "c": 0.0}) == pytest.approx(
        {"a": 0.6 + 0.1 / 3, "b": 0.3 + 0.1 / 3, "c": 0.1 / 3}
    )
    assert feature_shares({"a": 0.0, "b": -1.0}) == {"a": 0.5, "b": 0.5}


def test_what_tells_the_class_is_asked_more_and_noise_is_not_given_up():
    campaign, tally, _, _ = study()
    second = Campaign.compile(second_round_draft([(campaign, tally)]))
    weights = {feature.name: feature.weight for feature in second.features}
    loud = [weights.pop(name) for name in ("u", "v", "size")]
    assert min(loud) > 1.5 * max(weights.values())
    assert loud[0] == max(loud)
    assert min(weights.values()) >= 100
    assert (second.study, second.privacy, second.asks) == ("s", campaign.privacy, "model")
    assert (second.opens, second.closes) == (None, None)


def test_the_strength_of_a_feature_is_its_mean_square_contingency():
    """2,000,000 devices: the noise is a hundredth of what is asserted."""
    campaign, tally, frame, labels = study(2_000_000)
    found = interactions([(campaign, tally)])
    yes = (labels == "b").mean()
    joint = np.array([[((frame["u"] == v) & (labels == c)).mean() for c in ("a", "b")] for v in ("1", "2", "3")])
    even = np.outer(joint.sum(axis=1), [1 - yes, yes])
    assert found["u"] == pytest.approx(((joint - even) ** 2 / even).sum(), rel=0.15)
    assert max(found[f"noise {n}"] for n in range(6)) < 0.02 * found["u"]


def test_the_strengths_are_an_argument():
    campaign, tally, _, _ = study(2_000)
    asked = second_round_draft([(campaign, tally)], lambda _: {f.name: float(f.name == "v") for f in campaign.asked})
    weights = {one["name"]: one["weight"] for one in asked["features"]}
    assert weights.pop("v") == 9_111
    assert set(weights.values()) == {111}
    assert asked["label"]["weight"] == 1_011  # Of a tenth before; the number, asked two things, gets less.


def label_share(campaign):
    asked = [one.weight for one in campaign.questions if one.kind == "label"]
    return sum(asked) / sum(one.weight for one in campaign.questions)


@pytest.mark.parametrize("weight", [None, 1, 40])
@pytest.mark.parametrize("told", FEATURES)
@pytest.mark.parametrize("epsilon", [1, 4])
def test_the_class_alone_is_asked_as_often_beside_a_number_whatever_tells_the_class(epsilon, told, weight):
    """Two questions of a number are asked, or both in one; a label of weight 40 is beyond what 10,000 leaves."""
    label = {**draft()["label"], "weight": weight}
    campaign = Campaign.compile(draft(label=label, privacy={"epsilon": epsilon, "xor": False}))
    strengths = {feature["name"]: float(feature is told) for feature in FEATURES}
    second = Campaign.compile(second_round_draft([(campaign, Tally(campaign))], lambda _: strengths))
    assert label_share(second) == pytest.approx(label_share(campaign), rel=1e-3)
    assert max(second.features, key=lambda one: one.weight).name == told["name"]


@pytest.mark.parametrize(("weight", "wanted"), [(None, None), (0, 0), (3, 15_000)])
def test_the_class_alone_is_asked_as_often_as_in_the_first_round(weight, wanted):
    label = {**draft()["label"], "weight": weight}
    campaign = Campaign.compile(draft(label=label, features=FEATURES[:2], privacy={"epsilon": 1, "xor": False}))
    asked = second_round_draft([(campaign, Tally(campaign))], lambda _: {"u": 1.0, "v": 0.0})
    assert asked["label"]["weight"] == wanted
    assert label_share(Campaign.compile(asked)) == pytest.approx(label_share(campaign))


@pytest.mark.parametrize("joint", [True, None])
def test_two_features_that_were_asked_at_once_are_asked_so_again(joint):
    bits = [{"name": name, "kind": "categorical", "values": ["1", "2"], "missing": False} for name in "abcd"]
    campaign = Campaign.compile(draft(features=bits, privacy={"epsilon": 3, "joint": joint}))
    strengths = {"a": 9.0, "b": 1.0, "c": 0.0, "d": 4.0}
    second = Campaign.compile(second_round_draft([(campaign, Tally(campaign))], lambda _: strengths))
    asked = [[(one.feature, one.other) for one in c.questions if one.kind == "triple"] for c in (campaign, second)]
    assert asked == [[("a", "b"), ("c", "d")]] * 2
    weights = [feature.weight for feature in second.features]
    assert weights[0] == weights[1] > weights[2] == weights[3]


def test_where_nothing_tells_the_class_everything_is_asked_alike():
    campaign = Campaign.compile(draft())
    asked = second_round_draft([(campaign, Tally(campaign))], lambda _: {f.name: 0.0 for f in campaign.asked})
    assert {one["weight"] for one in asked["features"]} == {3_333}


def test_both_rounds_train_one_model_that_knows_better_what_matters_than_one_round_of_all_devices():
    """The errors of 20 pairs of models; a ratio above the asserted one is 4 standard errors away."""
    errors = np.zeros(2)
    for seed in range(20):
        campaign, _, frame, labels = study(devices=1, noise=12)
        true = pd.crosstab(frame["u"], labels, normalize="columns").to_numpy()
        first = simulate(campaign, frame, labels, rng=seed, fidelity="counts", devices=6_000)
        second = Campaign.compile(second_round_draft([(campaign, first)]))
        more, alike = (
            simulate(one, frame, labels, rng=seed + 100, fidelity="counts", devices=14_000)
            for one in (second, campaign)
        )
        rounds = train([(campaign, first), (second, more)])
        assert json.loads(rounds.to_json())["training"]["reports"] == 20_000
        assert rounds.guarantee_.epsilon == 1
        for place, model in enumerate((rounds, train(campaign, first + alike))):
            errors[place] += ((np.array(model.model_.likelihoods[0].table) - true) ** 2).sum()
    assert errors[0] < 0.6 * errors[1]


def test_outputs_of_a_projection_get_weights_and_still_train_together():
    numbers = [{"name": n, "kind": "continuous", "missing": False, "low": 0, "high": 10} for n in ("one", "two")]
    projection = {
        "method": "pca",
        "inputs": ["one", "two"],
        "mean": [5, 5],
        "scale": [5, 5],
        "matrix": [[1, 0], [0, 1]],
        "outputs": [
            {"name": n, "kind": "continuous", "missing": False, "low": -1, "high": 1, "bins": 4} for n in ("p", "q")
        ],
        "fitted_on": "public",
    }
    campaign = Campaign.compile(draft(features=numbers, projection=projection))
    frame, labels = people()
    frame = frame.assign(one=frame["size"], two=5.0)
    tally = simulate(campaign, frame, labels, rng=1, fidelity="counts", devices=50_000)
    second = Campaign.compile(second_round_draft([(campaign, tally)]))
    assert second.asked[0].weight > 1.1 * second.asked[1].weight
    more = simulate(second, frame, labels, rng=2, fidelity="counts", devices=50_000)
    assert train([(campaign, tally), (second, more)]).model_.projection is not None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"study": None}, "must be of one study"),
        ({"privacy": {"epsilon": 1, "answers": "all"}}, "weights change nothing"),
    ],
)
def test_what_has_no_second_round_is_refused(changes, message):
    campaign = Campaign.compile(draft(**changes))
    with pytest.raises(SecondRoundError, match=message):
        second_round_draft([(campaign, Tally(campaign))])
    asked = evaluation()
    with pytest.raises(SecondRoundError, match="only a model"):
        second_round_draft([(asked, Tally(asked))])
