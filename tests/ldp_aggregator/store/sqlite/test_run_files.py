"""Sorted runs of ids, alone: what is in is found, what is not in is not, and a damaged file is told."""

from __future__ import annotations

import os
import random
import tracemalloc

import numpy as np
import pytest
from forking import holds_in_a_child, needs_fork
from hypothesis import given
from hypothesis import strategies as st

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.sqlite.keys import Filter, Hashes, Keys, UnsortedIds, keys_of, merged
from ldp_aggregator.store.sqlite.run_files import (
    RunFile,
    copy_runs,
    crowded,
    merge_runs,
    merged_blocks,
    open_run,
    remove_leftovers,
    write_run,
)

FAN_IN = 8
HEADER_BYTES = 4096
LEAST_RUN = 16_384
PAGE = 128


# Few different halves, so that ids share them: only somebody who makes ids up does that.
HALVES = st.sampled_from([0, 1, 2, 255, 1 << 63, (1 << 64) - 1])
SECRET = 12345
CAMPAIGN = "C" * 43
IDS = st.sets(st.tuples(HALVES, HALVES), max_size=30)


def keys(ids):
    """Sorted, each with a digest that tells it."""
    ordered = sorted(ids)
    high, low = (np.array([one[half] for one in ordered], dtype=np.uint64) for half in (0, 1))
    return Keys(high, low, high * np.uint64(3) + low * np.uint64(5))


def pairs(found):
    return list(zip(found.high.tolist(), found.low.tolist(), found.digest.tolist(), strict=True))


def filter_of(found):
    made = Filter.for_ids(len(found), SECRET)
    for start in range(0, len(found), 1000):
        made.add(found.slice(start, start + 1000))
    return made


def never():
    """Nobody wants the merge to be given up."""


def random_keys(count, seed):
    high, low = np.unique(np.random.default_rng(seed).integers(0, 2**64, (count, 2), dtype=np.uint64), axis=0).T
    return Keys(high, low, high * np.uint64(3) + low * np.uint64(5))


def run_of(folder, found):
    run_file = write_run(folder, CAMPAIGN, len(found), [found], SECRET)
    return open_run(folder / run_file.publish(), CAMPAIGN)


@given(IDS)
def test_records_and_columns_are_the_same_ids_in_the_same_order(ids):
    records = b"".join(
        high.to_bytes(8, "big") + low.to_bytes(8, "big") + ((3 * high + 5 * low) % 2**64).to_bytes(8, "little")
        for high, low in sorted(ids)
    )
    assert pairs(keys_of(records)) == pairs(keys(ids))


@given(st.lists(IDS, max_size=12), IDS)
def test_recent_ids_are_found_in_whatever_order_they_came(sets, asked):
    recent, seen = UnsortedIds(), set()
    for ids in sets:
        recent.add(keys(ids - seen))
        seen |= ids
    wanted = keys(asked)
    ordered = sorted(asked)
    found = {
        (ordered[position], int(digest))
        for positions, digests in recent.find(wanted)
        for position, digest in zip(positions, digests, strict=True)
    }
    assert found == {(one, (3 * one[0] + 5 * one[1]) % 2**64) for one in seen & asked}
    assert len(recent) == len(seen)
    assert pairs(recent.all()) == pairs(keys(seen))


def test_a_filter_never_denies_an_id_and_is_seldom_wrong():
    held, strangers = random_keys(20_000, 1), random_keys(100_000, 2)
    made = filter_of(held)
    assert made.may_hold(Hashes(held)).tolist() == list(range(len(held)))
    # In 100,000 about 412 are expected; these are over six deviations off.
    assert 285 < len(made.may_hold(Hashes(strangers))) < 540


def test_ids_that_share_a_half_do_not_crowd_a_filter():
    made = filter_of(keys({(7, low) for low in range(10_000)} | {(high, 7) for high in range(10_000)}))
    strangers = keys({(7, low) for low in range(10_000, 60_000)} | {(high, 7) for high in range(10_000, 60_000)})
    assert len(made.may_hold(Hashes(strangers))) < 540


def test_a_run_that_is_cut_while_it_is_open_is_an_error_and_no_signal(tmp_path):
    held = random_keys(5000, 5)
    run = run_of(tmp_path, held)
    os.truncate(run.path, HEADER_BYTES + 100)
    for use in (lambda: run.find(Hashes(held)), run.verify):
        with pytest.raises(StoreError, match="ends early"):
            use()


@pytest.mark.parametrize("length", [0, 1, PAGE - 1, PAGE, PAGE + 1, 16 * PAGE, 16 * PAGE + 1, 9999])
@pytest.mark.parametrize("halves", [(0, 1, (1 << 64) - 1), range(1 << 62)], ids=["few halves", "many halves"])
def test_a_run_is_read_as_it_was_written_also_where_many_ids_share_a_half(tmp_path, length, halves):
    drawn = random.Random(length)
    held = keys({(drawn.choice(halves), low) for low in range(length)})
    strangers = keys({(drawn.choice(halves), low) for low in range(length, length + 300)})
    run = run_of(tmp_path, held)
    wanted = merged([held, strangers])
    positions, digests = run.find(Hashes(wanted))
    assert pairs(Keys(wanted.high[positions], wanted.low[positions], digests)) == pairs(held)
    assert [pair for block in run.blocks() for pair in pairs(block)] == pairs(held)
    run.verify()


@given(st.lists(st.lists(IDS, max_size=4), max_size=4))
def test_blocks_of_sorted_sources_are_merged_in_order(sources):
    seen: set[tuple[int, int]] = set()
    cut = []
    for blocks in sources:
        ids = sorted(set().union(*blocks) - seen)
        seen |= set(ids)
        size = max(1, len(ids) // max(1, len(blocks)))
        cut.append([keys(set(ids[at : at + size])) for at in range(0, len(ids), size)])
    found = merged_blocks([iter(blocks) for blocks in cut], never)
    assert [pair for block in found for pair in pairs(block)] == pairs(keys(seen))


def test_merging_holds_a_few_blocks_and_the_filter(tmp_path):
    everything = random_keys(400_000, 4)
    parts = [Keys(everything.high[at::4], everything.low[at::4], everything.digest[at::4]) for at in range(4)]
    runs = [run_of(tmp_path, part) for part in parts]
    tracemalloc.start()
    try:
        merge_runs(tmp_path, CAMPAIGN, runs, never).discard()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 * 400_000  # A third of what is merged; three bytes an id are the filter's and the index's.


def test_an_id_is_merged_once_for_each_power_of_the_fan_in():
    sizes: dict[str, int] = {}
    written = ids = 0
    for number in range(3 * FAN_IN**2):
        sizes[f"new{number}"] = LEAST_RUN + number
        ids += LEAST_RUN + number
        while names := crowded(sizes):
            size = sum(sizes.pop(name) for name in names)
            sizes[f"merged{number}-{len(sizes)}"] = size
            written += size
    assert sum(sizes.values()) == ids
    assert len(sizes) <= 3 * FAN_IN
    assert written <= 2 * ids


USES = {
    "asked": lambda run, wanted: run.find(Hashes(wanted)),
    "merged": lambda run, _: merge_runs(run.path.parent, CAMPAIGN, [run], never).discard(),
    "copied": lambda run, _: copy_runs(run.path.parent, run.path.parent / "copy", {run.path.name: CAMPAIGN}),
    "verified": lambda run, _: run.verify(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_bit_that_changed_anywhere_is_never_used(tmp_path, use):
    held = random_keys(300, 4)
    path = run_of(tmp_path, held).path
    sound = path.read_bytes()
    for place in [*range(136), *range(HEADER_BYTES, len(sound), 37)]:
        damaged = bytearray(sound)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match=path.name):
            use(open_run(path, CAMPAIGN), held)
        assert [file.name for file in tmp_path.glob("*.run")] == [path.name]
        for file in tmp_path.glob("copy/*"):
            file.unlink()


def test_a_run_that_was_cut_or_is_of_another_campaign_or_of_another_name_is_not_taken_for_this_one(tmp_path):
    one, two = (run_of(tmp_path, random_keys(50, seed)).path for seed in (1, 2))
    with pytest.raises(StoreError, match="another run is in its place"):
        open_run(one, "D" * 43)
    sound = two.read_bytes()
    one.write_bytes(sound)
    with pytest.raises(StoreError, match="another run is in its place"):
        open_run(one, CAMPAIGN)
    for end in (0, 10, HEADER_BYTES, len(sound) - 1):
        two.write_bytes(sound[:end])
        with pytest.raises(StoreError, match=r"no run|damaged"):
            open_run(two, CAMPAIGN)


def test_runs_are_their_owners_alone(tmp_path):
    run = run_of(tmp_path / "ids", random_keys(10, 8))
    assert [path.stat().st_mode & 0o077 for path in (run.path, run.path.parent)] == [0, 0]


@needs_fork
def test_only_what_nobody_lists_and_nobody_makes_is_removed(tmp_path):
    """At once, whoever made it: a process that has ended holds no lock any more."""
    kept, dropped = (run_of(tmp_path, random_keys(10, seed)).path.name for seed in (9, 10))
    run_file = write_run(tmp_path, CAMPAIGN, 10, [random_keys(10, 11)], SECRET)
    assert holds_in_a_child(lambda: RunFile(tmp_path))
    assert len(list(tmp_path.iterdir())) == 4
    remove_leftovers(tmp_path, [kept])
    assert {file.name for file in tmp_path.iterdir()} == {kept, run_file.path.name}
    assert dropped != kept
    run_file.discard()
    assert [file.name for file in tmp_path.iterdir()] == [kept]
    remove_leftovers(tmp_path / "nowhere", [])
