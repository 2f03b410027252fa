"""The store of several instances: PostgreSQL through asyncpg, nothing kept in the instances themselves.

* Ids go in as sorted arrays with ``ON CONFLICT DO NOTHING``, so that two instances lock them in the same order.
* A commit appends a part to the tally and never touches a row that another instance writes. Parts are compacted by
  whoever has appended :data:`COMPACT_AT` of them; a part is deleted by exactly one compactor, which adds it up.
* Counting holds a shared advisory lock on the campaign, closing it an exclusive one: nothing is counted after the
  final tally. A campaign with a greatest number of reports is counted under the exclusive lock.
* Serialisation failures, deadlocks and lost connections are retried a few times. Retrying a transaction whose commit
  was lost on the way back is safe: its ids are there or they are not.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from ldp_aggregator.counting.parts import COMPACT_AT, encode_part
from ldp_aggregator.store.batch import Batch, gather_by_campaign, in_order
from ldp_aggregator.store.clock import Clock, utc_now
from ldp_aggregator.store.consistency import Finding, tally_or_refuse
from ldp_aggregator.store.contract import (
    UNKNOWN,
    CampaignState,
    Outcome,
    PublishedModel,
    ShareDigests,
    Shares,
    StoreError,
    Submission,
    UnknownCampaignError,
)
from ldp_aggregator.store.decisions import decide_uploads
from ldp_aggregator.store.failures import kind_of
from ldp_aggregator.store.postgres import (
    acts,
    campaigns,
    directories,
    ids,
    models,
    publications,
    schema,
    shares,
    tokens,
    upkeep,
)
from ldp_aggregator.store.postgres.sessions import Connection, Sessions
from ldp_aggregator.store.rights import Act, LoggedAct, StoredToken
from protocols import Campaign

if TYPE_CHECKING:
    from ldp_aggregator.counting.tally import Tally

LOG: Final = logging.getLogger("ldp_aggregator")


class PostgresStore:
    """See :class:`ldp_aggregator.store.contract.Store`. :meth:`open` connects and prepares the schema."""

    def __init__(self, sessions: Sessions, clock: Clock) -> None:
        self._sessions = sessions
        self._run = sessions.run
        self._clock = clock
        self._appended: Counter[str] = Counter()
        """Parts that this instance has appended to each campaign since it last compacted them."""

    @classmethod
    async def open(cls, address: str, *, clock: Clock = utc_now) -> PostgresStore:
        """``address`` is a ``postgresql://`` URL; what it leaves out comes from libpq's environment variables."""
        sessions = await Sessions.open(address)
        try:
            await sessions.run(schema.prepare)
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
        return await self._run(
            lambda db: campaigns.create(
                db,
                campaign,
                self._clock(),
                max_reports=max_reports,
                federated=federated,
                uploads_need=uploads_need,
            )
        )

    async def document(self, campaign_id: str) -> bytes:
        return await self._run(lambda db: campaigns.document(db, campaign_id))

    async def state(self, campaign_id: str) -> CampaignState:
        return await self._run(lambda db: campaigns.state(db, campaign_id))

    async def campaigns(self) -> list[CampaignState]:
        return await self._run(campaigns.states)

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        return await self._run(lambda db: campaigns.close(db, campaign_id, self._clock()))

    async def set_uploads_need(self, campaign_id: str, scope: str | None) -> CampaignState:
        return await self._run(lambda db: campaigns.set_uploads_need(db, campaign_id, scope))

    async def delete_campaign(self, campaign_id: str) -> None:
        await self._run(lambda db: campaigns.delete(db, campaign_id, self._clock()))

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        batches = gather_by_campaign(submissions)

        async def work(db: Connection) -> dict[str, Sequence[Outcome]]:
            return {
                campaign_id: await self._count_batch(db, campaign_id, batch) for campaign_id, batch in batches.items()
            }

        answers = await self._run(work)
        for campaign_id, outcomes in answers.items():
            if any(outcome.counted for outcome in outcomes):
                await self._appended_to(campaign_id)
        return in_order(submissions, answers)

    async def tally(self, campaign_id: str) -> Tally:
        document, parts = await self._run(lambda db: campaigns.parts_of(db, campaign_id))
        return tally_or_refuse(campaign_id, document, parts)

    async def released_tally(self, campaign_id: str, every: int) -> Tally:
        return await self._run(lambda db: publications.released_tally(db, campaign_id, every))

    async def check(self) -> None:
        await self._run(upkeep.heartbeat, attempts=1)

    async def put_share(self, campaign_id: str, node: str, share: bytes, *, token: str | None = None) -> str | None:
        return await self._run(lambda db: shares.put(db, campaign_id, node, share, token or node, self._clock()))

    async def withdraw_share(self, campaign_id: str, node: str, *, token: str | None = None) -> str | None:
        return await self._run(lambda db: shares.withdraw(db, campaign_id, node, token or node, self._clock()))

    async def withdraw_node(self, node: str) -> int:
        return await self._run(lambda db: shares.withdraw_node(db, node))

    async def shares(self, campaign_id: str) -> Shares | None:
        return await self._run(lambda db: shares.kept(db, campaign_id))

    async def share_digests(self, campaign_id: str) -> ShareDigests:
        return await self._run(lambda db: shares.digests(db, campaign_id))

    async def publish_model(self, campaign_id: str, document: str) -> PublishedModel:
        return await self._run(lambda db: models.publish(db, campaign_id, document, self._clock()))

    async def model(self, campaign_id: str, version: int | None = None) -> PublishedModel | None:
        return await self._run(lambda db: models.model(db, campaign_id, version))

    async def add_token(self, token: StoredToken) -> None:
        await self._run(lambda db: tokens.add(db, token))

    async def token(self, digest: bytes) -> StoredToken | None:
        return await self._run(lambda db: tokens.with_digest(db, digest))

    async def tokens(self) -> list[StoredToken]:
        return await self._run(tokens.listed)

    async def revoke_token(self, name: str) -> bool:
        return await self._run(lambda db: tokens.revoke(db, name, self._clock()))

    async def rotate_token(self, name: str, token: StoredToken, *, until: datetime | None = None) -> bool:
        return await self._run(lambda db: tokens.rotate(db, name, token, until, self._clock()))

    async def begin_act(self, act: Act) -> int:
        return await self._run(lambda db: acts.begin(db, act, self._clock()))

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

    async def close(self) -> None:
        await self._sessions.close()

    async def _count_batch(self, db: Connection, campaign_id: str, batch: Batch) -> Sequence[Outcome]:
        row = await campaigns.find(db, campaign_id)
        if row is None:
            return batch.refused(UNKNOWN)
        try:
            row = await campaigns.locked(db, row, shared=row.max_reports is None)
        except UnknownCampaignError:
            return batch.refused(UNKNOWN)
        counted = None if row.max_reports is None else await campaigns.reports(db, row.number)
        decision = decide_uploads(row, counted, self._clock())
        if decision.refused is not None:
            return batch.refused(decision.refused)
        settlement = await ids.insert(db, row.number, batch, decision.room)
        if settlement.counted:
            await campaigns.add_part(db, row.number, settlement.counted, encode_part(settlement.sums))
        return settlement.outcomes

    async def _appended_to(self, campaign_id: str) -> None:
        """A part was appended and is durable; what goes wrong from here on changes no answer."""
        self._appended[campaign_id] += 1
        if self._appended[campaign_id] < COMPACT_AT:
            return
        del self._appended[campaign_id]
        try:
            await self._run(lambda db: campaigns.compact(db, campaign_id))
        except StoreError as error:  # The reports are counted; compaction only saves readers some work.
            LOG.warning("a tally was not compacted", extra={"campaign": campaign_id, "reason": kind_of(error)})
