"""Values that are listed in their order: drafts, documents, and that no answer depends on it."""

import json

import pytest
from drafts import draft
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
PRIVACY = [{"epsilon": 1}, {"epsilon": 3, "answers": "all"}, {"epsilon": 2, "discrete": "de"}, {"epsilon": 4}]
RECORDS = [{"age": "old", "income": 2, "hours": 7}, {"age": "young"}, {"age": "ancient"}, {}]


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


def test_bins_are_in_their_order_and_a_number_without_bins_has_no_values_to_order():
    assert [one.ordered for one in compiled(AGE, {**AGE, **ORDERED, "name": "b"}, INCOME, HOURS).features] == [
        False, True, True, False
    ]  # fmt: skip
    assert ContinuousFeature("x", 0, 1, 2).ordered


@pytest.mark.parametrize(
    ("problem", "cases"),
    [("unknown key", [(INCOME, True), (HOURS, False)]), ("must be true or false", [(AGE, 0), (AGE, "true")])],
)
def test_only_texts_have_an_order_and_it_is_true_or_false(problem, cases):
    for feature, value in cases:
        with pytest.raises(DraftError, match=rf"^features\[0\]\.ordered: .*{problem}"):
            compiled({**feature, "ordered": value})
        with pytest.raises(DocumentError, match=problem):
            Campaign.parse(tampered(compiled(feature), 0, ordered=value))


@pytest.mark.parametrize("missing", [{}, {"missing": False}])
def test_missing_has_no_place_in_an_order(missing):
    problem = r"^features\[0\]\.ordered: .*no place in an order; leave it out.* a cell of their own"
    with pytest.raises(DraftError, match=problem):
        compiled({**LISTED, **ORDERED, **missing})
    with pytest.raises(DocumentError, match="no place in an order"):
        Campaign.parse(tampered(compiled(LISTED), 0, ordered=True))
    assert not compiled({**LISTED, "ordered": False}).features[0].ordered


@pytest.mark.parametrize("said", PRIVACY)
@pytest.mark.parametrize("feature", [AGE, {**AGE, "missing": False}, {**AGE, "values": ["p", "q"], "missing": False}])
def test_nothing_that_is_asked_or_answered_depends_on_it(feature, said):
    without, with_order = (compiled(one, INCOME, HOURS, privacy=said) for one in (feature, {**feature, **ORDERED}))
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
