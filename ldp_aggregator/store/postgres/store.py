"""The store of several instances: PostgreSQL through asyncpg, nothing kept in the instances themselves.

* Ids go in as sorted arrays with ``ON CONFLICT DO NOTHING``, so that two instances lock them in the same order.
* A commit appends a part to the tally and never touches a row that another instance writes. Parts are compacted by
  whoever has appended :data:`COMPACT_AT` of them; a part is deleted by exactly one compactor, which adds it up.
* Counting holds a shared advisory lock on the campaign, closing it an exclusive one, and shortly: nothing is counted
  once it is closed. A campaign with a greatest number of reports is counted under the exclusive lock.
* Serialisation failures, deadlocks and lost connections are retried a few times. Retrying a transaction whose commit
  was lost on the way back is safe: its ids are there or they are not.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from ldp_aggregator.counting.parts import COMPACT_AT, encode_part
from ldp_aggregator.store.batch import Batch, gather_by_campaign, in_order
from ldp_aggregator.store.campaign_state import CampaignState
from ldp_aggregator.store.clock import Clock
from ldp_aggregator.store.consistency import Finding, tally_or_refuse
from ldp_aggregator.store.contract import (
    UNAVAILABLE,
    UNKNOWN,
    Outcome,
    PublishedModel,
    ShareDigests,
    Shares,
    StoreError,
    Submission,
    UnknownCampaignError,
)
from ldp_aggregator.store.decisions import decide_uploads, refuse_uploads, vouched_part
from ldp_aggregator.store.failures import kind_of
from ldp_aggregator.store.origin import Origin, Restored
from ldp_aggregator.store.postgres import campaigns, ids, models, origin, publications, schema, shares, upkeep
from ldp_aggregator.store.postgres.rights import acts, directories, tokens
from ldp_aggregator.store.postgres.sessions import Connection, RefusedError, Result, Sessions
from ldp_aggregator.store.rights import Act, LoggedAct, StoredToken
from protocols import Campaign

if TYPE_CHECKING:
    from ldp_aggregator.counting.tally import Tally

LOG: Final = logging.getLogger("ldp_aggregator")


class PostgresStore:
    """See :class:`ldp_aggregator.store.contract.Store`. :meth:`open` connects and prepares the schema.

    Without a ``clock`` the time is the database's: no instance's clock decides anything for the others.
    """

    def __init__(self, sessions: Sessions, clock: Clock | None = None) -> None:
        self._sessions = sessions
        self._run = sessions.run
        self._clock = clock
        self._appended: Counter[str] = Counter()
        """Parts that this instance has appended to each campaign since it last compacted them."""

    @classmethod
    async def open(cls, address: str, *, clock: Clock | None = None, read_only: bool = False) -> PostgresStore:
        """``address`` is a ``postgresql://`` URL; what it leaves out comes from libpq's environment variables."""
        sessions = await Sessions.open(address, read_only=read_only)
        try:
            await sessions.run(schema.check if read_only else schema.prepare)
        except BaseException:
            await sessions.close()
            raise
        return cls(sessions, clock)

    async def create_campaign(
        self,
        campaign: Campaign,
        *,
        max_reports: int | None = None,
        federated: bool = False,
        uploads_need: str | None = None,
    ) -> bool:
        return await self._at(
            lambda db, now: campaigns.create(
                db, campaign, now, max_reports=max_reports, federated=federated, uploads_need=uploads_need
            )
        )

    async def document(self, campaign_id: str) -> bytes:
        return await self._run(lambda db: campaigns.document(db, campaign_id))

    async def state(self, campaign_id: str) -> CampaignState:
        return await self._run(lambda db: campaigns.state(db, campaign_id))

    async def campaigns(self) -> list[CampaignState]:
        return await self._run(campaigns.states)

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        return await self._at(lambda db, now: campaigns.close(db, campaign_id, now))

    async def end_campaign(self, campaign_id: str) -> CampaignState:
        return await self._at(lambda db, now: campaigns.end(db, campaign_id, now))

    async def reopen_campaign(self, campaign_id: str) -> CampaignState:
        return await self._run(lambda db: campaigns.reopen(db, campaign_id))

    async def seal_campaign(self, campaign_id: str, *, at_once: bool = False) -> CampaignState:
        return await self._at(lambda db, now: campaigns.seal(db, campaign_id, now, at_once=at_once))

    async def delete_campaign(self, campaign_id: str) -> None:
        await self._at(lambda db, now: campaigns.delete(db, campaign_id, now))

    async def set_uploads_need(self, campaign_id: str, scope: str | None) -> CampaignState:
        return await self._run(lambda db: campaigns.set_uploads_need(db, campaign_id, scope))

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        batches = gather_by_campaign(submissions)

        async def together(db: Connection) -> dict[str, Sequence[Outcome]]:
            return {name: await self._count_batch(db, name, batch) for name, batch in batches.items()}

        try:
            answers = await self._run(together)
        except RefusedError:
            if len(batches) == 1:
                raise
            answers = await self._count_apart(batches)
        for campaign_id, outcomes in answers.items():
            if any(outcome.counted for outcome in outcomes):
                await self._appended_to(batches[campaign_id].campaign)
        return in_order(submissions, answers)

    async def tally(self, campaign_id: str) -> Tally:
        document, parts = await self._run(lambda db: campaigns.parts_of(db, campaign_id))
        return tally_or_refuse(campaign_id, document, parts)

    async def released_tally(self, campaign: Campaign, every: int) -> Tally:
        return await self._run(lambda db: publications.released_tally(db, campaign, every))

    async def check(self) -> None:
        await self._run(upkeep.heartbeat, attempts=1)

    async def put_share(self, campaign_id: str, node: str, share: bytes, *, token: str | None = None) -> str | None:
        return await self._at(lambda db, now: shares.put(db, campaign_id, node, share, token or node, now))

    async def withdraw_share(self, campaign_id: str, node: str, *, token: str | None = None) -> str | None:
        return await self._at(lambda db, now: shares.withdraw(db, campaign_id, node, token or node, now))

    async def withdraw_node(self, node: str) -> int:
        return await self._run(lambda db: shares.withdraw_node(db, node))

    async def shares(self, campaign_id: str) -> Shares | None:
        return await self._run(lambda db: shares.kept(db, campaign_id))

    async def share_digests(self, campaign_id: str) -> ShareDigests:
        return await self._run(lambda db: shares.digests(db, campaign_id))

    async def publish_model(self, campaign_id: str, document: str) -> PublishedModel:
        return await self._at(lambda db, now: models.publish(db, campaign_id, document, now))

    async def model(self, campaign_id: str, version: int | None = None) -> PublishedModel | None:
        return await self._run(lambda db: models.model(db, campaign_id, version))

    async def add_token(self, token: StoredToken) -> None:
        await self._run(lambda db: tokens.add(db, token))

    async def token(self, digest: bytes) -> StoredToken | None:
        return await self._run(lambda db: tokens.with_digest(db, digest))

    async def tokens(self) -> list[StoredToken]:
        return await self._run(tokens.listed)

    async def revoke_token(self, name: str) -> bool:
        return await self._at(lambda db, now: tokens.revoke(db, name, now))

    async def rotate_token(self, name: str, token: StoredToken, *, until: datetime | None = None) -> bool:
        return await self._at(lambda db, now: tokens.rotate(db, name, token, until, now))

    async def begin_act(self, act: Act) -> int:
        return await self._at(lambda db, now: acts.begin(db, act, now))

    async def end_act(self, number: int, outcome: str) -> None:
        await self._run(lambda db: acts.end(db, number, outcome))

    async def acts(self, *, campaign_id: str | None = None, last: int | None = None) -> Sequence[LoggedAct]:
        return await self._run(lambda db: acts.listed(db, campaign_id, last))

    async def put_directory(self, key: str, version: int, document: bytes) -> None:
        await self._run(lambda db: directories.put(db, key, version, document))

    async def directory(self, key: str) -> bytes | None:
        return await self._run(lambda db: directories.newest(db, key))

    async def audit(self) -> list[Finding]:
        return await self._run(upkeep.audit, isolation="repeatable_read")

    async def renew(self, *, keep_shares: bool = False) -> Restored:
        """After it was put back as it once was: what ``restore_store`` does to a copy of an embedded store."""

        async def work(db: Connection, now: datetime) -> Restored:
            tokens, dropped = await origin.forget_rights(db, now, keep_shares=keep_shares)
            await origin.renew(db, now)
            return Restored(tokens, dropped)

        return await self._at(work)

    async def origin(self) -> Origin:
        return await self._run(origin.read)

    async def close(self) -> None:
        await self._sessions.close()

    async def _count_apart(self, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
        """Where the database refuses some campaigns, the others are counted; where it does all, that is raised.

        Each has a transaction of its own: what is counted stays so, whatever becomes of the next.
        """
        answers: dict[str, Sequence[Outcome]] = {}
        failures = []
        for name, batch in batches.items():
            try:
                answers[name] = await self._run(partial(self._count_batch, campaign_id=name, batch=batch))
            except StoreError as error:  # noqa: PERF203 - whatever is wrong with one, the next gets its turn
                failures.append(error)
                LOG.error("a campaign was not counted", extra={"campaign": name, "reason": str(error)})
                answers[name] = batch.refused(UNAVAILABLE)
        if len(failures) == len(batches):
            raise failures[0]
        return answers

    async def _count_batch(self, db: Connection, campaign_id: str, batch: Batch) -> Sequence[Outcome]:
        row = await campaigns.find(db, campaign_id)
        if row is None:
            return batch.refused(UNKNOWN)
        now = await self._now(db)
        refused = refuse_uploads(row, now)
        if refused is not None:  # Whoever closes or seals it holds its lock, and is not waited for.
            return batch.refused(refused)
        try:
            row = await campaigns.locked(db, row, shared=row.max_reports is None)
        except UnknownCampaignError:  # It was being deleted.
            return batch.refused(UNKNOWN)
        counted = None if row.max_reports is None else await campaigns.reports(db, row.number)
        decision = decide_uploads(row, counted, now)
        if decision.refused is not None:
            return batch.refused(decision.refused)
        settlement = await ids.insert(db, row.number, batch, decision.room)
        vouched = settlement.vouched
        if settlement.revealed:
            vouched = vouched_part(settlement, await campaigns.arrivals(db, row))
        if settlement.counted or vouched:
            sums = encode_part(settlement.sums)
            await campaigns.add_part(db, row.number, settlement.counted, sums, vouched, settlement.least_batch)
        return settlement.outcomes

    async def _now(self, db: Connection) -> datetime:
        if self._clock is not None:
            return self._clock()
        now: datetime = await db.fetchval("SELECT clock_timestamp()")
        return now

    async def _at(self, work: Callable[[Connection, datetime], Awaitable[Result]]) -> Result:
        """One transaction that is told the time."""

        async def timed(db: Connection) -> Result:
            return await work(db, await self._now(db))

        return await self._run(timed)

    async def _appended_to(self, campaign: Campaign) -> None:
        """A part was appended and is durable; what goes wrong from here on changes no answer."""
        self._appended[campaign.id] += 1
        if self._appended[campaign.id] < COMPACT_AT:
            return
        del self._appended[campaign.id]
        try:
            await self._run(lambda db: campaigns.compact(db, campaign))
        except StoreError as error:  # The reports are counted; compaction only saves readers some work.
            LOG.warning("a tally was not compacted", extra={"campaign": campaign.id, "reason": kind_of(error)})
