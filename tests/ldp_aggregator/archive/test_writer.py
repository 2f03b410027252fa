"""Files that a server writes beside its store, and what is made of it after something went wrong."""

import asyncio
import os
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest
from archived import other_answers, random_kept
from cells import cell_campaign, count, publish, submission
from power_cuts import Disk, lay_out

from ldp_aggregator.archive.locations import Folder, Reports, open_place
from ldp_aggregator.archive.recount import REPORTS, add_results, on_processes, recount
from ldp_aggregator.archive.writer import Archive, ArchivedCounts
from ldp_aggregator.service.archives import goes_along
from ldp_aggregator.store import Outcome, SqliteStore, StoreError, Submission
from ldp_aggregator.store.clocks import SteadyClock
from ldp_aggregator.store.contract import UNAVAILABLE
from ldp_protocols.wire import Block

MISSING = "A" * 43
CELLS = cell_campaign(1024)


@pytest.fixture
async def store(tmp_path):
    opened = SqliteStore(tmp_path / "store.sqlite3")
    await opened.create_campaign(CELLS)
    yield opened
    await opened.close()


@pytest.fixture
async def opened(tmp_path):
    """Open a store with this clock."""
    stores = []

    def make(clock):
        stores.append(SqliteStore(tmp_path / "of_the_clock.sqlite3", clock=clock))
        return stores[-1]

    yield make
    for one in stores:
        await one.close()


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "archive")


def archived(store, folder, slots=16):
    return ArchivedCounts(store, Archive(open_place(folder), slots))


def of_kept(campaign, kept):
    return Submission(
        campaign, tuple(Block(question, one.ids.tobytes(), one.payloads.tobytes()) for question, one in kept.items())
    )


def numbered(numbers):
    return submission(CELLS, numbers)


def campaigns_in(folder):
    return [path.name for path in Path(folder).iterdir()]


async def agree(store, folder, campaign=CELLS):
    """Archive and store are equal bit for bit; returns the number of reports."""
    found = recount(folder, campaign.id)
    assert found.conflicts == ()
    assert found.refused == 0
    assert found.tally == await store.tally(campaign.id)
    return found.reports


async def test_every_mechanism_is_archived_and_recounted_to_the_same_bits(campaign, store, folder):
    await store.create_campaign(campaign)
    for seed, slots in enumerate((16, 4, 1, 256)):
        counts = archived(store, folder, slots)
        group = [of_kept(campaign, random_kept(campaign, 40, 10 * seed + one)) for one in range(4)]
        await counts.count(group)
        await counts.count(group[:2])
    assert await agree(store, folder, campaign) == (await store.state(campaign.id)).reports


async def test_refused_and_repeated_reports_and_second_answers_stay_out_of_the_archive(campaign, store, folder):
    """Within one group, in one upload, and after the first answer."""
    await store.create_campaign(campaign)
    counts = archived(store, folder)
    kept = random_kept(campaign, 60, 1)
    other = {number: other_answers(campaign, number, one) for number, one in kept.items()}
    first, second = of_kept(campaign, kept), of_kept(campaign, other)
    both = Submission(campaign, tuple(block for one in (second, first) for block in one.blocks))
    await counts.count([first, second, both, first])
    await counts.count([both])
    await counts.count([second, second])
    mixed = random_kept(campaign, 60, 2)
    some = {number: Reports(one.ids[:3], one.payloads[:3]) for number, one in other.items()}
    await counts.count([of_kept(campaign, mixed), of_kept(campaign, some), first])
    assert await agree(store, folder, campaign) == 2 * sum(len(one.ids) for one in kept.values())
    assert recount(folder, campaign.id).duplicates == 0


async def test_a_group_in_which_nothing_is_new_or_that_is_too_late_leaves_no_file(store, folder):
    counts = archived(store, folder)
    await count(counts, CELLS, range(50))
    files = open_place(folder).names(f"{CELLS.id}/{REPORTS}")
    for _ in range(3):
        await counts.count([numbered(range(50)), numbered(range(10, 30))])
    await store.close_campaign(CELLS.id)
    assert (await count(counts, CELLS, range(50, 60))).refused == "campaign-closing"
    assert open_place(folder).names(f"{CELLS.id}/{REPORTS}") == files
    assert open_place(folder).names(f"{CELLS.id}/pending") == []
    assert await agree(store, folder) == 50


@pytest.mark.parametrize(("committed", "servers"), [(True, 1), (False, 1), (False, 2)])
async def test_what_a_process_left_pending_is_counted_once_by_all_that_find_it(store, folder, committed, servers):
    group = [numbered(range(40)), numbered(range(30, 50))]
    Archive(open_place(folder), 4).write(group)
    assert recount(folder, CELLS.id).reports == 0
    if committed:
        await store.count(group)
    recovered = await asyncio.gather(*(archived(store, folder).recover([CELLS]) for _ in range(servers)))
    assert max(recovered) > 0
    assert await agree(store, folder) == 50
    assert open_place(folder).names(f"{CELLS.id}/pending") == []


WINDOWS = {"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": 20}


@pytest.mark.parametrize("happens", ["closed", "over", "window over", "clock jumped"])
@pytest.mark.parametrize("counted", [0, 20, 50])
async def test_what_was_counted_is_archived_whatever_came_between(opened, folder, happens, counted):
    """A process died before it published; then the campaign or the window ended, or the clock jumped."""
    wall, elapsed = [datetime(2026, 1, 1, tzinfo=timezone.utc)], [0.0]
    store = opened(SteadyClock(lambda: wall[0], lambda: elapsed[0]))
    campaign = (
        cell_campaign(64, windows=WINDOWS)
        if happens == "window over"
        else cell_campaign(64, closes="2026-06-01T00:00:00Z")
    )
    await store.create_campaign(campaign)
    Archive(open_place(folder), 1).write([submission(campaign, range(50))])
    await store.count([submission(campaign, range(counted))] if counted else [])
    if happens == "closed":
        await store.close_campaign(campaign.id)
    else:
        wall[0] += timedelta(days={"over": 200, "window over": 10, "clock jumped": 200}[happens])
    if happens != "clock jumped":
        elapsed[0] = (wall[0] - datetime(2026, 1, 1, tzinfo=timezone.utc)).total_seconds()
    counts = archived(store, folder, 1)
    await counts.recover([campaign])
    if happens == "clock jumped":
        waits = len(open_place(folder).names(f"{campaign.id}/pending"))
        assert waits == (counted < 50), "what is not known waits until the clock has settled"
        wall[0], elapsed[0] = wall[0] - timedelta(days=200), 601
        await store.moment()
        elapsed[0] = 1202
        wall[0] += timedelta(seconds=601)
        await counts.beat()
        counted = 50
    assert open_place(folder).names(f"{campaign.id}/pending") == []
    assert await agree(store, folder, campaign) == counted


async def test_a_group_of_which_the_store_does_not_know_is_settled_before_the_next(store, folder, monkeypatch):
    """Committed or not: the answer was lost."""
    counts = archived(store, folder)
    works = store.count

    async def lost(submissions):
        await works(submissions)
        raise StoreError("the connection is gone")

    for number, failure in enumerate((lost, AsyncMock(side_effect=StoreError("the database is down")))):
        with monkeypatch.context() as patch:
            patch.setattr(store, "count", failure)
            with pytest.raises(StoreError):
                await count(counts, CELLS, range(100 * number, 100 * number + 10))
            assert (await count(counts, CELLS, range(100 * number + 10, 100 * number + 20))).refused == UNAVAILABLE
        assert (await count(counts, CELLS, range(100 * number + 20, 100 * number + 30))).counted == 10
        await agree(store, folder)
    await counts.count([numbered(range(10, 20)), numbered(range(110, 120))])
    assert await agree(store, folder) == 60


@pytest.mark.parametrize("slots", [1, 16])
async def test_of_two_campaigns_in_a_group_each_has_what_was_accepted_of_its_own_and_no_second_answer(
    store, folder, slots
):
    """Every upload has something new in it, and something that is refused beside."""
    other = await publish(store, 1024, title="other")
    counts = archived(store, folder, slots)
    await counts.count([numbered(range(5)), submission(other, range(3, 8))])
    told = await counts.count(
        [numbered([(1, 9), 10, 11]), submission(other, [20, (4, 9), 1]), numbered([12, (10, 9)]), numbered([0, 13])]
    )
    assert [(one.counted, len(one.rejected)) for one in told] == [(2, 1), (2, 1), (1, 1), (1, 0)]
    assert await agree(store, folder) == 9
    assert await agree(store, folder, other) == 7


async def test_a_campaign_of_which_the_store_did_not_know_is_settled_also_where_its_reports_were_counted(
    store, folder, monkeypatch
):
    other, real = await publish(store, 1024, title="other"), store.count
    counts = archived(store, folder)

    async def unsure(submissions):
        outcomes = await real(submissions)
        return [
            replace(told, counted=0, refused=UNAVAILABLE) if one.campaign.id == CELLS.id else told
            for one, told in zip(submissions, outcomes, strict=True)
        ]

    with monkeypatch.context() as patched:
        patched.setattr(store, "count", unsure)
        told = await counts.count([numbered(range(10)), submission(other, range(5))])
    assert [one.refused for one in told] == [UNAVAILABLE, None]
    await counts.beat()
    assert await agree(store, folder) == 10
    assert await agree(store, folder, other) == 5
    assert await count(counts, CELLS, range(12)) == Outcome(2, 10)
    assert await agree(store, folder) == 12


async def test_where_what_was_counted_cannot_be_put_it_stays_pending_until_it_can(store, folder, monkeypatch):
    """One file has them all, of which a part is refused: it is put anew, and not moved."""
    counts, put = archived(store, folder, 1), Folder.put
    await count(counts, CELLS, [1, 2])

    def full(place, name, data):
        if f"/{REPORTS}/" in name:
            raise StoreError("no space is left")
        put(place, name, data)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "put", full)
        with pytest.raises(StoreError, match="no space"):
            await count(counts, CELLS, [(2, 9), 3, 4])
        for _ in range(2):
            await archived(store, folder, 1).recover([CELLS])
    assert (await store.state(CELLS.id)).reports == 4
    await archived(store, folder, 1).recover([CELLS])
    assert await agree(store, folder) == 4


async def test_where_the_store_takes_nothing_no_campaign_is_to_blame_for_what_it_left_unsettled(
    store, folder, monkeypatch
):
    counts, down = archived(store, folder), AsyncMock(side_effect=StoreError("the database is down"))
    with monkeypatch.context() as patched:
        patched.setattr(store, "count", down)
        with pytest.raises(StoreError, match="is down"):
            await count(counts, CELLS, [1])
        assert (await count(counts, CELLS, [2])).refused == UNAVAILABLE
        patched.setattr(store, "beat", down)
        with pytest.raises(StoreError, match="is down"):
            await count(counts, CELLS, [2])
    assert await count(counts, CELLS, [2]) == Outcome(1)
    assert await agree(store, folder) == 2


async def test_a_campaign_that_cannot_be_counted_keeps_no_other_from_it(store, folder, monkeypatch):
    counts = archived(store, folder)
    other = await publish(store, title="Others")
    works = store.count

    async def damaged(submissions):
        if any(one.campaign.id == CELLS.id for one in submissions):
            raise StoreError("the database answered: malformed")
        return await works(submissions)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(StoreError, match="No space left"):
            await count(counts, CELLS, range(10))
    assert (await store.state(CELLS.id)).reports == 0, "what cannot be archived is not counted"
    with monkeypatch.context() as patch:
        patch.setattr(store, "count", damaged)
        with pytest.raises(StoreError):
            await count(counts, CELLS, range(10))
        first, second = await counts.count([numbered(range(10)), submission(other, [1])])
        assert (first.refused, second.counted) == (UNAVAILABLE, 1)
    await count(counts, CELLS, range(10))
    assert await agree(store, folder) == 10
    assert await agree(store, folder, other) == 1


def test_a_campaign_that_is_not_there_or_not_itself_is_not_recounted(campaign, tmp_path):
    with pytest.raises(StoreError, match="cannot be read"):
        recount(str(tmp_path), MISSING)
    open_place(str(tmp_path)).put(f"{MISSING}/document.json", campaign.document)
    with pytest.raises(StoreError, match="SHA-256"):
        recount(str(tmp_path), MISSING)


async def test_a_stray_file_and_one_that_unpacks_into_more_than_memory_stop_the_recount(store, folder, monkeypatch):
    await count(archived(store, folder), CELLS, range(10))
    with monkeypatch.context() as patch:
        patch.setattr("ldp_aggregator.archive.locations.MOST_BYTES", 20)
        with pytest.raises(StoreError, match=r"rows of .* bytes; the archive writes fewer"):
            recount(folder, CELLS.id)
    open_place(folder).put(f"{CELLS.id}/{REPORTS}/copy.parquet", b"")
    with pytest.raises(StoreError, match=r"copy\.parquet"):
        recount(folder, CELLS.id)


async def test_something_strange_among_the_pending_files_stops_one_campaign_and_no_other(store, folder):
    other = await publish(store, 1024, title="Others")
    place = open_place(folder)
    strange = f"{CELLS.id}/pending/016-00-0123456789abcdef.parquet"
    place.put(strange, b"no Parquet")
    place.put(f"{CELLS.id}/pending/notes.txt", b"nothing that a server reads")
    counts = archived(store, folder)
    assert await counts.recover([CELLS, other]) == 0
    sound = submission(other, [1])
    for _ in range(2):
        first, second = await counts.count([numbered(range(10)), sound])
        assert (first.refused, second.refused) == (UNAVAILABLE, None)
        assert (await count(counts, CELLS, range(10))).refused == UNAVAILABLE
    await counts.beat()
    place.remove(strange)
    assert (await count(counts, CELLS, range(10))).counted == 10
    assert await agree(store, folder) == 10
    assert await agree(store, folder, other) == 1


async def test_many_small_files_become_few_large_ones_and_say_the_same(store, folder, monkeypatch):
    monkeypatch.setattr("ldp_aggregator.archive.writer.COMPACT_AT", 4)
    archive = Archive(open_place(folder), 2)
    counts = ArchivedCounts(store, archive)
    for number in range(60):
        await count(counts, CELLS, [number])
    archive._compactor.shutdown()
    files = open_place(folder).names(f"{CELLS.id}/{REPORTS}")
    assert len(files) <= 2 * 3 * 4
    assert await agree(store, folder) == 60
    found = recount(folder, CELLS.id)
    assert found.duplicates == 0
    assert found == recount(folder, CELLS.id, lambda *given: on_processes(*given, workers=2))


async def test_a_recount_while_files_are_put_together_counts_every_report_once(store, folder, monkeypatch):
    """Also where the small files are still there beside the large one, as they are where a server dies in between."""
    monkeypatch.setattr("ldp_aggregator.archive.writer.COMPACT_AT", 4)
    archive = Archive(open_place(folder), 1)
    with monkeypatch.context() as patch:
        patch.setattr(archive._place, "remove", lambda name: None)
        for number in range(4):
            files = archive.write([numbered([number])])
            archive.publish(files)
            done = archive.tidy(files)
        await store.count([numbered(range(4))])
        assert done is not None
        await asyncio.wrap_future(done)
    assert len(open_place(folder).names(f"{CELLS.id}/{REPORTS}")) == 5
    assert await agree(store, folder) == 4
    rounds = []

    def engine(document, work):
        rounds.append(work)
        if len(rounds) == 1:
            archive._place.remove(work[0].names[0])
        return add_results(document, (part.run() for part in work))

    assert recount(folder, CELLS.id, engine).reports == 4
    assert len(rounds) == 2


@pytest.mark.parametrize("uploads", [5, pytest.param(20, marks=pytest.mark.long)])
async def test_what_was_acknowledged_is_archived_after_a_power_cut_at_every_point_and_counts_once(
    uploads, tmp_path, monkeypatch
):
    """Store and archive on one disk, two campaigns, files that are put together by three; one upload in three comes
    again with something new.
    """
    monkeypatch.setattr("ldp_aggregator.archive.writer.COMPACT_AT", 3)
    other, sent = cell_campaign(1024, title="Others"), []
    root = tmp_path / "disk"
    root.mkdir()
    opened = SqliteStore(root / "store.sqlite3")
    for campaign in (CELLS, other):
        await opened.create_campaign(campaign)
    disk = Disk(root, lambda: len(sent))
    with disk.watched(monkeypatch):
        archive = Archive(open_place(str(root / "below" / "archive")), 1)
        counts = ArchivedCounts(opened, archive)
        for number in range(uploads):
            numbers = range(number * 4 - number % 3 // 2, number * 4 + 4)
            for campaign in (CELLS, other):
                assert (await count(counts, campaign, numbers)).refused is None
                sent.append((campaign, numbers))
        archive._compactor.shutdown()
        await opened.close()
    states = list(disk.states())
    assert len(states) > 4 * uploads
    for place, (told, acknowledged, files) in enumerate(states):
        await survives(lay_out(files, tmp_path / f"state {place}"), sent, acknowledged, told)


async def survives(root, sent, acknowledged, told):
    """What a server finds on a disk has what was acknowledged, and takes the rest."""
    store = SqliteStore(root / "store.sqlite3")
    folder = str(root / "below" / "archive")
    counts = archived(store, folder, 1)
    campaigns = {campaign.id: campaign for campaign, _ in sent}
    await counts.recover(list(campaigns.values()))
    for place, (campaign, numbers) in enumerate(sent):
        outcome = await count(counts, campaign, numbers)
        assert outcome.counted + outcome.duplicates == len(numbers), told
        assert place >= acknowledged or outcome.counted == 0, told
    for campaign in campaigns.values():
        assert await agree(store, folder, campaign) == len({one for of, some in sent for one in some if of is campaign})
    assert await store.check() == []
    await store.close()


async def test_deleting_a_campaign_takes_its_archive_along_and_waits_until_that_can_be_removed(
    store, folder, monkeypatch
):
    archive = Archive(open_place(folder))
    goes_along(store, archive)
    other = await publish(store, 1024, title="Others")
    await ArchivedCounts(store, archive).count([numbered(range(10)), submission(other, [1])])
    with pytest.raises(StoreError, match="was not closed"):
        await store.delete_campaign(CELLS.id)
    await store.close_campaign(CELLS.id)

    with monkeypatch.context() as patch:
        patch.setattr(archive._place, "remove_folder", Mock(side_effect=StoreError("the place does not answer")))
        with pytest.raises(StoreError, match="does not answer"):
            await store.delete_campaign(CELLS.id)
    assert await agree(store, folder) == 10
    await store.delete_campaign(CELLS.id)
    assert campaigns_in(folder) == [other.id]
    assert await agree(store, folder, other) == 1
