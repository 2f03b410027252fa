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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from ldp_aggregator.counting.parts import COMPACT_AT
from ldp_aggregator.store.batch import Batch, gather_by_campaign, in_order
from ldp_aggregator.store.campaign_state import CampaignState, Terms
from ldp_aggregator.store.clock import Clock
from ldp_aggregator.store.consistency import Finding, tally_or_refuse
from ldp_aggregator.store.contract import (
    UNAVAILABLE,
    Outcome,
    PublishedModel,
    ShareDigests,
    Shares,
    StoreError,
    Submission,
)
from ldp_aggregator.store.failures import kind_of
from ldp_aggregator.store.origin import Origin, Restored
from ldp_aggregator.store.postgres import (
    campaigns,
    counting,
    endings,
    ids,
    models,
    origin,
    publications,
    schema,
    shares,
    upkeep,
)
from ldp_aggregator.store.postgres.rights import acts, directories, tokens
from ldp_aggregator.store.postgres.sessions import Connection, RefusedError, Result, Sessions, is_unique_violation
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
        self.do = self._run = sessions.run  # One transaction, for whoever knows the tables.
        self._clock = clock
        self._appended: Counter[str] = Counter()
        """Parts that this instance has appended to each campaign since it last compacted them."""

    @classmethod
    async def open(cls, address: str, *, clock: Clock | None = None, read_only: bool = False) -> PostgresStore:
        """``address`` is a ``postgresql://`` URL; what it leaves out comes from libpq's environment variables."""
        sessions = await Sessions.open(address, read_only=read_only)
        try:
            await sessions.run(schema.check if read_only else schema.prepare, passing=schema.MADE_MEANWHILE)
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

    async def terms(self, campaign_id: str) -> Terms:
        return (await self._run(lambda db: campaigns.row(db, campaign_id))).terms

    async def campaigns(self) -> list[CampaignState]:
        return await self._run(campaigns.states)

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        await self._hold(campaign_id)
        return await self._at(lambda db, now: endings.close(db, campaign_id, now))

    async def end_campaign(self, campaign_id: str) -> CampaignState:
        await self._hold(campaign_id)
        return await self._at(lambda db, now: endings.end(db, campaign_id, now))

    async def reopen_campaign(self, campaign_id: str) -> CampaignState:
        return await self._run(lambda db: endings.reopen(db, campaign_id))

    async def seal_campaign(self, campaign_id: str, *, at_once: bool = False) -> CampaignState:
        row = await self._at(lambda db, now: endings.seal(db, campaign_id, now, at_once=at_once))
        await ids.drop(self._sessions, row.number)
        return await self.state(campaign_id)

    async def delete_campaign(self, campaign_id: str) -> None:
        row = await self._at(lambda db, now: endings.begin_deletion(db, campaign_id, now))
        await ids.drop(self._sessions, row.number)
        await self._at(lambda db, now: endings.delete(db, campaign_id, now))

    async def set_uploads_need(self, campaign_id: str, scope: str | None) -> CampaignState:
        return await self._run(lambda db: campaigns.set_uploads_need(db, campaign_id, scope))

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        outcomes = await self.count_by_map(submissions, 0)
        if any(outcome.refused == counting.STALE for outcome in outcomes):
            raise StoreError("the store is in several databases by now; name all of them")
        return outcomes

    async def count_by_map(self, submissions: Sequence[Submission], version: int) -> list[Outcome]:
        """:meth:`count` of reports that a map of slots brought here; they are refused where that is too old."""
        batches = gather_by_campaign(submissions)
        answers: dict[str, Sequence[Outcome]] = {}
        try:
            if sum(len(batch.firsts) for batch in batches.values()) <= counting.SMALL:
                answers = await self._count_at_once(batches, version)
            rest = {name: batch for name, batch in batches.items() if name not in answers}
            if rest:
                answers |= await self._run(partial(self._count_together, batches=rest, version=version))
        except RefusedError:
            if len(batches) == 1:
                raise
            answers |= await self._count_apart({n: b for n, b in batches.items() if n not in answers}, version)
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
        if await self._run(lambda db: shares.may_decide(db, campaign_id)):
            await self._hold(campaign_id)
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

    async def _count_at_once(self, batches: Mapping[str, Batch], version: int) -> dict[str, Sequence[Outcome]]:
        try:
            return await self._run(lambda db: counting.at_once(db, batches, self._told(), version), isolation=None)
        except RefusedError as error:
            if is_unique_violation(error):
                return {}
            raise

    async def _count_together(
        self, db: Connection, batches: Mapping[str, Batch], version: int
    ) -> dict[str, Sequence[Outcome]]:
        return {name: await counting.count(db, name, batch, self._told(), version) for name, batch in batches.items()}

    async def _count_apart(self, batches: Mapping[str, Batch], version: int) -> dict[str, Sequence[Outcome]]:
        """Where the database refuses some campaigns, the others are counted; where it does all, that is raised. Each
        has a transaction of its own: what is counted stays so, whatever becomes of the next.
        """
        answers: dict[str, Sequence[Outcome]] = {}
        failures = []
        for name, batch in batches.items():
            try:
                answers |= await self._run(partial(self._count_together, batches={name: batch}, version=version))
            except StoreError as error:  # noqa: PERF203 - whatever is wrong with one, the next gets its turn
                failures.append(error)
                LOG.error("a campaign was not counted", extra={"campaign": name, "reason": str(error)})
                answers[name] = batch.refused(UNAVAILABLE)
        if len(failures) == len(batches):
            raise failures[0]
        return answers

    async def _hold(self, campaign_id: str) -> None:
        await self._run(lambda db: campaigns.hold(db, campaign_id))

    def _told(self) -> datetime | None:  # None is the database's own time.
        return None if self._clock is None else self._clock()

    async def _now(self, db: Connection) -> datetime:
        now: datetime = self._told() or await db.fetchval("SELECT clock_timestamp()")
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
