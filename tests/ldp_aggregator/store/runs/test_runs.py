"""Sorted runs of ids, alone: what is in is found, what is not in is not, and a damaged file is told."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.runs import building, fences, merging
from ldp_aggregator.store.runs.building import FilterDraft
from ldp_aggregator.store.runs.fences import Fences, fence_count, fences_of
from ldp_aggregator.store.runs.files import HEADER_BYTES, Run, open_run, publish_run, remove_leftovers, write_run
from ldp_aggregator.store.runs.filters import (
    BITS_PER_ID,
    DENSE_BITS_PER_ID,
    DENSE_FROM,
    Filter,
    Hashes,
    filter_bits,
)
from ldp_aggregator.store.runs.keys import Keys, keys_of, merged, records_of
from ldp_aggregator.store.runs.merging import FAN_IN, LEAST_RUN, SLICE_IDS, crowded, merge_runs
from ldp_aggregator.store.runs.recent import Recent

# Few different halves, so that ids share them: only somebody who makes ids up does that.
HALVES = st.sampled_from([0, 1, 2, 255, 1 << 63, (1 << 64) - 1])
SECRET = 12345
IDS = st.sets(st.tuples(HALVES, HALVES), max_size=30)


def keys(ids: set[tuple[int, int]]) -> Keys:
    """Sorted, each with a digest that tells it."""
    ordered = sorted(ids)
    high, low = (np.array([one[half] for one in ordered], dtype=np.uint64) for half in (0, 1))
    return Keys(high, low, high * np.uint64(3) + low * np.uint64(5))


def pairs(found: Keys) -> list[tuple[int, int, int]]:
    return list(zip(found.high.tolist(), found.low.tolist(), found.digest.tolist(), strict=True))


def filter_of(folder: Path, found: Keys, bits: int = BITS_PER_ID) -> Filter:
    with FilterDraft(folder, len(found), SECRET, bits) as draft:
        draft.add(found)
        return Filter(np.concatenate(list(draft.parts())), SECRET)


def random_keys(count: int, seed: int) -> Keys:
    rng = np.random.default_rng(seed)
    halves = rng.integers(0, 2**64, (count, 2), dtype=np.uint64)
    return keys({(int(high), int(low)) for high, low in halves})


def run_of(folder: Path, found: Keys) -> Run:
    return open_run(folder / publish_run(write_run(folder, len(found), [found], SECRET, BITS_PER_ID)))


@given(IDS)
def test_records_and_columns_are_the_same_ids_in_the_same_order(ids: set[tuple[int, int]]) -> None:
    records = b"".join(
        high.to_bytes(8, "big") + low.to_bytes(8, "big") + ((3 * high + 5 * low) % 2**64).to_bytes(8, "little")
        for high, low in sorted(ids)
    )
    assert pairs(keys_of(records)) == pairs(keys(ids))
    assert records_of(keys(ids)) == records


@given(st.lists(IDS, min_size=1, max_size=5))
def test_a_union_is_sorted_and_keeps_every_digest(sets: list[set[tuple[int, int]]]) -> None:
    seen: set[tuple[int, int]] = set()
    distinct = []
    for ids in sets:
        distinct.append(keys(ids - seen))
        seen |= ids
    assert pairs(merged(distinct)) == pairs(keys(seen))


@given(IDS, IDS)
@settings(max_examples=300)
def test_what_is_in_is_found_with_its_digest_and_what_is_not_is_not(
    held: set[tuple[int, int]], asked: set[tuple[int, int]]
) -> None:
    here, wanted = keys(held), keys(asked)
    positions, places = here.find(wanted)
    ordered = sorted(asked)
    assert {ordered[position] for position in positions} == held & asked
    assert (here.digest[places] == wanted.digest[positions]).all()


@given(st.lists(IDS, max_size=12), IDS)
def test_recent_ids_are_found_in_whatever_order_they_came(
    sets: list[set[tuple[int, int]]], asked: set[tuple[int, int]]
) -> None:
    recent, seen = Recent(), set()
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


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=60).map(sorted),
    st.lists(st.integers(0, 42), max_size=20),
    st.integers(1, 9),
)
@settings(max_examples=300)
def test_fences_say_what_a_search_of_the_whole_column_says(held: list[int], wanted: list[int], page: int) -> None:
    column, asked = (np.array(numbers, dtype=np.uint64) for numbers in (held, wanted))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fences, "PAGE", page)
        cut = len(column) // 3
        firsts = np.concatenate([fences_of(column[:cut], 0), fences_of(column[cut:], cut)])
        assert len(firsts) == fence_count(len(column))
        assert (Fences(firsts).places(column, asked) == np.searchsorted(column, asked)).all()


@pytest.mark.parametrize("length", [1, 2, 63, 64, 511, 512, 513, 1024, 1025, 9999])
@pytest.mark.parametrize("range_", [300, 1 << 14, 1 << 63])
def test_a_place_is_found_in_whole_pages_too(length: int, range_: int) -> None:
    rng = np.random.default_rng(length)
    column = np.sort(rng.integers(0, range_, length, dtype=np.uint64))
    asked = np.concatenate([column, column + 1, rng.integers(0, range_ + 2, 500, dtype=np.uint64), [0, range_ + 5]])
    places = Fences(fences_of(column, 0)).places(column, asked.astype(np.uint64))
    assert places.tolist() == np.searchsorted(column, asked.astype(np.uint64)).tolist()


@pytest.mark.parametrize(("bits", "least", "most"), [(BITS_PER_ID, 1400, 2200), (DENSE_BITS_PER_ID, 100, 300)])
def test_a_filter_never_denies_an_id_and_is_seldom_wrong(tmp_path: Path, bits: int, least: int, most: int) -> None:
    held, strangers = random_keys(20_000, 1), random_keys(100_000, 2)
    made = filter_of(tmp_path, held, bits)
    assert made.may_hold(Hashes(held)).tolist() == list(range(len(held)))
    # In 100,000 about 1,800 are expected with ten bits an id, and 190 with twenty; these are over six deviations off.
    assert least < len(made.may_hold(Hashes(strangers))) < most


def test_filters_are_dense_where_many_ids_are_stored(tmp_path: Path) -> None:
    assert filter_bits(DENSE_FROM - 1) == BITS_PER_ID
    assert filter_bits(DENSE_FROM) == DENSE_BITS_PER_ID
    held = random_keys(1000, 1)
    sparse = run_of(tmp_path, held)
    dense = open_run(tmp_path / publish_run(merge_runs(tmp_path, [sparse], DENSE_BITS_PER_ID)))
    assert len(dense.filter.words) == 2 * len(sparse.filter.words) - 1
    assert dense.problems() == []
    assert pairs(dense.keys) == pairs(held)


@pytest.mark.parametrize("part_bytes", [64, 3000, 1 << 14])
def test_a_filter_is_the_same_in_however_many_parts_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_bytes: int
) -> None:
    held = random_keys(12_345, 5)
    whole = filter_of(tmp_path, held)
    monkeypatch.setattr(building, "PART_BYTES", part_bytes)
    with FilterDraft(tmp_path, len(held), SECRET, BITS_PER_ID) as draft:
        for start in range(0, len(held), 1000):
            draft.add(held.slice(start, start + 1000))
        parts = list(draft.parts())
    assert len(parts) == {64: building.MOST_PARTS, 3000: 6, 1 << 14: 1}[part_bytes]
    assert (np.concatenate(parts) == whole.words).all()
    assert list(tmp_path.iterdir()) == []


def test_ids_that_share_a_half_do_not_crowd_a_filter(tmp_path: Path) -> None:
    made = filter_of(tmp_path, keys({(7, low) for low in range(10_000)} | {(high, 7) for high in range(10_000)}))
    strangers = keys({(7, low) for low in range(10_000, 60_000)} | {(high, 7) for high in range(10_000, 60_000)})
    assert len(made.may_hold(Hashes(strangers))) < 2200


@given(IDS, IDS)
@settings(max_examples=50)
def test_a_run_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, held: set[tuple[int, int]], asked: set[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    run = run_of(folder, keys(held))
    wanted = keys(asked)
    positions, digests = run.find(Hashes(wanted))
    ordered = sorted(asked)
    assert {ordered[position] for position in positions} == held & asked
    assert (digests == wanted.digest[positions]).all()
    assert run.problems() == []
    assert pairs(run.keys) == pairs(keys(held))


def test_runs_are_merged_in_slices_into_what_one_would_have_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "SLICE_IDS", 700)
    everything = random_keys(20_000, 3)
    parts = [Keys(everything.high[at::5], everything.low[at::5], everything.digest[at::5]) for at in range(5)]
    shared = keys({(9, low) for low in range(3000)})
    runs = [run_of(tmp_path, part) for part in (*parts, shared)]
    run = open_run(tmp_path / publish_run(merge_runs(tmp_path, runs, BITS_PER_ID)))
    assert pairs(run.keys) == pairs(merged([everything, shared]))
    assert len(run.filter.may_hold(Hashes(run.keys))) == len(run)
    assert run.problems() == []


def test_merging_holds_a_slice_and_a_part_of_the_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = random_keys(400_000, 4)
    parts = [Keys(everything.high[at::4], everything.low[at::4], everything.digest[at::4]) for at in range(4)]
    runs = [run_of(tmp_path, part) for part in parts]
    monkeypatch.setattr(building, "PART_BYTES", 1 << 16)
    tracemalloc.start()
    try:
        merge_runs(tmp_path, runs, BITS_PER_ID)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * 24 * SLICE_IDS + (1 << 17) < 8 * 400_000


def test_an_id_is_merged_once_for_each_power_of_the_fan_in() -> None:
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


def test_every_changed_byte_of_a_run_is_told(tmp_path: Path) -> None:
    run = run_of(tmp_path, random_keys(50, 4))
    path = run.path
    sound = path.read_bytes()
    for place in [*range(48), *range(HEADER_BYTES, len(sound), 7)]:
        damaged = bytearray(sound)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        try:
            assert open_run(path).problems(), f"byte {place}"
        except StoreError as error:
            assert str(path) in str(error)  # noqa: PT017 - either way of telling will do


def test_a_run_that_was_cut_is_refused(tmp_path: Path) -> None:
    path = run_of(tmp_path, random_keys(50, 5)).path
    sound = path.read_bytes()
    for end in (0, 10, HEADER_BYTES, len(sound) - 1):
        path.write_bytes(sound[:end])
        with pytest.raises(StoreError, match=r"no run|damaged"):
            open_run(path)


def test_a_run_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            write_run(tmp_path, 10, [random_keys(10, 6)], SECRET, BITS_PER_ID)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError, match="run of 11 ids got 10"):
        write_run(tmp_path, 11, [random_keys(10, 7)], SECRET, BITS_PER_ID)
    assert list(tmp_path.iterdir()) == []


def test_runs_are_their_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "ids"
    run = run_of(folder, random_keys(10, 8))
    assert run.path.stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


def test_only_what_nobody_lists_and_nobody_makes_is_removed(tmp_path: Path) -> None:
    kept, dropped = (run_of(tmp_path, random_keys(10, seed)).path.name for seed in (9, 10))
    draft = write_run(tmp_path, 10, [random_keys(10, 11)], SECRET, BITS_PER_ID)
    remove_leftovers(tmp_path, [kept], draft.stat().st_mtime)
    assert {file.name for file in tmp_path.iterdir()} == {kept, draft.name}
    assert dropped != kept
    remove_leftovers(tmp_path, [kept], draft.stat().st_mtime + 100_000)
    assert [file.name for file in tmp_path.iterdir()] == [kept]
    remove_leftovers(tmp_path / "nowhere", [], 0.0)
