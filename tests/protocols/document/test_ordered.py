"""Values that are listed in their order: drafts, documents, and that no answer depends on it."""

from __future__ import annotations

import json

import pytest
from exact_coins import RecordingCoins

from ldp_client.answering import encode
from protocols import Campaign, DocumentError, DraftError
from protocols.document.schema import CategoricalFeature, ContinuousFeature
from protocols.model import DiscreteLikelihood, Model

AGE = {"name": "age", "kind": "categorical", "values": ["young", "medium", "old"]}
INCOME = {"name": "income", "kind": "continuous", "low": 0, "high": 9, "bins": 3}
HOURS = {"name": "hours", "kind": "continuous", "low": 0, "high": 100}
ORDERED = {"ordered": True}
LISTED = {**AGE, "values": ["young", "old", "missing"]}
RECORDS = [{"age": "old", "income": 2, "hours": 7}, {"age": "young"}, {"age": "ancient"}, {}]


def draft(*features, **changes):
    base = {"version": 1, "title": "t", "label": {"name": "y", "classes": ["a", "b"]}, "features": list(features)}
    return {**base, "privacy": {"epsilon": 1}, **changes}


def compiled(*features, **changes):
    return Campaign.compile(draft(*features, **changes))


def tampered(campaign, position, **changes):
    content = json.loads(campaign.document)
    content["features"][position].update(changes)
    return json.dumps(content).encode()


def test_a_document_says_that_values_are_in_their_order_and_its_device_reads_it():
    campaign = compiled({**AGE, **ORDERED}, INCOME)
    assert json.loads(campaign.document)["features"][0]["ordered"] is True
    assert Campaign.parse(campaign.document) == campaign
    assert campaign.features[0] == CategoricalFeature("age", ("young", "medium", "old"), ordered=True)


@pytest.mark.parametrize("said", [{}, {"ordered": False}, {"ordered": None}])
def test_a_document_of_values_in_no_order_does_not_mention_it(said):
    campaign = compiled({**AGE, **said})
    assert campaign.document == compiled(AGE).document
    assert b"ordered" not in campaign.document
    assert not campaign.features[0].ordered


@pytest.mark.parametrize("said", [False, None])
def test_a_document_may_say_that_there_is_no_order(said):
    assert not Campaign.parse(tampered(compiled(AGE), 0, ordered=said)).features[0].ordered


def test_bins_are_in_their_order_and_a_number_without_bins_has_no_values_to_order():
    assert [one.ordered for one in compiled(AGE, {**AGE, **ORDERED, "name": "b"}, INCOME, HOURS).features] == [
        False, True, True, False
    ]  # fmt: skip
    assert ContinuousFeature("x", 0, 1, 2).ordered


@pytest.mark.parametrize("value", [0, 1, "true", [], {}])
def test_whether_values_are_in_their_order_is_true_or_false(value):
    with pytest.raises(DraftError, match="must be true or false") as caught:
        compiled({**AGE, "ordered": value})
    assert caught.value.field == "features[0].ordered"
    with pytest.raises(DocumentError, match=r"features\[0\].ordered: must be true or false") as refused:
        Campaign.parse(tampered(compiled(AGE), 0, ordered=value))
    assert refused.value.code == "invalid-document"


@pytest.mark.parametrize("feature", [INCOME, HOURS])
@pytest.mark.parametrize("value", [True, False, None])
def test_a_continuous_feature_has_no_such_key(feature, value):
    with pytest.raises(DraftError, match="unknown key") as caught:
        compiled({**feature, "ordered": value})
    assert caught.value.field == "features[0].ordered"
    with pytest.raises(DocumentError, match="unknown key"):
        Campaign.parse(tampered(compiled(feature), 0, ordered=value))


@pytest.mark.parametrize("missing", [{}, {"missing": False}])
def test_missing_has_no_place_in_an_order(missing):
    with pytest.raises(DraftError, match=r"no place in an order; leave it out.* a cell of their own") as caught:
        compiled({**LISTED, **ORDERED, **missing})
    assert caught.value.field == "features[0].ordered"
    with pytest.raises(DocumentError, match="no place in an order"):
        Campaign.parse(tampered(compiled(LISTED), 0, ordered=True))
    assert not compiled({**LISTED, "ordered": False}).features[0].ordered


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"privacy": {"epsilon": 3, "answers": "all"}},
        {"privacy": {"epsilon": 2, "discrete": "de"}},
        {"privacy": {"epsilon": 4}},
    ],
)
@pytest.mark.parametrize("feature", [AGE, {**AGE, "missing": False}, {**AGE, "values": ["p", "q"], "missing": False}])
def test_nothing_that_is_asked_or_answered_depends_on_it(feature, changes):
    without, with_order = (compiled(one, INCOME, HOURS, **changes) for one in (feature, {**feature, **ORDERED}))
    assert with_order.questions == without.questions
    assert with_order.loss == without.loss
    for seed, record in enumerate(RECORDS * 6):
        for index in range(len(without.questions)):
            assert answer(with_order, index, record, seed) == answer(without, index, record, seed)


def answer(campaign, index, record, seed):
    """What is perturbed of a record, the bytes that are sent, and the random words that both took."""
    coins = RecordingCoins((seed, index))
    item = encode(campaign, campaign.questions[index], record, 1, coins)
    return item, campaign.questions[index].perturb(item, coins), coins.taken


def test_a_model_is_the_same_with_and_without():
    shares = ((0.5, 0.1), (0.3, 0.2), (0.2, 0.7))
    texts = {
        Model("y", ("a", "b"), (0.5, 0.5), (DiscreteLikelihood(feature, shares),)).to_json()
        for feature in compiled(AGE).features + compiled({**AGE, **ORDERED}).features
    }
    (text,) = texts
    assert Model.from_json(text).to_json() == text


def test_an_evaluation_round_may_say_it_of_a_feature_that_its_model_uses():
    shares = [[0.5, 0.1], [0.3, 0.2], [0.2, 0.7]]
    head = {"version": 1, "kind": "naive-bayes", "label": "y", "classes": ["a", "b"], "prior": [0.5, 0.5]}
    model = {**head, "features": [{**AGE, "likelihood": shares}]}
    campaign = compiled({**AGE, **ORDERED}, asks="score", study="s", evaluation={"model": model})
    assert Campaign.parse(campaign.document).features[0].ordered
