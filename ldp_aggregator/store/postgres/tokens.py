"""The statements of the PostgreSQL store about access tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from ldp_aggregator.store.contract import StoredToken
from ldp_aggregator.store.decisions import Rotation, decide_rotation, name_taken
from ldp_aggregator.store.postgres import shares
from ldp_aggregator.store.postgres.sessions import Connection

_TOKENS: Final = "SELECT name, scope, digest, created, revoked FROM tokens"


async def add(db: Connection, token: StoredToken) -> None:
    """The database decides who has the name, whoever else is adding one."""
    added = await db.fetchval(
        "INSERT INTO tokens (name, scope, digest, created) VALUES ($1, $2, $3, $4) "
        "ON CONFLICT (name) DO NOTHING RETURNING name",
        token.name,
        token.scope,
        token.digest,
        token.created,
    )
    if added is None:
        raise name_taken(token)


async def rotate(db: Connection, name: str, token: StoredToken, now: datetime) -> bool:
    # The lock on the old token's row makes another rotation or revocation of it wait, and shares of its node.
    old = _token(await db.fetchrow(f"{_TOKENS} WHERE name = $1 FOR UPDATE", name))
    namesake = _token(await db.fetchrow(f"{_TOKENS} WHERE name = $1", token.name))
    rotation = decide_rotation(old, namesake, token)
    if rotation is Rotation.ROTATE:
        await revoke(db, name, now)
        await add(db, token)
        await shares.hand_over(db, name, token.name)
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
    return [StoredToken(**row) for row in await db.fetch(f"{_TOKENS} ORDER BY created, name")]


def _token(row: Any) -> StoredToken | None:
    return None if row is None else StoredToken(**row)
