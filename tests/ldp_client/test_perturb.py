"""The one place where a person's data meets the coins."""

from __future__ import annotations

import copy
import hashlib
import hmac
import itertools
import struct
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import pytest
from exact_coins import SeededCoins, enumerate_outcomes
from hypothesis import given
from hypothesis import strategies as st
from ldp_client import perturb
from ldp_client.perturb import draw_questions
from protocols import Campaign, Coins, RecordError, ScriptedCoins, decode_upload, encode_upload
from protocols.coins import ONE
from protocols.exact import exp_bounds

SECRET = bytes(range(32))
UNIT = 1 << 52

DRAFT = {
    "version": 1,
    "title": "t",
    "label": {"name": "y", "classes": ["a", "b"]},
    "features": [
        {"name": "colour", "kind": "categorical", "values": ["red", "green", "blue"]},
        {"name": "answer", "kind": "categorical", "values": ["no", "missing", "1"]},
        {"name": "size", "kind": "continuous", "low": 0, "high": 8, "bins": 4},
        {"name": "weight", "kind": "continuous", "low": -1, "high": 1},
    ],
    "privacy": {"epsilon": 1.0, "discrete": "de", "continuous": "onebit"},
}
RECORD = {"colour": "green", "answer": "no", "size": 5, "weight": 0.5}


def campaign_with(*features, weights=None, **privacy):
    """The draft with these of its features, other privacy settings, other weights by name."""
    draft = copy.deepcopy(DRAFT)
    draft["features"] = [feature for feature in draft["features"] if not features or feature["name"] in features]
    for named in (draft["label"], *draft["features"]):
        if weights and named["name"] in weights:
            named["weight"] = weights[named["name"]]
    draft["privacy"].update(privacy)
    return Campaign.compile(draft)


def only(feature, **privacy):
    """A campaign that asks about one feature and nothing else; a Gaussian one has two questions."""
    return campaign_with(feature, weights={"y": 0}, **privacy)


ONE_QUESTION = campaign_with()
ALL_QUESTIONS = campaign_with(answers="all")


class Recording(Coins):
    """Coins that write down every draw into a log shared with a record."""

    def __init__(self, log, seed=1):
        self.log, self.source = log, SeededCoins(seed)

    def words(self, count):
        self.log.append("coins")
        return self.source.words(count)


class Watched(Mapping):
    """A record that writes down which feature is read, and cannot be looked at in any other way."""

    def __init__(self, log, values=RECORD):
        self.log, self.values_by_name = log, values

    def get(self, name, default=None):
        self.log.append(name)
        return self.values_by_name.get(name, default)

    def __getitem__(self, name):
        raise AssertionError("a record is read with get")

    def __iter__(self):
        raise AssertionError("a record is not searched")

    def __len__(self):
        raise AssertionError("a record is not measured")


# --- order -----------------------------------------------------------------------------------------------------------


def test_the_question_is_drawn_before_the_record_is_read_and_only_the_asked_feature_is_read():
    asked = set()
    for seed in range(60):
        log = []
        (report,) = perturb(ONE_QUESTION, Watched(log), "a", coins=Recording(log, seed))
        feature = ONE_QUESTION.questions[report.question].feature
        asked.add(feature)
        assert log[0] == "coins"
        assert [entry for entry in log if entry != "coins"] == ([feature] if feature else [])
    assert asked == {None, "colour", "answer", "size", "weight"}


def test_a_record_that_fails_when_touched_fails_only_after_the_draw():
    class Untouchable(Watched):
        def get(self, name, default=None):
            raise PermissionError(name)

    log = []
    with pytest.raises(PermissionError):
        perturb(only("colour", discrete="ss"), Untouchable(log), "a", coins=Recording(log))
    for label in ("a", "b"):
        assert perturb(
            campaign_with("colour", weights={"y": 60000}), Untouchable([]), label, coins=ScriptedCoins([0, 0])
        )


def test_all_questions_are_drawn_before_the_record_is_first_read():
    log = []
    perturb(ALL_QUESTIONS, Watched(log), "a", coins=Recording(log))
    # The Gaussian feature's group is the only one with two questions to draw from.
    draws = sum(len(group) > 1 for group in ALL_QUESTIONS.groups)
    assert draws == 1
    assert log[:draws] == ["coins"]
    assert [entry for entry in log if entry != "coins"] == ["colour", "answer", "size", "weight"]


@pytest.mark.parametrize("label", ["c", "", None, True, 0, 1.0, b"a", "A", ("a",), 10**5000])
def test_an_undeclared_label_is_refused_before_any_coin_is_drawn_or_the_record_is_read(label):
    log = []
    with pytest.raises(RecordError, match="must be one of a, b") as refused:
        perturb(ONE_QUESTION, Watched(log), label, coins=Recording(log))
    assert refused.value.code == "undeclared-label"
    assert log == []


def test_the_refusal_of_a_label_does_not_repeat_what_the_person_said():
    with pytest.raises(RecordError) as refused:
        perturb(ONE_QUESTION, RECORD, "a-private-thing")
    assert "a-private-thing" not in str(refused.value)


def test_a_label_may_be_a_whole_number_where_its_digits_are_declared():
    draft = copy.deepcopy(DRAFT)
    draft["label"]["classes"] = ["0", "1"]
    assert perturb(Campaign.compile(draft), RECORD, 1)


# --- the draw --------------------------------------------------------------------------------------------------------


def test_questions_are_drawn_in_proportion_to_their_weights():
    campaign = campaign_with("colour", "weight", weights={"y": 2, "colour": 5, "weight": 3})
    drawn = enumerate_outcomes(lambda coins: draw_questions(campaign, coins)[0].index)
    assert drawn == {0: Fraction(2, 13), 1: Fraction(5, 13), 2: Fraction(3, 13), 3: Fraction(3, 13)}


def test_answering_all_draws_one_question_of_every_group():
    drawn = enumerate_outcomes(lambda coins: tuple(q.index for q in draw_questions(ALL_QUESTIONS, coins)))
    assert drawn == {(0, 1, 2, 3, 4): Fraction(1, 2), (0, 1, 2, 3, 5): Fraction(1, 2)}


def test_a_single_question_takes_no_coin():
    coins = ScriptedCoins([])
    assert [question.index for question in draw_questions(only("colour"), coins)] == [0]


@pytest.mark.parametrize(
    "record", [RECORD, {}, {"colour": "violet", "size": float("nan")}, dict.fromkeys(RECORD, 10**5000)]
)
@pytest.mark.parametrize("campaign", [ONE_QUESTION, ALL_QUESTIONS])
def test_neither_the_question_nor_the_length_depends_on_the_record_or_the_label(campaign, record):
    for seed in range(25):
        answers = [
            perturb(campaign, values, label, secret=SECRET, coins=SeededCoins(seed))
            for values in (RECORD, record)
            for label in ("a", "b")
        ]
        assert len({tuple(report.question for report in reports) for reports in answers}) == 1
        assert len({tuple(report.id for report in reports) for reports in answers}) == 1
        assert len({len(encode_upload(reports)) for reports in answers}) == 1
        decode_upload(encode_upload(answers[0]), campaign)


# --- the promise, end to end -----------------------------------------------------------------------------------------

EVERY_ANSWER = ["red", "green", "blue", "violet", None]


@pytest.mark.parametrize("discrete", ["de", "ss", "oue", "sue", "the"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_record_is_more_than_epsilon_likelier_than_another_whatever_is_reported(discrete, epsilon):
    """The exact distribution of the whole report over every record: declared, undeclared and missing values."""
    campaign = campaign_with("colour", epsilon=epsilon, discrete=discrete)
    mechanisms = [question.mechanism for question in campaign.questions]
    thresholds = {edge for m in mechanisms if hasattr(m, "true_bit") for edge in (m.true_bit, m.other_bit)}

    def report(record, label):
        def program(coins):
            (answer,) = perturb(campaign, record, label, secret=SECRET, coins=coins)
            return answer.question, answer.payload

        return program

    distributions = [
        enumerate_outcomes(report({"colour": value}, label), sorted(thresholds))
        for value in EVERY_ANSWER
        for label in ("a", "b")
    ]
    outcomes = set().union(*distributions)
    assert all(sum(distribution.values()) == 1 for distribution in distributions)
    assert all(set(distribution) == outcomes for distribution in distributions)
    worst = max(
        one[outcome] / other[outcome] for one, other in itertools.permutations(distributions, 2) for outcome in outcomes
    )
    assert 1 < worst <= exp_bounds(Fraction(epsilon))[1]


# --- values ----------------------------------------------------------------------------------------------------------


def cells_of(campaign, record, label="a"):
    """The exact distribution of the cell that is perturbed, with the last question of the campaign asked."""
    question = campaign.questions[-1]

    def program(coins):
        asked = {}
        keep = type(question).perturb
        try:
            type(question).perturb = lambda self, item, coins: asked.setdefault(self.index, item) and b"" or b""
            perturb(campaign, record, label, secret=SECRET, coins=coins)
        finally:
            type(question).perturb = keep
        return asked[question.index]

    return enumerate_outcomes(program)


def certain(cell):
    return {cell: 1}


def anything(values, class_index=0):
    return {value * 2 + class_index: Fraction(1, values) for value in range(values)}


@pytest.mark.parametrize(
    ("value", "cells"),
    [
        ("red", certain(0)),
        ("green", certain(2)),
        ("blue", certain(4)),
        ("violet", anything(3)),
        ("RED", anything(3)),
        ("", anything(3)),
        (None, anything(3)),
        (0, anything(3)),
        (["red"], anything(3)),
        (10**5000, anything(3)),
        (-(10**5000), anything(3)),
    ],
)
def test_an_undeclared_categorical_value_is_a_uniformly_random_one(value, cells):
    assert cells_of(only("colour"), {"colour": value}) == cells


def test_an_absent_value_is_a_uniformly_random_one_with_the_true_class():
    assert cells_of(only("colour"), {}) == anything(3)
    assert cells_of(only("colour"), {}, "b") == anything(3, class_index=1)


@pytest.mark.parametrize(
    ("record", "cell"),
    [
        ({"answer": "no"}, 0),
        ({"answer": "missing"}, 2),
        ({"answer": "1"}, 4),
        ({"answer": 1}, 4),
        ({"answer": 1.0}, 2),
        ({"answer": True}, 2),
        ({"answer": "perhaps"}, 2),
        ({"answer": None}, 2),
        ({}, 2),
    ],
)
def test_where_missing_is_declared_an_undeclared_value_is_missing(record, cell):
    assert cells_of(only("answer"), record) == certain(cell)


@pytest.mark.parametrize(
    ("value", "bin_index"),
    [
        (0, 0),
        (1.999, 0),
        (2, 1),
        (3.5, 1),
        (4, 2),
        (6, 3),
        (8, 3),
        (8.001, 3),
        (10**400, 3),
        (10**5000, 3),
        (float("inf"), 3),
        (-0.001, 0),
        (-(10**400), 0),
        (float("-inf"), 0),
        (Fraction(7, 2), 1),
    ],
)
def test_a_discretised_number_is_clipped_and_its_bins_are_half_open_but_the_last(value, bin_index):
    assert cells_of(only("size"), {"size": value}, "b") == certain(2 * bin_index + 1)


@pytest.mark.parametrize("value", [None, float("nan"), "5", "", True, False, [5], 5j])
def test_what_is_no_number_is_a_uniformly_random_bin(value):
    assert cells_of(only("size"), {"size": value}) == anything(4)


def test_numbers_of_numpy_are_numbers_and_its_truth_values_are_not():
    numpy = pytest.importorskip("numpy")
    for number in (numpy.int64(5), numpy.float32(5), numpy.float64(5), numpy.uint8(5)):
        assert cells_of(only("size"), {"size": number}) == certain(4)
    assert cells_of(only("answer"), {"answer": numpy.int64(1)}) == certain(4)
    assert cells_of(only("answer"), {"answer": numpy.str_("1")}) == certain(4)
    assert cells_of(only("size"), {"size": numpy.float32("nan")}) == anything(4)
    assert cells_of(only("size"), {"size": numpy.bool_(True)}) == anything(4)


def moments_of(record, coins, question, label="a"):
    """The (cell, value) that is perturbed when the value (0) or the square (1) is asked."""
    campaign = only("weight", continuous="laplace")
    asked = []
    keep = type(campaign.questions[0]).perturb
    try:
        type(campaign.questions[0]).perturb = lambda self, item, coins: (asked.append(item), b"")[1]
        perturb(campaign, record, label, secret=SECRET, coins=ScriptedCoins([question, *coins]))
    finally:
        type(campaign.questions[0]).perturb = keep
    return asked[0]


@pytest.mark.parametrize(
    ("value", "t"),
    [
        (-1, -1.0),
        (1, 1.0),
        (0, 0.0),
        (0.5, 0.5),
        (0.1, 0.1),
        (7, 1.0),
        (float("-inf"), -1.0),
        (10**400, 1.0),
        (-(10**5000), -1.0),
    ],
)
def test_a_gaussian_value_is_clipped_and_scaled_and_its_square_uses_the_whole_range(value, t):
    for label, cell in (("a", 0), ("b", 1)):
        first = moments_of({"weight": value}, [], 0, label)
        assert first.cell == cell
        assert abs(first.value - t * UNIT) <= 2
        second = moments_of({"weight": value}, [], 1, label)
        assert second.cell == cell
        assert abs(second.value - (2 * t * t - 1) * UNIT) <= 4


@pytest.mark.parametrize(
    "record", [{}, {"weight": None}, {"weight": "0.5"}, {"weight": float("nan")}, {"weight": True}]
)
def test_a_missing_gaussian_value_is_a_uniformly_random_one(record):
    """It is drawn below 2**53 + 1: one word, of which 54 bits count."""
    for word, t in ((0, -1.0), (1 << 52, 0.0), (1 << 53, 1.0), (3 << 51, 0.5)):
        assert moments_of(record, [word], 0).value == t * UNIT
        assert moments_of(record, [word], 1).value == (2 * t * t - 1) * UNIT
    assert moments_of(record, [(1 << 53) + 1, 0], 0).value == -UNIT, "a word beyond the range is drawn again"


@given(st.floats(allow_nan=False))
def test_every_number_stays_within_the_range_that_the_noise_covers(number):
    for question in (0, 1):
        assert -UNIT <= moments_of({"weight": number}, [], question).value <= UNIT


@pytest.mark.parametrize("value", [-1, -0.75, 0, 0.5, 1])
def test_the_sign_of_a_value_is_one_with_probability_half_of_one_plus_t(value):
    campaign = only("weight", continuous="sign")
    for question, t in ((0, value), (1, 2 * value * value - 1)):
        threshold = int((1 + Fraction(t)) / 2 * ONE)
        bits = {}
        for word in {0, max(threshold - 1, 0), min(threshold, ONE - 1), ONE - 1}:
            items = []
            keep = type(campaign.questions[0]).perturb
            try:
                type(campaign.questions[0]).perturb = lambda self, item, coins, items=items: (items.append(item), b"")[
                    1
                ]
                perturb(campaign, {"weight": value}, "b", secret=SECRET, coins=ScriptedCoins([question, word]))
            finally:
                type(campaign.questions[0]).perturb = keep
            bits[word] = items[0]
        assert bits == {word: 2 + (word < threshold) for word in bits}


# --- reports ---------------------------------------------------------------------------------------------------------


def test_perturbing_is_a_function_of_the_coins_and_the_secret():
    for campaign in (ONE_QUESTION, ALL_QUESTIONS):
        first = perturb(campaign, RECORD, "a", secret=SECRET, coins=SeededCoins(5))
        assert perturb(campaign, RECORD, "a", secret=SECRET, coins=SeededCoins(5)) == first
        assert perturb(campaign, RECORD, "a", secret=SECRET, coins=SeededCoins(6)) != first


def test_scripted_coins_give_the_documented_report():
    """Question 2 of five tickets... read off the words: the ticket, then keep (a word below p), nothing else."""
    coins = ScriptedCoins([1, 0])
    (report,) = perturb(ONE_QUESTION, RECORD, "b", secret=SECRET, coins=coins)
    assert (report.question, report.payload) == (1, bytes([1 * 2 + 1]))
    assert coins.taken == 2
    message = ONE_QUESTION.id.encode() + struct.pack("<I", 0)
    assert report.id == hmac.new(SECRET, message, hashlib.sha256).digest()[:16]


def test_answering_all_gives_one_report_per_group_with_ids_of_their_own():
    reports = perturb(ALL_QUESTIONS, RECORD, "a", secret=SECRET)
    assert [ALL_QUESTIONS.questions[report.question].group for report in reports] == [0, 1, 2, 3, 4]
    assert len({report.id for report in reports}) == 5


def test_without_a_secret_every_call_has_a_fresh_id_and_with_one_the_same():
    fresh = {perturb(ONE_QUESTION, RECORD, "a")[0].id for _ in range(20)}
    assert len(fresh) == 20
    kept = {perturb(ONE_QUESTION, RECORD, "a", secret=SECRET)[0].id for _ in range(20)}
    assert len(kept) == 1


def test_a_device_has_other_ids_in_other_campaigns():
    other = Campaign.compile({**DRAFT, "title": "another"})
    assert perturb(other, RECORD, "a", secret=SECRET)[0].id != perturb(ONE_QUESTION, RECORD, "a", secret=SECRET)[0].id


def test_the_default_coins_are_the_operating_systems():
    """False-alarm rate: 400 fair-enough draws from six questions leaving one out, below 6 (5/6)**400 < 1e-30."""
    asked = Counter(perturb(ONE_QUESTION, RECORD, "a")[0].question for _ in range(400))
    assert set(asked) == set(range(6))


def test_the_record_is_not_changed():
    record = dict(RECORD)
    perturb(ALL_QUESTIONS, record, "a")
    assert record == RECORD
