"""Backups and what is made of them: nothing counts twice, no right comes back, no version has other bytes."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from unittest.mock import Mock

import numpy as np
import pytest
from cells import cell_campaign, count, publish, submission
from issuing import issuer
from postgres import bare
from power_cuts import Disk, lay_out

from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.store import Outcome, SqliteStore, StoredToken, StoreError
from ldp_aggregator.store.backup import Combined, combine_stores, copy_store, restore_store
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.store.sql import published
from ldp_aggregator.store.sqlite import run_files
from ldp_aggregator.store.sqlite.database import FILE_NAME
from ldp_aggregator.trainers import FederatedState, encode_share

NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)


@pytest.fixture
async def original(tmp_path, opened, clock):
    """A store with ten reports, one model and tokens, and a backup of it; then more happened."""
    store = await opened("data", clock=clock)
    campaign = await publish(store)
    await count(store, campaign, range(10))
    for name, scope in (("a", "collector"), ("b", "relay")):
        await store.add_token(StoredToken(name, scope, name.encode() * 32, clock()))
    await store.publish_model(campaign.id, "one")
    copy_store(tmp_path / "data", tmp_path / "backup")
    await store.revoke_token("a")
    await store.publish_model(campaign.id, "two")
    await count(store, campaign, range(10, 15))
    return campaign, store


@pytest.mark.parametrize(("times", "done"), [(1, True), (4, True), (5, False)])
def test_a_copy_of_which_runs_are_merged_away_meanwhile_is_begun_again_five_times_in_all(
    tmp_path, original, monkeypatch, times, done
):
    missing = Mock(side_effect=[FileNotFoundError] * times + [None] * 9)
    monkeypatch.setattr("ldp_aggregator.store.backup.copy_runs", missing)
    if done:
        copy_store(tmp_path / "data", tmp_path / "again")
    else:
        with pytest.raises(StoreError, match="cannot be written"):
            copy_store(tmp_path / "data", tmp_path / "again")
    assert missing.call_count == min(times + 1, 5)
    assert (tmp_path / "again" / FILE_NAME).exists() is done


async def test_a_backup_is_read_and_takes_nothing(tmp_path, combine, opened, original):
    campaign, _ = original
    before = (tmp_path / "backup" / FILE_NAME).read_bytes()
    with pytest.raises(StoreError, match="this is a backup"):
        await opened("backup")
    assert {path.name: path.read_bytes() for path in (tmp_path / "backup").iterdir()} == {FILE_NAME: before}
    with pytest.raises(StoreError, match="already"):
        copy_store(tmp_path / "data", tmp_path / "backup")
    store = await opened("backup", read_only=True)
    assert (await store.state(campaign.id)).reports == 10
    assert await store.check() == []
    assert (await store.origin()).is_copy
    merged = combine("data", "backup", "both")
    assert merged == [Combined(campaign.id, 25, overlap=10)]
    assert not (await (await opened("both")).origin()).is_copy


@pytest.mark.parametrize("made", ["backup", "restored", "both"])
async def test_a_copy_that_was_told_is_whole_after_a_power_cut_and_before_that_there_is_none(
    made, tmp_path, combine, opened, original, monkeypatch
):
    """With runs of ids, which stand in a folder beside the database. No commit of SQLite's is trusted here: what makes
    the copy need not have synced it.
    """
    monkeypatch.setattr(run_files, "LEAST_RUN", 5)
    campaign, store = original
    for number in range(20, 60, 10):
        await count(store, campaign, range(number, number + 10))
        while store.tidying:
            await store.beat()
    disk = tmp_path / "disk"
    disk.mkdir()
    target = disk / "far" / "below"
    copy_store(tmp_path / "data", tmp_path / "fresh")
    work = {
        "backup": lambda: copy_store(tmp_path / "data", target),
        "restored": lambda: restore_store(tmp_path / "fresh", target, now=NOW),
        "both": lambda: combine_stores(tmp_path / "data", tmp_path / "fresh", target, now=NOW),
    }
    done = []
    watched = Disk(disk, lambda: bool(done), databases=False)
    with watched.watched(monkeypatch):
        work[made]()
        done.append(made)
    whole = 0
    for place, (told, promised, files) in enumerate(watched.states()):
        folder = lay_out(files, tmp_path / f"state {place}") / "far" / "below"
        there = (folder / FILE_NAME).exists()
        assert there or not promised, told
        if there:
            whole += promised
            copy = SqliteStore(folder / FILE_NAME, read_only=made == "backup")
            assert await copy.check() == [], told
            assert (await copy.state(campaign.id)).reports == (110 if made == "both" else 55), told
            await copy.close()
    assert whole


@pytest.mark.parametrize("keep", [False, True])
async def test_a_share_that_was_withdrawn_since_does_not_come_back(tmp_path, opened, clock, keep):
    """All that the nodes sent stays counted: withdrawing gives nothing back, nor does a restore."""
    store = await opened("data", clock=clock)
    campaign = await publish(store, 8, federated=True)
    share = encode_share(campaign, np.arange(len(FederatedState(campaign).totals)))
    for node in "ab":
        await store.add_token(StoredToken(node, "node", node.encode() * 32, clock()))
        assert await store.put_share(campaign.id, node, share) is None
    copy_store(tmp_path / "data", tmp_path / "backup")
    await store.withdraw_share(campaign.id, "a")
    restored = restore_store(tmp_path / "backup", tmp_path / "new", keep_shares=keep)
    assert (restored.tokens, restored.shares) == (2, 0 if keep else 2)
    store = await opened("new")
    shares = await store.shares(campaign.id)
    assert [member.node for member in shares.members] == (["a", "b"] if keep else [])
    assert [node for node, _ in shares.releases] == ["a", "b"]
    assert await store.put_share(campaign.id, "a", share) == "wrong-token"


async def test_a_restored_store_publishes_under_versions_that_were_never_used(tmp_path, opened, original, clock):
    campaign, _ = original
    seen = {1: "one", 2: "two"}
    folder = tmp_path / "backup"
    for number in range(3):
        new = tmp_path / f"new{number}"
        restore_store(folder, new, now=NOW + timedelta(seconds=5 * number))
        store = await opened(new.name, clock=clock)
        for text in ("three", "four"):
            document = f"{text} of {number}"
            version = (await store.publish_model(campaign.id, document)).version
            assert version not in seen
            assert version > max(seen), "a client that refuses older versions takes it"
            seen[version] = document
        assert (await store.model(campaign.id, 1)).document == "one"
        assert await store.model(campaign.id, 2) is None
        if number == 1:
            copy_store(new, tmp_path / "backup of a restored one")
            folder = tmp_path / "backup of a restored one"


async def test_a_restored_store_is_another_one_that_knows_what_it_counted_and_whose_tokens_open_nothing(
    tmp_path, opened, original
):
    campaign, kept = original
    for name in ("first", "second"):
        assert restore_store(tmp_path / "backup", tmp_path / name, now=NOW).tokens == 2
    stores = [await opened(name) for name in ("first", "second")]
    assert len({(await store.origin()).generation for store in (kept, *stores)}) == 3
    assert await count(stores[0], campaign, range(12)) == Outcome(counted=2, duplicates=10)
    for one in stores:
        assert await one.check() == []
        assert [(token.name, token.revoked) for token in await one.tokens()] == [("a", NOW), ("b", NOW)]
        with pytest.raises(StoreError, match="exists already"):
            await one.add_token(StoredToken("a", "admin", b"x" * 32, NOW))


def overwrite(path, name, start, data):
    """Bytes of the first page of a table or an index."""
    with closing(sqlite3.connect(path)) as db:
        root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
        page = db.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((root - 1) * page + start % page)
        file.write(data)


async def test_what_cannot_be_restored_or_copied_or_is_damaged_leaves_nothing(tmp_path, original, monkeypatch):
    with pytest.raises(StoreError, match="there is no store in"):
        restore_store(tmp_path / "none", tmp_path / "new")
    with pytest.raises(StoreError, match="already"):
        restore_store(tmp_path / "backup", tmp_path / "data")
    with pytest.raises(StoreError, match="set the clock"):
        restore_store(tmp_path / "backup", tmp_path / "new", now=datetime(2020, 1, 1, tzinfo=timezone.utc))

    with monkeypatch.context() as patch:
        broken = Mock(side_effect=sqlite3.OperationalError("disk I/O error"))
        patch.setattr("ldp_aggregator.store.backup.renew", broken)
        with pytest.raises(StoreError, match="disk I/O error"):
            restore_store(tmp_path / "backup", tmp_path / "new")
    path = tmp_path / "backup" / FILE_NAME
    overwrite(path, "sqlite_autoindex_tokens_2", -20, bytes(20))
    with pytest.raises(StoreError, match=r"damaged|malformed"):
        restore_store(tmp_path / "backup", tmp_path / "new")
    overwrite(path, "parts", 0, b"\xff" * 20)
    with pytest.raises(StoreError, match="is damaged"):
        copy_store(tmp_path / "backup", tmp_path / "copy")
    for name in ("new", "copy"):
        assert list((tmp_path / name).iterdir()) == []


async def test_folders_and_files_are_for_their_owner_only_also_in_a_folder_that_others_may_read(
    tmp_path, combine, opened
):
    previous = os.umask(0)
    try:
        for name in ("data", "copy", "new", "merged"):
            (tmp_path / name).mkdir(mode=0o755)
        await (await opened("data")).beat()
        copy_store(tmp_path / "data", tmp_path / "copy")
        restore_store(tmp_path / "copy", tmp_path / "new")
        await (await opened("new")).beat()
        combine("data", "copy", "merged")
        for name in ("data", "copy", "new", "merged"):
            assert {path.stat().st_mode & 0o777 for path in (tmp_path / name).iterdir()} == {0o600}, name
        restore_store(tmp_path / "copy", tmp_path / "restored")
        await opened("made")
        for name in ("restored", "made"):
            assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(previous)


async def test_a_database_that_was_put_back_is_made_another_store(instances, clock):
    store = instances[0]
    campaign = await publish(store)
    await store.add_token(StoredToken("a", "admin", b"a" * 32, clock()))
    assert (await store.publish_model(campaign.id, "one")).version == 1
    before = await store.origin()
    assert (await store.renew()).tokens == 1
    assert (await store.tokens())[0].revoked is not None
    first = (await store.publish_model(campaign.id, "two")).version
    assert abs(first - clock().timestamp()) < 3600
    assert (await store.origin()).generation != before.generation
    await store.renew()
    assert (await store.publish_model(campaign.id, "three")).version > first
    federated = await publish(store, 8, title="nodes", federated=True)
    await store.add_token(StoredToken("node", "node", b"n" * 32, clock()))
    share = encode_share(federated, np.zeros(len(FederatedState(federated).totals), dtype=np.int64))
    assert await store.put_share(federated.id, "node", share) is None
    assert (await store.renew(keep_shares=True)).shares == 0
    assert (await store.renew()).shares == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_store_that_is_only_read_has_to_be_there_sees_what_another_commits_and_refuses_every_write(
    request, opened, clock, kind
):
    address = request.getfixturevalue("postgres").address if kind == "postgres" else None
    if address:
        await bare(address)
    with pytest.raises(StoreError, match="there is no store in"):
        await opened("nowhere", database=address, read_only=True)
    writer = await opened("data", database=address)
    campaign = await publish(writer)
    store = await opened("data", database=address, read_only=True)
    await count(writer, campaign, [1])
    assert (await store.state(campaign.id)).reports == 1
    assert (await store.tally(campaign.id)).n.tolist() == [1]
    assert await store.check() == []
    for attempt in (
        store.count([submission(campaign, [2])]),
        store.close_campaign(campaign.id),
        store.publish_model(campaign.id, "{}"),
        store.add_token(StoredToken("a", "admin", b"a" * 32, clock())),
        store.beat(),
    ):
        with pytest.raises(StoreError, match=r"read-?only"):
            await attempt


@pytest.fixture
def shards(opened):
    """Two data folders; ``fill(name, numbers)`` counts reports in one of them."""
    campaign = cell_campaign()

    async def fill(name, numbers, *, close=False, seal=False, batch=None, campaign=campaign):
        store = await opened(name)
        await store.create_campaign(campaign)
        await store.count([replace(submission(campaign, numbers), batch=batch)])
        if close:
            await store.close_campaign(campaign.id)
        if seal:
            await store.seal_campaign(campaign.id, at_once=True)
        return store

    async def read(name, campaign=campaign):
        store = await opened(name, read_only=True)
        assert await store.check() == []
        return await store.tally(campaign.id), await store.state(campaign.id)

    return campaign, fill, read


async def test_two_shards_equal_one_node(combine, shards):
    campaign, fill, read = shards
    other = cell_campaign(title="Other")
    await fill("a", range(30))
    await fill("b", range(30, 50))
    await fill("b", range(5), campaign=other)
    await fill("whole", range(50))
    assert combine("a", "b", "c") == [Combined(campaign.id, 50), Combined(other.id, 5)]
    merged, state = await read("c")
    assert merged == (await read("whole"))[0]
    assert (state.reports, state.life.closed) == (50, None)
    assert (await read("c", other))[0].n.tolist() == [5], "a campaign of one store alone is taken over"
    await fill("c", range(64))
    assert (await read("c"))[0].counts[0].tolist() == [1] * 64, "it knows the ids of both"


@pytest.mark.parametrize("closed", [False, True])
async def test_reports_in_both_shards_are_counted_twice_and_told(combine, shards, closed):
    campaign, fill, read = shards
    await fill("a", range(30), close=closed)
    await fill("b", range(27, 50), close=closed)
    assert combine("a", "b", "c") == [Combined(campaign.id, 53, overlap=3)]
    tally, state = await read("c")
    assert tally.counts[0].tolist() == [1] * 27 + [2] * 3 + [1] * 20 + [0] * 14
    assert (state.arrivals.overlap, state.arrivals.twice, state.life.closed is not None) == (3, 3, closed)
    assert state.to_json(utc_now())["counted_twice"] == 3
    assert (await read("a"))[0].n.tolist() == [30]


async def test_an_overlap_is_remembered_by_later_sums(combine, shards):
    campaign, fill, read = shards
    await fill("a", range(10))
    await fill("b", range(9, 20))
    await fill("c", range(18, 30))
    combine("a", "b", "ab")
    for first, second in (("ab", "c"), ("c", "ab")):
        assert combine(first, second, f"{first} {second}") == [Combined(campaign.id, 33, overlap=3)]
        assert (await read(f"{first} {second}"))[1].arrivals.overlap == 3
    assert combine("a", "a", "aa") == [Combined(campaign.id, 20, overlap=10)]


async def test_sealed_campaigns_are_merged_on_the_operators_word_only_and_that_is_told(tmp_path, combine, shards):
    campaign, fill, read = shards
    await fill("a", range(30), close=True, seal=True)
    await fill("b", range(29, 50))
    with pytest.raises(StoreError, match="--assume-disjoint"):
        combine("a", "b", "c")
    assert list((tmp_path / "c").iterdir()) == []
    merged = combine("a", "b", "c", assume_disjoint=True)
    assert merged == [Combined(campaign.id, 51, unchecked=21)]
    tally, state = await read("c")
    assert tally.n.tolist() == [51]
    assert state.life.sealed is not None
    assert (state.arrivals.overlap, state.arrivals.twice) == (0, 21)


async def test_one_token_is_one_answer_in_a_sum_too(tmp_path, combine, shards):
    """Five people show their tokens to both stores, which is five more answers than people; or nobody can tell."""
    _, fill, read = shards
    campaign = cell_campaign(issuer=issuer())
    await fill("a", range(10), campaign=campaign)
    await fill("b", [(number, 50 + number) for number in range(5)], campaign=campaign)
    await fill("c", range(20, 30), campaign=campaign)
    with pytest.raises(StoreError, match=r"5 of its answers are in both: .* count a person twice; .*fsck --archive"):
        combine("a", "b", "sum")
    assert list((tmp_path / "sum").iterdir()) == []
    assert combine("a", "c", "both") == [Combined(campaign.id, 20)]
    assert (await read("both", campaign))[0].n.tolist() == [20]
    await fill("sealed", range(40, 45), campaign=campaign, close=True, seal=True)
    for word in (False, True):
        with pytest.raises(StoreError, match="sealed" if not word else "its ids are gone"):
            combine("a", "sealed", "sum", assume_disjoint=word)


async def test_how_reports_came_adds_up_when_stores_do(combine, shards):
    _, fill, read = shards
    for name, numbers, batch in (("a", range(10), 500), ("b", range(10, 20), 90), ("d", range(20, 25), None)):
        await fill(name, numbers, batch=batch)
    combine("a", "b", "c")
    assert (await read("c"))[1].arrivals == Arrivals(20, 20, 90)
    combine("c", "d", "e")
    assert (await read("e"))[1].arrivals == Arrivals(25, 20, 90)


async def test_a_damaged_store_one_that_is_there_and_one_that_is_not_are_not_merged(tmp_path, combine, shards):
    campaign, fill, _ = shards
    for number, name in enumerate("abc"):
        await fill(name, [number])
    with pytest.raises(StoreError, match="already"):
        combine("a", "b", "c")
    with pytest.raises(StoreError, match="there is no store in"):
        combine("a", "none", "d")
    with closing(sqlite3.connect(tmp_path / "b" / FILE_NAME)) as db, db:
        db.execute("UPDATE parts SET sums = substr(sums, 1, 32)")
    with pytest.raises(StoreError, match=f"is damaged: {campaign.id}: parts: its bytes"):
        combine("a", "b", "d")
    assert list((tmp_path / "d").iterdir()) == []


async def test_a_sum_that_is_not_complete_is_no_store(tmp_path, combine, shards, monkeypatch):
    """A process that is killed leaves a file, and not one that anything takes for a store."""
    _, fill, _ = shards
    await fill("a", range(3))
    await fill("b", range(3, 6))
    seen = []

    async def watched(db, now, *floors):
        seen.extend(path.name for path in (tmp_path / "c").iterdir())
        await renew(db, now, *floors)

    renew = published.renew
    monkeypatch.setattr("ldp_aggregator.store.backup.renew", watched)
    combine("a", "b", "c")
    assert seen
    assert FILE_NAME not in seen
    assert {path.name for path in (tmp_path / "c").iterdir()} == {FILE_NAME, f"{FILE_NAME}.ids"}


async def test_a_sum_publishes_under_versions_that_neither_store_has_used(combine, opened):
    for name, versions in (("a", 1), ("b", 3)):
        store = await opened(name)
        campaign = await publish(store)
        for _ in range(versions):
            await store.publish_model(campaign.id, name)
    combine("a", "b", "c", now=datetime(1970, 1, 1, tzinfo=timezone.utc))
    assert (await (await opened("c")).publish_model(campaign.id, "sum")).version == 4


async def test_a_sum_publishes_above_what_a_restored_store_may_have_published_before_it_was_lost(
    tmp_path, combine, opened, original
):
    """Of what the lost store published nothing is known but that it was before the restore, 1,793,491,200."""
    restore_store(tmp_path / "backup", tmp_path / "restored", now=NOW)
    await opened("other")
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    for pair, name in ((("restored", "other"), "first"), (("other", "restored"), "second")):
        combine(*pair, name, now=epoch)
        assert (await (await opened(name)).publish_model(original[0].id, "sum")).version == 1793491201


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_a_campaign_of_two_stores_is_as_old_as_in_either_ends_as_late_and_takes_as_many(
    combine, opened, clock, order
):
    closed = {}
    for name, most, days in (("a", 100, 1), ("b", 200, 4)):
        store = await opened(name, clock=clock)
        campaign = await publish(store, max_reports=most)
        clock.step(86400 * days)
        closed[name] = (await store.close_campaign(campaign.id)).life.closed
    combine(*order, "c")
    [state] = await (await opened("c", read_only=True)).campaigns()
    assert (state.created, state.life.closed, state.max_reports) == (clock.now - timedelta(days=5), closed["b"], 200)
    assert closed["b"] == clock.now
    untouched = await publish(await opened("d", clock=clock))
    combine("c", "d", "e")
    state = await (await opened("e", read_only=True)).state(untouched.id)
    assert (state.life.closed, state.max_reports) == (closed["b"], 200), "what is over in one is over in the sum"


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_what_either_store_deleted_comes_back_in_no_sum_and_what_the_other_still_has_stays(
    combine, opened, order
):
    first, second = await opened("a"), await opened("b")
    gone = await publish(first, title="gone")
    both = await publish(first, title="deleted in one of them")
    assert await publish(second, title="deleted in one of them") == both
    await count(second, both, range(7))
    for one in (gone, both):
        await first.close_campaign(one.id)
        await first.delete_campaign(one.id)
    combine(*order, "c")
    store = await opened("c")
    with pytest.raises(StoreError, match="was deleted at"):
        await store.create_campaign(gone)
    assert (await store.state(both.id)).reports == 7
    assert await store.check() == []
    await store.close_campaign(both.id)
    await store.delete_campaign(both.id)


async def test_neither_a_restored_store_nor_a_sum_has_the_archive_of_the_one_that_it_comes_from(
    tmp_path, combine, opened, original
):
    """What is archived there is the other's, and is not to be deleted with a campaign here."""
    _, store = original
    await store.note_archive("/archive/of/the/first")
    copy_store(tmp_path / "data", tmp_path / "copy")
    restore_store(tmp_path / "copy", tmp_path / "restored", now=NOW)
    combine("data", "copy", "sum")
    assert [await (await opened(name)).archived_at() for name in ("data", "restored", "sum")] == [
        "/archive/of/the/first",
        None,
        None,
    ]


@pytest.mark.parametrize("made", ["campaign", "model", "token"])
async def test_a_clock_before_anything_that_a_copy_has_restores_nothing(tmp_path, opened, clock, made):
    store = await opened("data", clock=clock)
    campaign = await publish(store)
    begun = clock.now
    clock.step(3600)
    if made == "model":
        await store.publish_model(campaign.id, "{}")
    if made == "token":
        await store.add_token(StoredToken("a", "admin", b"a" * 32, clock()))
    copy_store(tmp_path / "data", tmp_path / "copy")
    least = begun if made == "campaign" else clock.now
    with pytest.raises(StoreError, match="set the clock"):
        restore_store(tmp_path / "copy", tmp_path / "new", now=least - timedelta(seconds=1))
    restore_store(tmp_path / "copy", tmp_path / "new", now=least)


async def test_reports_whose_ids_were_lost_are_told_by_a_sum_and_by_what_is_made_of_it(
    tmp_path, combine, opened, monkeypatch
):
    monkeypatch.setattr(run_files, "LEAST_RUN", 5)
    campaign = cell_campaign()
    for name, numbers in (("a", range(20)), ("b", range(20, 50))):
        store = await opened(name)
        await store.create_campaign(campaign)
        for lost in (numbers[:10], numbers[10:]):
            await count(store, campaign, lost)
            while store.tidying or not list((tmp_path / name).rglob("*.run")):
                await store.beat()
            for run in (tmp_path / name).rglob("*.run"):
                run.unlink()
            await store.take_out_damaged()
        assert (await store.state(campaign.id)).arrivals.unchecked == len(numbers)
        assert await store.check() == []
    combine("a", "b", "c")
    copy_store(tmp_path / "c", tmp_path / "copy")
    restore_store(tmp_path / "copy", tmp_path / "d")
    for name in "cd":
        store = await opened(name)
        assert (await store.state(campaign.id)).arrivals == Arrivals(50, 0, None, 0, 50)
        assert await store.check() == [], "so many ids are missing, and that is known"
