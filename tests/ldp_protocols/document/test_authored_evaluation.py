"""An evaluation round is about one model: what a draft and a document must say of it, and where a score lies."""

import math

import pytest
from evaluated import FEATURES, LABEL, U, V, draft, model

from ldp_protocols import Campaign, DraftError

BOTH = model(U, V)


def compiled(evaluation, **changes):
    return Campaign.compile(draft(asks="score", evaluation=evaluation, **changes))


def refused(evaluation, **changes):
    with pytest.raises(DraftError) as told:
        compiled(evaluation, **changes)
    return str(told.value)


def of_three(**changes):
    label = {**LABEL, "classes": ["a", "b", "c"]}
    three = {**model(), "classes": label["classes"], "prior": [0.2, 0.3, 0.5]}
    return {"model": three, **changes}, label


def test_two_questions_about_the_model_are_asked_of_nobodys_feature():
    campaign = compiled({"model": BOTH, "edges": [-1, 0, 1], "weights": [3.0, 1e0]})
    assert campaign.evaluation.weights == (3, 1), "whole numbers may have a point"
    asked = [(one.kind, one.group, one.feature, one.other, one.domain_size, one.weight) for one in campaign.questions]
    assert asked == [("right", 0, None, None, 2, 3), ("score", 0, None, None, 8, 1)]
    assert len(campaign.groups) == 1
    assert campaign.realised_epsilon <= 1


@pytest.mark.parametrize(("weights", "kinds"), [([1, 0], ["right"]), ([0, 5], ["score"]), (None, ["right", "score"])])
def test_a_question_of_weight_0_is_not_asked(weights, kinds):
    campaign = compiled({"model": BOTH, "weights": weights})
    assert [one.kind for one in campaign.questions] == kinds


def test_more_classes_than_a_table_has_cells_for_are_refused():
    classes = [f"c{n}" for n in range(257)]
    many = {**model(), "classes": classes, "prior": [1, *[0] * 256]}
    assert "at most 256 can be evaluated" in refused({"model": many}, label={"name": "y", "classes": classes})


def test_what_cannot_be_is_refused_with_its_place_and_what_would_be_right():
    """The vectors have more of it, as documents."""
    unlike = {**BOTH, "features": [{**V, "name": "w"}]}
    assert refused({"model": BOTH, "edges": [-1, 1]}).startswith("evaluation.edges: ")
    assert "feature w is not declared so in the campaign" in refused({"model": unlike})
    assert "weight: unknown key" in refused({"model": {**BOTH, "features": [{**V, "weight": 0.5}]}})
    with pytest.raises(DraftError, match="evaluation: is missing"):
        Campaign.compile(draft(asks="score"))
    with pytest.raises(DraftError, match="evaluation: is for rounds with asks: score"):
        Campaign.compile(draft(evaluation={"model": BOTH}))


def test_a_model_may_say_less_than_the_campaign_of_a_feature_and_more_of_its_training():
    features = [{**FEATURES[0], "weight": 3, "ordered": True}, FEATURES[1]]
    assert compiled({"model": {**BOTH, "training": {"reports": 7}}}, features=features).evaluation.model.training


def test_the_place_of_a_score_is_the_number_of_edges_below_or_the_class_of_the_largest_the_first_of_equals():
    evaluation = compiled({"model": BOTH, "edges": [-1, 0, 1]}).evaluation
    assert evaluation.places == 4
    odds = (-9, -1, -0.5, 0, 0.1, 1, 2, math.inf)
    assert [evaluation.place_of([0.0, one]) for one in odds] == [0, 0, 1, 1, 2, 2, 3, 3]
    three, label = of_three()
    read = compiled(three, label=label).evaluation
    assert (read.edges, read.places) == (None, 3)
    assert [read.place_of(scores) for scores in ([0, 1, 2], [0, 2, 2], [1, 1, 1], [-math.inf, 0, -1])] == [2, 1, 0, 1]
