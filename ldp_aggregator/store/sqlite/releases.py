"""The statements of the SQLite store that count what nodes have sent, also where a share is replaced or gone."""

from __future__ import annotations

import hashlib
import sqlite3

from ldp_aggregator.counting.shares import Releases, has_other_rows


def keep(db: sqlite3.Connection, number: int, node: str, share: bytes) -> None:
    """Count a share once, whatever became of it since. A node's first one has nothing to differ from."""
    db.execute(
        "INSERT INTO releases (campaign, node, digest, other_rows) SELECT :campaign, :node, :digest, "
        ":other_rows AND EXISTS (SELECT 1 FROM releases WHERE campaign = :campaign AND node = :node) "
        "WHERE true ON CONFLICT DO NOTHING",
        {
            "campaign": number,
            "node": node,
            "digest": hashlib.sha256(share).digest(),
            "other_rows": has_other_rows(share),
        },
    )


def read(db: sqlite3.Connection, number: int) -> tuple[tuple[str, Releases], ...]:
    """Of every node that ever sent a share to the campaign, sorted."""
    found = db.execute(
        "SELECT node, count(*) - sum(other_rows) - 1, sum(other_rows) FROM releases "
        "WHERE campaign = ? GROUP BY node ORDER BY node",
        (number,),
    ).fetchall()
    return tuple((node, Releases(replacements, other_rows)) for node, replacements, other_rows in found)


def merge(db: sqlite3.Connection, number: int, name: str, source: int) -> None:
    """Add those of an attached store. What is declared to be of other rows in one store only is not believed."""
    db.execute(
        "INSERT INTO main.releases (campaign, node, digest, other_rows) "
        f"SELECT ?, node, digest, other_rows FROM {name}.releases WHERE campaign = ? "
        "ON CONFLICT DO UPDATE SET other_rows = min(other_rows, excluded.other_rows)",
        (number, source),
    )
