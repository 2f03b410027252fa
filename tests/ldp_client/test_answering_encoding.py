"""From a record's values to the cell or the moment that is perturbed: declared, missing and undeclared ones.

What is asked of exact records is in the vectors, too: outputs, and what is there where others miss.
"""

import json
from fractions import Fraction
from itertools import product

import pytest
from drafts import draft, number, text
from exact_coins import enumerate_outcomes
from hypothesis import given
from hypothesis import strategies as st
from records import Watched

from ldp_client.answering import encode
from ldp_protocols import Campaign, DraftError, ScriptedCoins

ONE = 2**64


UNIT = 1 << 52
HUGE = 10**5000
"""An integer that Python refuses to write out."""

FEATURES = {
    "colour": text("colour", "red", "green", "blue"),
    "answer": text("answer", "no", "missing", "1"),
    "size": number("size", 0, 8, bins=4),
    "weight": number("weight", -1, 1),
}
MAY_BE_MISSING = [{**FEATURES[name], "missing": None} for name in ("colour", "size", "weight")]
NOTHING = [None, float("nan"), "blau", "", object(), [1], b"red", 1j]
"""What is neither a declared text nor a number."""


def compiled(*features, label_weight=1, privacy=None, **changes):
    label = {"name": "y", "classes": ["a", "b"], "weight": label_weight}
    return Campaign.compile(draft(*features, label=label, privacy={"epsilon": 1.0, **(privacy or {})}, **changes))


def only(feature, *, label_weight=0, **privacy):
    """A campaign that asks about one feature; a Gaussian one has two questions, its campaign's last."""
    return compiled(FEATURES[feature], label_weight=label_weight, privacy=privacy)


def cells_of(campaign, record, label="a"):
    """The exact distribution of the cell that answers the campaign's last question."""
    return answers(campaign, -1, record, campaign.label.index_of(label))


def answers(campaign, question, record, class_index=1):
    """The exact distribution of what is perturbed."""
    return enumerate_outcomes(lambda coins: encode(campaign, campaign.questions[question], record, class_index, coins))


def certain(cell):
    return {cell: 1}


def anything(values, class_index=0):
    return {value * 2 + class_index: Fraction(1, values) for value in range(values)}


@pytest.mark.parametrize("value", ["violet", "", None, ["red"], pytest.param(HUGE, id="huge")])
def test_an_undeclared_categorical_value_is_a_uniformly_random_one(value):
    for declared, cell in (("red", 0), ("green", 2), ("blue", 4)):
        assert cells_of(only("colour"), {"colour": declared}) == certain(cell)
    assert cells_of(only("colour"), {"colour": value}) == anything(3)
    assert cells_of(only("colour"), {}, "b") == anything(3, class_index=1)


@pytest.mark.parametrize(("cell", "values"), [(0, ["no"]), (2, ["missing", "perhaps", None]), (4, ["1", 1, True])])
def test_where_missing_is_declared_an_undeclared_value_is_missing(cell, values):
    for value in values:
        assert cells_of(only("answer"), {"answer": value}) == certain(cell)
    assert cells_of(only("answer"), {}) == certain(2)


@pytest.mark.parametrize(
    ("bin_index", "values"),
    [
        (0, [0, 1.999, -0.001, float("-inf")]),
        (1, [2, Fraction(7, 2), " 3.5e0 "]),
        (3, [6, 8, 8.001, HUGE, float("inf")]),
    ],
)
def test_a_discretised_number_is_clipped_and_its_bins_are_half_open_but_the_last(bin_index, values):
    for value in values:
        assert cells_of(only("size"), {"size": value}, "b") == certain(2 * bin_index + 1)


@pytest.mark.parametrize("value", [None, float("nan"), "five", "inf", "", "True", [5], 5j])
def test_what_is_no_number_is_a_uniformly_random_bin(value):
    assert cells_of(only("size"), {"size": value}) == anything(4)


LAPLACE = only("weight", continuous="laplace", label_weight=1)


def moment_of(record, words, question, label="a"):
    """The (cell, value) that answers the value (0) or the square (1) question."""
    coins = ScriptedCoins(words)
    item = encode(LAPLACE, LAPLACE.questions[1 + question], record, LAPLACE.label.index_of(label), coins)
    assert coins.taken == len(words)
    return item


@pytest.mark.parametrize(
    ("t", "values"), [(-1, [-1, float("-inf"), -HUGE]), (0, [0]), (0.1, [0.1]), (0.5, [0.5, "0.5"]), (1, [1, 7])]
)
def test_a_gaussian_value_is_clipped_and_scaled_and_its_square_uses_the_whole_range(t, values):
    for value, (label, cell) in product(values, (("a", 0), ("b", 1))):
        first, second = (moment_of({"weight": value}, [], question, label) for question in (0, 1))
        assert first.cell == second.cell == cell
        assert abs(first.value - t * UNIT) <= 2
        assert abs(second.value - (2 * t * t - 1) * UNIT) <= 4


@pytest.mark.parametrize(
    "record", [{}, {"weight": None}, {"weight": "half"}, {"weight": float("nan")}, {"weight": "true"}]
)
def test_a_missing_gaussian_value_is_a_uniformly_random_one(record):
    """It is drawn below 2**53 + 1: one word, of which 54 bits count."""
    for word, t in ((0, -1.0), (1 << 52, 0.0), (1 << 53, 1.0), (3 << 51, 0.5)):
        assert moment_of(record, [word], 0).value == t * UNIT
        assert moment_of(record, [word], 1).value == (2 * t * t - 1) * UNIT
    assert moment_of(record, [(1 << 53) + 1, 0], 0).value == -UNIT, "a word beyond the range is drawn again"


@given(st.floats(allow_nan=False))
def test_every_number_stays_within_the_range_that_the_noise_covers(number):
    for question in (0, 1):
        assert -UNIT <= moment_of({"weight": number}, [], question).value <= UNIT


@pytest.mark.parametrize("value", [-1, -0.75, 0, 0.5, 1])
def test_the_sign_of_a_value_is_one_with_probability_half_of_one_plus_t(value):
    campaign = only("weight", continuous="sign")
    for question, t in ((0, value), (1, 2 * value * value - 1)):
        threshold = int((1 + Fraction(t)) / 2 * ONE)
        words = {0, max(threshold - 1, 0), min(threshold, ONE - 1), ONE - 1}
        bits = {
            word: encode(campaign, campaign.questions[question], {"weight": value}, 1, ScriptedCoins([word]))
            for word in words
        }
        assert bits == {word: 2 + (word < threshold) for word in words}


def test_a_feature_may_be_missing_unless_its_author_says_false_or_lists_missing_and_the_document_says_which():
    listed = {**text("listed", "red", "missing"), "missing": None}
    campaign = compiled(*MAY_BE_MISSING[:2], FEATURES["weight"], listed)
    assert [feature.missing for feature in campaign.features] == [True, True, False, False]
    assert [one["missing"] for one in json.loads(campaign.document)["features"]] == [True, True, False, False]
    assert Campaign.parse(campaign.document) == campaign
    content = json.loads(compiled(*MAY_BE_MISSING).document)
    for feature in content["features"]:
        del feature["missing"]
    assert all(feature.missing for feature in Campaign.parse(json.dumps(content).encode()).features)


@pytest.mark.parametrize("continuous", ["laplace", "onebit"])
def test_noisy_sums_are_refused_for_what_may_be_missing_and_by_auto_never_chosen(continuous):
    with pytest.raises(DraftError, match=r"^privacy\.continuous: .*weight is missing; take sign or auto"):
        compiled(MAY_BE_MISSING[2], privacy={"continuous": continuous})
    compiled(FEATURES["weight"], MAY_BE_MISSING[1], privacy={"continuous": continuous})
    for epsilon in (0.1, 1, 8, 40):
        asked = compiled(MAY_BE_MISSING[2], privacy={"epsilon": epsilon}).questions
        assert {one.encoding for one in asked if one.kind in ("value", "square")} == {"sign"}


@pytest.mark.parametrize(
    "record",
    [
        *({"colour": no, "size": no, "weight": no} for no in NOTHING),
        {},
        Watched(dict.fromkeys(FEATURES, RuntimeError())),
    ],
)
def test_whatever_cannot_be_used_or_read_is_in_the_last_cell_of_its_class_and_no_coin_is_taken(record):
    campaign = compiled(*MAY_BE_MISSING)
    for class_index in (0, 1):
        sign = 3 * class_index + 2
        for question, last in ((1, 3 * 2 + class_index), (2, 4 * 2 + class_index), (3, sign), (4, sign)):
            assert answers(campaign, question, record, class_index) == {last: 1}


def test_a_product_is_missing_where_either_value_is():
    features = (number(name, -1, missing=name != "w") for name in "uvw")
    campaign = compiled(*features, asks="moments", study="s")
    asked = {(one.feature, one.other): one.index for one in campaign.questions if one.kind == "product"}
    for pair, cell in ((("u", "v"), 2), (("v", "v"), 2), (("u", "u"), 1), (("u", "w"), 1), (("v", "w"), 2)):
        assert answers(campaign, asked[pair], {"u": 1, "w": 1}) == {cell: 1}


@pytest.mark.parametrize("colour", [FEATURES["colour"], MAY_BE_MISSING[0]], ids=["complete", "may be missing"])
@pytest.mark.parametrize(
    "privacy", [{}, {"epsilon": 3, "answers": "all"}, {"epsilon": 2, "discrete": "de"}, {"epsilon": 4}], ids=str
)
def test_a_document_says_that_values_are_in_their_order_and_nothing_that_is_asked_depends_on_it(colour, privacy):
    others = (FEATURES["size"], FEATURES["weight"])
    without, ordered = (compiled({**colour, "ordered": said}, *others, privacy=privacy) for said in (False, True))
    assert [one.ordered for one in Campaign.parse(ordered.document).features] == [True, True, False], "bins always are"
    assert [one.ordered for one in without.features] == [False, True, False]
    assert (ordered.questions, ordered.loss) == (without.questions, without.loss)
