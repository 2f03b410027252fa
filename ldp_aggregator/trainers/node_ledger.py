"""Ledger of a node: one SQLite file with every share that was drawn, of what table, and the epsilon of all of them.

A share is in it before anybody sees it, and the same bytes are handed out ever after. Several processes may use one
file; the first of them that writes a share decides, and a share that was drawn and not written was seen by nobody. It
stays at the node: the hash of a table is for the node's own eyes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Final

from ldp_protocols.errors import LdpError
from ldp_protocols.exact import exact_epsilon

ABOVE_CAP: Final = "above-cap"
_BUSY_SECONDS: Final = 30.0
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS answers "
    "(campaign TEXT PRIMARY KEY, epsilon TEXT NOT NULL, share BLOB NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS drawn_from (share BLOB PRIMARY KEY, digest BLOB NOT NULL) STRICT, WITHOUT ROWID",
)
_ID_LENGTH: Final = 43


class NodeLedger:
    """The file at ``path``, in a folder that exists; the file is made where there is none. All raise OSError.

    A share's ``key`` begins with the id of its campaign; further ones of the same campaign have more behind it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def share(self, key: str) -> bytes | None:
        """The share that was handed out, None where there is none."""
        with self._transaction() as connection:
            return _share(connection, key)

    def keep(
        self,
        key: str,
        epsilon: float,
        share: bytes,
        *,
        max_epsilon: float | None,
        other_rows: bool = False,
        digest: bytes | None = None,
    ) -> bytes:
        """Write the share down and return it, or the one that is there. Raises LdpError above the cap, if there is one.

        ``other_rows`` are in no share before of this campaign, so that their first costs nothing that is not booked.
        ``digest`` is that of the table.
        """
        with self._transaction() as connection:
            stored = _share(connection, key)
            if stored is not None:
                return stored
            booked = (
                other_rows
                and connection.execute(
                    "SELECT 1 FROM answers WHERE substr(campaign, 1, ?) = ? LIMIT 1", (_ID_LENGTH, key[:_ID_LENGTH])
                ).fetchone()
            )
            cost, spent = Fraction(0) if booked else exact_epsilon(epsilon), _spent(connection)
            if max_epsilon is not None and spent + cost > exact_epsilon(max_epsilon):
                raise LdpError(
                    ABOVE_CAP,
                    f"the campaign costs epsilon {epsilon:g}; {float(spent):g} of this node's {max_epsilon:g} is spent",
                )
            connection.execute("INSERT INTO answers VALUES (?, ?, ?)", (key, str(cost), share))
            if digest is not None:
                connection.execute("INSERT OR REPLACE INTO drawn_from VALUES (?, ?)", (share, digest))
        return share

    def digest(self, share: bytes) -> bytes | None:
        """Digest of the table that a share was drawn from, None where that is not known."""
        with self._transaction() as connection:
            found: tuple[bytes] | None = connection.execute(
                "SELECT digest FROM drawn_from WHERE share = ?", (share,)
            ).fetchone()
        return None if found is None else found[0]

    @property
    def spent(self) -> Fraction:
        """The epsilon of all shares."""
        with self._transaction() as connection:
            return _spent(connection)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything in it, or nothing; on disk when it is left."""
        try:
            self._path.touch(mode=0o600)  # It holds hashes of tables, which have no noise.
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                for table in _TABLES:
                    connection.execute(table)
                yield connection
                connection.execute("COMMIT")  # Closing without it rolls back.
        except (sqlite3.Error, OSError) as error:
            raise OSError(f"the ledger {self._path}: {error}") from error


def _share(connection: sqlite3.Connection, key: str) -> bytes | None:
    found: tuple[bytes] | None = connection.execute("SELECT share FROM answers WHERE campaign = ?", (key,)).fetchone()
    return None if found is None else found[0]


def _spent(connection: sqlite3.Connection) -> Fraction:
    return sum((Fraction(text) for (text,) in connection.execute("SELECT epsilon FROM answers")), Fraction(0))
