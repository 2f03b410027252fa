"""A wrong record is noticed by the developer, and never by the server."""

import json
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from drafts import draft, number, text
from exact_coins import SeededCoins
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.answering import item_of
from ldp_client.problems import Problem, record_problems
from ldp_protocols import Campaign

DRAFT = draft(
    text("flag", "0", "1"),
    text("colour", "red", "missing"),
    number("age", 18, 90),
    number("hours", 0, 80, bins=8),
    label={"name": "paid", "classes": ["yes", "no"]},
)
CAMPAIGN = Campaign.compile(DRAFT)
GOOD = {"flag": 1.0, "colour": "red", "age": "41", "hours": Decimal("1e9")}
ONE_OF = "must be one of 0, 1"
AGE = "must be a number from 18 to 90"
NAMES = "the features are flag, colour, age, hours"
PCA = {"method": "pca", "fitted_on": "public"}
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["red", "1", 40, []])


def without(name):
    return {key: value for key, value in GOOD.items() if key != name}


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (without("flag"), Problem("flag", "the record does not hold it", ONE_OF)),
        ({**GOOD, "flag": None}, Problem("flag", "null is no value", ONE_OF)),
        ({**GOOD, "flag": "1.0"}, Problem("flag", '"1.0" is not declared', ONE_OF)),
        ({**GOOD, "flag": 2.0}, Problem("flag", '2.0 is not declared (it reads as "2")', ONE_OF)),
        ({**GOOD, "flag": [1]}, Problem("flag", "[1] is neither a text nor a number", ONE_OF)),
        ({**GOOD, "colour": "blue"}, Problem("colour", '"blue" is not declared', "must be one of red, missing")),
        (without("age"), Problem("age", "the record does not hold it", AGE)),
        ({**GOOD, "age": float("nan")}, Problem("age", "NaN is no value", AGE)),
        ({**GOOD, "age": "old"}, Problem("age", '"old" is no number', AGE)),
        ({**GOOD, "hours": {}}, Problem("hours", "{} is no number", "must be a number from 0 to 80")),
        ({**GOOD, "Age": 1}, Problem("Age", "is no feature of the campaign", "did you mean 'age'?")),
        ({**GOOD, "zip code": 1}, Problem("zip code", "is no feature of the campaign", NAMES)),
        ({**GOOD, 7: 1}, Problem("7", "is no feature of the campaign", NAMES)),
        ({**GOOD, "paid": "yes"}, Problem("paid", "is the label", "give the label apart from the record")),
    ],
    ids=str,
)
def test_each_problem_says_where_what_and_what_would_be_right(record, problem):
    assert record_problems(CAMPAIGN, record) == (problem,)
    assert str(problem) == f"{problem.feature}: {problem.wrong}; {problem.right}"


def test_all_problems_are_told_at_once_and_in_order():
    assert record_problems(CAMPAIGN, GOOD, "yes") == ()
    found = record_problems(CAMPAIGN, {"Flag": 1, "age": "x", "hours": None}, "maybe")
    assert [problem.feature for problem in found] == ["flag", "age", "hours", "Flag", "paid"]
    assert found[-1] == Problem("paid", '"maybe" is not declared', "must be one of yes, no")


def test_nothing_is_no_problem_where_missing_is_declared():
    for value in (None, float("nan"), Decimal("NaN")):
        assert record_problems(CAMPAIGN, {**GOOD, "colour": value}) == ()
    assert record_problems(CAMPAIGN, without("colour")) == ()


def test_a_projections_outputs_are_left_out_and_its_inputs_are_wanted():
    rows = {"inputs": ["age", "hours"], "mean": [0, 0], "scale": [1, 1], "matrix": [[1, 1]]}
    projection = {**PCA, **rows, "outputs": [number("first")]}
    found = record_problems(Campaign.compile({**DRAFT, "projection": projection}), {**without("hours"), "first": 1})
    assert [(problem.feature, problem.wrong) for problem in found] == [
        ("hours", "the record does not hold it"),
        ("first", "is computed from other features"),
    ]


class Broken(Mapping[str, object]):
    """A record that holds everything and gives nothing."""

    def __getitem__(self, name):
        raise OSError

    def __contains__(self, name):
        return True

    def __iter__(self):
        raise OSError

    def __len__(self):
        return 1


class Silent:
    """A value that does not even say what it is."""

    def _refuse(self, *_):
        raise RuntimeError

    __eq__ = __ne__ = __repr__ = __str__ = __bool__ = __float__ = __index__ = _refuse
    __hash__ = None


def test_a_record_that_cannot_be_read_and_a_value_that_cannot_be_shown_are_problems_and_no_error():
    found = record_problems(CAMPAIGN, Broken())
    assert {problem.wrong for problem in found} == {"reading it raises OSError", "reading its names raises OSError"}
    assert len(found) == 5
    wrong = [("flag", 1)]
    assert record_problems(CAMPAIGN, wrong)[0].wrong == "this list is no mapping"
    found = record_problems(CAMPAIGN, dict.fromkeys(GOOD, Silent()), Silent())
    assert [problem.feature for problem in found] == ["flag", "colour", "age", "hours", "paid"]
    assert all("this Silent" in problem.wrong for problem in found)


@given(st.dictionaries(st.sampled_from([*GOOD, "paid", "Age"]) | st.text(max_size=20), VALUES))
def test_what_has_no_problem_is_answered_as_it_stands_and_what_has_one_is_not(record):
    found = record_problems(CAMPAIGN, record)
    wrong = {problem.feature for problem in found if problem.wrong != "is no feature of the campaign"}
    flag, colour, _, hours = CAMPAIGN.features
    for feature, value in ((flag, record.get("flag")), (hours, record.get("hours"))):
        assert (feature.name in wrong) == (feature.index_of(value) is None)
    assert ("age" in wrong) == (hours.index_of(record.get("age")) is None)
    assert "colour" in wrong or colour.index_of(record.get("colour")) in (0, 1)
    assert len(found) == len(wrong & GOOD.keys()) + len(record.keys() - GOOD.keys())


HUGE = 10**5000
VECTORS = Path(__file__).resolve().parents[2] / "protocols" / "vectors" / "documents.json"
PUBLISHED = json.loads(VECTORS.read_text(encoding="utf-8"))["accepted"]
CAMPAIGNS = {one["name"]: Campaign.parse(one["document"].encode()) for one in PUBLISHED}


WIDE = [{"name": name, "kind": "continuous", "low": -1e9, "high": 1e9} for name in ("weight", "size")]
OVERFLOWING = {
    **PCA,
    "inputs": ["weight", "size"],
    "mean": [0, -1e150],
    "scale": [1e-150, 1],
    "matrix": [[1, -1e100], [0, 1]],
    "outputs": [{**WIDE[0], "name": "first"}, {**WIDE[1], "name": "second", "bins": 4}],
}
"""A projection that leaves the range of doubles."""

CAMPAIGNS["overflowing"] = Campaign.compile(draft(*WIDE, projection=OVERFLOWING))


def hostile(base, value):
    """A value that is one of ``base`` by its type, and raises whatever is asked of it."""

    def refuse(*_):
        raise RecursionError

    asked = ("__float__", "__index__", "__eq__", "__hash__", "__str__", "encode", "isascii", "is_finite", "adjusted")
    return type("Hostile", (base,), {**dict.fromkeys(asked, refuse), "denominator": property(refuse)})(value)


ZOO = [
    *(float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 1.7e308, HUGE, -HUGE, 1j, 1 + 0j, True, None, ...),
    *(Decimal("sNaN"), Decimal("NaN"), Decimal("1e999999"), Decimal("-Infinity"), Fraction(1, 3), Fraction(HUGE, 7)),
    *("", "red", "\ud800", "\0", "1" * 100_000, "9e999", "1e-999", b"red", bytearray(2), memoryview(b"1")),
    *([], {}, (), set(), object(), type, len, iter(()), range(3), NotImplemented, Silent()),
    *(hostile(float, 2.0), hostile(int, 1), hostile(str, "red"), hostile(str, "é"), hostile(Decimal, 1)),
    hostile(Fraction, 1),
]


@pytest.mark.parametrize("campaign", CAMPAIGNS.values(), ids=CAMPAIGNS)
def test_no_record_makes_a_question_of_any_kind_fail(campaign):
    names = [feature.name for feature in campaign.features]
    records, last = [Broken(), *(dict.fromkeys(names, value) for value in ZOO)], len(campaign.label.classes) - 1
    for question in campaign.questions:
        for record in records:
            item = item_of(campaign, question, record, last, SeededCoins(1))
            question.mechanism.check(question.perturb(item, SeededCoins(2)))
