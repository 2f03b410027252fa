"""The embedded store: one SQLite file, one writer thread, one reader thread.

WAL with ``synchronous = FULL``: a commit returns after its fsync. The ids of every campaign have a table of their own,
so closing a campaign drops it whole. Several processes may open the file; each write transaction takes the lock
first (``BEGIN IMMEDIATE``) and reads what it depends on inside.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from ldp_aggregator.counting.parts import COMPACT_AT, encode_part, tally_of_parts
from ldp_aggregator.store.batch import Batch, Settlement, gather, group_by_campaign
from ldp_aggregator.store.clock import Clock, from_text, to_text, utc_now
from ldp_aggregator.store.consistency import Finding, audit_campaign, audit_shares
from ldp_aggregator.store.contract import (
    SALT_BYTES,
    TAKES_SHARES,
    UNKNOWN,
    CampaignState,
    Outcome,
    PublishedModel,
    ShareDigests,
    Shares,
    StoredToken,
    Submission,
    UnknownCampaignError,
)
from ldp_aggregator.store.sqlite import schema
from ldp_aggregator.store.sqlite import shares as sqlite_shares
from ldp_aggregator.store.sqlite import statements as sql
from protocols import Campaign

if TYPE_CHECKING:
    from ldp_aggregator.counting.tally import Tally

FILE_NAME: Final = "aggregator.sqlite3"

Result = TypeVar("Result")


class SqliteStore:
    """See :class:`ldp_aggregator.store.contract.Store`. ``path`` is the database file; it is made where absent."""

    def __init__(self, path: Path, *, clock: Clock = utc_now) -> None:
        self._clock = clock
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        self._write_connection = sql.open_connection(path)
        try:
            schema.prepare(self._write_connection)
            self._read_connection = sql.open_connection(path)
        except BaseException:
            self._write_connection.close()
            raise

    async def create_campaign(
        self, campaign: Campaign, *, max_reports: int | None = None, federated: bool = False
    ) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            if db.execute("SELECT 1 FROM campaigns WHERE id = ?", (campaign.id,)).fetchone():
                return False
            number = db.execute(
                "INSERT INTO campaigns (id, title, document, opens, closes, created, max_reports, salt) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
                (
                    campaign.id,
                    campaign.title,
                    campaign.document,
                    sql.text_or_none(campaign.opens),
                    sql.text_or_none(campaign.closes),
                    to_text(self._clock()),
                    max_reports,
                    os.urandom(SALT_BYTES) if federated else None,
                ),
            ).fetchone()[0]
            db.execute(schema.create_ids(number))
            return True

        return await self._write(work)

    async def document(self, campaign_id: str) -> bytes:
        return await self._read(lambda db: sql.document(db, campaign_id))

    async def state(self, campaign_id: str) -> CampaignState:
        return await self._read(lambda db: sql.state(db, sql.row(db, campaign_id)))

    async def campaigns(self) -> list[CampaignState]:
        return await self._read(lambda db: [sql.state(db, row) for row in sql.rows(db)])

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        def work(db: sqlite3.Connection) -> CampaignState:
            row = sql.row(db, campaign_id)
            if row["closed"] is None:
                self._close(db, row)
            return sql.state(db, sql.row(db, campaign_id))

        return await self._write(work)

    async def close_due(self) -> list[str]:
        def due(db: sqlite3.Connection) -> list[str]:
            now = self._clock()
            return [row["id"] for row in sql.rows(db) if row["closed"] is None and sql.is_over(db, row, now)]

        found = await self._read(due)
        for campaign_id in found:
            await self.close_campaign(campaign_id)
        return found

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        return await self._in_thread(self._writer, lambda: self._count(submissions))

    async def tally(self, campaign_id: str) -> Tally:
        def work(db: sqlite3.Connection) -> Tally:
            return tally_of_parts(
                Campaign.parse(sql.document(db, campaign_id)), sql.parts(db, sql.row(db, campaign_id)["number"])
            )

        return await self._read(work)

    async def put_share(self, campaign_id: str, node: str, share: bytes) -> str | None:
        return await self._write(lambda db: sqlite_shares.put(db, campaign_id, node, share, self._clock()))

    async def withdraw_share(self, campaign_id: str, node: str) -> str | None:
        return await self._write(lambda db: sqlite_shares.withdraw(db, campaign_id, node, self._clock()))

    async def withdraw_node(self, node: str) -> int:
        return await self._write(lambda db: sqlite_shares.withdraw_node(db, node))

    async def shares(self, campaign_id: str) -> Shares | None:
        return await self._read(lambda db: sqlite_shares.shares(db, campaign_id))

    async def share_digests(self, campaign_id: str) -> ShareDigests:
        return await self._read(lambda db: sqlite_shares.digests(db, campaign_id))

    async def publish_model(self, campaign_id: str, document: str) -> PublishedModel:
        def work(db: sqlite3.Connection) -> PublishedModel:
            number, now = sql.row(db, campaign_id)["number"], self._clock()
            version = db.execute(
                "INSERT INTO models (campaign, version, document, created) "
                "SELECT ?1, coalesce(max(version), 0) + 1, ?2, ?3 FROM models WHERE campaign = ?1 RETURNING version",
                (number, document, to_text(now)),
            ).fetchone()[0]
            return PublishedModel(version, document, now)

        return await self._write(work)

    async def model(self, campaign_id: str, version: int | None = None) -> PublishedModel | None:
        def work(db: sqlite3.Connection) -> PublishedModel | None:
            row = db.execute(
                "SELECT version, document, created FROM models WHERE campaign = ?1 AND version = coalesce(?2, version) "
                "ORDER BY version DESC LIMIT 1",
                (sql.row(db, campaign_id)["number"], version),
            ).fetchone()
            return row and PublishedModel(row["version"], row["document"], from_text(row["created"]))

        return await self._read(work)

    async def add_token(self, token: StoredToken) -> None:
        await self._write(lambda db: sqlite_shares.add_token(db, token))

    async def rotate_token(self, name: str, token: StoredToken) -> bool:
        return await self._write(lambda db: sqlite_shares.rotate(db, name, token, self._clock()))

    async def tokens(self) -> list[StoredToken]:
        def work(db: sqlite3.Connection) -> list[StoredToken]:
            return [
                StoredToken(
                    row["name"],
                    row["scope"],
                    bytes(row["digest"]),
                    from_text(row["created"]),
                    row["revoked"] and from_text(row["revoked"]),
                )
                for row in db.execute("SELECT * FROM tokens ORDER BY created, name").fetchall()
            ]

        return await self._read(work)

    async def revoke_token(self, name: str) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            changed = db.execute(
                "UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL", (to_text(self._clock()), name)
            ).rowcount
            return bool(changed)

        return await self._write(work)

    async def check(self) -> None:
        await self._write(lambda db: db.execute("SELECT count(*) FROM tokens").fetchone())

    async def audit(self) -> list[Finding]:
        def work(db: sqlite3.Connection) -> list[Finding]:
            findings = [Finding(None, str(row[0])) for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
            for row in sql.rows(db):
                ids = None
                if row["closed"] is None:
                    ids = db.execute(f"SELECT count(*) FROM {schema.ids_table(row['number'])}").fetchone()[0]
                document = sql.document(db, row["id"])
                findings += audit_campaign(row["id"], document, sql.parts(db, row["number"]), ids)
                findings += audit_shares(row["id"], document, row["salt"], sqlite_shares.stored(db, row["number"]))
            return findings

        return await self._read(work)

    async def close(self) -> None:
        for executor, connection in ((self._writer, self._write_connection), (self._reader, self._read_connection)):
            await asyncio.get_running_loop().run_in_executor(executor, connection.close)
            executor.shutdown()

    def _count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """The write path, on the writer's thread. Arrays are laid out before the lock is taken."""
        members = group_by_campaign(submissions)
        batches = {
            campaign_id: gather(submissions[positions[0]].campaign, [submissions[p] for p in positions])
            for campaign_id, positions in members.items()
        }
        outcomes = [Outcome()] * len(submissions)
        with sql.transaction(self._write_connection) as db:
            for campaign_id, batch in batches.items():
                answers = self._count_batch(db, campaign_id, batch)
                for position, outcome in zip(members[campaign_id], answers, strict=True):
                    outcomes[position] = outcome
        return outcomes

    def _count_batch(self, db: sqlite3.Connection, campaign_id: str, batch: Batch) -> Sequence[Outcome]:
        try:
            row = sql.row(db, campaign_id)
        except UnknownCampaignError:
            return [Outcome(refused=UNKNOWN)] * len(batch.submissions)
        refusal = sql.life(row).refusal(self._clock()) if row["salt"] is None else TAKES_SHARES
        if refusal:
            return [Outcome(refused=refusal)] * len(batch.submissions)
        room = None if row["max_reports"] is None else row["max_reports"] - sql.reports(db, row["number"])
        settlement = self._insert(db, row["number"], batch, room)
        if settlement.counted:
            db.execute(
                "INSERT INTO parts (campaign, reports, sums) VALUES (?, ?, ?)",
                (row["number"], settlement.counted, encode_part(settlement.sums)),
            )
            if db.execute("SELECT count(*) FROM parts WHERE campaign = ?", (row["number"],)).fetchone()[0] > COMPACT_AT:
                sql.compact(db, batch.campaign, row["number"])
        return settlement.outcomes

    def _insert(self, db: sqlite3.Connection, number: int, batch: Batch, room: int | None) -> Settlement:
        """Store the ids that are new. Nearly always all are, and one statement does it."""
        records = batch.candidates
        if room is None or len(records) <= room:
            db.execute("SAVEPOINT ids")
            if sql.insert_records(db, number, records) == len(records):
                db.execute("RELEASE ids")
                return batch.settle({})
            db.execute("ROLLBACK TO ids")
            db.execute("RELEASE ids")
        known = sql.known_digests(db, number, records)
        inserted = batch.earliest(known, len(records) if room is None else max(room, 0))
        sql.insert_records(db, number, records[inserted])
        return batch.settle(known, inserted)

    def _close(self, db: sqlite3.Connection, row: sqlite3.Row) -> None:
        """The final tally, then no more need to tell old ids from new ones."""
        sql.compact(db, Campaign.parse(sql.document(db, row["id"])), row["number"])
        db.execute("UPDATE campaigns SET closed = ? WHERE number = ?", (to_text(self._clock()), row["number"]))
        db.execute(f"DROP TABLE {schema.ids_table(row['number'])}")

    async def _read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def run() -> Result:
            with sql.transaction(self._read_connection, "BEGIN") as db:
                return work(db)

        return await self._in_thread(self._reader, run)

    async def _write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def run() -> Result:
            with sql.transaction(self._write_connection) as db:
                return work(db)

        return await self._in_thread(self._writer, run)

    async def _in_thread(self, executor: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(executor, work)
