"""CSV tables as a schema types them, whole or in pieces: texts for classes and categories, doubles for numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pandas as pd

from ldp_aggregator.trainers.schemas import Schema
from protocols.document.schema import ContinuousFeature

CHUNK_ROWS: Final = 100_000


class TableError(ValueError):
    """A table that cannot be read; the message says which file and why."""


class EmptyTableError(TableError):
    """A table with a header row that is right, and nothing below it."""


def read_table(path: Path, schema: Schema) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """The feature columns and the label column of a CSV file with a header row."""
    pieces = list(read_chunks(path, schema))
    frames, labels = zip(*pieces, strict=True)
    return pd.concat(frames, ignore_index=True), pd.concat(labels, ignore_index=True)


def read_chunks(path: Path, schema: Schema, rows: int = CHUNK_ROWS) -> Iterator[tuple[pd.DataFrame, pd.Series[Any]]]:
    """The same, ``rows`` at a time. Raises TableError for a missing column and for text where a number should be."""
    numeric = {feature.name for feature in schema.features if isinstance(feature, ContinuousFeature)}
    if schema.projection is not None:
        numeric |= {feature.name for feature in schema.projection.inputs}
    wanted = {schema.label.name, *schema.input_names}
    try:
        present = list(pd.read_csv(path, nrows=0).columns)
        missing = sorted(wanted - set(present))
        if missing:
            raise TableError(f"{path}: no column {missing[0]!r}; the columns are {', '.join(map(str, present))}")
        reader = pd.read_csv(
            path,
            usecols=[name for name in present if name in wanted],
            dtype={name: "float64" if name in numeric else "str" for name in wanted},
            keep_default_na=False,
            na_values=dict.fromkeys(numeric, ""),
            chunksize=rows,
        )
        empty = True
        with reader:
            for piece in reader:
                if piece.empty:
                    continue
                empty = False
                labels = piece.pop(schema.label.name)
                yield piece.reset_index(drop=True), labels.reset_index(drop=True)
    except TableError:
        raise
    except OSError as error:
        raise TableError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{path}: not a table of this schema ({problem})") from None
    if empty:
        raise EmptyTableError(f"{path}: holds no rows; a table has a header row and at least one more")
