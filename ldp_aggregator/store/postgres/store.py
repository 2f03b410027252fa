"""The store of several instances: PostgreSQL through asyncpg, nothing kept in the instances themselves.

* Ids go in sorted, so that two instances lock them in the same order. A group of few reports, all of them new, is one
  statement and one way to the database and back (:mod:`ldp_aggregator.store.postgres.counting`).
* A commit appends a part to the tally and never touches a row that another instance writes. Parts are compacted by
  whoever has appended :data:`COMPACT_AT` of them; a part is deleted by exactly one compactor, which adds it up.
* Counting holds a lock on the campaign's row that others who count share, closing it one that nobody shares, and
  shortly: nothing is counted once it is closed. A campaign with a greatest number of reports is counted by one at a
  time.
* Serialisation failures, deadlocks and lost connections are retried a few times. Retrying a transaction whose commit
  was lost on the way back is safe: its ids are there or they are not.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import asyncpg

from ldp_aggregator.counting.parts import COMPACT_AT
from ldp_aggregator.store.batch import Batch, gather_by_campaign, in_order
from ldp_aggregator.store.clock import Clock
from ldp_aggregator.store.consistency import Finding
from ldp_aggregator.store.contract import UNAVAILABLE, Outcome, Restored, StoreError, Submission
from ldp_aggregator.store.decisions import CampaignRow
from ldp_aggregator.store.failures import kind_of
from ldp_aggregator.store.postgres import counting
from ldp_aggregator.store.postgres.sessions import (
    MADE_MEANWHILE,
    PostgresConnection,
    RefusedError,
    Sessions,
    check_tables,
    is_unique_violation,
    prepare_tables,
)
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.connection import Connection, Work, writing
from ldp_aggregator.store.sql.rights import forget_rights, renew
from ldp_aggregator.store.sql.store import Store
from protocols import Campaign

LOG: Final = logging.getLogger("ldp_aggregator")

HOLD_SECONDS: Final = 5
"""How long a campaign is held for whoever wants it alone, and does not come."""

Result = TypeVar("Result")


class PostgresStore(Store):
    """See :class:`ldp_aggregator.store.Store`. :meth:`open` connects and prepares the schema.

    Without a ``clock`` the time is the database's: no instance's clock decides anything for the others.
    """

    _UNREADABLE = (asyncpg.SyntaxOrAccessError, asyncpg.DataCorruptedError)

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._appended: Counter[str] = Counter()
        """Parts that this instance has appended to each campaign since it last compacted them."""

    @classmethod
    async def open(cls, address: str, *, clock: Clock | None = None, read_only: bool = False) -> PostgresStore:
        """``address`` is a ``postgresql://`` URL; what it leaves out comes from libpq's environment variables."""
        sessions = await Sessions.open(address, clock=clock, read_only=read_only)
        try:
            await sessions.run(check_tables if read_only else prepare_tables, passing=MADE_MEANWHILE)
        except BaseException:
            await sessions.close()
            raise
        return cls(sessions)

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        batches = gather_by_campaign(submissions)
        answers: dict[str, Sequence[Outcome]] = {}
        try:
            if sum(len(batch.firsts) for batch in batches.values()) <= counting.SMALL:
                answers = await self._count_at_once(batches)
            rest = {name: batch for name, batch in batches.items() if name not in answers}
            if rest:
                answers |= await self._sessions.run(partial(_count_together, batches=rest), "count")
        except RefusedError:
            answers |= await self._count_apart({n: b for n, b in batches.items() if n not in answers})
        for campaign_id, outcomes in answers.items():
            if any(outcome.counted for outcome in outcomes):
                await self._appended_to(batches[campaign_id].campaign)
        return in_order(submissions, answers)

    async def beat(self) -> None:
        """A standby refuses, and so does a database that its provider made read-only."""

        async def write_a_row(db: Connection) -> None:
            await db.execute("UPDATE schema_version SET version = version")

        await self._sessions.run(write_a_row, "beat", attempts=1)

    async def check(self) -> list[Finding]:
        return await self._sessions.run(self._findings, "check", isolation="repeatable_read")

    @writing
    async def renew(self, db: Connection, *, keep_shares: bool = False) -> Restored:
        """After it was put back as it once was: what ``restore_store`` does to a copy of an embedded store."""
        now = await db.now()
        forgotten = await forget_rights(db, now, keep_shares=keep_shares)
        await renew(db, now)
        return forgotten

    async def close(self) -> None:
        await self._sessions.close()

    async def _count_at_once(self, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
        try:
            return await self._sessions.run(lambda db: counting.at_once(db, batches), "count", isolation=None)
        except RefusedError as error:
            if is_unique_violation(error):
                return {}
            raise

    async def _count_apart(self, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
        """Count the others where the database refuses some campaigns. Each has a transaction of its own: what is
        counted stays so, whatever becomes of the next.
        """
        answers: dict[str, Sequence[Outcome]] = {}
        for name, batch in batches.items():
            try:
                answers |= await self._sessions.run(partial(_count_together, batches={name: batch}), "count")
            except RefusedError as error:  # noqa: PERF203 - whatever is wrong with one, the next gets its turn
                LOG.error("a campaign was not counted", extra={"campaign": name, "reason": str(error)})
                answers[name] = batch.refused(UNAVAILABLE)
        if all(outcomes[0].refused == UNAVAILABLE for outcomes in answers.values()):
            await self.beat()  # Where that fails too, it is the database, and no campaign.
        return answers

    @writing
    async def _claim(self, db: Connection, campaign_id: str) -> None:
        """Before a transaction that needs a campaign alone: those who count share their lock, and where they come one
        after the other without a pause nobody else would ever get his. Waits for nobody, and ends by itself.
        """
        number = (await campaigns.row(db, campaign_id)).number
        await db.execute(
            f"UPDATE campaigns SET held_until = clock_timestamp() + interval '{HOLD_SECONDS} s' WHERE number = $1",
            number,
        )

    async def _forget_ids(self, db: Connection, number: int) -> None:
        """They are too many for a transaction that others wait for."""

    async def _drop_ids(self, number: int) -> None:
        await counting.drop_ids(self._sessions, number)

    async def _stored_ids(self, db: Connection, number: int) -> int:
        return await counting.stored_ids(db, number)

    async def _problems_of_ids(self, db: Connection, row: CampaignRow) -> list[str]:
        left = 0 if row.life.sealed is None else await counting.stored_ids(db, row.number)
        return [f"it is sealed, and {left} ids are left; 'campaign seal' drops them"] if left else []

    async def _read(self, work: Work[Result], name: str = "") -> Result:
        return await self._sessions.run(work, name)

    _write = _read

    async def _appended_to(self, campaign: Campaign) -> None:
        """A part was appended and is durable; what goes wrong from here on changes no answer."""
        self._appended[campaign.id] += 1
        if self._appended[campaign.id] < COMPACT_AT:
            return
        del self._appended[campaign.id]
        try:
            await self._compact(campaign)
        except (StoreError, LookupError) as error:  # The reports are counted; compaction only saves readers some work.
            LOG.warning("a tally was not compacted", extra={"campaign": campaign.id, "reason": kind_of(error)})

    @writing
    async def _compact(self, db: Connection, campaign: Campaign) -> None:
        await campaigns.compact(db, campaign, (await campaigns.row(db, campaign.id)).number)


async def _count_together(db: PostgresConnection, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
    return {name: await counting.count(db, name, batch) for name, batch in batches.items()}
