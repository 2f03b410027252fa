"""The embedded store: one SQLite file, runs of ids beside it, one writer thread, one reader thread.

WAL with ``synchronous = FULL``: a commit returns after its fsync. Ids of reports are in the file while they are
recent, and in sorted runs beside it later (:mod:`ldp_aggregator.store.sqlite.ids`). Several processes may open the
file; each write transaction takes the lock first (``BEGIN IMMEDIATE``) and reads what it depends on inside.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from ldp_aggregator.counting.parts import COMPACT_AT, encode_part
from ldp_aggregator.store.batch import Batch, gather_by_campaign, in_order
from ldp_aggregator.store.campaign_state import CampaignState, Terms
from ldp_aggregator.store.clock import Clock, utc_now
from ldp_aggregator.store.consistency import Finding
from ldp_aggregator.store.contract import (
    UNAVAILABLE,
    UNKNOWN,
    Outcome,
    PublishedModel,
    ShareDigests,
    Shares,
    StoreError,
    Submission,
)
from ldp_aggregator.store.decisions import decide_uploads, vouched_part
from ldp_aggregator.store.origin import Origin, check_in_use
from ldp_aggregator.store.rights import Act, LoggedAct, StoredToken
from ldp_aggregator.store.sqlite import campaigns, ids, models, origin, publications, schema, shares, upkeep
from ldp_aggregator.store.sqlite.connections import keep_log, make_file, open_connection, transaction
from ldp_aggregator.store.sqlite.id_sets import IdSets
from ldp_aggregator.store.sqlite.rights import acts, directories, tokens
from ldp_aggregator.store.sqlite.tidying import Tidier
from protocols import Campaign

if TYPE_CHECKING:
    from ldp_aggregator.counting.tally import Tally

LOG: Final = logging.getLogger("ldp_aggregator")

FILE_NAME: Final = "aggregator.sqlite3"

AUDITS: Final = 5
"""How often an audit begins again before it says what it found."""

Result = TypeVar("Result")


class SqliteStore:
    """See :class:`ldp_aggregator.store.contract.Store`. ``path`` is the database file; it is made where absent, unless
    it is only to be read.
    """

    def __init__(self, path: Path, *, clock: Clock | None = None, read_only: bool = False) -> None:
        self._clock = clock or utc_now
        self._damaged: set[int] = set()
        """Numbers of campaigns whose parts do not add up, so that no commit tries it again."""
        if not read_only:
            make_file(path)
        self._ids = IdSets()
        self._tidier = Tidier(ids.folder_of(path), self._ids)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        self._write_connection = open_connection(path, read_only=read_only)
        try:
            if read_only:
                schema.check_version(self._write_connection)
            else:
                schema.prepare(self._write_connection)
                check_in_use(origin.read(self._write_connection))
                keep_log(self._write_connection)
                with transaction(self._write_connection) as db:
                    ids.sweep(db)
            self._read_connection = open_connection(path, read_only=read_only)
        except BaseException:
            self._write_connection.close()
            raise

    async def create_campaign(
        self,
        campaign: Campaign,
        *,
        max_reports: int | None = None,
        federated: bool = False,
        uploads_need: str | None = None,
    ) -> bool:
        return await self._write(
            lambda db: campaigns.create(
                db, campaign, self._clock(), max_reports=max_reports, federated=federated, uploads_need=uploads_need
            )
        )

    async def document(self, campaign_id: str) -> bytes:
        return await self._read(lambda db: campaigns.document(db, campaign_id))

    async def state(self, campaign_id: str) -> CampaignState:
        return await self._read(lambda db: campaigns.state(db, campaigns.row(db, campaign_id)))

    async def terms(self, campaign_id: str) -> Terms:
        return await self._read(lambda db: campaigns.row(db, campaign_id).terms)

    async def campaigns(self) -> list[CampaignState]:
        return await self._read(lambda db: [campaigns.state(db, row) for row in campaigns.rows(db)])

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        return await self._write(lambda db: campaigns.close(db, campaign_id, self._clock()))

    async def end_campaign(self, campaign_id: str) -> CampaignState:
        return await self._write(lambda db: campaigns.end(db, campaign_id, self._clock()))

    async def reopen_campaign(self, campaign_id: str) -> CampaignState:
        return await self._write(lambda db: campaigns.reopen(db, campaign_id))

    async def set_uploads_need(self, campaign_id: str, scope: str | None) -> CampaignState:
        return await self._write(lambda db: campaigns.set_uploads_need(db, campaign_id, scope))

    async def seal_campaign(self, campaign_id: str, *, at_once: bool = False) -> CampaignState:
        state = await self._write(lambda db: campaigns.seal(db, campaign_id, self._clock(), at_once=at_once))
        await self._write(self._sweep)
        return state

    async def delete_campaign(self, campaign_id: str) -> None:
        await self._write(lambda db: campaigns.delete(db, campaign_id, self._clock()))
        await self._write(self._sweep)

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        return await self._in_thread(self._writer, lambda: self._count(submissions))

    async def tally(self, campaign_id: str) -> Tally:
        return await self._read(lambda db: campaigns.tally(db, campaign_id))

    async def released_tally(self, campaign: Campaign, every: int) -> Tally:
        return await self._write(lambda db: publications.released_tally(db, campaign, every))

    async def check(self) -> None:
        await self._in_thread(self._writer, lambda: self._tidier.step(self._write_connection))
        await self._write(upkeep.heartbeat)

    async def put_share(self, campaign_id: str, node: str, share: bytes, *, token: str | None = None) -> str | None:
        return await self._write(lambda db: shares.put(db, campaign_id, node, share, token or node, self._clock()))

    async def withdraw_share(self, campaign_id: str, node: str, *, token: str | None = None) -> str | None:
        return await self._write(lambda db: shares.withdraw(db, campaign_id, node, token or node, self._clock()))

    async def withdraw_node(self, node: str) -> int:
        return await self._write(lambda db: shares.withdraw_node(db, node))

    async def shares(self, campaign_id: str) -> Shares | None:
        return await self._read(lambda db: shares.kept(db, campaign_id))

    async def share_digests(self, campaign_id: str) -> ShareDigests:
        return await self._read(lambda db: shares.digests(db, campaign_id))

    async def publish_model(self, campaign_id: str, document: str) -> PublishedModel:
        return await self._write(lambda db: models.publish(db, campaign_id, document, self._clock()))

    async def model(self, campaign_id: str, version: int | None = None) -> PublishedModel | None:
        return await self._read(lambda db: models.model(db, campaign_id, version))

    async def add_token(self, token: StoredToken) -> None:
        await self._write(lambda db: tokens.add(db, token))

    async def token(self, digest: bytes) -> StoredToken | None:
        return await self._read(lambda db: tokens.with_digest(db, digest))

    async def tokens(self) -> list[StoredToken]:
        return await self._read(tokens.listed)

    async def revoke_token(self, name: str) -> bool:
        return await self._write(lambda db: tokens.revoke(db, name, self._clock()))

    async def rotate_token(self, name: str, token: StoredToken, *, until: datetime | None = None) -> bool:
        return await self._write(lambda db: tokens.rotate(db, name, token, until, self._clock()))

    async def begin_act(self, act: Act) -> int:
        return await self._write(lambda db: acts.begin(db, act, self._clock()))

    async def end_act(self, number: int, outcome: str) -> None:
        await self._write(lambda db: acts.end(db, number, outcome))

    async def acts(self, *, campaign_id: str | None = None, last: int | None = None) -> Sequence[LoggedAct]:
        return await self._read(lambda db: acts.listed(db, campaign_id, last))

    async def put_directory(self, key: str, version: int, document: bytes) -> None:
        await self._write(lambda db: directories.put(db, key, version, document))

    async def directory(self, key: str) -> bytes | None:
        return await self._read(lambda db: directories.newest(db, key))

    @property
    def tidying(self) -> bool:
        """Whether a run of ids is in the making; every commit, and :meth:`check`, goes on with it."""
        return self._tidier.busy

    async def audit(self) -> list[Finding]:
        """Again where runs were merged meanwhile, whose files are gone then."""
        for _ in range(AUDITS):
            before = await self._read(ids.listed)
            findings = await self._read(upkeep.audit)
            if await self._read(ids.listed) == before:
                break
        return findings

    async def origin(self) -> Origin:
        return await self._read(origin.read)

    async def close(self) -> None:
        await self._in_thread(self._writer, self._tidier.close)
        for executor, connection in ((self._writer, self._write_connection), (self._reader, self._read_connection)):
            await asyncio.get_running_loop().run_in_executor(executor, connection.close)
            executor.shutdown()

    def _count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """The write path, on the writer's thread. Arrays are laid out before the lock is taken."""
        batches = gather_by_campaign(submissions)
        self._tidier.step(self._write_connection)
        try:
            with transaction(self._write_connection) as db:
                if len(batches) == 1:
                    answers = {name: self._count_batch(db, name, batch) for name, batch in batches.items()}
                else:
                    answers = self._count_apart(db, batches)
        except BaseException:
            self._ids.forget()
            raise
        self._ids.keep()
        return in_order(submissions, answers)

    def _count_apart(self, db: sqlite3.Connection, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
        """Where the database fails for some campaigns, the others are counted; for all of them, it raises."""
        answers: dict[str, Sequence[Outcome]] = {}
        failures = []
        for name, batch in batches.items():
            db.execute("SAVEPOINT campaign")
            staged = self._ids.staged
            try:
                answers[name] = self._count_batch(db, name, batch)
            except (sqlite3.Error, StoreError) as error:
                failures.append(error)
                if len(failures) == len(batches) or not db.in_transaction:
                    raise
                db.execute("ROLLBACK TO campaign")
                self._ids.forget(keep=staged)
                LOG.error("a campaign was not counted", extra={"campaign": name, "reason": str(error)})
                answers[name] = batch.refused(UNAVAILABLE)
            db.execute("RELEASE campaign")
        return answers

    def _count_batch(self, db: sqlite3.Connection, campaign_id: str, batch: Batch) -> Sequence[Outcome]:
        row = campaigns.find(db, campaign_id)
        if row is None:
            return batch.refused(UNKNOWN)
        counted = None if row.max_reports is None else campaigns.reports(db, row.number)
        decision = decide_uploads(row, counted, self._clock())
        if decision.refused is not None:
            return batch.refused(decision.refused)
        settlement = self._ids.insert(db, row.number, batch, decision.room)
        vouched = settlement.vouched
        if settlement.revealed:
            vouched = vouched_part(settlement, campaigns.arrivals(db, row))
        if settlement.counted or vouched:
            sums = encode_part(settlement.sums)
            campaigns.add_part(db, row.number, settlement.counted, sums, vouched, settlement.least_batch)
            many = campaigns.number_of_parts(db, row.number) > COMPACT_AT
            if many and row.number not in self._damaged and not campaigns.compact(db, row.number, batch.campaign):
                self._damaged.add(row.number)
        return settlement.outcomes

    def _sweep(self, db: sqlite3.Connection) -> None:
        """After campaigns have lost their ids."""
        self._ids.clear()
        ids.sweep(db)

    async def _read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def transact() -> Result:
            with transaction(self._read_connection, "BEGIN") as db:
                return work(db)

        return await self._in_thread(self._reader, transact)

    async def _write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def transact() -> Result:
            with transaction(self._write_connection) as db:
                return work(db)

        return await self._in_thread(self._writer, transact)

    async def _in_thread(self, executor: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(executor, work)
