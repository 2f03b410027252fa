"""The vectors of what a value means: every rule of ``docs/values.md``, with awkward values, as the code has them.

JSON has no integers beyond a double in every language, no decimals and no NaN; such values are written as an object of
one member, which names the type.
"""

from decimal import Decimal
from fractions import Fraction

from ldp_protocols.document.schema import Label
from ldp_protocols.errors import DraftError
from ldp_protocols.features import CategoricalFeature, NumericFeature, read_feature
from ldp_protocols.values import number_of, text_of

COMPOSED, DECOMPOSED = "Caf\u00e9", "Cafe\u0301"

PLAIN = (
    *("1", "1.0", "01", " 1", "-1", "0", "-0", "0.5", ".5", "5.", "41", " 41 ", "\t4e1", "+4E+1", "1e999", "-1e999"),
    *("1e-999", "", " ", ".", "e1", "1e", "--1", "1 2", "1_0", "0x10", "1,5", "٣", "Infinity", "inf", "nan", "NaN"),
    *("null", "1\n", "9" * 200, "9" * 201, "true", "True", "false", "1e3", "missing", COMPOSED, DECOMPOSED),
    *("\ufb01", "\u1e9b\u0323", "𝟙"),
    *(0, 1, -1, 41, 1.0, -0.0, 0.5, -0.5, 0.1, 1 / 3, 2.5e-7, -1e-7, 5e-324, 123456.789, 1e15, 1e21, 1e22, 1.5e300),
    *(0.020000000000000014, 0.020000000000000018, 0.33999999999999997, 0.34, 0.66, 0.6600000000000001),
    *(0.9799999999999999, 0.98, 2**53, 9007199254740991, 1e199, 1e200, True, False, None, [], [1], {}, {"a": 1}),
)
"""What JSON writes as it is. The lists and objects are missing values."""

TYPED = (
    *(("integer", str(n)) for n in (1, -1, 2**53 + 1, -(2**63), 10**30, 10**200 - 1, 10**200, -(10**200), 10**400)),
    *(("decimal", t) for t in ("1", "1.0", "-0.00", "1E+2", "0.10", "0.1", "1E-7", "1E+300", "9007199254740993.5")),
    *(("decimal", t) for t in ("NaN", "sNaN", "Infinity", "-Infinity", "1E+999999", "1E-999999")),
    *(("fraction", t) for t in ("1", "6/2", "1/2", "1/3")),
    *(("double", t) for t in ("nan", "inf", "-inf")),
)
"""What has to name its type; a language without the type leaves the case out."""

POINTED = ("1.00", "2.0", "-3.0", "4.0", "05.0", "5.0", "0.0", "-0.0", "2.50", "1.0 ", "1e0", 2, -3, 4, 5)
"""Whole numbers with zeros behind a point, and what is none."""

FLAG = CategoricalFeature("flag", ("0", "1", "0.5", "0.00000025"))
SMOKER = CategoricalFeature("smoker", ("True", "false", "1e3"))
ODD = CategoricalFeature("odd", ("true", "1", "True"))
DRINK = CategoricalFeature("drink", (DECOMPOSED, "1.0", "9007199254740993", "missing"), missing=False)
STAGE = CategoricalFeature("stage", ("1.0", "2.0", "-3.00", "4.0", "4", "05.0", "0.0"))
CODED = CategoricalFeature("coded", ("0", "2", "-3", "true"))
"""Such numbers declared with the point, and without it."""
SIZE = NumericFeature("size", 0, 2, 4)
SPREAD = NumericFeature("spread", -0.3, 1.3, 5)
"""Its edges depend on the order of operations; each stands among the values, with the double below it."""
ANSWER = Label("answer", ("true", "false", COMPOSED))


def of_json(value):
    """The value that a vector's ``value`` stands for."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, text),) = value.items()
        read = {"integer": int, "decimal": Decimal, "fraction": Fraction, "double": float}.get(kind)
        if read is not None:
            return read(text)
    return value


def values():
    """Every value with its text and its number, and with its index in some features and in a label."""
    written = [*PLAIN, *({kind: text} for kind, text in TYPED), *POINTED]
    return {
        "cases": [
            {"value": value, "text": text_of(of_json(value)), "number": _number(number_of(of_json(value)))}
            for value in written
        ],
        # Without ``missing``: which position a value means does not depend on it.
        "features": [
            {key: said for key, said in feature.to_json().items() if key != "missing"}
            | {"indices": [feature.index_of(of_json(value)) for value in written]}
            for feature in (FLAG, SMOKER, ODD, DRINK, SIZE, SPREAD, STAGE, CODED)
        ],
        "label": {"classes": list(ANSWER.classes), "indices": [ANSWER.index_of(of_json(value)) for value in written]},
    }


def feature_of(case):
    """The feature that a case describes."""
    described = {key: said for key, said in case.items() if key != "indices"}
    return read_feature(described, case["name"], 2, DraftError)


def _number(number):
    """JSON has no infinities."""
    return str(number) if number in (float("inf"), float("-inf")) else number
