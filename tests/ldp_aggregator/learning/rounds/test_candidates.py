"""Candidates are ways to train on the same reports, and fewer features; their round is of the same study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from evaluated import FEATURES, LABEL, draft
from voters import people

from ldp_aggregator import Tally, train
from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.learning.redundancy import mutual_information
from ldp_aggregator.learning.rounds.candidates import (
    ALIKE,
    DEFAULT,
    PRIOR,
    TRAININGS,
    CandidateError,
    best_features,
    evaluation_draft,
    make_candidates,
)
from protocols import Campaign
from protocols.model import Model
from simulations import simulate


def study(count=9, **changes):
    features = [*FEATURES, *({**FEATURES[0], "name": f"noise {n}"} for n in range(count - 3))]
    campaign = Campaign.compile(draft(features=features, privacy={"epsilon": 4}, **changes))
    frame, labels = people()
    rng = np.random.default_rng(2)
    for n in range(count - 3):
        frame[f"noise {n}"] = rng.choice(["1", "2", "3"], size=len(frame))
    return campaign, simulate(campaign, frame, labels, rng=1, fidelity="counts", devices=400_000)


def names_of(model):
    return [one.feature.name for one in model.likelihoods]


def test_the_default_candidates_are_the_trainings_the_best_features_and_the_prior_alone():
    found = dict(make_candidates([study()]))
    assert set(TRAININGS) <= set(found) <= set(DEFAULT)
    sizes = {name: len(model.likelihoods) for name, model in found.items()}
    fewer = {"best half": 5, "best quarter": 3, "best two": 2, "best one": 1, "prior": 0}
    assert {name: size for name, size in sizes.items() if size < 9} == fewer
    assert set(names_of(found["best quarter"])) == {"u", "v", "size"}
    assert set(names_of(found["best two"])) == {"u", "size"}
    first = next(iter(found.values()))
    assert found["best half"].prior == first.prior
    assert found["best two"].likelihoods[0] == first.likelihoods[0]
    stated = found["best two"].training
    assert set(stated["poisoning"][0]["features"]) == {"u", "size"}
    assert stated["campaigns"] == first.training["campaigns"]


def test_candidates_that_would_be_the_same_are_left_out():
    assert [name for name, _ in make_candidates([study(3)])] == [*TRAININGS, "best half", "best quarter", PRIOR]


def test_a_model_without_features_says_the_most_frequent_class_on_every_device():
    (_, prior), *_ = reversed(make_candidates([study(3)]))
    read = Model.from_json(prior.to_json())
    assert read.likelihoods == ()
    assert read.prior[0] > read.prior[1]


def test_some_candidates_can_be_chosen_and_others_are_refused():
    pair = study(3)
    assert [name for name, _ in make_candidates([pair], [PRIOR, "norm_sub"])] == [PRIOR, "norm_sub"]
    assert [name for name, _ in make_candidates([pair], ["best quarter", PRIOR])] == ["best quarter", PRIOR]
    with pytest.raises(CandidateError, match="'best' is no candidate; the known ones are"):
        make_candidates([pair], ["best"])


def repeating(devices=400_000):
    """Nine features that tell the same."""
    features = [{**FEATURES[0], "name": f"u{n}"} for n in range(9)]
    campaign = Campaign.compile(draft(features=features, privacy={"epsilon": 4}))
    frame, labels = people()
    for feature in features:
        frame[feature["name"]] = frame["u"]
    return campaign, simulate(campaign, frame, labels, rng=1, fidelity="counts", devices=devices)


def test_features_that_repeat_each_other_have_weights_which_only_the_first_candidate_keeps():
    pair = repeating()
    found = dict(make_candidates([pair]))
    assert tuple(found) == DEFAULT
    weights = {name: {one.weight for one in model.likelihoods} for name, model in found.items()}
    assert max(weights.pop("posterior")) < 1
    assert set.union(*weights.values()) == {1.0}
    assert [replace(one, weight=1.0) for one in found["posterior"].likelihoods] == list(found[ALIKE].likelihoods)
    assert [name for name, _ in make_candidates([pair], [ALIKE, PRIOR])] == [ALIKE, PRIOR]
    assert "," not in "".join(DEFAULT)  # The command line takes a list with commas.


def test_fewer_features_are_taken_of_the_shrunk_tables_whatever_else_is_put_to_the_vote():
    pair = study()
    whole = {one.feature.name: one.table for one in train([pair]).model_.likelihoods if one.feature.name != "size"}
    for names in (["norm_sub", "best half"], ["best half", PRIOR]):
        half = dict(make_candidates([pair], names))["best half"]
        assert all(one.table == whole[one.feature.name] for one in half.likelihoods if one.feature.name in whole)


def test_a_candidate_says_what_to_expect_of_itself_not_of_the_model_that_it_is_made_of():
    found = {name: model.training["predicted_accuracy"] for name, model in make_candidates([study()])}
    assert found["posterior"]["above_prior"]
    assert found["posterior"]["gain"] > found["best two"]["gain"] > found[PRIOR]["gain"] == 0
    assert not found[PRIOR]["above_prior"]


def test_candidates_say_how_the_reports_came_that_they_are_made_of():
    campaign, tally = study(3)
    reports = int(tally.n.sum())
    twice = Arrivals(reports, overlap=150_000)
    for _, model in make_candidates([(campaign, tally)], arrivals=[twice]):
        assert model.training["counted_twice"] == {"known": 150_000, "at_most": 150_000}
        assert any("had both counted" in condition for condition in model.training["published"]["conditions"])
        assert model.training["relayed"][0]["why_not"]


def test_mutual_information_is_that_of_the_table_and_nothing_where_classes_are_alike():
    (_, model), *_ = make_candidates([study()])
    told = {one.feature.name: mutual_information(one, np.array(model.prior)) for one in model.likelihoods}
    assert told["u"] > told["size"] > told["v"] > 10 * max(of for name, of in told.items() if "noise" in name)
    assert best_features(model, 0).likelihoods == ()
    joint = np.array(model.likelihoods[0].table) * model.prior
    entropies = [-(p * np.log(p)).sum() for p in (joint, joint.sum(axis=0), joint.sum(axis=1))]
    assert told["u"] == pytest.approx(entropies[1] + entropies[2] - entropies[0])


def test_the_round_is_of_the_same_study_and_epsilon_and_asks_everybody_alike():
    pair = study(3, title="x" * 200)
    campaign = Campaign.compile(evaluation_draft([pair[0]], make_candidates([pair])))
    assert (campaign.study, campaign.privacy.epsilon, campaign.asks) == ("s", 4, "score")
    assert {(q.kind, q.weight, q.mechanism.name, q.domain_size) for q in campaign.questions} == {("score", 1, "de", 2)}
    assert campaign.realised_epsilon <= 4
    assert campaign.label.to_json() == {**LABEL, "weight": None}


@pytest.mark.parametrize(("one", "other"), [(None, None), ("s", "t"), ("s", None)])
def test_campaigns_of_no_study_or_of_two_are_refused(one, other):
    pairs = [study(3, study=name) for name in (one, other)]
    with pytest.raises(CandidateError, match="must be of one study"):
        evaluation_draft([campaign for campaign, _ in pairs], make_candidates(pairs[:1]))


def test_one_candidate_is_no_choice():
    pair = study(3)
    with pytest.raises(CandidateError, match="2 to 8"):
        evaluation_draft([pair[0]], make_candidates([pair], [PRIOR]))


def test_a_campaign_without_reports_still_has_candidates():
    campaign = Campaign.compile(draft())
    assert make_candidates([(campaign, Tally(campaign))])
