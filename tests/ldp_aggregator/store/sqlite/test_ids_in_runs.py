"""A store whose ids are in runs promises what every store does. Runs are small here, so that there are many."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import threading
from pathlib import Path

import pytest
from cells import cell_campaign, cell_report, submission

from ldp_aggregator.store import SqliteStore, Submission
from ldp_aggregator.store.backup import copy_store, restore_store
from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.location import migrate_store
from ldp_aggregator.store.merging import merge_stores
from ldp_aggregator.store.runs import files, merging
from ldp_aggregator.store.sqlite import ids
from ldp_aggregator.store.sqlite.connections import keep_log, make_file, open_connection, transaction
from ldp_aggregator.store.sqlite.schema import VERSION
from ldp_aggregator.store.sqlite.store import FILE_NAME
from protocols import Campaign

CAMPAIGN = cell_campaign(4096)


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "LEAST_RUN", 40)
    monkeypatch.setattr(merging, "FAN_IN", 3)
    monkeypatch.setattr(merging, "SLICE_IDS", 64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


def numbered(numbers: list[int] | range, campaign: Campaign = CAMPAIGN) -> Submission:
    return submission(campaign, [cell_report(campaign, number) for number in numbers])


async def fill(store: SqliteStore, numbers: range, step: int = 10) -> None:
    """In commits of ``step``, each of which gives the thread beside it time to make its run."""
    for start in range(numbers.start, numbers.stop, step):
        [outcome] = await store.count([numbered(range(start, min(start + step, numbers.stop)))])
        assert outcome.counted == min(start + step, numbers.stop) - start
        await settled(store)


async def settled(store: SqliteStore) -> None:
    """Until no run is being made."""
    await store.check()
    while store.tidying:
        await asyncio.sleep(0.001)
        await store.check()


def listed(folder: Path) -> set[str]:
    db = sqlite3.connect(folder / FILE_NAME)
    names = {row[0] for row in db.execute("SELECT name FROM runs")}
    db.close()
    return names


def on_disk(folder: Path) -> set[str]:
    return {file.name for file in ids.folder_of(folder / FILE_NAME).glob("*")}


async def opened(folder: Path) -> SqliteStore:
    store = SqliteStore(folder / FILE_NAME)
    await store.create_campaign(CAMPAIGN)
    return store


async def test_runs_are_made_and_merged_and_every_report_still_counts_once(folder: Path) -> None:
    store = await opened(folder)
    await fill(store, range(1000))
    assert 1 <= len(listed(folder)) <= 8
    assert listed(folder) == on_disk(folder)
    for start in range(0, 1000, 125):
        [outcome] = await store.count([numbered(range(start, start + 125))])
        assert (outcome.counted, outcome.duplicates) == (0, 125)
    tally = await store.tally(CAMPAIGN.id)
    assert tally.counts[0][:1000].tolist() == [1] * 1000
    assert await store.audit() == []
    await store.close()


async def test_another_answer_under_an_id_in_a_run_is_a_conflict(folder: Path) -> None:
    store = await opened(folder)
    await fill(store, range(200))
    liar = submission(CAMPAIGN, [cell_report(CAMPAIGN, number, cell=3000) for number in (3, 77, 150)])
    [outcome] = await store.count([liar])
    assert (outcome.counted, [code for _, code in outcome.rejected]) == (0, ["conflicting-report"] * 3)
    await store.close()


async def test_a_store_opened_again_knows_what_it_knew(folder: Path) -> None:
    for start in range(0, 300, 55):
        store = await opened(folder)
        await fill(store, range(start, start + 55))
        [outcome] = await store.count([numbered(range(start + 55))])
        assert (outcome.counted, outcome.duplicates) == (0, start + 55)
        await store.close()


async def test_two_processes_on_one_file_count_a_report_once(folder: Path) -> None:
    """Each makes runs of what both have inserted, and neither is told."""
    stores = [await opened(folder), await opened(folder)]
    draw = random.Random(1)
    sent: set[int] = set()
    for _ in range(120):
        store = draw.choice(stores)
        numbers = draw.sample(range(800), 12)
        [outcome] = await store.count([numbered(sorted(numbers))])
        assert outcome.counted == len(set(numbers) - sent)
        sent |= set(numbers)
        if draw.random() < 0.5:
            await settled(store)
    assert len(listed(folder)) > 1
    for store in stores:
        assert await store.audit() == []
        await store.close()
    assert listed(folder) == on_disk(folder)


async def test_a_full_campaign_takes_what_there_is_room_for(folder: Path) -> None:
    store = SqliteStore(folder / FILE_NAME)
    await store.create_campaign(CAMPAIGN, max_reports=105)
    await fill(store, range(100))
    [outcome] = await store.count([numbered(range(90, 120))])
    assert (outcome.counted, outcome.duplicates, len(outcome.rejected)) == (5, 10, 15)
    assert await store.audit() == []
    await store.close()


async def test_a_run_that_cannot_be_written_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(folder)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "pwrite", full)
        await fill(store, range(200))
    assert listed(folder) == on_disk(folder) == set()
    [outcome] = await store.count([numbered(range(210))])
    assert (outcome.counted, outcome.duplicates) == (10, 200)
    assert await store.audit() == []
    store._tidier._pause_until = 0.0
    await settled(store)
    assert len(listed(folder)) == 1
    await store.close()


async def test_a_transaction_that_fails_leaves_no_id_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(folder)
    await fill(store, range(60))
    with monkeypatch.context() as patch:

        def broken(*_: object, **__: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        patch.setattr("ldp_aggregator.store.sqlite.campaigns.add_part", broken)
        with pytest.raises(StoreError):
            await store.count([numbered(range(60, 70))])
    [outcome] = await store.count([numbered(range(60, 70))])
    assert outcome.counted == 10
    assert await store.audit() == []
    await store.close()


async def test_sealing_and_deleting_remove_the_files_of_the_campaign_alone(folder: Path) -> None:
    store = await opened(folder)
    other = cell_campaign(4096, title="Others")
    await store.create_campaign(other)
    await fill(store, range(100))
    for start in range(0, 100, 10):
        await store.count([numbered(range(start, start + 10), other)])
        await settled(store)
    before = listed(folder)
    await store.close_campaign(CAMPAIGN.id)
    await store.seal_campaign(CAMPAIGN.id, at_once=True)
    assert 0 < len(listed(folder)) < len(before)
    assert listed(folder) == on_disk(folder)
    [outcome] = await store.count([numbered(range(100), other)])
    assert outcome.duplicates == 100
    await store.delete_campaign(CAMPAIGN.id)
    assert await store.audit() == []
    await store.close()


async def test_a_campaign_in_the_place_of_a_deleted_one_knows_none_of_its_ids(folder: Path) -> None:
    """SQLite gives the number of the last row again."""
    store, beside = await opened(folder), await opened(folder)
    await store.count([numbered(range(30))])
    await beside.count([numbered(range(30))])
    await beside.close_campaign(CAMPAIGN.id)
    await beside.seal_campaign(CAMPAIGN.id, at_once=True)
    await beside.delete_campaign(CAMPAIGN.id)
    other = cell_campaign(4096, title="Others")
    await beside.create_campaign(other)
    await beside.count([numbered(range(10), other)])
    for one in (store, beside):
        [outcome] = await one.count([numbered(range(10, 20) if one is store else range(20), other)])
        assert (outcome.counted, outcome.duplicates) == ((10, 0) if one is store else (0, 20))
        assert await one.audit() == []
        await one.close()


async def test_leftovers_of_a_process_that_was_killed_are_removed_and_drafts_of_another_are_not(folder: Path) -> None:
    store = await opened(folder)
    await fill(store, range(100))
    place = ids.folder_of(folder / FILE_NAME)
    run = place / next(iter(listed(folder)))
    (place / "0123456789abcdef.run").write_bytes(run.read_bytes())
    (place / "draft-0123456789abcdef.run").write_bytes(b"half")
    await store.close()
    store = await opened(folder)
    assert on_disk(folder) - listed(folder) == {"draft-0123456789abcdef.run"}
    os.utime(place / "draft-0123456789abcdef.run", (0, 0))
    await store.close()
    await (await opened(folder)).close()
    assert on_disk(folder) == listed(folder)


async def test_fsck_tells_of_damaged_and_of_missing_files(folder: Path) -> None:
    store = await opened(folder)
    await fill(store, range(100))
    await store.close()
    run = ids.folder_of(folder / FILE_NAME) / sorted(listed(folder))[0]
    sound = run.read_bytes()
    run.write_bytes(sound[:4100] + b"\xff" + sound[4101:])
    store = await opened(folder)
    assert any("damaged" in str(finding) for finding in await store.audit())
    await store.close()
    run.unlink()
    store = await opened(folder)
    assert any("cannot be read" in str(finding) for finding in await store.audit())
    with pytest.raises(StoreError, match="cannot be read"):
        await store.count([numbered(range(200, 210))])
    await store.close()


async def test_a_campaign_whose_ids_are_damaged_harms_no_other(folder: Path) -> None:
    store = await opened(folder)
    other = cell_campaign(4096, title="Others")
    await store.create_campaign(other)
    await fill(store, range(100))
    await store.close()
    for name in listed(folder):
        (ids.folder_of(folder / FILE_NAME) / name).unlink()
    store = await opened(folder)
    [outcome] = await store.count([numbered(range(10), other)])
    assert outcome.counted == 10
    await store.close()


async def test_a_backup_taken_while_runs_are_merged_is_whole(folder: Path, tmp_path: Path) -> None:
    store = await opened(folder)

    async def keep_filling() -> None:
        await fill(store, range(1500))

    filling = asyncio.create_task(keep_filling())
    copies = 0
    while not filling.done():
        await asyncio.to_thread(copy_store, folder, tmp_path / f"copy{copies}")
        copies += 1
    await filling
    await store.close()
    for number in range(copies):
        back = tmp_path / f"back{number}"
        restore_store(tmp_path / f"copy{number}", back)
        again = SqliteStore(back / FILE_NAME)
        assert await again.audit() == []
        counted = (await again.state(CAMPAIGN.id)).reports if await again.campaigns() else 0
        if counted:
            [outcome] = await again.count([numbered(range(counted))])
            assert outcome.duplicates == counted
        await again.close()
    assert copies > 1


async def test_stores_with_runs_merge_and_tell_what_both_have(folder: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    for place, numbers in ((folder, range(150)), (second, range(120, 290))):
        store = await opened(place)
        await fill(store, numbers)
        await store.close()
    [merged] = merge_stores(folder, second, tmp_path / "sum")
    assert (merged.count, merged.overlap) == (320, 30)
    store = SqliteStore(tmp_path / "sum" / FILE_NAME)
    assert await store.audit() == []
    [outcome] = await store.count([numbered(range(300))])
    assert (outcome.counted, outcome.duplicates) == (10, 290)
    await store.close()


async def test_ids_in_a_table_of_an_older_store_become_a_run(folder: Path) -> None:
    store = await opened(folder)
    await store.count([numbered(range(100))])
    await store.close()
    with sqlite3.connect(folder / FILE_NAME) as db:
        number, records = db.execute("SELECT place >> 40, records FROM recent_ids").fetchone()
        db.execute(f"CREATE TABLE ids_{number} (id BLOB PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID")
        for start in range(0, len(records), 24):
            row = records[start : start + 16], records[start + 16 : start + 24]
            db.execute(f"INSERT INTO ids_{number} VALUES (?, ?)", row)
        db.execute("DROP TABLE recent_ids")
        db.execute("DROP TABLE runs")
        db.execute("PRAGMA user_version = 6")
    db.close()
    with pytest.raises(StoreError, match="migrate"):
        SqliteStore(folder / FILE_NAME)
    assert await migrate_store(folder) == (6, VERSION)
    assert len(listed(folder)) == 1
    store = SqliteStore(folder / FILE_NAME)
    [outcome] = await store.count([numbered(range(110))])
    assert (outcome.counted, outcome.duplicates) == (10, 100)
    assert await store.audit() == []
    await store.close()


async def test_merging_is_not_kept_waiting_by_uploads_that_each_fill_a_run(folder: Path) -> None:
    store = await opened(folder)
    for start in range(0, 4000, 80):
        await store.count([numbered(range(start, start + 80))])
        if store._tidier._job is not None:
            await asyncio.wrap_future(store._tidier._job.draft)
    assert len(listed(folder)) <= 20
    await store.close()


async def test_runs_that_were_merged_are_removed_beside_the_thread_that_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by, unlink = [], Path.unlink

    def noted(path: Path, missing_ok: bool = False) -> None:
        by.append(threading.current_thread().name)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", noted)
    store = await opened(folder)
    await fill(store, range(400))
    assert by
    assert {name.rpartition("_")[0] for name in by} == {"store-tidier"}
    assert on_disk(folder) == listed(folder)
    await store.close()


async def test_merged_runs_that_cannot_be_removed_are_leftovers_of_the_next_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        store = await opened(folder)
        await fill(store, range(400))
        await store.close()
    assert "merged runs of ids could not be removed" in caplog.text
    assert on_disk(folder) > listed(folder)
    store = SqliteStore(folder / FILE_NAME)
    assert on_disk(folder) == listed(folder)
    [outcome] = await store.count([numbered(range(410))])
    assert (outcome.counted, outcome.duplicates) == (10, 400)
    assert await store.audit() == []
    await store.close()


def test_ids_that_became_a_run_are_not_written_once_more(tmp_path: Path) -> None:
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
