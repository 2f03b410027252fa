"""The statements of the SQLite store about what publishers have signed."""

from __future__ import annotations

import sqlite3

from ldp_aggregator.store.decisions import decide_directory


def put(db: sqlite3.Connection, key: str, version: int, document: bytes) -> None:
    if decide_directory(_kept(db, key), version, document):
        db.execute(
            "INSERT INTO directories (key, version, document) VALUES (?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET version = excluded.version, document = excluded.document",
            (key, version, document),
        )


def newest(db: sqlite3.Connection, key: str) -> bytes | None:
    kept = _kept(db, key)
    return None if kept is None else kept[1]


def _kept(db: sqlite3.Connection, key: str) -> tuple[int, bytes] | None:
    found = db.execute("SELECT version, document FROM directories WHERE key = ?", (key,)).fetchone()
    return None if found is None else (found["version"], bytes(found["document"]))
