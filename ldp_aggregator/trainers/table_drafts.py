"""A draft from a table, with a loud note on everything that was read off the data.

Value lists and bounds are public in a campaign. Reading them off private records publishes something about those
records; a draft made here is a start, and every noted place must be replaced by public knowledge before anyone is
asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.trainers.schemas import TableError
from ldp_protocols.features import MISSING, describe_number, describe_values
from ldp_protocols.fields import LONGEST_TEXT

MOST_DRAFTED_VALUES: Final = 50
"""A text column with more different values is left out: names, identifiers, free text."""

MOST_DRAFTED_CLASSES: Final = 20
FEWEST_NUMBERS: Final = 12
"""A column of whole numbers with fewer different values is taken as codes, that is, value by value."""

DEFAULT_BINS: Final = 8
CROWDED: Final = 0.95
"""The share of the rows in one bin from which on narrower bounds are proposed."""


@dataclass(frozen=True)
class TableDraft:
    """A draft, and what its author has to replace or know; ``left_out`` names the columns that are not in it."""

    draft: Mapping[str, Any]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


def draft_from_table(
    table: pd.DataFrame, label: str, *, source: str, epsilon: float = 1.0, bins: int = DEFAULT_BINS
) -> TableDraft:
    """A draft for a table of texts (see :func:`read_csv`) whose classes are in
    ``label``. An ordered Categorical gives its values in their order, also those that are in no row.

    Raises TableError where the label column is missing, empty somewhere, or no column to learn from is left.
    """
    require_column(table, label, source)
    classes = _classes(table[label], source)
    notes = [f"{label}: the classes {', '.join(classes)} were read off the data; list those that can occur"]
    features: list[Mapping[str, Any]] = []
    left_out: list[str] = []
    for name in map(str, table.columns):
        if name == label:
            continue
        feature, note = _feature(name, table[name], bins)
        notes.append(f"{name}: {note}")
        if feature is None:
            left_out.append(name)
        else:
            features.append(feature)
    if not features:
        raise TableError(f"{source}: no column beside {label!r} can be asked about; see: {'; '.join(notes[1:])}")
    draft = {
        "version": 1,
        "title": f"Learn {label}"[:LONGEST_TEXT],
        "purpose": "an experiment with a table; value lists and bounds were read off it",
        "label": {"name": label, "classes": classes},
        "features": features,
        "privacy": {"epsilon": epsilon},
    }
    return TableDraft(draft, tuple(notes), tuple(left_out))


def _classes(column: pd.Series[str], source: str) -> list[str]:
    if (column == "").any():
        row = int((column == "").to_numpy().argmax()) + 1
        raise TableError(f"{source}: column {column.name!r}, row {row}: empty; every row needs a label")
    classes = _sorted_values(column)
    if not 2 <= len(classes) <= MOST_DRAFTED_CLASSES:
        raise TableError(
            f"{source}: column {column.name!r} has {len(classes)} different values; "
            f"a label to learn has 2 to {MOST_DRAFTED_CLASSES}"
        )
    return classes


def _feature(name: str, column: pd.Series[str], bins: int) -> tuple[Mapping[str, Any] | None, str]:
    """The feature (None where the column is left out), and what to note about it."""
    present = column[column.str.strip() != ""]
    different = present.nunique()
    order = [text for text in map(str, categories_in_order(column)) if text.strip()]  # The empty one is missing.
    holes = len(present) < len(column)
    told = (
        "; some rows are empty: a value may be missing"
        if holes
        else '; no row is empty: it is declared complete ("missing": false), which is yours to confirm'
    )
    if different < 2:
        return None, "left out: it has the same value in every row"
    numbers = None if order else _numbers(present)
    if numbers is not None and (different >= FEWEST_NUMBERS or any(not number.is_integer() for number in numbers)):
        low, high = round_bounds(min(numbers), max(numbers))
        note = f"the bounds {low:g} to {high:g} were read off the data; replace them by what the measurement can be"
        note += _crowded(present.to_numpy(dtype=np.float64), low, high, bins)
        return describe_number(name, low, high, bins=bins, missing=holes), note + told
    if not order and (different > MOST_DRAFTED_VALUES or different == len(column)):
        return None, f"left out: {different} different texts in {len(column)} rows, too many for a list of values"
    values = order or _sorted_values(present)
    longest = max(map(len, values))
    if longest > LONGEST_TEXT:
        return None, f"left out: a value has {longest} characters, at most {LONGEST_TEXT} can be declared"
    note = f"the {len(values)} values were read off the data; list those that can occur"
    if order:
        note = f"the {len(values)} values and their order are those of an ordered column; list those that can occur"
    ordered = {"ordered": True} if order and MISSING not in values else {}
    return describe_values(name, values, missing=holes and MISSING not in values, **ordered), note + told


def _crowded(values: NDArray[np.float64], low: float, high: float, bins: int) -> str:
    """Say where a bin holds nearly all rows, and propose bounds, for a person to judge; nothing elsewhere."""
    counts, edges = np.histogram(values, bins, (low, high))
    place = int(counts.argmax())
    if counts[place] < CROWDED * len(values):
        return ""
    said = (
        f"; {counts[place] / len(values):.1%} of the rows lie from {edges[place]:g} to {edges[place + 1]:g}, in one bin"
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


def _sorted_values(column: pd.Series[str]) -> list[str]:
    """The different texts in numeric order where all are numbers, else in alphabetic order."""
    values = [str(value) for value in column.unique()]
    numbers = _numbers(column)
    return sorted(values) if numbers is None else sorted(values, key=lambda text: (float(text), text))


def _numbers(column: pd.Series[str]) -> list[float] | None:
    """The different values as finite numbers, None where one is not."""
    try:
        numbers = [float(text) for text in column.unique()]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def first_line(error: Exception) -> str:
    """The text of an error on one line."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def read_csv(path: Path | str) -> pd.DataFrame:
    """Every column as the text in the file (CSV with a header row, gzip-compressed where the name ends in ``.gz``)."""
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_filter=False)
    except FileNotFoundError:
        raise TableError(f"{path}: no such file") from None
    except (OSError, EOFError, ValueError) as error:
        raise TableError(f"{path}: not a CSV table with a header row ({first_line(error)})") from None
    if frame.empty:
        raise TableError(f"{path}: holds no rows; a table has a header row and at least one more")
    return frame


def categories_in_order(column: pd.Series[Any]) -> list[Any]:
    """The categories of an ordered Categorical; none of any other column."""
    if not isinstance(column.dtype, pd.CategoricalDtype) or not column.dtype.ordered:
        return []
    return list(column.dtype.categories)


def require_column(table: pd.DataFrame, name: str, source: str) -> None:
    """Raise TableError, naming the columns that there are, unless ``name`` is one of them."""
    if name not in table.columns:
        raise TableError(f"{source}: no column {name!r}; the columns are {', '.join(map(str, table.columns))}")
