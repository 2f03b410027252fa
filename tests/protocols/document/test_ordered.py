"""Values that are listed in their order: drafts, documents, and that no answer depends on it."""

import json
from itertools import product

import pytest
from drafts import draft
from exact_coins import SeededCoins

from ldp_client.answering import encode
from protocols import Campaign
from protocols.document.schema import CategoricalFeature, ContinuousFeature
from protocols.model import DiscreteLikelihood, Model

AGE = {"name": "age", "kind": "categorical", "values": ["young", "medium", "old"]}
INCOME = {"name": "income", "kind": "continuous", "low": 0, "high": 9, "bins": 3}
HOURS = {"name": "hours", "kind": "continuous", "low": 0, "high": 100}
ORDERED = {"ordered": True}
PRIVACY = [{"epsilon": 1}, {"epsilon": 3, "answers": "all"}, {"epsilon": 2, "discrete": "de"}, {"epsilon": 4}]
RECORDS = [{"age": "old", "income": 2, "hours": 7}, {"age": "young"}, {"age": "ancient"}]


def compiled(*features, **changes):
    return Campaign.compile(draft(*features, **changes))


def test_a_document_says_that_values_are_in_their_order_and_its_device_reads_it():
    campaign = compiled({**AGE, **ORDERED}, INCOME)
    assert json.loads(campaign.document)["features"][0]["ordered"] is True
    assert Campaign.parse(campaign.document) == campaign
    assert campaign.features[0] == CategoricalFeature("age", ("young", "medium", "old"), ordered=True)


def test_bins_are_in_their_order_and_a_number_without_bins_has_no_values_to_order():
    assert [one.ordered for one in compiled(AGE, {**AGE, **ORDERED, "name": "b"}, INCOME, HOURS).features] == [
        False, True, True, False
    ]  # fmt: skip
    assert ContinuousFeature("x", 0, 1, 2).ordered


@pytest.mark.parametrize("said", PRIVACY)
@pytest.mark.parametrize("feature", [AGE, {**AGE, "missing": False}, {**AGE, "values": ["p", "q"], "missing": False}])
def test_nothing_that_is_asked_or_answered_depends_on_it(feature, said):
    without, with_order = (compiled(one, INCOME, HOURS, privacy=said) for one in (feature, {**feature, **ORDERED}))
    assert with_order.questions == without.questions
    assert with_order.loss == without.loss
    for record, index in product(RECORDS, range(len(without.questions))):
        items = (encode(one, one.questions[index], record, 1, SeededCoins(index)) for one in (without, with_order))
        assert next(items) == next(items)


def test_a_model_is_the_same_with_and_without():
    shares = ((0.5, 0.1), (0.3, 0.2), (0.2, 0.7))
    texts = {
        Model("y", ("a", "b"), (0.5, 0.5), (DiscreteLikelihood(feature, shares),)).to_json()
        for feature in compiled(AGE).features + compiled({**AGE, **ORDERED}).features
    }
    (text,) = texts
    assert Model.from_json(text).to_json() == text
