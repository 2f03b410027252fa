"""Whatever a record does when it is read, it is answered: reading raises nothing, so that ``perturb`` has nothing to
catch, neither where it encodes nor where it classifies.
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import pytest
from exact_coins import SeededCoins

from ldp_client.answering import item_of
from protocols import Campaign

HUGE = 10**5000
WEIGHT = {"name": "weight", "kind": "continuous", "low": -1e9, "high": 1e9}
SIZE = {"name": "size", "kind": "continuous", "low": 0, "high": 8}
FEATURES = [
    {"name": "colour", "kind": "categorical", "values": ["red", "green", "1"]},
    {"name": "answer", "kind": "categorical", "values": ["no", "missing"]},
    {**SIZE, "bins": 4},
    WEIGHT,
]


def complete(*features):
    return [{**feature, "missing": False} for feature in features]


DRAFT = {
    "version": 1,
    "title": "t",
    "label": {"name": "y", "classes": ["a", "b"]},
    "features": complete(*FEATURES),
    "privacy": {"epsilon": 1.0},
}
PROJECTION = {
    "method": "pca",
    "inputs": ["weight", "size"],
    "mean": [0, -1e150],
    "scale": [1e-150, 1],
    "matrix": [[1, -1e100], [0, 1]],
    "fitted_on": "public",
    "outputs": complete(
        {"name": "first", "kind": "continuous", "low": -1, "high": 1},
        {"name": "second", "kind": "continuous", "low": -1, "high": 1, "bins": 4},
    ),
}

MODEL = {
    "version": 1,
    "kind": "naive-bayes",
    "label": "y",
    "classes": ["a", "b"],
    "prior": [0.5, 0.5],
    "features": [
        {**FEATURES[0], "likelihood": [[0.5, 0.2], [0.3, 0.3], [0.2, 0.5]]},
        {**SIZE, "bins": 4, "likelihood": [[0.25, 0.25]] * 4},
        {**WEIGHT, "kind": "gaussian", "mean": [0.0, 1.0], "variance": [1.0, 2.0]},
    ],
}


def everything(continuous):
    """A campaign that asks about everything at once."""
    return Campaign.compile({**DRAFT, "privacy": {"epsilon": 1.0, "answers": "all", "continuous": continuous}})


CAMPAIGNS = {
    **{continuous: everything(continuous) for continuous in ("onebit", "laplace", "sign")},
    "missing": Campaign.compile({**DRAFT, "features": FEATURES, "privacy": {"epsilon": 1.0, "answers": "all"}}),
    "moments": Campaign.compile({**DRAFT, "asks": "moments", "study": "s", "features": complete(WEIGHT, SIZE)}),
    "score": Campaign.compile({**DRAFT, "asks": "score", "study": "s", "evaluation": {"model": MODEL}}),
    "projection": Campaign.compile({**DRAFT, "features": complete(WEIGHT, SIZE), "projection": PROJECTION}),
}


def hostile(base, value=None, /, **methods):
    """A value that is one of ``base`` by its type, and does something else."""
    made = type("Hostile", (base,), methods)
    return made() if value is None else made(value)


def raising(error):
    def method(*_):
        raise error

    return method


class Unreadable(Mapping):
    """A record whose every door is shut."""

    __getitem__ = get = __iter__ = __len__ = __contains__ = raising(RecursionError())


class Shy:
    """A value that does not even say what it is."""

    __class__ = property(raising(RuntimeError()))
    __float__ = __index__ = __eq__ = __hash__ = __str__ = raising(RuntimeError())


ZOO = [
    *(float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 1.7e308, HUGE, -HUGE, 1j, 1 + 0j, True, None, ...),
    *(Decimal("sNaN"), Decimal("NaN"), Decimal("1e999999"), Decimal("-Infinity"), Fraction(1, 3), Fraction(HUGE, 7)),
    *("", "red", "\ud800", "\0", "1" * 100_000, "9e999", "1e-999", b"red", bytearray(2), memoryview(b"1")),
    *([], {}, (), set(), object(), type, len, Shy(), iter(()), range(3), NotImplemented),
    hostile(float, 2.0, __float__=raising(ValueError())),
    hostile(float, 1.0, __eq__=raising(ValueError()), __hash__=None),
    hostile(int, 1, __index__=raising(OSError()), __float__=raising(OSError())),
    hostile(int, 3, __index__=raising(RecursionError())),
    hostile(str, "red", __str__=raising(KeyError()), __hash__=raising(KeyError()), __eq__=raising(KeyError())),
    hostile(str, "é", isascii=raising(OSError()), encode=raising(OSError())),
    hostile(Decimal, 1, is_finite=raising(MemoryError()), adjusted=raising(MemoryError())),
    hostile(Fraction, 1, denominator=property(raising(RecursionError()))),
    hostile(object, __float__=raising(RecursionError())),
    hostile(object, __float__=lambda _: "1"),
]


@pytest.mark.parametrize("campaign", CAMPAIGNS.values(), ids=CAMPAIGNS)
def test_no_record_makes_a_question_of_any_kind_fail(campaign):
    names = [feature.name for feature in campaign.features]
    records = [Unreadable(), *(dict.fromkeys(names, value) for value in ZOO)]
    for question in campaign.questions:
        for record in records:
            item = item_of(campaign, question, record, 1, SeededCoins(1))
            question.mechanism.check(question.perturb(item, SeededCoins(2)))
