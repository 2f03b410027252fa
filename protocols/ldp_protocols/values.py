"""The meaning of a record's value: as one of the declared texts, and as a number.

By value and never by type, column or table, so that devices, tables, arrays, CSV files and other languages agree on
every one: equal numbers mean the same, whatever holds them. ``docs/values.md`` is the table of these rules and
``protocols/vectors/values.json`` pins them.

Nothing here raises: whatever cannot be read is missing, because an error that depends on a record would tell of it.
"""

from __future__ import annotations

import numbers
import operator
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from ldp_protocols.fields import LONGEST_TEXT

NUMERAL: Final = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
"""A text that is a number: decimal, in ASCII digits, blanks around it or not; no names, underscores, hexadecimals."""

_WHOLE: Final = re.compile(r"(-?[0-9]+)\.0+")
"""A text that is a whole number with zeros behind a point, as tables hold one that may be missing."""

_TRUTH_VALUES: Final = {"1": ("true", "True"), "0": ("false", "False")}
"""As JSON and as Python write them."""

_WRITABLE: Final = 10**LONGEST_TEXT
"""No declared text is as long as this number, and Python refuses to write out enormous ones."""


def held(record: Mapping[str, object], name: str) -> object:
    """A record's value under a name; None where it holds nothing or cannot say."""
    try:
        return record.get(name)
    except Exception:
        return None


def text_of(value: object) -> str | None:
    """The text that a categorical value or a label is compared by, or None where there is none.

    A text is itself (in Unicode's form NFC); a whole number is its digits, exactly; any other finite number is the
    shortest decimal that is its double, written without an exponent. A truth value is the number 1 or 0, see
    :func:`positions_of`.
    """
    try:
        return composed(str.__str__(value)) if isinstance(value, str) else _text_of_number(_plain(value))
    except Exception:
        return None


def positions_of(texts: Sequence[str]) -> Mapping[str, int]:
    """Position by the text that means it, of declared texts.

    Where 1 is not declared itself, ``1.0`` is another name of it, then ``true``, then ``True``; of 0 likewise, and of
    other whole numbers ``2.0``. Whole numbers get a point, and truth values become numbers, on their way through
    arrays, columns and databases, and mean the same before and after.
    """
    positions = {composed(text): position for position, text in enumerate(texts)}
    for text, position in tuple(positions.items()):
        positions.setdefault(digits_of(text), position)
    for digit, names in _TRUTH_VALUES.items():
        for name in names:
            if name in positions:
                positions.setdefault(digit, positions[name])
    return positions


def position_of(value: object, positions: Mapping[str, int]) -> int | None:
    """The position of the declared text that a value means; None where it means none."""
    text = text_of(value)
    return None if text is None else positions.get(text, positions.get(digits_of(text)))


def digits_of(text: str) -> str:
    """A whole number without the zeros behind its point, ``1`` for ``1.0``; any other text as it is."""
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def number_of(value: object) -> float | None:
    """The double nearest to a number, or None where there is none: nothing, NaN, a text that is no number.

    A text may be a numeral (:data:`NUMERAL`); truth values are 1 and 0. Numbers beyond a double are infinite, and
    infinite ones are numbers: a feature clips them to its bounds.
    """
    try:
        number = _parsed(str.__str__(value)) if isinstance(value, str) else _double(_plain(value))
    except Exception:
        return None
    return number if number == number else None  # NaN is not itself


def composed(text: str) -> str:
    """A text in Unicode's form NFC: an accent may be written as a letter of its own or with the letter below it."""
    if text.isascii():
        return text
    from unicodedata import normalize  # a megabyte that devices with plain texts need not load

    return normalize("NFC", text)


def _parsed(text: str) -> float:
    """A numeral's double, NaN for any other text. Those longer than a declared text may be are none."""
    return float(text) if len(text) <= LONGEST_TEXT and NUMERAL.fullmatch(text) else float("nan")


def _double(value: Any) -> float:
    """The double nearest to a number, NaN for anything else."""
    if not isinstance(value, (numbers.Real, Decimal)):
        return float("nan")
    if isinstance(value, numbers.Integral):
        value = operator.index(value)  # numpy's time differences call themselves integral and have no index
    try:
        return float(value)
    except OverflowError:
        return float("-inf") if value < 0 else float("inf")


def _text_of_number(value: Any) -> str | None:
    if isinstance(value, numbers.Integral):
        return _digits(operator.index(value))
    if isinstance(value, numbers.Rational) and value.denominator == 1:
        return _digits(operator.index(value.numerator))
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() <= LONGEST_TEXT:
        whole = int(value)
        if whole == value:
            return _digits(whole)
    number = _double(value)
    if number - number != 0:  # NaN, infinite
        return None
    if number.is_integer():
        return _digits(int(number))
    text = format(Decimal(repr(number)), "f")
    return text if len(text) <= LONGEST_TEXT else None


def _digits(whole: int) -> str | None:
    return str(whole) if abs(whole) < _WRITABLE else None


def _plain(value: Any) -> Any:
    """Truth values of numpy as Python's, found by name (devices have no numpy); real complex numbers as real ones."""
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"):
        return bool(value)
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real) and value.imag == 0:
        return value.real
    return value
