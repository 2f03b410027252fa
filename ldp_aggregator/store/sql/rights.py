"""Access tokens, as digests, and the log of administrative acts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime

from ldp_aggregator.store import contract
from ldp_aggregator.store.contract import Act, LoggedAct, Restored, StoredToken, StoreError
from ldp_aggregator.store.sql.checks import change, insert, insert_numbered, sound
from ldp_aggregator.store.sql.tables import MOST, Row, SqlConnection, Transactions, reading, writing


class Rights(Transactions):
    """Access tokens and the log of acts."""

    @writing
    async def add_token(self, db: SqlConnection, token: StoredToken) -> None:
        """Keep a token. Raises StoreError if the name is taken."""
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
        """Make a token useless; False if no token that was not revoked has this name."""
        return await _revoke(db, name)

    @writing
    async def rotate_token(
        self, db: SqlConnection, name: str, token: StoredToken, *, until: datetime | None = None
    ) -> bool:
        """Keep a token beside the one in use under ``name``, which expires at ``until`` (never later than it would
        have); None revokes it at once. The new token speaks for the same node, whose shares stay where they are.

        False (and no change) where no token in use has this name. Raises StoreError if the new name is taken.
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
            await change(db, "tokens", ("name", name), {"expires": min(until, old.expires or until)})
        await _add_token(db, replace(token, speaks_for=old.node))
        return True

    @writing
    async def begin_act(self, db: SqlConnection, act: Act) -> int:
        """Write down, durably, what is about to be done; returns the entry's number."""
        return await begin_act(db, act, contract.ASKED, await db.now())

    @writing
    async def end_act(self, db: SqlConnection, number: int, outcome: str) -> None:
        """Write down how it ended."""
        await change(db, "acts", ("number", number), {"outcome": outcome})

    @reading
    async def acts(
        self, db: SqlConnection, *, campaign_id: str | None = None, last: int | None = None
    ) -> Sequence[LoggedAct]:
        """The entries, of one campaign or of all, the ``last`` so many or all; oldest first."""
        found = await db.fetch(
            "SELECT * FROM acts WHERE CAST($1 AS text) IS NULL OR campaign = $1 ORDER BY number DESC LIMIT $2",
            campaign_id,
            MOST if last is None else last,
        )
        return [_logged(sound("acts", entry)) for entry in found[::-1]]


async def named_token(db: SqlConnection, name: str, lock: str = "") -> StoredToken | None:
    return _token(await db.fetchrow(f"SELECT * FROM tokens WHERE name = $1 {lock}", name))


async def begin_act(db: SqlConnection, act: Act, outcome: str, now: datetime) -> int:
    """An entry of the log; returns its number."""
    return await insert_numbered(db, "acts", {"moment": now, **asdict(act), "outcome": outcome}) or 0


async def forget_rights(db: SqlConnection, now: datetime, *, keep_shares: bool) -> Restored:
    """Revoke every token and drop every share: some may have been revoked or withdrawn since."""
    names = [found[0] for found in await db.fetch("SELECT name FROM tokens WHERE revoked IS NULL")]
    for name in names:
        await change(db, "tokens", ("name", name), {"revoked": now})
    return Restored(len(names), 0 if keep_shares else await db.execute("DELETE FROM shares"))


async def _add_token(db: SqlConnection, token: StoredToken) -> None:
    """The database decides who has the name, whoever else is adding one."""
    campaigns_ = None if token.campaigns is None else " ".join(token.campaigns)
    values = {**asdict(token), "revoked": None, "campaigns": campaigns_}
    added = await insert(db, "tokens", values, more="ON CONFLICT (name) DO NOTHING RETURNING name")
    if added is None:
        # A name is never used again, so that what it did stays its own.
        raise StoreError(f"a token with the name {token.name!r} exists already; choose another name")


async def _revoke(db: SqlConnection, name: str) -> bool:
    token = await named_token(db, name, "FOR NO KEY UPDATE")
    if token is None or token.revoked is not None:
        return False
    await change(db, "tokens", ("name", name), {"revoked": await db.now()})
    return True


def _token(row: Row | None) -> StoredToken | None:
    if row is None:
        return None
    values = dict(sound("tokens", row))
    del values["checked"]
    return StoredToken(**{**values, "campaigns": None if row["campaigns"] is None else tuple(row["campaigns"].split())})


def _logged(entry: Row) -> LoggedAct:
    act = Act(*(entry[name] for name in ("actor", "act", "campaign", "detail")))
    return LoggedAct(entry["number"], entry["moment"], act, entry["outcome"])
