"""The statements of the SQLite store about access tokens."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import datetime
from typing import Final

from ldp_aggregator.store.clock import from_text, to_text
from ldp_aggregator.store.decisions import Rotation, decide_rotation, name_taken, overlap_ends
from ldp_aggregator.store.rights import StoredToken

BY_DIGEST: Final = "SELECT * FROM tokens WHERE digest = ?"
_BY_NAME: Final = "SELECT * FROM tokens WHERE name = ?"


def add(db: sqlite3.Connection, token: StoredToken) -> None:
    if named(db, token.name) is not None:
        raise name_taken(token)
    db.execute(
        "INSERT INTO tokens (name, scope, digest, created, expires, campaigns, speaks_for) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            token.name,
            token.scope,
            token.digest,
            to_text(token.created),
            token.expires and to_text(token.expires),
            None if token.campaigns is None else " ".join(token.campaigns),
            token.speaks_for,
        ),
    )


def rotate(db: sqlite3.Connection, name: str, token: StoredToken, until: datetime | None, now: datetime) -> bool:
    old = named(db, name)
    rotation = decide_rotation(old, named(db, token.name), token, now)
    if rotation is Rotation.ROTATE and old is not None:
        ends = overlap_ends(old, until)
        if ends is None:
            revoke(db, name, now)
        else:
            db.execute("UPDATE tokens SET expires = ? WHERE name = ?", (to_text(ends), name))
        add(db, replace(token, speaks_for=old.node))
    return rotation is not Rotation.MISSING


def revoke(db: sqlite3.Connection, name: str, now: datetime) -> bool:
    changed = db.execute("UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL", (to_text(now), name))
    return bool(changed.rowcount)


def with_digest(db: sqlite3.Connection, digest: bytes) -> StoredToken | None:
    return _token(db.execute(BY_DIGEST, (digest,)).fetchone())


def named(db: sqlite3.Connection, name: str) -> StoredToken | None:
    return _token(db.execute(_BY_NAME, (name,)).fetchone())


def listed(db: sqlite3.Connection) -> list[StoredToken]:
    """Oldest first."""
    found = db.execute("SELECT * FROM tokens ORDER BY created, name").fetchall()
    return [token for row in found if (token := _token(row)) is not None]


def _token(row: sqlite3.Row | None) -> StoredToken | None:
    if row is None:
        return None
    revoked, expires = (row[name] and from_text(row[name]) for name in ("revoked", "expires"))
    campaigns = None if row["campaigns"] is None else tuple(row["campaigns"].split())
    return StoredToken(
        row["name"],
        row["scope"],
        bytes(row["digest"]),
        from_text(row["created"]),
        revoked,
        expires,
        campaigns,
        row["speaks_for"],
    )
