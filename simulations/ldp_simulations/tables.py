"""Tables by name: CSV, CSV.gz and Parquet files, scikit-learn's bundled data sets, and OpenML where there is a network.

Whatever the source, the result is a table of texts, as a CSV file would hold it: a campaign sees the same values. For a
schema, columns of numbers become numbers, also those that are written for people, and all others the declared texts;
marks of missing values (``NA``, ``?``) are no number, and a text only where it is declared. An experiment has people
from a table, and its campaign from a draft or from one derived from the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets

from ldp_aggregator.learning.frames import numbers
from ldp_aggregator.service.drafts import compile_draft
from ldp_aggregator.trainers.reading import (
    AS_WRITTEN,
    MARK,
    NOTES,
    Reading,
    TableError,
    declared_texts,
    is_absent,
    plain_name,
    read_csv,
    whole_column,
)
from ldp_aggregator.trainers.table_drafts import (
    DEFAULT_BINS,
    categories_in_order,
    draft_from_table,
    first_line,
    require_column,
    without_label,
)
from ldp_protocols import Campaign
from ldp_protocols.document.questions import JOINT
from ldp_protocols.document.schema import Label
from ldp_protocols.errors import LdpError
from ldp_protocols.features import Feature


@dataclass(frozen=True)
class Table:
    """People: a row of ``frame`` and a class of ``labels`` each."""

    frame: pd.DataFrame
    labels: pd.Series[str]

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, rows: NDArray[np.int64]) -> Table:
        """The people at these positions, in this order; a position may stand there more than once."""
        return Table(self.frame.iloc[rows].reset_index(drop=True), self.labels.iloc[rows].reset_index(drop=True))

    def split(self, train_fraction: float, rng: np.random.Generator) -> tuple[Table, Table]:
        """People to learn from, and people held out, at random; at least one of each."""
        order = rng.permutation(len(self))
        cut = min(max(1, round(train_fraction * len(self))), len(self) - 1)
        return self.take(order[:cut]), self.take(order[cut:])

    def draw(self, devices: int, rng: np.random.Generator) -> Table:
        """One person per device: all different while there are enough, else drawn with replacement."""
        return self.take(rng.choice(len(self), size=devices, replace=devices > len(self)))


def typed(table: pd.DataFrame, features: Sequence[Feature], label: Label, source: str) -> Table:
    """Feature and label columns of a table of texts, typed by the schema; rows without a label are left out, and where
    the schema has none all labels are None.

    Raises TableError for absent columns, and for texts where numbers are wanted.
    """
    for name in (*filter(None, [label.name]), *(feature.name for feature in features)):
        require_column(table, name, source)

    def column(name: str) -> pd.Series[Any]:
        return table[name if name in table.columns else plain_name(name)].rename(name)

    labels = declared_texts(label, column(label.name)) if label else pd.Series(np.full(len(table), None), table.index)
    labelled = ~without_label(labels) | labels.isin(label.classes) | (not label)
    columns = {
        one.name: as_numbers(column(one.name), source, table.attrs.get(MARK, "."))
        if one.number
        else declared_texts(one, column(one.name))
        for one in features
    }
    return Table(pd.DataFrame(columns)[labelled].reset_index(drop=True), labels[labelled].reset_index(drop=True))


def as_numbers(column: pd.Series, source: str, mark: str = ".") -> pd.Series:
    """Texts as doubles, written in one way in the whole column; empty ones and marks of missing values as NaN."""
    texts, plain = column.tolist(), numbers(column)
    if not np.isnan(plain).any():
        return pd.Series(plain, index=column.index, name=column.name)
    different = [text for text in dict.fromkeys(texts) if not is_absent(text, number=True)]
    found = whole_column(different, mark)
    if found is None:
        wrong = next((text for text in different if whole_column([text], mark) is None), different[0])
        raise TableError(
            f"{source}: column {column.name!r}, row {texts.index(wrong) + 1}: {wrong!r} is not a number, or written in "
            "another way than the rest; declare its values as texts or correct the row"
        )
    parsed = [found[0].get(text, np.nan) for text in texts]
    return pd.Series(parsed, index=column.index, name=column.name, dtype=np.float64)


def check_declared(table: Table, features: Sequence[Feature], label: Label, source: str) -> None:
    """Raise TableError for the first label or value that the schema does not declare.

    A device would answer an undeclared value as a missing one, which is right in the field and a mistake in an
    experiment; an empty text is missing where that may be. Numbers beyond the bounds are clipped, as on the device.
    """
    columns: list[tuple[pd.Series, Label | Feature, tuple[str, ...], bool]]
    columns = [(table.frame[f.name], f, f.names, f.missing) for f in features if f.number is None]
    for column, schema, values, may_be_missing in [(table.labels, label, label.classes, False), *columns]:
        for value in column.unique().tolist():
            if schema.index_of(value) is None and not (may_be_missing and is_absent(value)):
                row = int(np.flatnonzero((column == value).to_numpy())[0]) + 1
                listed = ", ".join(values[:12]) + (", ..." if len(values) > 12 else "")
                raise TableError(
                    f"{source}: column {schema.name!r}, row {row}: {value!r} is not declared; the schema has {listed}"
                )


def clipped_share(frame: pd.DataFrame, features: Sequence[Feature]) -> dict[str, float]:
    """Feature name to the share of its numbers beyond the declared bounds, for the features that have any."""
    shares = {
        one.name: float(((frame[one.name] < one.low) | (frame[one.name] > one.high)).mean())
        for one in [feature.number for feature in features if feature.number]
    }
    return {name: share for name, share in shares.items() if share}


def records(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The rows as what an app would hand to the client: Python values by name, None for what is missing."""
    names = list(frame.columns)
    columns = [python_values(frame[name]) for name in names]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def python_values(column: pd.Series) -> list[Any]:
    """A column as plain Python values, None where it is missing."""
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]


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


def read_text_table(place: Path | str, label: str = "", reading: Reading = AS_WRITTEN) -> pd.DataFrame:
    """Every column as text; empty where a value is missing. Raises TableError in one line.

    ``label``, a column of it, tells the header of a CSV file from what stands above it.
    """
    name = str(place)
    if name.startswith(SKLEARN):
        return _bundled(name.removeprefix(SKLEARN))
    if name.startswith(OPENML):
        return _openml(name.removeprefix(OPENML))
    if name.endswith((".parquet", ".pq")):
        return _parquet(Path(name))
    return read_csv(place, label, reading)


def as_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Each value as the shortest text that reads back as it; ordered Categoricals stay, the empty text is last."""
    texts = {str(name): [_text(value) for value in frame[name].tolist()] for name in frame.columns}
    table = pd.DataFrame(texts, dtype=str)
    for name in frame.columns:
        order = [_text(category) for category in categories_in_order(frame[name])]
        # Two categories that read alike have no order as texts.
        if order and len(set(order)) == len(order):
            texts_here = texts[str(name)]
            table[str(name)] = pd.Categorical(texts_here, list(dict.fromkeys([*order, *texts_here])), ordered=True)
    return table


def _text(value: object) -> str:
    if value is None or value is pd.NA or value != value:  # NaN and NaT differ from themselves.
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
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
        raise LdpError(
            "not-installed", f"{path}: reading Parquet takes pyarrow; pip install 'ldp-bayes[simulations]'"
        ) from None
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: not a Parquet file ({first_line(error)})") from None
    if frame.empty:
        raise TableError(f"{path}: holds no rows")
    return as_texts(frame)


@dataclass(frozen=True)
class Source:
    """People, the draft that asks them, and what whoever reads the result must know (one line each)."""

    name: str
    people: Table
    draft: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def with_epsilon(self, epsilon: float) -> Source:
        """The same people, asked with another total loss."""
        return replace(self, draft=with_epsilon(self.draft, epsilon))


def with_epsilon(draft: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
    """The same draft with another total loss."""
    return {**draft, "privacy": {**draft["privacy"], "epsilon": epsilon}}


def read_draft(path: Path) -> dict[str, Any]:
    """A draft from a ``.json`` or ``.toml`` file, checked. Raises TableError or DraftError."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from None
    return draft_of(compile_draft(text, toml=path.suffix.lower() == ".toml"))


def draft_of(campaign: Campaign) -> dict[str, Any]:
    """The authored part of a campaign's document."""
    document: dict[str, Any] = json.loads(campaign.document)
    del document["questions"]
    pairs = [[one.feature, one.other] for one in campaign.questions if one.kind == JOINT]
    return document | ({"pairs": pairs} if pairs else {})


def source_with_schema(data: str, schema: Path, reading: Reading = AS_WRITTEN) -> Source:
    """The people of a table, asked what a draft says. Raises TableError or DraftError."""
    draft = read_draft(schema)
    campaign = Campaign.compile(draft)
    table = read_text_table(data, campaign.label.name, reading)
    people = typed(table, campaign.features, campaign.label, data)
    check_declared(people, campaign.features, campaign.label, data)
    unlabelled = len(table) - len(people)
    notes = [
        *table.attrs.get(NOTES, ()),
        *[f"{unlabelled} rows have no {campaign.label.name}: they are left out"] * bool(unlabelled),
        *(
            f"{name}: {share:.1%} of the numbers lie beyond the declared bounds; devices clip them"
            for name, share in clipped_share(people.frame, campaign.features).items()
        ),
    ]
    return Source(data, people, draft, tuple(notes))


def source_without_schema(
    data: str, label: str | None, *, epsilon: float, bins: int = DEFAULT_BINS, reading: Reading = AS_WRITTEN
) -> Source:
    """The people of a table, asked what a draft derived from the table says: for statistics where ``label`` is None."""
    table = read_text_table(data, label or "", reading)
    derived = draft_from_table(table, label, source=data, epsilon=epsilon, bins=bins)
    campaign = Campaign.compile(derived.draft)
    return Source(data, typed(table, campaign.features, campaign.label, data), derived.draft, derived.notes)
