"""The answers of a node, in one SQLite file: one share for each campaign, and the epsilon of all of them.

A share is on disk before it is handed out, and the same bytes are handed out ever after. Several processes may use one
file; the first of them that writes a share decides, and a share that was drawn and not written was seen by nobody.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Final

from ldp_aggregator.flower.messages import ABOVE_CAP, NOT_READY, NodeRefusalError
from protocols.exact import exact_epsilon

_BUSY_SECONDS: Final = 30.0
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS answers "
    "(campaign TEXT PRIMARY KEY, epsilon TEXT NOT NULL, share BLOB NOT NULL) STRICT, WITHOUT ROWID"
)


class Ledger:
    """The file at ``path``, in a folder that exists; the file is made where there is none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def share(self, campaign_id: str) -> bytes | None:
        """The share that was handed out, None where there is none."""
        with self._transaction() as connection:
            return _share(connection, campaign_id)

    def keep(self, campaign_id: str, epsilon: float, share: bytes, *, max_epsilon: float) -> bytes:
        """Write the share down and return it, or the one that is there. Raises NodeRefusalError above the cap."""
        with self._transaction() as connection:
            kept = _share(connection, campaign_id)
            if kept is not None:
                return kept
            _book(connection, campaign_id, epsilon, share, max_epsilon)
        return share

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything in it, or nothing; on disk when it is left."""
        try:
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_TABLE)
                yield connection
                connection.execute("COMMIT")  # Closing without it rolls back.
        except sqlite3.Error as error:
            raise NodeRefusalError(NOT_READY, detail=f"the ledger {self._path}: {error}") from error


def _share(connection: sqlite3.Connection, campaign_id: str) -> bytes | None:
    found: tuple[bytes] | None = connection.execute(
        "SELECT share FROM answers WHERE campaign = ?", (campaign_id,)
    ).fetchone()
    return None if found is None else found[0]


def _book(connection: sqlite3.Connection, campaign_id: str, epsilon: float, share: bytes, max_epsilon: float) -> None:
    cost = exact_epsilon(epsilon)
    spent = sum((Fraction(text) for (text,) in connection.execute("SELECT epsilon FROM answers")), Fraction(0))
    if spent + cost > exact_epsilon(max_epsilon):
        raise NodeRefusalError(
            ABOVE_CAP,
            f"the campaign costs epsilon {epsilon:g}; {float(spent):g} of this node's {max_epsilon:g} is spent",
        )
    connection.execute("INSERT INTO answers VALUES (?, ?, ?)", (campaign_id, str(cost), share))
