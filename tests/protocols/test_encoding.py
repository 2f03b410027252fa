"""From a record's values to the cell or the moment that is perturbed: declared, missing and undeclared ones."""

from fractions import Fraction
from itertools import product

import pytest
from drafts import draft, number, text
from exact_coins import enumerate_outcomes
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.answering import encode
from protocols import Campaign, ScriptedCoins
from protocols.exact import ONE

UNIT = 1 << 52
HUGE = 10**5000
"""An integer that Python refuses to write out."""

FEATURES = {
    "colour": text("colour", "red", "green", "blue"),
    "answer": text("answer", "no", "missing", "1"),
    "size": number("size", 0, 8, bins=4),
    "weight": number("weight", -1, 1),
}


def only(feature, *, label_weight=0, **privacy):
    """A campaign that asks about one feature; a Gaussian one has two questions, its campaign's last."""
    label = {"name": "y", "classes": ["a", "b"], "weight": label_weight}
    return Campaign.compile(draft(FEATURES[feature], label=label, privacy={"epsilon": 1.0, **privacy}))


def cells_of(campaign, record, label="a"):
    """The exact distribution of the cell that answers the campaign's last question."""
    class_index = campaign.label.index_of(label)
    return enumerate_outcomes(lambda coins: encode(campaign, campaign.questions[-1], record, class_index, coins))


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
