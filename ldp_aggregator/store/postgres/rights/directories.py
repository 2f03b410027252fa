"""The statements of the PostgreSQL store about what publishers have signed."""

from __future__ import annotations

from ldp_aggregator.store.decisions import decide_directory
from ldp_aggregator.store.postgres.sessions import Connection


async def put(db: Connection, key: str, version: int, document: bytes) -> None:
    # Two that are put at once wait for each other: reading and replacing are one.
    await db.execute("SELECT 1 FROM origin FOR UPDATE")
    if decide_directory(await _kept(db, key), version, document):
        await db.execute(
            "INSERT INTO directories (key, version, document) VALUES ($1, $2, $3) "
            "ON CONFLICT (key) DO UPDATE SET version = excluded.version, document = excluded.document",
            key,
            version,
            document,
        )


async def newest(db: Connection, key: str) -> bytes | None:
    kept = await _kept(db, key)
    return None if kept is None else kept[1]


async def _kept(db: Connection, key: str) -> tuple[int, bytes] | None:
    found = await db.fetchrow("SELECT version, document FROM directories WHERE key = $1", key)
    return None if found is None else (found["version"], bytes(found["document"]))
