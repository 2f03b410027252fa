"""The embedded store: one SQLite file, runs of ids beside it, one writer thread, one reader thread.

WAL with ``synchronous = FULL``: a commit returns after its fsync. Ids of reports are in the file while they are
recent, and in sorted runs beside it later (:mod:`ldp_aggregator.store.sqlite.database`). Several processes may open
the file; each write transaction takes the lock first (``BEGIN IMMEDIATE``) and reads what it depends on inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from ldp_aggregator.counting.parts import COMPACT_AT, encode_part
from ldp_aggregator.store import contract, decisions
from ldp_aggregator.store.clocks import SteadyClock
from ldp_aggregator.store.contract import LOG, Clock, Outcome, StoreError, Submission, kind_of
from ldp_aggregator.store.decisions import Batch, CampaignRow, in_order
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.published import origin
from ldp_aggregator.store.sql.store import Damage, Store, findings
from ldp_aggregator.store.sql.tables import Result, Row, SqlConnection, Work, writing
from ldp_aggregator.store.sqlite import database
from ldp_aggregator.store.sqlite.database import SqliteConnection, finish, transaction
from ldp_aggregator.store.sqlite.id_index import IdSets, Tidier
from ldp_aggregator.store.sqlite.upgrade import upgrade_file
from ldp_protocols import Campaign

CHECKS: Final = 5
"""Times that a check begins again before it reports its findings."""


class SqliteStore(Store):
    """See :class:`ldp_aggregator.store.Store`. ``path`` is the database file; it is made where absent, unless
    it is only to be read.
    """

    def __init__(self, path: Path, *, clock: Clock | None = None, read_only: bool = False) -> None:
        self._damaged: set[int] = set()
        """Numbers of campaigns whose parts do not add up, so that no commit tries it again."""
        if not read_only:
            database.make_file(path)
        self._ids = IdSets()
        self._tidier = Tidier(database.folder_of(path), self._ids)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        steady = SteadyClock.of(clock)
        self._writes = SqliteConnection(database.open_connection(path, read_only=read_only), steady)
        raw = self._writes.raw
        try:
            if read_only:
                database.check_file(raw)
            else:
                upgrade_file(raw)
                database.prepare_file(raw)
                check_in_use(self._writes)
                database.keep_log(raw)
                with transaction(raw):
                    database.sweep_runs(raw)
            self._reads = SqliteConnection(database.open_connection(path, read_only=read_only), steady)
        except database.FAILURES as error:
            raw.close()
            raise StoreError(f"{path} cannot be opened as a store: {error}") from error
        except BaseException:
            raw.close()
            raise

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        return await self._in_thread(self._writer, lambda: self._count(submissions))

    async def beat(self) -> None:
        await self._in_thread(self._writer, lambda: self._tidier.step(self._writes.raw))
        await self._in_thread(self._writer, self._write_a_page)
        finish(self._writes.moment())  # A jump is noticed while nobody uploads, too.

    def _write_a_page(self) -> None:
        with transaction(self._writes.raw) as raw:
            database.write_a_page(raw)

    @property
    def tidying(self) -> bool:
        """A run of ids is in the making; every commit, and :meth:`beat`, goes on with it."""
        return self._tidier.busy

    @property
    def damaged(self) -> int:
        return len(self._damaged | self._tidier.damaged)

    async def check(self) -> list[Damage]:
        """Damage of the store. The check begins again if runs were merged meanwhile, whose files are gone then."""

        async def listed(db: SqlConnection) -> list[Row]:
            return [tuple(row) for row in await db.fetch("SELECT name FROM runs ORDER BY name")]

        for _ in range(CHECKS):
            before = await self._read(listed)
            found = await self._read(lambda _: all_findings(self._reads))
            if await self._read(listed) == before:
                break
        return found

    @writing
    async def _take_out_damaged(self, db: SqlConnection) -> list[database.TakenOut]:
        taken = []
        for row in await campaigns.rows(db):
            found = [] if row.life.sealed else database.take_out_damaged(self._writes.raw, row.number)
            lost = sum(one.ids - one.saved for one in found)
            # Reports whose ids are lost stay counted; they may be counted once more.
            await campaigns.put(db, row, lost_ids=row.lost_ids + lost, unchecked=row.unchecked + lost)
            taken += found
        return taken

    async def take_out_damaged(self) -> list[database.TakenOut]:
        """Take every damaged run out, and the recent ids that do not agree with their check; what is sound of a run
        stays. Whose ids are lost may be counted once more.
        """
        taken = await self._take_out_damaged()
        await self._drop_ids(0)
        return taken

    async def close(self) -> None:
        await self._in_thread(self._writer, self._tidier.close)
        for executor, db in ((self._writer, self._writes), (self._reader, self._reads)):
            await self._in_thread(executor, db.raw.close)
            executor.shutdown()

    def _count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """The write path, on the writer's thread. Arrays are laid out before the lock is taken."""
        batches = decisions.gather_by_campaign(submissions, finish(self._writes.moment()))
        self._tidier.step(self._writes.raw)
        begun = False
        try:
            with transaction(self._writes.raw) as raw:
                begun = True
                answers = finish(self._count_batches(batches))
                if decisions.is_known(answers):
                    database.write_a_page(raw)
        except BaseException as error:
            self._ids.forget()
            if not (begun and len(batches) == 1 and isinstance(error, StoreError)):
                raise
            answers = {name: self._uncounted(batch, error) for name, batch in batches.items()}
        self._ids.keep()
        if all(outcomes[0].refused == contract.UNAVAILABLE for outcomes in answers.values()):
            self._write_a_page()  # Where that fails too, it is the database, and no campaign.
        return in_order(submissions, answers)

    async def _count_batches(self, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
        """Count the others where the database fails for some campaigns."""
        db = self._writes
        if len(batches) == 1:  # What it did is taken back with the transaction.
            return {name: await self._count_batch(db, name, batch) for name, batch in batches.items()}
        answers: dict[str, Sequence[Outcome]] = {}
        for name, batch in batches.items():
            staged = tuple(self._ids.staged)
            try:
                async with db.savepoint():
                    answers[name] = await self._count_batch(db, name, batch)
            except (*database.FAILURES, StoreError) as error:
                if not db.raw.in_transaction:
                    raise
                self._ids.forget(keep=staged)
                answers[name] = self._uncounted(batch, error)
        return answers

    async def _count_batch(self, db: SqliteConnection, campaign_id: str, batch: Batch) -> Sequence[Outcome]:
        row = await campaigns.find(db, campaign_id)
        if row is None:
            return batch.refused((await campaigns.absence(db, campaign_id)).code)
        refused = decisions.refuse_uploads(row)
        if refused is not None:
            return batch.refused(refused)
        bar = decisions.bar_of(row, batch.campaign, await db.moment())
        room = await campaigns.room(db, row) if bar is None else 0
        settlement = self._ids.insert(db.raw, row.number, batch, room, bar)
        vouched = settlement.vouched
        if settlement.revealed:
            vouched = decisions.vouched_part(settlement, await campaigns.arrivals(db, row))
        if settlement.counted or vouched:
            sums = encode_part(settlement.sums)
            await campaigns.add_part(db, row, settlement.counted, sums, vouched, settlement.least_batch)
            await self._compact(db, row, batch.campaign)
        return settlement.outcomes

    async def _compact(self, db: SqliteConnection, row: CampaignRow, campaign: Campaign) -> None:
        """Add parts up where there are many. That only saves readers some work, so it fails nobody's commit: what is
        damaged is for fsck to tell.
        """
        many = await db.fetchrow("SELECT count(*) FROM parts WHERE campaign = $1", row.number)
        if many is None or many[0] <= COMPACT_AT or row.number in self._damaged:
            return
        try:
            async with db.savepoint():
                await campaigns.compact(db, campaign, row)
        except StoreError as error:
            self._damaged.add(row.number)
            LOG.error("a tally was not compacted", extra={"campaign": campaign.id, "reason": kind_of(error)})

    async def _forget_ids(self, db: SqlConnection, number: int) -> None:
        database.drop_ids(self._writes.raw, number)

    async def _drop_ids(self, number: int) -> None:
        async def sweep(_: SqlConnection) -> None:
            self._ids.by_campaign.clear()
            database.sweep_runs(self._writes.raw)

        await self._write(sweep)

    async def _read(self, work: Work[Result], name: str = "") -> Result:
        return await self._in_thread(self._reader, lambda: _transact(self._reads, work, "BEGIN"))

    async def _write(self, work: Work[Result], name: str = "") -> Result:
        return await self._in_thread(self._writer, lambda: _transact(self._writes, work, "BEGIN IMMEDIATE"))

    async def _in_thread(self, executor: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(executor, work)


def _transact(db: SqliteConnection, work: Callable[[SqlConnection], Awaitable[Result]], begin: str) -> Result:
    with transaction(db.raw, begin):
        return finish(work(db))


async def all_findings(db: SqliteConnection) -> list[Damage]:
    """Damage of a store's file and its runs, read inside a transaction."""

    async def check_ids(_: SqlConnection, row: CampaignRow) -> tuple[int | None, list[str]]:
        stored = database.stored_ids(db.raw, row.number) if row.life.sealed is None else None
        return stored, database.problems_of_ids(db.raw, row.number)

    damage = [str(row[0]) for row in db.raw.execute("PRAGMA integrity_check").fetchall()]
    problems = [problem for problem in damage if problem != "ok"] + database.strays(db.raw)
    return [Damage(None, problem) for problem in problems] + await findings(db, check_ids, database.FAILURES)


def check_in_use(db: SqliteConnection) -> None:
    """Refuse to write to a backup. Raises StoreError."""
    if finish(origin(db)).is_copy:
        raise StoreError(
            "this is a backup, in which tokens and shares may stand that were revoked or withdrawn since; "
            "'ldp-aggregator restore' makes a store of it"
        )
