"""The statements of the SQLite store about access tokens."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Final

from ldp_aggregator.store.clock import from_text, to_text
from ldp_aggregator.store.contract import StoredToken
from ldp_aggregator.store.decisions import Rotation, decide_rotation, name_taken
from ldp_aggregator.store.sqlite import shares

BY_DIGEST: Final = "SELECT name, scope, digest, created, revoked FROM tokens WHERE digest = ?"
_BY_NAME: Final = "SELECT name, scope, digest, created, revoked FROM tokens WHERE name = ?"


def add(db: sqlite3.Connection, token: StoredToken) -> None:
    if named(db, token.name) is not None:
        raise name_taken(token)
    db.execute(
        "INSERT INTO tokens (name, scope, digest, created) VALUES (?, ?, ?, ?)",
        (token.name, token.scope, token.digest, to_text(token.created)),
    )


def rotate(db: sqlite3.Connection, name: str, token: StoredToken, now: datetime) -> bool:
    rotation = decide_rotation(named(db, name), named(db, token.name), token)
    if rotation is Rotation.ROTATE:
        revoke(db, name, now)
        add(db, token)
        shares.hand_over(db, name, token.name)
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
    revoked = row["revoked"] and from_text(row["revoked"])
    return StoredToken(row["name"], row["scope"], bytes(row["digest"]), from_text(row["created"]), revoked)
