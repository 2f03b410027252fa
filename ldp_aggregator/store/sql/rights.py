"""Access tokens, as digests, and the log of administrative acts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ldp_aggregator.store import contract
from ldp_aggregator.store.contract import Act, LoggedAct, Restored, StoredToken, StoreError
from ldp_aggregator.store.sql.tables import MOST, Row, SqlConnection, Transactions, reading, writing


class Rights(Transactions):
    """Access tokens and the log of acts."""

    @writing
    async def add_token(self, db: SqlConnection, token: StoredToken) -> None:
        """Keep a token. Raises StoreError where the name is taken."""
        await _add_token(db, token)

    @reading
    async def token(self, db: SqlConnection, digest: bytes) -> StoredToken | None:
        """The token with this digest, revoked ones too; found by an index, however many there are."""
        return _token(await db.fetchrow("SELECT * FROM tokens WHERE digest = $1", digest))

    @reading
    async def tokens(self, db: SqlConnection) -> list[StoredToken]:
        """All tokens, revoked ones too, oldest first."""
        found = await db.fetch("SELECT * FROM tokens ORDER BY created, name")
        return [token for row in found if (token := _token(row)) is not None]

    @writing
    async def revoke_token(self, db: SqlConnection, name: str) -> bool:
        """Make a token useless; False where no token that was not revoked has this name."""
        return await _revoke(db, name)

    @writing
    async def rotate_token(
        self, db: SqlConnection, name: str, token: StoredToken, *, until: datetime | None = None
    ) -> bool:
        """Keep a token beside the one in use under ``name``, which expires at ``until`` (never later than it would
        have); None revokes it at once. The new token speaks for the same node, whose shares stay where they are.

        False (and no change) where no token in use has this name. Raises StoreError where the new name is taken.
        """
        # The lock on the old token's row makes another rotation or revocation of it wait, and shares of its node.
        old = await named_token(db, name, "FOR UPDATE")
        namesake = await named_token(db, token.name)
        if namesake is not None and namesake.digest == token.digest:
            return True  # An earlier try was committed, and its answer lost.
        if old is None or not old.is_in_use(await db.now()):
            return False
        if until is None:
            await _revoke(db, name)
        else:
            await db.execute("UPDATE tokens SET expires = $2 WHERE name = $1", name, min(until, old.expires or until))
        await _add_token(db, replace(token, speaks_for=old.node))
        return True

    @writing
    async def begin_act(self, db: SqlConnection, act: Act) -> int:
        """Write down, durably, what is about to be done; returns the entry's number."""
        return await begin_act(db, act, contract.ASKED, await db.now())

    @writing
    async def end_act(self, db: SqlConnection, number: int, outcome: str) -> None:
        """Write down how it ended."""
        await db.execute("UPDATE acts SET outcome = $2 WHERE number = $1", number, outcome)

    @reading
    async def acts(
        self, db: SqlConnection, *, campaign_id: str | None = None, last: int | None = None
    ) -> Sequence[LoggedAct]:
        """The entries, of one campaign or of all, the ``last`` so many or all; oldest first."""
        found = await db.fetch(
            "SELECT number, moment, outcome, actor, act, campaign, detail FROM acts "
            "WHERE CAST($1 AS text) IS NULL OR campaign = $1 ORDER BY number DESC LIMIT $2",
            campaign_id,
            MOST if last is None else last,
        )
        return [LoggedAct(number, moment, Act(*act), outcome) for number, moment, outcome, *act in found[::-1]]


async def named_token(db: SqlConnection, name: str, lock: str = "") -> StoredToken | None:
    return _token(await db.fetchrow(f"SELECT * FROM tokens WHERE name = $1 {lock}", name))


async def begin_act(db: SqlConnection, act: Act, outcome: str, now: datetime) -> int:
    """An entry of the log; returns its number."""
    entry = await db.fetchrow(
        "INSERT INTO acts (moment, actor, act, campaign, detail, outcome) VALUES ($1, $2, $3, $4, $5, $6) "
        "RETURNING number",
        *(now, act.actor, act.act, act.campaign, act.detail, outcome),
    )
    return int(entry[0]) if entry is not None else 0


async def forget_rights(db: SqlConnection, now: datetime, *, keep_shares: bool) -> Restored:
    """Revoke every token and drop every share: some may have been revoked or withdrawn since."""
    revoked = await db.execute("UPDATE tokens SET revoked = $1 WHERE revoked IS NULL", now)
    return Restored(revoked, 0 if keep_shares else await db.execute("DELETE FROM shares"))


async def _add_token(db: SqlConnection, token: StoredToken) -> None:
    """The database decides who has the name, whoever else is adding one."""
    added = await db.fetchrow(
        "INSERT INTO tokens (name, scope, digest, created, expires, campaigns, speaks_for) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO NOTHING RETURNING name",
        *(token.name, token.scope, token.digest, token.created, token.expires),
        *(None if token.campaigns is None else " ".join(token.campaigns), token.speaks_for),
    )
    if added is None:
        # A name is never used again, so that what it did stays its own.
        raise StoreError(f"a token with the name {token.name!r} exists already; choose another name")


async def _revoke(db: SqlConnection, name: str) -> bool:
    statement = "UPDATE tokens SET revoked = $2 WHERE name = $1 AND revoked IS NULL"
    return bool(await db.execute(statement, name, await db.now()))


def _token(row: Row | None) -> StoredToken | None:
    if row is None:
        return None
    campaigns_ = None if row["campaigns"] is None else tuple(row["campaigns"].split())
    return StoredToken(**{**row, "campaigns": campaigns_})
