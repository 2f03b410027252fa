"""The embedded store: one SQLite file, one writer thread, one reader thread.

WAL with ``synchronous = FULL``: a commit returns after its fsync. The ids of every campaign have a table of their own,
so closing a campaign drops it whole. Several processes may open the file; each write transaction takes the lock
first (``BEGIN IMMEDIATE``) and reads what it depends on inside.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from ldp_aggregator.counting.parts import COMPACT_AT, encode_part
from ldp_aggregator.store.batch import Batch, gather_by_campaign, in_order
from ldp_aggregator.store.clock import Clock, utc_now
from ldp_aggregator.store.consistency import Finding
from ldp_aggregator.store.contract import (
    UNKNOWN,
    CampaignState,
    Outcome,
    PublishedModel,
    ShareDigests,
    Shares,
    Submission,
)
from ldp_aggregator.store.decisions import decide_uploads
from ldp_aggregator.store.rights import Act, LoggedAct, StoredToken
from ldp_aggregator.store.sqlite import (
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
from ldp_aggregator.store.sqlite.connections import make_file, open_connection, transaction
from protocols import Campaign

if TYPE_CHECKING:
    from ldp_aggregator.counting.tally import Tally

FILE_NAME: Final = "aggregator.sqlite3"

Result = TypeVar("Result")


class SqliteStore:
    """See :class:`ldp_aggregator.store.contract.Store`. ``path`` is the database file; it is made where absent."""

    def __init__(self, path: Path, *, clock: Clock = utc_now) -> None:
        self._clock = clock
        self._damaged: set[int] = set()
        """Numbers of campaigns whose parts do not add up, so that no commit tries it again."""
        make_file(path)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        self._write_connection = open_connection(path)
        try:
            schema.prepare(self._write_connection)
            self._read_connection = open_connection(path)
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
                db,
                campaign,
                self._clock(),
                max_reports=max_reports,
                federated=federated,
                uploads_need=uploads_need,
            )
        )

    async def document(self, campaign_id: str) -> bytes:
        return await self._read(lambda db: campaigns.document(db, campaign_id))

    async def state(self, campaign_id: str) -> CampaignState:
        return await self._read(lambda db: campaigns.state(db, campaigns.row(db, campaign_id)))

    async def campaigns(self) -> list[CampaignState]:
        return await self._read(lambda db: [campaigns.state(db, row) for row in campaigns.rows(db)])

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        return await self._write(lambda db: campaigns.close(db, campaign_id, self._clock()))

    async def set_uploads_need(self, campaign_id: str, scope: str | None) -> CampaignState:
        return await self._write(lambda db: campaigns.set_uploads_need(db, campaign_id, scope))

    async def delete_campaign(self, campaign_id: str) -> None:
        await self._write(lambda db: campaigns.delete(db, campaign_id, self._clock()))

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        return await self._in_thread(self._writer, lambda: self._count(submissions))

    async def tally(self, campaign_id: str) -> Tally:
        return await self._read(lambda db: campaigns.tally(db, campaign_id))

    async def released_tally(self, campaign_id: str, every: int) -> Tally:
        return await self._write(lambda db: publications.released_tally(db, campaign_id, every))

    async def check(self) -> None:
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

    async def audit(self) -> list[Finding]:
        return await self._read(upkeep.audit)

    async def close(self) -> None:
        for executor, connection in ((self._writer, self._write_connection), (self._reader, self._read_connection)):
            await asyncio.get_running_loop().run_in_executor(executor, connection.close)
            executor.shutdown()

    def _count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """The write path, on the writer's thread. Arrays are laid out before the lock is taken."""
        batches = gather_by_campaign(submissions)
        with transaction(self._write_connection) as db:
            answers = {name: self._count_batch(db, name, batch) for name, batch in batches.items()}
        return in_order(submissions, answers)

    def _count_batch(self, db: sqlite3.Connection, campaign_id: str, batch: Batch) -> Sequence[Outcome]:
        row = campaigns.find(db, campaign_id)
        if row is None:
            return batch.refused(UNKNOWN)
        counted = None if row.max_reports is None else campaigns.reports(db, row.number)
        decision = decide_uploads(row, counted, self._clock())
        if decision.refused is not None:
            return batch.refused(decision.refused)
        settlement = ids.insert(db, row.number, batch, decision.room)
        if settlement.counted:
            campaigns.add_part(db, row.number, settlement.counted, encode_part(settlement.sums))
            many = campaigns.number_of_parts(db, row.number) > COMPACT_AT
            if many and row.number not in self._damaged and not campaigns.compact(db, row):
                self._damaged.add(row.number)
        return settlement.outcomes

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
