"""A store whose ids are in runs promises what every store does. Runs are small here, so that there are many."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
from concurrent.futures import wait
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from cells import cell_campaign, cell_report, cells_of, count, publish

from ldp_aggregator.store import Outcome, SqliteStore
from ldp_aggregator.store.backup import combine_stores, copy_store, restore_store
from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.sqlite import database, run_files
from ldp_aggregator.store.sqlite.database import FILE_NAME, keep_log, make_file, open_connection, transaction

CAMPAIGN = cell_campaign(4096)


@pytest.fixture(autouse=True)
def small_runs(monkeypatch):
    monkeypatch.setattr(run_files, "LEAST_RUN", 40)
    monkeypatch.setattr(run_files, "FAN_IN", 3)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


async def fill(store, numbers, step=10, *, campaign=CAMPAIGN, sure=True):
    """In commits of ``step``, each of which gives the thread beside it time to make its run."""
    for start in range(numbers.start, numbers.stop, step):
        some = range(start, min(start + step, numbers.stop))
        outcome = await count(store, campaign, some)
        assert outcome.counted == len(some) or not sure
        await settled(store)


async def settled(store):
    """Until no run is being made."""
    await store.beat()
    while store.tidying:
        await asyncio.sleep(0.001)
        await store.beat()


def listed(folder):
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:
        return {row[0] for row in db.execute("SELECT name FROM runs")}


def first_run(folder):
    return database.folder_of(folder / FILE_NAME) / sorted(listed(folder))[0]


def on_disk(folder):
    return {file.name for file in database.folder_of(folder / FILE_NAME).glob("*")}


@pytest.fixture
async def opened(folder):
    """Open the store, also once more; whatever is open in the end is sound, knows its files, and is closed."""
    stores = []

    async def make(place=folder, **more):
        place.mkdir(exist_ok=True)
        stores.append(SqliteStore(place / FILE_NAME))
        await stores[-1].create_campaign(CAMPAIGN, **more)
        return stores[-1]

    yield make
    for store in stores:
        with suppress(RuntimeError):  # It was closed already.
            findings = await store.check()
            await store.close()
            assert findings == []


async def test_runs_are_merged_beside_the_thread_that_counts_and_every_report_counts_once(opened, folder, monkeypatch):
    by, unlink = [], Path.unlink

    def noted(path, missing_ok=False):
        by.append(threading.current_thread().name)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", noted)
    store = await opened(max_reports=1005)
    await fill(store, range(1000))
    assert {name.rpartition("_")[0] for name in by} == {"store-tidier"}
    assert 1 <= len(listed(folder)) <= 8
    assert listed(folder) == on_disk(folder)
    for start in range(0, 1000, 125):
        assert await count(store, CAMPAIGN, range(start, start + 125)) == Outcome(0, 125)
    lies = [cell_report(CAMPAIGN, number, cell=3000) for number in (3, 77, 950)]
    refused = tuple((report.id, "conflicting-report") for report in lies)
    assert await count(store, CAMPAIGN, lies) == Outcome(rejected=refused)
    last = await count(store, CAMPAIGN, range(990, 1020))
    assert (last.counted, last.duplicates, len(last.rejected)) == (5, 10, 15), "there was room for five"
    counted = await cells_of(store, CAMPAIGN)
    assert (counted[:1000], sum(counted), max(counted)) == ([1] * 1000, 1005, 1)


async def test_two_processes_on_one_file_count_a_report_once(opened, folder):
    """Each makes runs of what both have inserted, and neither is told."""
    stores = [await opened(), await opened()]
    draw = random.Random(1)
    sent: set[int] = set()
    for _ in range(120):
        store = draw.choice(stores)
        numbers = draw.sample(range(800), 12)
        assert (await count(store, CAMPAIGN, sorted(numbers))).counted == len(set(numbers) - sent)
        sent |= set(numbers)
        if draw.random() < 0.5:
            await settled(store)
    assert len(listed(folder)) > 1
    await stores[0].close_campaign(CAMPAIGN.id)
    assert (await count(stores[1], CAMPAIGN, [801])).refused == "campaign-closing"


async def test_a_run_that_cannot_be_written_loses_nothing(opened, folder, monkeypatch):
    store = await opened()
    with monkeypatch.context() as patch:
        patch.setattr(run_files.os, "pwrite", Mock(side_effect=OSError(28, "No space left on device")))
        await fill(store, range(200))
    assert listed(folder) == on_disk(folder) == set()
    assert await count(store, CAMPAIGN, range(210)) == Outcome(10, 200)
    assert await store.check() == []
    store._tidier._pause_until = 0.0
    await settled(store)
    assert len(listed(folder)) == 1


async def test_a_merge_for_which_there_is_no_room_is_made_once_there_is(opened, folder, monkeypatch):
    store = await opened()
    full = StoreError("a run of ids cannot be written: No space left on device")
    with monkeypatch.context() as patch:
        patch.setattr("ldp_aggregator.store.sqlite.id_index.merge_runs", Mock(side_effect=full))
        patch.setattr("ldp_aggregator.store.sqlite.id_index.PAUSE_SECONDS", 0.0)
        await fill(store, range(400), 50)
    many = len(listed(folder))
    await fill(store, range(400, 460))
    assert len(listed(folder)) < many


async def test_a_run_whose_commit_fails_leaves_its_ids_where_they_are(opened, folder, monkeypatch):
    store = await opened()

    @contextmanager
    def uncommitted(db):
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")
        raise StoreError("disk full")

    await count(store, CAMPAIGN, range(50))
    await store.beat()
    await asyncio.wrap_future(store._tidier._job.run_file)
    with monkeypatch.context() as patch:
        patch.setattr("ldp_aggregator.store.sqlite.id_index.transaction", uncommitted)
        with pytest.raises(StoreError, match="disk full"):
            await store.beat()
    assert await count(store, CAMPAIGN, range(60)) == Outcome(10, 50)
    await settled(store)
    assert len(listed(folder)) == 1


async def test_a_transaction_that_fails_leaves_no_id_behind(opened, monkeypatch):
    store = await opened()
    await fill(store, range(60))
    with monkeypatch.context() as patch:
        broken = Mock(side_effect=sqlite3.OperationalError("disk I/O error"))
        patch.setattr("ldp_aggregator.store.sql.campaigns.add_part", broken)
        assert (await count(store, CAMPAIGN, range(60, 70))).refused == "store-unavailable"
    assert (await count(store, CAMPAIGN, range(60, 70))).counted == 10


async def test_sealing_and_deleting_remove_the_files_of_the_campaign_alone(opened, folder):
    store = await opened()
    other = await publish(store, 4096, title="Others")
    await fill(store, range(100))
    await fill(store, range(100), campaign=other)
    before = listed(folder)
    await store.close_campaign(CAMPAIGN.id)
    await store.seal_campaign(CAMPAIGN.id, at_once=True)
    assert 0 < len(listed(folder)) < len(before)
    assert listed(folder) == on_disk(folder)
    assert (await count(store, other, range(100))).duplicates == 100
    await store.delete_campaign(CAMPAIGN.id)


async def test_a_campaign_in_the_place_of_a_deleted_one_knows_none_of_its_ids(opened):
    """SQLite gives the number of the last row again."""
    store, beside = await opened(), await opened()
    await count(store, CAMPAIGN, range(30))
    await count(beside, CAMPAIGN, range(30))
    await beside.close_campaign(CAMPAIGN.id)
    await beside.seal_campaign(CAMPAIGN.id, at_once=True)
    await beside.delete_campaign(CAMPAIGN.id)
    other = await publish(beside, 4096, title="Others")
    await count(beside, other, range(10))
    assert await count(store, other, range(20)) == Outcome(10, 10)
    assert await count(beside, other, range(20)) == Outcome(0, 20)


@pytest.mark.parametrize("flushed", [False, True])
async def test_two_campaigns_know_their_own_ids_alone_also_after_a_restart(opened, flushed):
    store = await opened()
    other = await publish(store, 4096, title="Others")
    for campaign, numbers in ((CAMPAIGN, range(10)), (other, range(5, 20)), (CAMPAIGN, range(100, 110))):
        await count(store, campaign, numbers)
    if flushed:
        await fill(store, range(200, 260))
    await store.close()
    store = await opened()
    assert await count(store, CAMPAIGN, range(25)) == Outcome(15, 10)
    assert await count(store, other, range(25)) == Outcome(10, 15)
    assert await count(store, other, range(100, 110)) == Outcome(10, 0)
    assert await count(store, CAMPAIGN, range(100, 110)) == Outcome(0, 10)


def damage(path, place=4100):
    sound = path.read_bytes()
    path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])


async def test_a_damaged_run_is_told_and_merged_copied_and_combined_into_nothing_until_it_is_taken_out(
    opened, folder, tmp_path
):
    """It stays where it is: a new check over it would hide it, and count reports twice."""
    store = await opened()
    await fill(store, range(80))
    assert store.damaged == 0
    run = first_run(folder)
    damage(run)
    await fill(store, range(1000, 1400), sure=False)
    assert store.damaged == 1
    assert run.name in listed(folder)
    [finding] = await store.check()
    assert "damaged" in finding.problem
    assert "--take-out-damaged" in finding.problem
    assert await count(store, CAMPAIGN, range(80)) == Outcome(refused="store-unavailable")
    for attempt in (copy_store, restore_store, partial(combine_stores, folder)):
        with pytest.raises(StoreError, match=f"{run.name} is damaged"):
            attempt(folder, tmp_path / "copy")
        assert not (tmp_path / "copy" / FILE_NAME).exists()
    beside = await opened()
    await beside.take_out_damaged()
    await beside.close()
    await fill(store, range(2000, 2040))
    assert store.damaged == 0


async def test_a_damaged_run_keeps_no_other_campaigns_runs_from_being_merged(opened, folder, monkeypatch):
    monkeypatch.setattr("ldp_aggregator.store.sqlite.id_index.PAUSE_SECONDS", 0.0)
    store = await opened()
    await fill(store, range(80))
    damage(first_run(folder))
    await fill(store, range(1000, 1120), sure=False)
    assert store.damaged == 1
    before = listed(folder)
    await fill(store, range(640), 40, campaign=await publish(store, 4096, title="Others"))
    assert len(listed(folder) - before) < 10, "of sixteen runs three become one, again and again"
    await store.take_out_damaged()


@pytest.mark.parametrize("kind", ["page", "header", "missing"])
async def test_a_damaged_run_is_taken_out_and_what_is_lost_is_told(opened, folder, kind):
    store = await opened()
    await count(store, CAMPAIGN, range(1000))
    await settled(store)
    await store.close()
    run = first_run(folder)
    if kind == "missing":
        run.unlink()
    else:
        damage(run, 4100 if kind == "page" else 20)
    store = await opened()
    assert (await count(store, CAMPAIGN, range(1000))).refused == "store-unavailable"
    assert await count(store, await publish(store, title="Others"), [1]) == Outcome(1), "it harms no other campaign"
    [finding] = await store.check()
    assert (finding.campaign, "cannot be read" in finding.problem) == (CAMPAIGN.id, kind == "missing")
    lost = 128 if kind == "page" else 1000
    [taken] = await store.take_out_damaged()
    assert (taken.campaign, taken.run, taken.ids, taken.saved) == (CAMPAIGN.id, run.name, 1000, 1000 - lost)
    assert await store.check() == []
    state = await store.state(CAMPAIGN.id)
    assert (state.reports, state.arrivals.unchecked) == (1000, lost)
    assert await count(store, CAMPAIGN, range(1010)) == Outcome(lost + 10, 1000 - lost)
    assert await store.take_out_damaged() == []


async def test_a_stop_gives_a_merge_up_and_the_next_start_makes_it(opened, folder, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    blocks = run_files.Run.blocks

    def slow(run):
        begun.set()
        go_on.wait(20)
        yield from blocks(run)

    store = await opened()
    with monkeypatch.context() as patch:
        patch.setattr(run_files.Run, "blocks", slow)
        for start in range(0, 2000, 50):
            await count(store, CAMPAIGN, range(start, start + 50))
            if begun.is_set():
                break
            if store._tidier._job:
                await asyncio.to_thread(wait, [store._tidier._job.run_file], 0.5)
        assert begun.is_set()
        closing = asyncio.create_task(store.close())
        assert await asyncio.to_thread(store._tidier._stopping.wait, 20)
        go_on.set()
        await closing
    assert on_disk(folder) == listed(folder)
    store = await opened()
    await settled(store)


async def test_a_backup_taken_while_runs_are_merged_is_whole(opened, folder, tmp_path):
    """And a store that is opened again knows what it knew."""
    store = await opened()
    await fill(store, range(10))
    filling = asyncio.create_task(fill(store, range(10, 800)))
    copies = []
    while not filling.done():
        copies.append(tmp_path / f"copy{len(copies)}")
        await asyncio.to_thread(copy_store, folder, copies[-1])
    await filling
    await store.close()
    assert len(copies) > 1
    for copy in copies:
        restore_store(copy, tmp_path / f"back of {copy.name}")
        again = await opened(tmp_path / f"back of {copy.name}")
        counted = (await again.state(CAMPAIGN.id)).reports
        assert await count(again, CAMPAIGN, range(counted)) == Outcome(duplicates=counted)


async def test_stores_with_runs_merge_and_tell_what_both_have(opened, folder, tmp_path):
    second = tmp_path / "second"
    for place, numbers in ((folder, range(150)), (second, range(120, 290))):
        store = await opened(place)
        await fill(store, numbers)
        await store.close()
    [merged] = combine_stores(folder, second, tmp_path / "sum")
    assert (merged.count, merged.overlap) == (320, 30)
    assert await count(await opened(tmp_path / "sum"), CAMPAIGN, range(300)) == Outcome(10, 290)


async def test_merging_is_not_kept_waiting_by_uploads_that_each_fill_a_run(opened, folder):
    store = await opened()
    for start in range(0, 4000, 80):
        await count(store, CAMPAIGN, range(start, start + 80))
        if store._tidier._job is not None:
            await asyncio.wrap_future(store._tidier._job.run_file)
    assert len(listed(folder)) <= 20


async def test_merged_runs_that_cannot_be_removed_are_leftovers_of_the_next_start(opened, folder, monkeypatch, caplog):
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", Mock(side_effect=PermissionError(13, "Permission denied")))
        store = await opened()
        await fill(store, range(400))
        await store.close()
    assert "merged runs of ids could not be removed" in caplog.text
    assert on_disk(folder) > listed(folder)
    store = await opened()
    assert on_disk(folder) == listed(folder)
    assert await count(store, CAMPAIGN, range(410)) == Outcome(10, 400)


def test_ids_that_became_a_run_are_not_written_once_more(tmp_path):
    """SQLite may be compiled so that it writes zeros over what is deleted, as Debian's is: into the log, all of it."""
    path = tmp_path / "ids.sqlite3"
    make_file(path)
    db = open_connection(path)
    keep_log(db)
    db.execute("CREATE TABLE recent (place INTEGER PRIMARY KEY, records BLOB NOT NULL)")
    db.executemany("INSERT INTO recent VALUES (?, ?)", [(place, bytes(1 << 20)) for place in range(8)])
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with transaction(db):
        db.execute("DELETE FROM recent")
    assert Path(f"{path}-wal").stat().st_size < 1 << 20
    db.close()


async def test_after_a_commit_of_which_nobody_knows_the_tables_say_what_is_counted(opened, monkeypatch):
    store = await opened()
    await count(store, CAMPAIGN, range(10))

    @contextmanager
    def unheard(db):
        with transaction(db) as raw:
            yield raw
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch, suppress(StoreError, sqlite3.Error):
        patch.setattr("ldp_aggregator.store.sqlite.store.transaction", unheard)
        await count(store, CAMPAIGN, range(10, 20))
    assert await count(store, CAMPAIGN, range(5, 25)) == Outcome(5, 15)
    assert await count(store, CAMPAIGN, range(25)) == Outcome(0, 25)
