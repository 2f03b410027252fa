"""The particulars of the embedded store: its file, its refusals, and that fsck finds what was tampered with."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest

from ldp_aggregator.counting.parts import COMPACT_AT
from ldp_aggregator.store import Outcome, SqliteStore, StoreError, open_store
from ldp_aggregator.store.backup import copy_store
from ldp_aggregator.store.combining import combine_stores
from ldp_aggregator.store.sql.schema import VERSION
from ldp_aggregator.store.sqlite.connections import FILE_NAME


@pytest.fixture
async def counted(tmp_path, make_campaign, make_submission, make_report):
    """A store with one open campaign of five reports; returns its file and the campaign."""
    path = tmp_path / "store.sqlite3"
    store = SqliteStore(path)
    campaign = make_campaign()
    await store.create_campaign(campaign)
    await store.count([make_submission(campaign, [make_report(campaign, number) for number in range(5)])])
    await store.close()
    return path, campaign


async def check_after(path, statement, *values):
    with sqlite3.connect(path) as db:
        db.execute(statement, values)
    db.close()
    store = SqliteStore(path)
    findings = await store.check()
    await store.close()
    return [str(finding) for finding in findings]


async def test_the_file_survives_a_second_opening(counted):
    path, campaign = counted
    store = SqliteStore(path)
    assert (await store.state(campaign.id)).reports == 5
    await store.close()


async def test_commits_are_durable_by_setting(tmp_path):
    store = SqliteStore(tmp_path / "store.sqlite3")
    connection = store._writes.raw
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    await store.close()


async def test_fsck_finds_a_lost_id(counted):
    path, campaign = counted
    findings = await check_after(path, "UPDATE recent_ids SET records = substr(records, 25)")
    assert findings == [f"{campaign.id}: 5 reports are counted, but 4 ids are stored"]


async def test_fsck_finds_counts_that_do_not_add_up(counted):
    path, campaign = counted
    sums = sqlite3.connect(path).execute("SELECT sums FROM parts").fetchone()[0]
    tampered = sums[:40] + b"\2" + sums[41:]
    [finding] = await check_after(path, "UPDATE parts SET sums = ?", tampered)
    assert finding == f"{campaign.id}: question 0 (de): 5 reports, but the counts add up to 6"


async def test_fsck_finds_a_part_that_is_cut_short(counted):
    path, campaign = counted
    [finding] = await check_after(path, "UPDATE parts SET sums = substr(sums, 1, 32)")
    assert finding == f"{campaign.id}: a tally part ends within question 0"


async def test_fsck_finds_a_changed_document(counted):
    path, _ = counted
    [finding] = await check_after(
        path, "UPDATE campaigns SET document = CAST(replace(CAST(document AS TEXT), 'Cells', 'Calls') AS BLOB)"
    )
    assert "SHA-256" in finding


async def test_a_database_of_another_program_is_refused(tmp_path):
    path = tmp_path / "store.sqlite3"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path)


async def test_another_schema_version_is_refused(counted):
    path, _ = counted
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    with pytest.raises(StoreError, match=f"version {VERSION + 1}, and this program reads version {VERSION}"):
        SqliteStore(path)


async def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "store.sqlite3"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteStore(path)


async def test_a_library_that_is_too_old_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(StoreError, match=r"needs 3\.35 or newer"):
        SqliteStore(tmp_path / "store.sqlite3")


async def test_two_processes_worth_of_stores_share_a_file(tmp_path, make_campaign, make_submission, make_report):
    """Two stores on one file stand for two processes: nothing mutable is kept outside the file."""
    first, second = SqliteStore(tmp_path / "s.sqlite3"), SqliteStore(tmp_path / "s.sqlite3")
    campaign = make_campaign()
    await first.create_campaign(campaign)
    upload = make_submission(campaign, [make_report(campaign, 1)])
    assert (await second.count([upload]))[0].counted == 1
    assert (await first.count([upload]))[0].duplicates == 1
    await second.close_campaign(campaign.id)
    assert (await first.count([upload]))[0].refused == "campaign-closed"
    await first.close()
    await second.close()


async def test_a_failed_transaction_changes_nothing_and_the_store_goes_on(
    tmp_path, make_campaign, make_submission, make_report, monkeypatch
):
    store = SqliteStore(tmp_path / "store.sqlite3")
    campaign = make_campaign()
    await store.create_campaign(campaign)

    def fail(_sums):
        raise sqlite3.OperationalError("disk I/O error")

    upload = make_submission(campaign, [make_report(campaign, 1)])
    with monkeypatch.context() as patched:
        patched.setattr("ldp_aggregator.store.sqlite.store.encode_part", fail)
        assert [outcome.refused for outcome in await store.count([upload])] == ["store-unavailable"]
    assert int((await store.tally(campaign.id)).n.sum()) == 0
    assert await store.check() == []
    assert (await store.count([upload]))[0].counted == 1
    await store.close()


async def test_a_data_folder_is_for_its_owner_only(tmp_path):
    store = await open_store(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
    await store.close()


def modes(folder):
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


async def test_files_are_for_their_owner_only_in_a_folder_that_others_may_read(tmp_path):
    for name in ("data", "copy", "merged"):
        (tmp_path / name).mkdir(mode=0o755)
    store = await open_store(tmp_path / "data")
    await store.beat()
    assert set(modes(tmp_path / "data").values()) == {0o600}
    await store.close()
    copy_store(tmp_path / "data", tmp_path / "copy")
    assert modes(tmp_path / "copy") == {FILE_NAME: 0o600}
    combine_stores(tmp_path / "data", tmp_path / "copy", tmp_path / "merged")
    assert set(modes(tmp_path / "merged").values()) == {0o600}


def test_a_copy_that_fails_leaves_nothing_that_looks_like_a_store(tmp_path):
    (tmp_path / "data").mkdir()
    with sqlite3.connect(tmp_path / "data" / FILE_NAME) as db:
        db.execute("CREATE TABLE numbers (number)")
        db.executemany("INSERT INTO numbers VALUES (?)", ((number,) for number in range(10_000)))
        root = db.execute("SELECT rootpage FROM sqlite_schema").fetchone()[0]
        page = db.execute("PRAGMA page_size").fetchone()[0]
    db.close()
    with (tmp_path / "data" / FILE_NAME).open("r+b") as file:
        file.seek((root - 1) * page)
        file.write(b"\xff" * page)
    with pytest.raises(StoreError, match="the copy failed"):
        copy_store(tmp_path / "data", tmp_path / "copy")
    assert modes(tmp_path / "copy") == {}


async def test_a_token_is_looked_up_in_an_index(tmp_path):
    store = SqliteStore(tmp_path / "store.sqlite3")
    plan = store._reads.raw.execute("EXPLAIN QUERY PLAN SELECT * FROM tokens WHERE digest = ?1", (b"d",)).fetchall()
    assert [row["detail"] for row in plan] == ["SEARCH tokens USING INDEX sqlite_autoindex_tokens_2 (digest=?)"]
    await store.close()


async def written_by(path, work):
    """Bytes by which the write-ahead log has grown: all that is written before a checkpoint."""
    log = path.with_name(path.name + "-wal")
    before = log.stat().st_size
    await work
    return log.stat().st_size - before


async def test_a_report_writes_no_more_the_larger_its_question_is(
    tmp_path, make_campaign, make_submission, make_report
):
    path = tmp_path / "store.sqlite3"
    store = SqliteStore(path)
    small, large = make_campaign(64), make_campaign(32_768)
    written = {small.id: 0, large.id: 0}
    for campaign in (small, large):
        await store.create_campaign(campaign)
        await store.count([make_submission(campaign, [make_report(campaign, 0)])])
    for number in range(1, 64 + COMPACT_AT):
        for campaign in (small, large):
            report = make_report(campaign, number, cell=number * (len(written) if campaign is small else 200) % 64)
            written[campaign.id] += await written_by(path, store.count([make_submission(campaign, [report])]))
    assert 0 < written[large.id] <= 1.5 * written[small.id]
    await store.close()


@pytest.mark.parametrize("reports", [1, 256, 3000])
async def test_a_replay_writes_nothing(tmp_path, make_campaign, make_submission, make_report, reports):
    path = tmp_path / "store.sqlite3"
    store = SqliteStore(path)
    campaign = make_campaign(4096)
    await store.create_campaign(campaign)
    upload = make_submission(campaign, [make_report(campaign, number) for number in range(reports)])
    assert await store.count([upload]) == [Outcome(counted=reports)]
    for _ in range(3):
        counting = store.count([upload])
        assert await written_by(path, counting) == 0
    assert await store.count([upload]) == [Outcome(duplicates=reports)]
    await store.close()


_GROWS_NO_MORE = """
import asyncio, resource, signal, sys
from pathlib import Path
from ldp_aggregator.store import SqliteStore, StoreError

async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = SqliteStore(Path(sys.argv[1]))
    await store.beat()
    size = Path(sys.argv[1] + "-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        await store.beat()
    except StoreError as error:
        print("noticed:", error)

asyncio.run(main())
"""


def test_a_check_notices_that_files_cannot_grow(tmp_path):
    """As on a full disk. An empty transaction would succeed."""
    ran = subprocess.run(
        [sys.executable, "-c", _GROWS_NO_MORE, str(tmp_path / "store.sqlite3")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout.startswith("noticed: the database answered:"), ran.stderr


async def test_checks_change_nothing_and_leave_a_sound_store(counted):
    path, campaign = counted
    store = SqliteStore(path)
    for _ in range(10):
        await store.beat()
    assert await store.check() == []
    assert (await store.state(campaign.id)).reports == 5
    await store.close()
