"""The statements of the SQLite store about shares of nodes. Each runs inside a transaction of the store's."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from datetime import datetime

from ldp_aggregator.store.clock import from_text, to_text
from ldp_aggregator.store.contract import (
    REVOKED,
    SALT_BYTES,
    TAKES_REPORTS,
    ShareDigests,
    Shares,
    StoredShare,
    StoredToken,
    StoreError,
)
from ldp_aggregator.store.sqlite import releases
from ldp_aggregator.store.sqlite import statements as sql


def put(db: sqlite3.Connection, campaign_id: str, node: str, share: bytes, now: datetime) -> str | None:
    row = sql.row(db, campaign_id)
    decides = row["salt"] is None and row["max_reports"] is None and not sql.reports(db, row["number"])
    refused = _refusal(db, row, node, now, federated=decides or row["salt"] is not None)
    if refused is None:
        if decides:
            db.execute("UPDATE campaigns SET salt = ? WHERE number = ?", (os.urandom(SALT_BYTES), row["number"]))
        # A repeated share keeps its time: nothing has changed.
        db.execute(
            "INSERT INTO shares (campaign, node, share, digest, received) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (campaign, node) DO UPDATE SET share = excluded.share, digest = excluded.digest, "
            "received = excluded.received WHERE digest != excluded.digest",
            (row["number"], node, share, hashlib.sha256(share).digest(), to_text(now)),
        )
        releases.keep(db, row["number"], node, share)
    return refused


def withdraw(db: sqlite3.Connection, campaign_id: str, node: str, now: datetime) -> str | None:
    row = sql.row(db, campaign_id)
    refused = _refusal(db, row, node, now, federated=row["salt"] is not None)
    if refused is None:
        db.execute("DELETE FROM shares WHERE campaign = ? AND node = ?", (row["number"], node))
    return refused


def withdraw_node(db: sqlite3.Connection, node: str) -> int:
    return db.execute("DELETE FROM shares WHERE node = ?", (node,)).rowcount


def shares(db: sqlite3.Connection, campaign_id: str) -> Shares | None:
    row = sql.row(db, campaign_id)
    if row["salt"] is None:
        return None
    found = db.execute(
        "SELECT node, share, received FROM shares WHERE campaign = ? ORDER BY node", (row["number"],)
    ).fetchall()
    members = tuple(StoredShare(one["node"], bytes(one["share"]), from_text(one["received"])) for one in found)
    return Shares(bytes(row["salt"]), members, releases.read(db, row["number"]))


def digests(db: sqlite3.Connection, campaign_id: str) -> ShareDigests:
    number = sql.row(db, campaign_id)["number"]
    found = dict(db.execute("SELECT node, digest FROM shares WHERE campaign = ?", (number,)).fetchall())
    return tuple((node, found.get(node), sent) for node, sent in releases.read(db, number))


def stored(db: sqlite3.Connection, number: int) -> list[tuple[str, bytes, bytes, bool]]:
    """Node, share and digest of every row, as they stand there, and whether the share is counted."""
    rows = db.execute(
        "SELECT node, share, digest, EXISTS (SELECT 1 FROM releases WHERE releases.campaign = shares.campaign "
        "AND releases.node = shares.node AND releases.digest = shares.digest) AS counted "
        "FROM shares WHERE campaign = ? ORDER BY node",
        (number,),
    ).fetchall()
    return [(row["node"], bytes(row["share"]), bytes(row["digest"]), bool(row["counted"])) for row in rows]


def rotate(db: sqlite3.Connection, name: str, token: StoredToken, now: datetime) -> bool:
    changed = db.execute("UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL", (to_text(now), name))
    if not changed.rowcount:
        return False
    add_token(db, token)
    db.execute("UPDATE shares SET node = ? WHERE node = ?", (token.name, name))
    releases.rename(db, name, token.name)
    return True


def add_token(db: sqlite3.Connection, token: StoredToken) -> None:
    if db.execute("SELECT 1 FROM tokens WHERE name = ?", (token.name,)).fetchone():
        raise StoreError(f"a token with the name {token.name!r} exists already; choose another name")
    db.execute(
        "INSERT INTO tokens (name, scope, digest, created) VALUES (?, ?, ?, ?)",
        (token.name, token.scope, token.digest, to_text(token.created)),
    )


def _refusal(db: sqlite3.Connection, row: sqlite3.Row, node: str, now: datetime, *, federated: bool) -> str | None:
    """Read where the change is made: a token that was revoked or rotated meanwhile changes nothing any more."""
    if not federated:
        return TAKES_REPORTS
    in_use = db.execute("SELECT 1 FROM tokens WHERE name = ? AND revoked IS NULL", (node,)).fetchone()
    return sql.life(row).refusal(now) if in_use else REVOKED
