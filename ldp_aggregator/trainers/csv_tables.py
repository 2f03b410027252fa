"""CSV tables, whole or in pieces: every cell as the text in the file, which means what :mod:`protocols.values` says.

A row changes nothing but itself. Cells are texts, so that no cell decides how a column is read; a row that is too
short ends in missing cells, what is beyond the header is left out, and bytes that are no UTF-8 make an undeclared text.
What is an error follows from the header, which is public, and not from any row.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pandas as pd

from ldp_aggregator.trainers.schemas import Schema

CHUNK_ROWS: Final = 100_000

_LONGEST_CELL: Final = 2**31 - 1
"""Characters. The csv module would refuse a table for one long cell; this is the most that it takes everywhere."""


class TableError(ValueError):
    """A table that cannot be read; the message says which file and why."""


def read_table(path: Path, schema: Schema) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """The feature columns and the label column of a CSV file with a header row."""
    pieces = list(read_chunks(path, schema))
    frames, labels = zip(*pieces, strict=True)
    return pd.concat(frames, ignore_index=True), pd.concat(labels, ignore_index=True)


def read_chunks(path: Path, schema: Schema, rows: int = CHUNK_ROWS) -> Iterator[tuple[pd.DataFrame, pd.Series[Any]]]:
    """The same, ``rows`` at a time, at least one piece. Raises TableError for a missing column."""
    csv.field_size_limit(_LONGEST_CELL)
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
            lines = csv.reader(line.replace("\0", "\ufffd") for line in file)  # an error before Python 3.11
            header = next(lines, [])
            places = {name: _place(path, header, name) for name in (*schema.input_names, schema.label.name)}
            filled = (line for line in lines if line)
            piece = list(islice(filled, rows))
            while True:
                yield _typed(piece, places, schema.label.name)
                piece = list(islice(filled, rows))
                if not piece:
                    break
    except (OSError, EOFError) as error:
        raise TableError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _place(path: Path, header: list[str], name: str) -> int:
    if header.count(name) != 1:
        problem = f"{header.count(name)} columns" if name in header else "no column"
        raise TableError(f"{path}: {problem} {name!r}; the columns are {', '.join(header)}")
    return header.index(name)


def _typed(lines: list[list[str]], places: dict[str, int], label: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    cells = {
        name: pd.Series([line[place] if place < len(line) else None for line in lines], dtype=object)
        for name, place in places.items()
    }
    labels = cells.pop(label)
    return pd.DataFrame(cells), labels
