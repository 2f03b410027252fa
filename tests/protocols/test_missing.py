"""Missing values are cells of their own: drafts, questions, and what a device answers."""

import copy
import json

import pytest
from drafts import draft
from exact_coins import enumerate_outcomes

from ldp_client.answering import encode
from protocols import Campaign, DraftError, ScriptedCoins
from protocols.exact import ONE

COLOUR = {"name": "colour", "kind": "categorical", "values": ["red", "green"]}
LISTED = {"name": "listed", "kind": "categorical", "values": ["red", "missing"]}
SIZE = {"name": "size", "kind": "continuous", "low": 0, "high": 8, "bins": 4}
WEIGHT = {"name": "weight", "kind": "continuous", "low": -1, "high": 1}
COMPLETE = {"missing": False}

NOTHING = [None, float("nan"), "blue", "", object(), [1], b"red", 1j]
"""What is neither a declared text nor a number."""

UNUSABLE = [dict.fromkeys(("colour", "size", "weight"), value) for value in NOTHING]
PROJECTION = {
    "method": "pca",
    "inputs": ["u", "v"],
    "mean": [0.25, -0.5],
    "scale": [1, 2],
    "matrix": [[0.6, 0.8]],
    "outputs": [{"name": "out", "kind": "continuous", "low": -1, "high": 1}],
    "fitted_on": "public",
}


class Unreadable(dict):
    def get(self, name, default=None):
        raise RuntimeError(name)


def compiled(*features, classes=("a", "b"), **changes):
    return Campaign.compile(draft(*features, label={"name": "y", "classes": [*classes]}, **changes))


def answers(campaign, question, record, class_index=1):
    """The exact distribution of what is perturbed."""
    return enumerate_outcomes(lambda coins: encode(campaign, campaign.questions[question], record, class_index, coins))


def test_a_feature_may_be_missing_unless_its_author_says_false_or_lists_missing_and_the_document_says_which():
    campaign = compiled(COLOUR, {**SIZE, "missing": True}, {**WEIGHT, **COMPLETE}, LISTED)
    assert [feature.missing for feature in campaign.features] == [True, True, False, False]
    assert [one["missing"] for one in json.loads(campaign.document)["features"]] == [True, True, False, False]
    assert Campaign.parse(campaign.document) == campaign
    content = json.loads(compiled(COLOUR, SIZE, WEIGHT).document)
    for feature in content["features"]:
        del feature["missing"]
    assert all(feature.missing for feature in Campaign.parse(json.dumps(content).encode()).features)


@pytest.mark.parametrize("continuous", ["laplace", "onebit"])
def test_noisy_sums_are_refused_for_what_may_be_missing_and_by_auto_never_chosen(continuous):
    with pytest.raises(DraftError, match=r"^privacy\.continuous: .*weight is missing; take sign or auto"):
        compiled(WEIGHT, privacy={"epsilon": 1, "continuous": continuous})
    compiled({**WEIGHT, **COMPLETE}, SIZE, privacy={"epsilon": 1, "continuous": continuous})
    for epsilon in (0.1, 1, 8, 40):
        asked = compiled(WEIGHT, privacy={"epsilon": epsilon}).questions
        assert {one.encoding for one in asked if one.kind in ("value", "square")} == {"sign"}


@pytest.mark.parametrize("record", [*UNUSABLE, {}, Unreadable(colour="red", size=1, weight=1)])
def test_whatever_cannot_be_used_or_read_is_in_the_last_cell_of_its_class_and_no_coin_is_taken(record):
    campaign = compiled(COLOUR, SIZE, WEIGHT)
    for class_index in (0, 1):
        for question, last in ((1, 2 * 2 + class_index), (2, 4 * 2 + class_index), (3, 3 * class_index + 2)):
            assert answers(campaign, question, record, class_index) == {last: 1}
        assert answers(campaign, 4, record, class_index) == {3 * class_index + 2: 1}


def projected(**of_v):
    numbers = [{**WEIGHT, "name": "u"}, {**WEIGHT, "name": "v", **of_v}]
    return compiled(*numbers, projection=copy.deepcopy(PROJECTION))


def test_an_output_without_any_input_is_missing_and_what_is_called_complete_is_random():
    """Of what is asked in cells and as moments, ``test_encoding`` has the law."""
    signs = compiled({**WEIGHT, **COMPLETE}, privacy={"epsilon": 2})
    assert [encode(signs, signs.questions[1], {}, 1, ScriptedCoins([place, 0])) for place in (0, 2**53 - 1)] == [2, 3]
    assert answers(projected(), 1, {}) == {5: 1}
    campaign = projected(missing=False)
    assert answers(campaign, 1, {"u": float("nan")}) == {5: 1}
    low, high = (
        encode(campaign, campaign.questions[1], {"u": 0.25}, 0, ScriptedCoins([word, ONE // 2])) for word in (0, 2**53)
    )
    assert (low, high) == (0, 1)  # v = -1 and v = 1
