"""The particulars of the embedded store: its file, its refusals, and that fsck finds what was tampered with."""

import asyncio
import signal
import sqlite3
from contextlib import closing, contextmanager

import pytest
from cells import cell_report, count, publish, submission
from forking import holds_in_a_child, needs_fork

from ldp_aggregator.store import Outcome, SqliteStore, StoreError
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sqlite import database

COMPACT_AT = 64


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite3"


@pytest.fixture
async def store(path):
    made = SqliteStore(path)
    yield made
    await made.close()


def tamper(path, statement):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


async def test_commits_are_durable_by_setting_and_a_token_is_looked_up_in_an_index(store):
    connection = store._writes.raw
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    plan = store._reads.raw.execute("EXPLAIN QUERY PLAN SELECT * FROM tokens WHERE digest = ?1", (b"d",)).fetchall()
    assert [row["detail"] for row in plan] == ["SEARCH tokens USING INDEX sqlite_autoindex_tokens_2 (digest=?)"]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE recent_ids SET records = substr(records, 25)", "the ids of commit 1 do not agree with their check"),
        (
            "UPDATE parts SET sums = CAST(substr(sums, 1, 40) || x'02' || substr(sums, 42) AS BLOB)",
            "parts: its bytes are not those of its digest",
        ),
        ("UPDATE campaigns SET document = CAST(replace(CAST(document AS TEXT), 'Cells', 'Calls') AS BLOB)", "SHA-256"),
    ],
)
async def test_fsck_finds_what_was_tampered_with(path, store, statement, problem):
    campaign = await publish(store)
    await count(store, campaign, range(5))
    tamper(path, statement)
    findings = await store.check()
    assert {finding.campaign for finding in findings} == {campaign.id}
    assert problem in findings[0].problem


async def test_fsck_finds_what_was_written_wrong(store):
    """Checks tell what is not as it was written; whether that made sense is another question."""
    campaign = await publish(store)
    await count(store, campaign, range(5))

    async def write(db):
        row = await campaigns.row(db, campaign.id)
        [part] = await campaigns.parts(db, row)
        sums = part["sums"][:40] + b"\2" + part["sums"][41:]
        await db.execute("DELETE FROM parts")
        await db.execute("DELETE FROM recent_ids")
        await campaigns.add_part(db, row, 5, sums)

    await store._write(write)
    assert [finding.problem for finding in await store.check()] == [
        "5 reports are counted, but 0 ids are stored",
        "question 0 (de): 5 reports, but the counts add up to 6",
    ]


async def test_what_is_no_store_and_a_library_that_is_too_old_are_told(tmp_path, monkeypatch):
    tamper(tmp_path / "theirs", "CREATE TABLE theirs (x)")
    (tmp_path / "none").write_bytes(b"not a database at all" * 100)
    for name, told in (("theirs", "another program"), ("none", "cannot be opened")):
        with pytest.raises(StoreError, match=told):
            SqliteStore(tmp_path / name)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(StoreError, match=r"needs 3\.35 or newer"):
        SqliteStore(tmp_path / "new")


async def written_by(path, work):
    """Bytes by which the write-ahead log has grown: all that is written before a checkpoint."""
    log = path.with_name(path.name + "-wal")
    before = log.stat().st_size
    await work
    return log.stat().st_size - before


async def test_a_report_writes_no_more_the_larger_its_question_is(path, store):
    small, large = [await publish(store, cells) for cells in (64, 32_768)]
    written = {small.id: 0, large.id: 0}
    for campaign in (small, large):
        await count(store, campaign, [0])
    for number in range(1, 64 + COMPACT_AT):
        for campaign in (small, large):
            report = cell_report(campaign, number, cell=number * (len(written) if campaign is small else 200) % 64)
            written[campaign.id] += await written_by(path, store.count([submission(campaign, [report])]))
    assert 0 < written[large.id] <= 1.5 * written[small.id]


@pytest.mark.parametrize("reports", [1, 256, 3000])
async def test_a_replay_changes_nothing_and_writes_one_page_as_long_as_an_upload_takes(path, store, reports):
    campaign = await publish(store, 4096)
    upload = submission(campaign, range(reports))
    assert await store.count([upload]) == [Outcome(counted=reports)]
    for _ in range(3):
        assert await written_by(path, store.count([upload])) == 4096 + 24
    assert await store.count([upload]) == [Outcome(duplicates=reports)]


@needs_fork
def test_a_check_notices_that_files_cannot_grow(path):
    """As on a full disk. An empty transaction would succeed."""
    resource = pytest.importorskip("resource")

    async def notices():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        store = SqliteStore(path)
        await store.beat()
        size = path.with_name(f"{path.name}-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        with pytest.raises(StoreError, match="the database answered:"):
            await store.beat()
        return True

    assert holds_in_a_child(lambda: asyncio.run(notices()))


async def test_where_nothing_can_be_written_no_campaign_is_to_blame_and_a_count_fails_as_a_beat_does(
    store, monkeypatch
):
    campaign, other = await publish(store), await publish(store, title="Other")

    @contextmanager
    def full(db):
        with database.transaction(db):
            yield db
            raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("ldp_aggregator.store.sqlite.store.transaction", full)
        for attempt in (
            store.count([submission(campaign, [1])]),
            store.count([submission(campaign, [1]), submission(other, [1])]),
            store.beat(),
        ):
            with pytest.raises(StoreError, match="disk is full"):
                await attempt
    for one in (campaign, other):
        assert await count(store, one, [1]) == Outcome(counted=1)
