"""Report of a table, column by column: exact, and so for the eyes of whoever holds the table alone, before noise is
drawn of it. What a column holds is counted as the statistics take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd

from ldp_aggregator.trainers.reading import is_absent
from ldp_aggregator.trainers.schemas import Schema
from ldp_protocols.document.schema import Label
from ldp_protocols.features import MISSING, Feature
from ldp_protocols.fields import describe
from ldp_protocols.values import position_of, positions_of

_MOST_EXAMPLES: Final = 3
_MOST_NAMES: Final = 6


@dataclass
class ColumnReport:
    """Rows of a column: as ``declared``, numbers ``clipped`` to their bounds, ``missing``, or ``other``."""

    domain: Label | Feature
    declared: int = 0
    clipped: int = 0
    missing: int = 0
    other: int = 0
    examples: dict[str, None] = field(default_factory=dict)
    """Some different cells that are clipped or other."""

    def add(self, raw: pd.Series[Any], parsed: pd.Series[Any]) -> None:
        """Count the cells of a piece, as they stand in the file and as they are read."""
        if isinstance(self.domain, Label) or self.domain.number is None:
            self._add_texts(parsed)
        else:
            numbers = parsed.to_numpy(dtype=np.float64)
            outside = (numbers < self.domain.number.low) | (numbers > self.domain.number.high)
            unread = np.isnan(numbers)
            absent = np.array([_is_missing(text, number=True) for text in raw[unread]], dtype=bool)
            self.clipped += int(outside.sum())
            self.missing += int(absent.sum())
            self.other += int((~absent).sum())
            self.declared += int((~outside & ~unread).sum())
            for text in (*raw[outside].head(_MOST_EXAMPLES), *raw[unread][~absent].head(_MOST_EXAMPLES)):
                self._show(text)

    def _add_texts(self, cells: pd.Series[Any]) -> None:
        domain = self.domain
        positions = positions_of(domain.classes if isinstance(domain, Label) else domain.names)
        for text, rows in cells.value_counts(dropna=False).items():
            if position_of(text, positions) is not None:
                self.declared += rows
            elif _is_missing(text):
                self.missing += rows
            else:
                self.other += rows
                self._show(text)

    def _show(self, text: Any) -> None:
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.setdefault(describe(text))

    @property
    def rows(self) -> int:
        return self.declared + self.clipped + self.missing + self.other

    @property
    def problem(self) -> str | None:
        """Say that less than half of the rows are as declared, not counting those that may be missing; else None."""
        may_be = not isinstance(self.domain, Label) and self.domain.missing
        if self.declared and 2 * self.declared >= self.rows - self.missing * may_be:
            return None
        return f"{self.domain.name}: {self.declared:,} of {self.rows:,} rows are as declared"

    def line(self, *, quoting: bool) -> str:
        """The column in words, ``quoting`` cells that are not as declared or not."""
        domain = self.domain
        if isinstance(domain, Label):
            wanted = f"one of {', '.join(map(describe, domain.classes[:_MOST_NAMES]))}"
        else:
            wanted = domain.wanted(_MOST_NAMES)
        rows_by_kind = {"clipped": self.clipped, "missing": self.missing, "not declared": self.other}
        counts = [
            f"{self.declared:,} as declared",
            *(f"{rows:,} {what}" for what, rows in rows_by_kind.items() if rows),
        ]
        such = f" (such as {', '.join(self.examples)})" if quoting and self.examples else ""
        return f"{domain.name}, {wanted}: {', '.join(counts)}{such}"


class TableReport:
    """Counts of a table by the columns of a schema; :meth:`add` takes it piece by piece."""

    def __init__(self, schema: Schema) -> None:
        self.rows = 0
        self.columns = [ColumnReport(schema.label), *map(ColumnReport, schema.inputs)]

    def add(self, raw: Mapping[str, pd.Series[Any]], parsed: Mapping[str, pd.Series[Any]], rows: int) -> None:
        """Count a piece by its columns, as they stand in the file and as they are read."""
        self.rows += rows
        for column in self.columns:
            column.add(raw[column.domain.name], parsed[column.domain.name])

    def lines(self, *, quoting: bool = True) -> list[str]:
        """The report; cells are part of it only where ``quoting``."""
        return [f"{self.rows:,} rows", *(column.line(quoting=quoting) for column in self.columns)]

    @property
    def problems(self) -> list[str]:
        """Say why no noise is drawn of the table, column by column; empty where nothing is wrong."""
        if not self.rows:
            return ["it holds no rows"]
        return [column.problem for column in self.columns if column.problem]


def _is_missing(text: Any, *, number: bool = False) -> bool:
    return not isinstance(text, str) or text.strip() == MISSING or is_absent(text, number=number)
