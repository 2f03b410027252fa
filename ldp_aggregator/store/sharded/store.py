"""The store in several databases. The first has everything but reports, and its part of these; the others have parts.

* Ids are spread by their first byte (:mod:`ldp_aggregator.store.sharded.slot_map`). A retry meets the database that
  counted it. An upload is answered when all of its parts are committed.
* A campaign with a greatest number of reports is in the first database alone: that number holds exactly, and its
  reports are counted one commit after the other anyway.
* What a campaign takes is decided in the first database: before a first report is spread, that it takes reports.
* What changes a campaign's life reaches one database after the other, in an order that the same command completes
  where it was interrupted: created in the others first; closed, sealed in the first one first; reopened and deleted in
  the others first.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.store.campaign_state import CampaignState
from ldp_aggregator.store.clock import Clock
from ldp_aggregator.store.consistency import Finding, tally_or_refuse
from ldp_aggregator.store.contract import (
    UNAVAILABLE,
    UNKNOWN,
    Outcome,
    RefusedError,
    StoreError,
    Submission,
)
from ldp_aggregator.store.decisions import refuse_uploads
from ldp_aggregator.store.failures import kind_of
from ldp_aggregator.store.postgres import campaigns, endings, publications
from ldp_aggregator.store.postgres.counting import STALE
from ldp_aggregator.store.postgres.sessions import RefusedError as DatabaseRefusedError
from ldp_aggregator.store.postgres.sessions import Sessions
from ldp_aggregator.store.postgres.store import PostgresStore
from ldp_aggregator.store.sharded import auditing, levelling, slot_map
from ldp_aggregator.store.sharded.absences import Absences
from ldp_aggregator.store.sharded.dividing import Part, divide, join, overstated_crowd, whole
from ldp_aggregator.store.sharded.elsewhere import (
    add_crowd,
    arrivals_in,
    close_and_delete,
    close_and_seal,
    if_there,
    parts_in,
    with_arrivals,
)
from ldp_aggregator.store.sharded.slot_map import FIRST, PAUSED, SlotMap
from protocols import Campaign

if TYPE_CHECKING:
    from ldp_aggregator.counting.tally import Tally

LOG: Final = logging.getLogger("ldp_aggregator")

ROUNDS: Final = 4
"""How often the parts that met an old map, or a campaign that has yet to reach a database, are brought again."""
LOOK_SECONDS: Final = 0.25
"""How old a map with a slot on its way may be: reports to that slot are refused until it has arrived."""

Result = TypeVar("Result")


class ShardedStore(PostgresStore):
    """See :class:`ldp_aggregator.store.contract.Store`; :func:`ldp_aggregator.store.sharded.opening.open_shards` makes
    one. What is not said here is that of the first database.
    """

    def __init__(
        self, sessions: Sessions, others: Mapping[int, PostgresStore], found: SlotMap, clock: Clock | None = None
    ) -> None:
        super().__init__(sessions, clock)
        self.others = dict(others)
        self._absences = Absences(self.others)
        self._map = found
        self._read = time.monotonic()
        self._spread: dict[str, bool] = {}

    @classmethod
    def of(cls, first: PostgresStore, others: Mapping[int, PostgresStore], found: SlotMap) -> ShardedStore:
        """What was opened as the databases of one store."""
        return cls(first._sessions, others, found, first._clock)

    async def create_campaign(
        self,
        campaign: Campaign,
        *,
        max_reports: int | None = None,
        federated: bool = False,
        uploads_need: str | None = None,
    ) -> bool:
        await self._refresh()
        if await self._run(lambda db: campaigns.find(db, campaign.id)) is None:
            await self._in_others(lambda store: PostgresStore.create_campaign(store, campaign, max_reports=max_reports))
        return await super().create_campaign(
            campaign, max_reports=max_reports, federated=federated, uploads_need=uploads_need
        )

    async def state(self, campaign_id: str) -> CampaignState:
        state = await super().state(campaign_id)
        return with_arrivals(state, await self._in_others(lambda store: arrivals_in(store, campaign_id)))

    async def campaigns(self) -> list[CampaignState]:
        states = await super().campaigns()
        elsewhere = await self._in_others(lambda store: store.campaigns())
        arrivals: dict[str, list[Arrivals]] = {}
        for state in (state for states in elsewhere for state in states):
            arrivals.setdefault(state.id, []).append(state.arrivals)
        return [with_arrivals(state, arrivals.get(state.id, [])) for state in states]

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        await super().close_campaign(campaign_id)
        await self._in_others(lambda store: if_there(store.close_campaign(campaign_id)))
        return await self.state(campaign_id)

    async def end_campaign(self, campaign_id: str) -> CampaignState:
        state = await super().end_campaign(campaign_id)
        return state if state.life.closed is None else await self.close_campaign(campaign_id)

    async def reopen_campaign(self, campaign_id: str) -> CampaignState:
        if (await self._run(lambda db: campaigns.row(db, campaign_id))).life.sealed is None:
            await self._in_others(lambda store: if_there(store.reopen_campaign(campaign_id)))
        await super().reopen_campaign(campaign_id)
        return await self.state(campaign_id)

    async def set_uploads_need(self, campaign_id: str, scope: str | None) -> CampaignState:
        await super().set_uploads_need(campaign_id, scope)
        return await self.state(campaign_id)

    async def seal_campaign(self, campaign_id: str, *, at_once: bool = False) -> CampaignState:
        await super().seal_campaign(campaign_id, at_once=at_once)
        await self._in_others(lambda store: if_there(close_and_seal(store, campaign_id)))
        return await self.state(campaign_id)

    async def delete_campaign(self, campaign_id: str) -> None:
        await self._at(lambda db, now: endings.begin_deletion(db, campaign_id, now))
        await self._in_others(lambda store: if_there(close_and_delete(store, campaign_id)))
        await super().delete_campaign(campaign_id)

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        answers: list[list[tuple[Part, Outcome]]] = [[] for _ in submissions]
        failures: dict[int, StoreError] = {}
        left = [whole(number, submission) for number, submission in enumerate(submissions)]
        for attempt in range(ROUNDS):
            shards, refused = await self._sort_out(left)
            left = []
            results = await asyncio.gather(*(self._count_on(shard, parts) for shard, parts in shards.items()))
            for shard, (parts, outcomes) in zip(shards, zip(shards.values(), results, strict=True), strict=True):
                if isinstance(outcomes, StoreError):
                    failures[shard] = outcomes
                    refused += [(part, Outcome(refused=UNAVAILABLE)) for part in parts]
                    continue
                for part, outcome in zip(parts, outcomes, strict=True):
                    if outcome.refused == STALE:
                        left.append(part)
                    else:
                        answers[part.upload].append((part, outcome))
            for part, outcome in refused:
                answers[part.upload].append((part, outcome))
            if not left:
                break
            if attempt == ROUNDS - 1:
                for part in left:
                    answers[part.upload].append((part, Outcome(refused=UNAVAILABLE)))
            else:
                await self._refresh()
        if FIRST in failures and all(outcome.refused == UNAVAILABLE for parts in answers for _, outcome in parts):
            raise failures[FIRST]
        await self._correct_crowds(submissions, answers)
        return [join(parts) for parts in answers]

    async def tally(self, campaign_id: str) -> Tally:
        document, parts = await self._run(lambda db: campaigns.parts_of(db, campaign_id))
        return tally_or_refuse(campaign_id, document, [*parts, *await self._parts_elsewhere(campaign_id)])

    async def released_tally(self, campaign: Campaign, every: int) -> Tally:
        return await self._run(
            lambda db: publications.released_tally(db, campaign, every, lambda: self._parts_elsewhere(campaign.id))
        )

    async def check(self) -> None:
        """The first database has to answer: what is in the others goes on wherever one does."""
        await super().check()
        await self._absences.check()

    async def audit(self) -> list[Finding]:
        return await auditing.audit(self, await PostgresStore.audit(self))

    async def close(self) -> None:
        await self._absences.close()
        await super().close()
        await self._in_others(lambda store: store.close())

    def shard(self, number: int) -> PostgresStore:
        """A database of the store by its number, the first one too. Raises StoreError where it was not named."""
        if number == FIRST:
            return self
        if number not in self.others:
            raise StoreError(f"database {number} of the store is not among the addresses of this process; restart it")
        return self.others[number]

    async def slots(self) -> SlotMap:
        """As they are now. Raises StoreError where they are in a database that this process does not know."""
        await self._refresh()
        return self._map

    async def _sort_out(self, parts: Sequence[Part]) -> tuple[dict[int, list[Part]], list[tuple[Part, Outcome]]]:
        """Each part's database, and those parts that none takes."""
        shards: dict[int, list[Part]] = {}
        refused: list[tuple[Part, Outcome]] = []
        if (self._map.places == PAUSED).any() and time.monotonic() - self._read > LOOK_SECONDS:
            await self._refresh()
        places = self._map.places
        decided = {
            campaign_id: await self._decided(campaign_id)
            for campaign_id in {part.submission.campaign.id for part in parts}
        }
        for part in parts:
            spread = decided[part.submission.campaign.id]
            if isinstance(spread, str):
                refused.append((part, Outcome(refused=spread)))
            elif not spread:
                shards.setdefault(FIRST, []).append(part)
            else:
                for shard, piece in divide(part, places):
                    if shard == PAUSED:
                        refused.append((piece, Outcome(refused=UNAVAILABLE)))
                    else:
                        shards.setdefault(shard, []).append(piece)
        return shards, refused

    async def _decided(self, campaign_id: str) -> bool | str:
        """Whether a campaign's reports are spread, or in the first database alone; or why it takes none now."""
        if campaign_id not in self._spread:
            row = await self._run(lambda db: campaigns.find(db, campaign_id))
            if row is None:
                return UNKNOWN
            refused = refuse_uploads(row, await self._run(self._now))
            if refused is not None:
                return refused
            self._spread[campaign_id] = row.max_reports is None
            if row.max_reports is None and not await self._run(lambda db: campaigns.take_reports(db, campaign_id)):
                del self._spread[campaign_id]
                return await self._decided(campaign_id)
        return self._spread[campaign_id]

    async def _count_on(self, shard: int, parts: Sequence[Part]) -> list[Outcome] | StoreError:
        """Those that are to come again, for the map was old or the campaign only now is there, are :data:`STALE`."""
        if shard in self._absences:
            return StoreError(f"database {shard} of the store does not answer")
        submissions = [part.submission for part in parts]
        try:
            outcomes = await PostgresStore.count_by_map(self.shard(shard), submissions, self._map.version)
            for place, outcome in enumerate(outcomes):
                name = submissions[place].campaign.id
                if outcome.refused == UNKNOWN and shard and await levelling.bring(self, self.shard(shard), name):
                    outcomes[place] = Outcome(refused=STALE)
        except StoreError as error:
            LOG.error("a part was not counted", extra={"database": shard, "reason": kind_of(error)})
            if not isinstance(error, DatabaseRefusedError):
                self._absences.note(shard, error)
            return error
        return outcomes

    async def _correct_crowds(
        self, submissions: Sequence[Submission], answers: Sequence[Sequence[tuple[Part, Outcome]]]
    ) -> None:
        for submission, parts in zip(submissions, answers, strict=True):
            crowd = overstated_crowd(submission, parts)
            if crowd is not None:
                await self._run(lambda db, of=submission, least=crowd: add_crowd(db, of.campaign.id, least))  # type: ignore[misc]

    async def _parts_elsewhere(self, campaign_id: str) -> list[bytes]:
        found = await self._in_others(lambda store: parts_in(store, campaign_id))
        return [part for parts in found for part in parts]

    async def _refresh(self) -> None:
        found = await self._run(slot_map.read)
        for number in found.shards:
            self.shard(number)
        self._map, self._read = found, time.monotonic()

    async def _in_others(self, work: Callable[[PostgresStore], Awaitable[Result]]) -> list[Result]:
        """In all of them at once; where some fail, the others have done it. Raises StoreError; RefusedError as a store
        in one database does, for it no other try completes.
        """
        results = await asyncio.gather(*(work(store) for store in self.others.values()), return_exceptions=True)
        for result in results:
            if isinstance(result, RefusedError):
                raise result
        for number, result in zip(self.others, results, strict=True):
            if isinstance(result, StoreError):
                raise StoreError(f"database {number} of the store: {result}; the same again completes it") from result
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]
