"""Tables by name: CSV, CSV.gz and Parquet files, scikit-learn's bundled data sets, and OpenML where there is a network.

Whatever the source, the result is a table of texts, as a CSV file would hold it: a campaign sees the same values.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd
from sklearn import datasets

from protocols.errors import NotInstalledError
from simulations.tables.frames import TableError, categories_in_order, first_line, read_csv

SKLEARN: Final = "sklearn:"
OPENML: Final = "openml:"
LABEL: Final = "class"
"""The label column of the data sets that do not name it themselves."""

BUNDLED: Final[Mapping[str, Callable[..., Any]]] = {
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
}

TABLE_HELP: Final = (
    f"the people: a CSV, CSV.gz or Parquet file, {SKLEARN}NAME ({', '.join(BUNDLED)}), or {OPENML}NAME[:VERSION]"
)


def read_text_table(place: Path | str) -> pd.DataFrame:
    """Every column as text; empty where a value is missing. Raises TableError in one line."""
    name = str(place)
    if name.startswith(SKLEARN):
        return _bundled(name.removeprefix(SKLEARN))
    if name.startswith(OPENML):
        return _openml(name.removeprefix(OPENML))
    if name.endswith((".parquet", ".pq")):
        return _parquet(Path(name))
    return read_csv(place)


def as_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Each value as the shortest text that reads back as it; whole numbers without a decimal point.

    An ordered Categorical stays one, of texts; the empty one, where a value is missing, is its last.
    """
    texts = {str(name): [_text(value) for value in frame[name].tolist()] for name in frame.columns}
    table = pd.DataFrame(texts, dtype=str)
    for name in frame.columns:
        order = [_text(category) for category in categories_in_order(frame[name])]
        # Two categories that read alike have no order as texts.
        if order and len(set(order)) == len(order):
            held = texts[str(name)]
            table[str(name)] = pd.Categorical(held, list(dict.fromkeys([*order, *held])), ordered=True)
    return table


def _text(value: object) -> str:
    if value is None or value is pd.NA or value != value:  # NaN and NaT differ from themselves.
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def _bundled(name: str) -> pd.DataFrame:
    if name not in BUNDLED:
        raise TableError(f"{SKLEARN}{name}: not one of scikit-learn's bundled sets {', '.join(BUNDLED)}")
    bunch = BUNDLED[name](as_frame=True)
    labels = [str(bunch.target_names[code]) for code in bunch.target]
    return as_texts(bunch.data).assign(**{LABEL: labels})


def _openml(name: str) -> pd.DataFrame:
    title, _, version = name.partition(":")
    if version and not version.isdigit():
        raise TableError(f"{OPENML}{name}: the version must be a whole number, as in {OPENML}{title}:1")
    try:
        bunch = datasets.fetch_openml(title, version=int(version) if version else "active", as_frame=True)
    except (OSError, ValueError) as error:
        raise TableError(f"{OPENML}{name}: cannot be had from OpenML ({first_line(error)})") from None
    return as_texts(bunch.frame)


def _parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except FileNotFoundError:
        raise TableError(f"{path}: no such file") from None
    except ImportError:
        raise NotInstalledError(
            f"{path}: reading Parquet takes pyarrow; pip install 'ldp-bayes[simulations]'"
        ) from None
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: not a Parquet file ({first_line(error)})") from None
    if frame.empty:
        raise TableError(f"{path}: holds no rows")
    return as_texts(frame)
