"""A draft from a table, with a loud note on everything that was read off the data.

Value lists and bounds are public in a campaign. Reading them off private records publishes something about those
records; a draft made here is a start, and every noted place must be replaced by public knowledge before anyone is
asked.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.trainers.reading import (
    MARK,
    NOTES,
    TableError,
    canonical,
    formatted,
    is_absent,
    no_column,
    plain_name,
    whole_column,
)
from ldp_protocols.errors import DraftError
from ldp_protocols.features import MISSING, describe_number, describe_values, read_feature
from ldp_protocols.fields import LONGEST_TEXT
from ldp_protocols.values import number_of

MOST_DRAFTED_VALUES: Final = 50
"""A text column with more different values is left out: names, identifiers, free text."""

MOST_DRAFTED_CLASSES: Final = 20
FEWEST_NUMBERS: Final = 12
"""A column of whole numbers with fewer different values is taken as codes, that is, value by value."""

DEFAULT_BINS: Final = 8
CROWDED: Final = 0.95
"""The share of the rows in one bin from which on narrower bounds are proposed."""

_NEARLY_ALL: Final = 0.95
"""Share of the rows with a number of their own, from which on whole numbers may be identifiers."""

_IDENTIFIER: Final = re.compile(
    r"(^|.*[^A-Za-z])(?i:id|key|index|row|no|nr|num|number|code)|.*[a-z](Id|ID|Number|Key|Code)"
)
_LEADING_ZERO: Final = re.compile(r"\s*[+-]?0[0-9]")
_DATE: Final = re.compile(
    r"\s*([0-9]{4}[-/.][0-9]{1,2}([-/.][0-9]{1,2})?|[0-9]{1,2}[-/. ]([0-9]{1,2}|[A-Za-z]{3,9})[-/. ][0-9]{2,4})\b"
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SAME: Final = "it has the same value in every row"


@dataclass(frozen=True)
class TableDraft:
    """A draft, and what its author has to replace or know; ``left_out`` names the columns that are not in it."""

    draft: Mapping[str, Any]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


class _Column(NamedTuple):
    """The end of a column: a ``feature``, or None with ``lost``, the reason; ``taken`` says what was taken for what,
    ``read`` what was read off it.
    """

    feature: Mapping[str, Any] | None
    lost: str = ""
    taken: str = ""
    read: str = ""


def draft_from_table(
    table: pd.DataFrame, label: str | None, *, source: str, epsilon: float = 1.0, bins: int = DEFAULT_BINS
) -> TableDraft:
    """A draft for a table of texts (see :func:`ldp_aggregator.trainers.reading.read_csv`) whose classes are in
    ``label``; rows without one take no part. None asks for statistics of all columns. An ordered Categorical gives its
    values in their order, also those that are in no row. Notes say first what was lost, then what was taken for what,
    and in one line what was read off.

    Raises TableError where the label column is missing, or no column to learn from is left.
    """
    notes, taken, read = list(table.attrs.get(NOTES, ())), list[str](), list[str]()
    learned: dict[str, Any] = {"title": f"Statistics of {source}"[:LONGEST_TEXT]}
    if label is not None:
        require_column(table, label, source)
        label = plain_name(label) if label not in table.columns else label
        classes, taken = _classes(table[label], source)
        unlabelled = without_label(table[label])
        if unlabelled.any():
            notes.append(
                f"rows without {label}, left out: {int(unlabelled.sum())}, the first is row {_row(unlabelled)}"
            )
            table = table.loc[~unlabelled]
        read = [f"the classes of {label} ({', '.join(classes)})"]
        learned = {"title": f"Learn {label}"[:LONGEST_TEXT], "label": {"name": label, "classes": classes}}
    mark = table.attrs.get(MARK, ".")
    columns = {str(name): _column(str(name), table[name], bins, mark) for name in table.columns if name != label}
    features = [one.feature for one in columns.values() if one.feature is not None]
    lost = [f"{name}: left out: {one.lost}" for name, one in columns.items() if one.feature is None]
    if not features:
        beside = "" if label is None else f" beside {label!r}"
        raise TableError(f"{source}: no column{beside} can be asked about; see: {'; '.join([*notes, *lost])}")
    read += [one.read for one in columns.values() if one.read]
    complete = [str(one["name"]) for one in features if one.get("missing") is False]
    notes = [
        *lost,
        *notes,
        *taken,
        *(f"{name}: {one.taken}" for name, one in columns.items() if one.taken),
        f"read off the data, to be replaced by what can occur: {'; '.join(read)}",
    ]
    if complete:
        said = 'declared complete ("missing": false), since no row is empty, which is yours to confirm'
        notes.append(f"{said}: {', '.join(complete)}")
    draft = {
        "version": 1,
        "title": learned.pop("title"),
        "purpose": "an experiment with a table; value lists and bounds were read off it",
        **learned,
        "features": features,
        "privacy": {"epsilon": epsilon},
    }
    return TableDraft(draft, tuple(notes), tuple(name for name, one in columns.items() if one.feature is None))


def without_label(column: pd.Series[Any]) -> pd.Series[bool]:
    """The rows whose label is empty, or a mark of a missing value."""
    return column.isna() | column.isin([text for text in map(str, column.unique()) if is_absent(text)])


def _row(chosen: pd.Series[bool]) -> int:
    """The number of the first row that is chosen, from 1, in a table of which rows may have been left out."""
    return int(chosen.index[int(chosen.to_numpy().argmax())]) + 1


def _classes(column: pd.Series[Any], source: str) -> tuple[list[str], list[str]]:
    """The classes, and notes on labels that differ by little."""
    texts = [text for text in map(str, column.unique()) if not is_absent(text)]
    for text in texts:
        if _CONTROL.search(text.strip()):
            row = _row(column == text)
            raise TableError(
                f"{source}: column {column.name!r}, row {row}: {text!r} has a control character; take it out"
            )
    classes = _in_order(map(canonical, texts))
    if not 2 <= len(classes) <= MOST_DRAFTED_CLASSES:
        advice = (
            "; make classes of a number, such as low and high"
            if len(classes) > 2 and all(map(_is_number, classes))
            else ""
        )
        raise TableError(
            f"{source}: column {column.name!r} has {len(classes)} different values; "
            f"a label to learn has 2 to {MOST_DRAFTED_CLASSES}{advice}"
        )
    refused = _twins(classes) or _refusal(describe_values(str(column.name), classes))
    if refused:
        raise TableError(f"{source}: column {column.name!r} is no label: {refused}")
    trimmed = sum(text != text.strip() for text in texts)
    notes = [f"{column.name}: {trimmed} different texts have blanks around them, which count for nothing"] * (
        trimmed > 0
    )
    folded = Counter(map(str.casefold, classes))
    alike = [one for one in classes if folded[one.casefold()] > 1]
    return classes, notes + [f"{column.name}: the classes {', '.join(alike)} differ by case only"] * bool(alike)


def _column(name: str, column: pd.Series[Any], bins: int, mark: str) -> _Column:
    """The end of a column. Row numbers count from 1, below the header."""
    counts = {str(text): int(count) for text, count in column.value_counts(sort=False).items() if count}
    order = [text for text in map(str, categories_in_order(column)) if text.strip()]  # The empty one is missing.
    if order:
        listed = counts.keys() & set(order)
        said = f"the {len(order)} values of {name} and their order, those of an ordered column"
        return _listed(
            name, order, len(listed), sum(counts[text] for text in listed) < len(column), "", said, ordered=True
        )
    present = [text for text in counts if not is_absent(text, number=True)]
    found = None if any(map(_LEADING_ZERO.match, present)) else whole_column(present, mark)
    if not present or found is None or not all(map(math.isfinite, found[0].values())):
        return _texts(name, column, counts, present)
    read, written = found
    marks = _marks(counts, number=True)
    rows = sum(counts[text] for text in present)
    holes = rows < len(column)
    values = sorted(set(read.values()))
    whole = all(value.is_integer() for value in values)
    if len(values) < 2:
        return _Column(None, _SAME)
    if whole and (reason := _row_number(name, [read.get(text) for text in column], values, rows)):
        return _Column(None, reason)
    if whole and not written and len(values) < FEWEST_NUMBERS:
        return _listed(name, _in_order(map(canonical, present)), len(values), holes, marks)
    low, high = round_bounds(values[0], values[-1])
    measured = np.repeat([read[text] for text in present], [counts[text] for text in present])
    taken = "; ".join(filter(None, (written, marks, _crowded(measured, low, high, bins))))
    described = describe_number(name, low, high, bins=bins, missing=holes)
    refused = _refusal(described)
    return (
        _Column(None, refused)
        if refused
        else _Column(described, "", taken, f"the bounds of {name} ({low:g} to {high:g})")
    )


def _texts(name: str, column: pd.Series[Any], counts: Mapping[str, int], numeric: Sequence[str]) -> _Column:
    """The end of a column whose values are not all numbers."""
    present = [text for text in counts if not is_absent(text)]
    values = _in_order(map(canonical, present))
    rows = sum(counts[text] for text in present)
    if len(values) < 2:
        return _Column(None, _SAME if values else "no row holds a value")
    if len(values) <= MOST_DRAFTED_VALUES and len(values) < rows:
        return _listed(name, values, len(values), rows < len(column), _marks(counts))
    several = f"{len(values)} different texts in {rows} rows, too many for a list of values"
    zeros = sum(bool(_LEADING_ZERO.match(text)) for text in present)
    odd = [text for text in numeric if formatted(text, ".") != formatted(text, ".")]
    if 2 * sum(bool(_DATE.match(text)) for text in present) > len(present):
        return _Column(None, f"{several}; they look like dates: ask for a number of days, a month or a year instead")
    if zeros:
        return _Column(
            None,
            f"{several}; {zeros} of them have leading zeros, as codes have: group them, such as by their first digits",
        )
    if 2 * len(odd) < len(numeric):
        first = _row(column == odd[0]) if odd else 1
        why = (
            f"{sum(counts[text] for text in odd)} rows hold no number, the first is row {first}, {odd[0]!r}"
            if odd
            else "they are written in several ways"
        )
        return _Column(None, f"{several}; most are numbers, but {why}: empty such cells, or write all in one way")
    return _Column(None, several)


def _listed(
    name: str, values: Sequence[str], different: int, holes: bool, taken: str, said: str = "", *, ordered: bool = False
) -> _Column:
    """A feature whose values are listed, or the reason why they cannot be."""
    if different < 2:
        return _Column(None, _SAME)
    longest = max(map(len, values))
    if longest > LONGEST_TEXT:
        return _Column(None, f"a value has {longest} characters, at most {LONGEST_TEXT} can be declared")
    order = {"ordered": True} if ordered and MISSING not in values else {}
    feature = describe_values(name, values, missing=holes and MISSING not in values, **order)
    refused = _twins(values) or _refusal(feature)
    if refused:
        return _Column(None, refused)
    return _Column(feature, "", taken, said or f"the {len(values)} values of {name}")


def _refusal(described: Mapping[str, Any]) -> str:
    """Why a campaign would refuse a feature; empty where it would not."""
    try:
        read_feature(dict(described), str(described["name"]), 2, DraftError)
    except DraftError as error:
        return str(error)
    return ""


def _twins(values: Iterable[str]) -> str:
    """Why texts cannot all be listed that mean the same; empty where none do."""
    spellings = {value.lower(): value for value in values}
    pairs = [
        (spellings[digit], spellings[word])
        for digit, word in (("1", "true"), ("0", "false"))
        if {digit, word} <= spellings.keys()
    ]
    return "; ".join(f"{one!r} and {other!r} mean the same: write them in one way" for one, other in pairs)


def _marks(counts: Mapping[str, int], *, number: bool = False) -> str:
    """The number of rows that say by which mark that they have no value; nothing of empty ones."""
    marks = [(text.strip(), count) for text, count in counts.items() if text.strip() and is_absent(text, number=number)]
    return ", ".join(f"{count} rows say {text!r}, which was taken as missing" for text, count in marks)


def _row_number(name: str, numbers: Sequence[float | None], values: Sequence[float], rows: int) -> str:
    """Why whole numbers are taken for a row's number or an identifier; empty where they are not."""
    if rows < FEWEST_NUMBERS or len(values) < _NEARLY_ALL * rows:
        return ""
    present = [number for number in numbers if number is not None]
    rising = len(values) == rows and all(one < other for one, other in pairwise(present))
    if rising or (len(values) == rows and values[-1] - values[0] < 1.1 * rows) or _IDENTIFIER.fullmatch(name):
        return "a whole number that is another one in nearly every row, as row numbers and identifiers are"
    return ""


def _crowded(values: NDArray[np.float64], low: float, high: float, bins: int) -> str:
    """Say where a bin holds nearly all rows, and propose bounds, for a person to judge; nothing elsewhere."""
    counts, edges = np.histogram(values, bins, (low, high))
    place = int(counts.argmax())
    if counts[place] < CROWDED * len(values):
        return ""
    said = (
        f"{counts[place] / len(values):.1%} of the rows lie from {edges[place]:g} to {edges[place + 1]:g}, in one bin"
    )
    low, high = round_bounds(*np.percentile(values, [1, 99]).tolist())
    narrower, _ = np.histogram(values.clip(low, high), bins, (low, high)) if low < high else (counts, edges)
    if narrower.max() >= CROWDED * len(values):
        return f"{said}, and no narrower bounds tell them apart"
    return (
        f"{said}: bounds {low:g} to {high:g} (percentiles 1 and 99 of these rows) would tell them apart and clip the "
        "rest; declare them where public knowledge agrees"
    )


def round_bounds(low: float, high: float) -> tuple[float, float]:
    """The tightest interval around [low, high] whose ends are multiples of a round step, about a tenth of its width."""
    step = 10.0 ** math.floor(math.log10((high - low) / 2)) if high > low else 1.0
    digits = max(0, -math.floor(math.log10(step)))
    return round(math.floor(low / step) * step, digits), round(math.ceil(high / step) * step, digits)


def _in_order(texts: Iterable[str]) -> list[str]:
    """The different texts in numeric order where all are numbers, else in alphabetic order."""
    different = sorted(set(texts))
    return sorted(different, key=float) if all(map(_is_number, different)) else different


def _is_number(text: str) -> bool:
    number = number_of(text)
    return number is not None and math.isfinite(number)


def first_line(error: Exception) -> str:
    """The text of an error on one line."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def categories_in_order(column: pd.Series[Any]) -> list[Any]:
    """The categories of an ordered Categorical; none of any other column."""
    if not isinstance(column.dtype, pd.CategoricalDtype) or not column.dtype.ordered:
        return []
    return list(column.dtype.categories)


def require_column(table: pd.DataFrame, name: str, source: str) -> None:
    """Raise TableError, naming the columns that there are, unless ``name`` is one of them."""
    if name not in table.columns and plain_name(name) not in table.columns:
        raise TableError(f"{source}: {no_column(list(map(str, table.columns)), name)}")
