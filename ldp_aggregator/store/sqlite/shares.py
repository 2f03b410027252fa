"""The statements of the SQLite store about shares of nodes. Each runs inside a transaction of the store's."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from datetime import datetime

from ldp_aggregator.store.clock import from_text, to_text
from ldp_aggregator.store.contract import SALT_BYTES, ShareDigests, Shares, StoredShare
from ldp_aggregator.store.decisions import decide_share, has_say, refuse_withdrawal
from ldp_aggregator.store.sqlite import campaigns, releases
from ldp_aggregator.store.sqlite.rights import tokens


def put(db: sqlite3.Connection, campaign_id: str, node: str, share: bytes, token: str, now: datetime) -> str | None:
    row = campaigns.row(db, campaign_id)
    counted = campaigns.reports(db, row.number) if row.may_become_federated else 0
    decision = decide_share(row, counted, now, token_in_use=has_say(tokens.named(db, token), node, now))
    if decision.becomes_federated:
        db.execute("UPDATE campaigns SET salt = ? WHERE number = ?", (os.urandom(SALT_BYTES), row.number))
    if decision.refused is None:
        # A repeated share keeps its time: nothing has changed.
        db.execute(
            "INSERT INTO shares (campaign, node, share, digest, received) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (campaign, node) DO UPDATE SET share = excluded.share, digest = excluded.digest, "
            "received = excluded.received WHERE digest != excluded.digest",
            (row.number, node, share, hashlib.sha256(share).digest(), to_text(now)),
        )
        releases.keep(db, row.number, node, share)
    return decision.refused


def withdraw(db: sqlite3.Connection, campaign_id: str, node: str, token: str, now: datetime) -> str | None:
    row = campaigns.row(db, campaign_id)
    refused = refuse_withdrawal(row, now, token_in_use=has_say(tokens.named(db, token), node, now))
    if refused is None:
        db.execute("DELETE FROM shares WHERE campaign = ? AND node = ?", (row.number, node))
    return refused


def withdraw_node(db: sqlite3.Connection, node: str) -> int:
    return db.execute("DELETE FROM shares WHERE node = ?", (node,)).rowcount


def kept(db: sqlite3.Connection, campaign_id: str) -> Shares | None:
    row = campaigns.row(db, campaign_id)
    if row.salt is None:
        return None
    found = db.execute(
        "SELECT node, share, received FROM shares WHERE campaign = ? ORDER BY node", (row.number,)
    ).fetchall()
    members = tuple(StoredShare(one["node"], bytes(one["share"]), from_text(one["received"])) for one in found)
    return Shares(bytes(row.salt), members, releases.read(db, row.number))


def digests(db: sqlite3.Connection, campaign_id: str) -> ShareDigests:
    number = campaigns.row(db, campaign_id).number
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
