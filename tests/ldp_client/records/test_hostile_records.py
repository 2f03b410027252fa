"""Whatever a record does when it is read, it is answered: reading raises nothing, so that ``perturb`` has nothing to
catch, neither where it encodes nor where it classifies.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from evaluated import draft
from exact_coins import SeededCoins

from ldp_client.answering import item_of
from protocols import Campaign

HUGE = 10**5000
VECTORS = Path(__file__).resolve().parents[3] / "protocols" / "vectors" / "documents.json"
PUBLISHED = json.loads(VECTORS.read_text(encoding="utf-8"))["accepted"]
CAMPAIGNS = {one["name"]: Campaign.parse(one["document"].encode()) for one in PUBLISHED}


def overflowing():
    """A campaign whose projection leaves the range of doubles."""
    weight, size = ({"name": name, "kind": "continuous", "low": -1e9, "high": 1e9} for name in ("weight", "size"))
    projection = {
        "method": "pca",
        "inputs": ["weight", "size"],
        "mean": [0, -1e150],
        "scale": [1e-150, 1],
        "matrix": [[1, -1e100], [0, 1]],
        "fitted_on": "public",
        "outputs": [{**weight, "name": "first"}, {**size, "name": "second", "bins": 4}],
    }
    return Campaign.compile(draft(features=[weight, size], projection=projection))


CAMPAIGNS["overflowing"] = overflowing()


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
