"""Missing values are cells of their own: drafts, questions, and what a device answers."""

import copy
import json
from fractions import Fraction
from math import log

import pytest
from drafts import draft
from exact_coins import enumerate_outcomes

from ldp_client import Classifier
from ldp_client.answering import encode
from protocols import Campaign, DraftError, ScriptedCoins
from protocols.document.verification import verify
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


@pytest.mark.parametrize(
    ("feature", "said", "problem"),
    [
        (COLOUR, 0, "must be true or false"),
        (COLOUR, "false", "must be true or false"),
        (LISTED, True, "is one of the values"),
    ],
)
def test_whether_a_feature_may_be_missing_is_true_or_false_and_not_said_twice(feature, said, problem):
    with pytest.raises(DraftError, match=rf"^features\[0\]\.missing: .*{problem}"):
        compiled({**feature, "missing": said})


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c")])
def test_a_pair_has_a_value_more_and_a_sign_a_third_place_for_every_class(classes):
    campaign = compiled(COLOUR, SIZE, WEIGHT, classes=classes)
    k = len(classes)
    assert [(one.kind, one.domain_size) for one in campaign.questions[1:]] == [
        ("pair", 3 * k), ("pair", 5 * k), ("value", 3 * k), ("square", 3 * k)
    ]  # fmt: skip
    assert {one.encoding for one in campaign.questions[3:]} == {"sign"}
    complete = compiled({**COLOUR, **COMPLETE}, {**SIZE, **COMPLETE}, {**WEIGHT, **COMPLETE}, classes=classes)
    assert [one.domain_size for one in complete.questions if one.kind == "pair"][-1] == 4 * k


@pytest.mark.parametrize("continuous", ["laplace", "onebit"])
def test_noisy_sums_are_refused_for_what_may_be_missing_and_by_auto_never_chosen(continuous):
    with pytest.raises(DraftError, match=r"^privacy\.continuous: .*weight is missing; take sign or auto"):
        compiled(WEIGHT, privacy={"epsilon": 1, "continuous": continuous})
    compiled({**WEIGHT, **COMPLETE}, SIZE, privacy={"epsilon": 1, "continuous": continuous})
    for epsilon in (0.1, 1, 8, 40):
        asked = compiled(WEIGHT, privacy={"epsilon": epsilon}).questions
        assert {one.encoding for one in asked if one.kind in ("value", "square")} == {"sign"}


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
@pytest.mark.parametrize("discrete", ["auto", "de", "sue", "oue", "she", "the", "ss"])
def test_the_loss_of_questions_about_what_may_be_missing_holds(discrete, epsilon):
    for asked in ("one", "all"):
        privacy = {"epsilon": epsilon, "discrete": discrete, "answers": asked}
        checked = verify(compiled(COLOUR, SIZE, WEIGHT, privacy=privacy))
        assert checked.holds
        assert float(checked.loss) <= epsilon


@pytest.mark.parametrize("record", [*UNUSABLE, {}, Unreadable(colour="red", size=1, weight=1)])
def test_whatever_cannot_be_used_or_read_is_in_the_last_cell_of_its_class_and_no_coin_is_taken(record):
    campaign = compiled(COLOUR, SIZE, WEIGHT)
    for class_index in (0, 1):
        for question, last in ((1, 2 * 2 + class_index), (2, 4 * 2 + class_index), (3, 3 * class_index + 2)):
            assert answers(campaign, question, record, class_index) == {last: 1}
        assert answers(campaign, 4, record, class_index) == {3 * class_index + 2: 1}


def test_what_is_there_is_answered_as_without_missing_values():
    campaign = compiled(COLOUR, SIZE, WEIGHT)
    record = {"colour": "green", "size": 3, "weight": 0.5}
    assert answers(campaign, 1, record) == {1 * 2 + 1: 1}
    assert answers(campaign, 2, record) == {1 * 2 + 1: 1}
    assert answers(campaign, 3, record) == {3: Fraction(1, 4), 4: Fraction(3, 4)}
    assert answers(campaign, 4, record) == {3: Fraction(3, 4), 4: Fraction(1, 4)}  # 2 t^2 - 1 = -1/2


def test_a_product_is_missing_where_either_value_is():
    numbers = [{**WEIGHT, "name": name} for name in ("u", "v")] + [{**WEIGHT, **COMPLETE, "name": "w"}]
    campaign = compiled(*numbers, asks="moments", study="s")
    products = {(one.feature, one.other): one.index for one in campaign.questions if one.kind == "product"}
    sizes = {pair: campaign.questions[index].domain_size for pair, index in products.items()}
    assert {pair for pair, size in sizes.items() if size == 3} == set(sizes) - {("w", "w")}
    record = {"u": 1, "w": 1}
    assert answers(campaign, products["u", "v"], record) == {2: 1}
    assert answers(campaign, products["v", "v"], record) == {2: 1}
    assert answers(campaign, products["u", "u"], record) == {1: 1}
    assert answers(campaign, products["u", "w"], record) == {1: 1}
    halves = encode(campaign, campaign.questions[products["u", "w"]], {"u": 1}, 0, ScriptedCoins([0, ONE - 1]))
    assert halves == 0  # w is complete and replaced by the lowest number


def projected(**of_v):
    numbers = [{**WEIGHT, "name": "u"}, {**WEIGHT, "name": "v", **of_v}]
    return compiled(*numbers, projection=copy.deepcopy(PROJECTION))


@pytest.mark.parametrize("record", [{"u": 0.5, "v": 1}, {"u": 0.5}, {"v": 1}, {"u": "?", "v": 7}])
def test_a_device_answers_about_the_same_output_that_it_classifies_by(record):
    campaign = projected()
    gaussian = {"name": "out", "kind": "gaussian", "low": -1, "high": 1, "mean": [0, 0], "variance": [0.5, 0.5 / 4]}
    model = {
        "version": 1, "kind": "naive-bayes", "label": "y", "classes": ["a", "b"], "prior": [0.5, 0.5],
        "features": [gaussian], "projection": {"features": [{**WEIGHT, "name": n} for n in ("u", "v")], **PROJECTION},
    }  # fmt: skip
    scores = Classifier.from_json(json.dumps(model)).joint_log_likelihood(record)
    u, v = (record["u"] if record.get("u", "?") != "?" else 0.25), record.get("v", -0.5)
    output = 0.6 * (u - 0.25) + 0.8 * ((min(v, 1) + 0.5) / 2)
    # The scores tell x^2: -x^2 / (2 / 4) + x^2 is their difference, but for the constants.
    assert scores[0] - scores[1] - log(0.5) == pytest.approx(3 * output**2)
    t = min(max(output, -1), 1)
    found = answers(campaign, campaign.questions[1].index, record)
    assert float(found[4]) == pytest.approx((1 + t) / 2, abs=1e-12)


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
