"""The statements of the PostgreSQL store about where it comes from, and what one that was restored leaves behind."""

from __future__ import annotations

from datetime import datetime

from ldp_aggregator.store.origin import Origin, floor_of_versions
from ldp_aggregator.store.postgres.sessions import Connection


async def read(db: Connection) -> Origin:
    """Whether a database is a backup that was put back, nobody can tell."""
    return Origin(**await db.fetchrow("SELECT generation, version_floor FROM origin"), is_copy=False)


async def renew(db: Connection, now: datetime) -> None:
    """Make it another store: a new name, and versions above all of its own."""
    published = await db.fetchval("SELECT coalesce(max(version), 0) FROM models")
    floor = floor_of_versions(now, published, (await read(db)).version_floor)
    await db.execute("UPDATE origin SET generation = gen_random_uuid()::text, version_floor = $1", floor)


async def forget_rights(db: Connection, now: datetime, *, keep_shares: bool) -> tuple[int, int]:
    """Revoke every token and drop every share: some may have been revoked or withdrawn since. Returns how many."""
    revoked = await db.fetch("UPDATE tokens SET revoked = $1 WHERE revoked IS NULL RETURNING name", now)
    dropped = [] if keep_shares else await db.fetch("DELETE FROM shares RETURNING node")
    return len(revoked), len(dropped)
