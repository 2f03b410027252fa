"""The statements of the PostgreSQL store about access tokens."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from ldp_aggregator.store.decisions import Rotation, decide_rotation, name_taken, overlap_ends
from ldp_aggregator.store.postgres.sessions import Connection
from ldp_aggregator.store.rights import StoredToken

_TOKENS: Final = "SELECT name, scope, digest, created, revoked, expires, campaigns, speaks_for FROM tokens"


async def add(db: Connection, token: StoredToken) -> None:
    """The database decides who has the name, whoever else is adding one."""
    added = await db.fetchval(
        "INSERT INTO tokens (name, scope, digest, created, expires, campaigns, speaks_for) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO NOTHING RETURNING name",
        token.name,
        token.scope,
        token.digest,
        token.created,
        token.expires,
        token.campaigns,
        token.speaks_for,
    )
    if added is None:
        raise name_taken(token)


async def rotate(db: Connection, name: str, token: StoredToken, until: datetime | None, now: datetime) -> bool:
    # The lock on the old token's row makes another rotation or revocation of it wait, and shares of its node.
    old = _token(await db.fetchrow(f"{_TOKENS} WHERE name = $1 FOR UPDATE", name))
    namesake = _token(await db.fetchrow(f"{_TOKENS} WHERE name = $1", token.name))
    rotation = decide_rotation(old, namesake, token, now)
    if rotation is Rotation.ROTATE and old is not None:
        ends = overlap_ends(old, until)
        if ends is None:
            await revoke(db, name, now)
        else:
            await db.execute("UPDATE tokens SET expires = $2 WHERE name = $1", name, ends)
        await add(db, replace(token, speaks_for=old.node))
    return rotation is not Rotation.MISSING


async def revoke(db: Connection, name: str, now: datetime) -> bool:
    revoked: bool | None = await db.fetchval(
        "UPDATE tokens SET revoked = $2 WHERE name = $1 AND revoked IS NULL RETURNING true", name, now
    )
    return bool(revoked)


async def with_digest(db: Connection, digest: bytes) -> StoredToken | None:
    return _token(await db.fetchrow(f"{_TOKENS} WHERE digest = $1", digest))


async def listed(db: Connection) -> list[StoredToken]:
    """Oldest first."""
    found = await db.fetch(f"{_TOKENS} ORDER BY created, name")
    return [token for row in found if (token := _token(row)) is not None]


async def locked(db: Connection, name: str) -> StoredToken | None:
    """A token that stays as it is until the transaction ends."""
    return _token(await db.fetchrow(f"{_TOKENS} WHERE name = $1 FOR SHARE", name))


def _token(row: Any) -> StoredToken | None:
    if row is None:
        return None
    campaigns = None if row["campaigns"] is None else tuple(row["campaigns"])
    return StoredToken(**{**row, "campaigns": campaigns})
