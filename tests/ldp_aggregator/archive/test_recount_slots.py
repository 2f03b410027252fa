"""The count of a slot: what any engine is given, and what it returns."""

from __future__ import annotations

import io
import itertools
import os
import sys
import uuid
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archived import other_answers, random_kept
from hypothesis import given
from hypothesis import strategies as st

from ldp_aggregator.archive.locations import Reports, decode_file, encode_file, open_place
from ldp_aggregator.archive.recount import add_results, parts_of, read_result, recount_slot, slot_of
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.store import StoreError
from ldp_protocols.wire import Block


def _pairs(kept):
    return {(one.tobytes(), payload.tobytes()) for one, payload in zip(kept.ids, kept.payloads, strict=True)}


def tally_of(campaign, kept):
    tally = Tally(campaign)
    for number, one in kept.items():
        assert not tally.add_block(Block(number, one.ids.tobytes(), one.payloads.tobytes()))
    return tally


def recounted(campaign, *files):
    """What a slot of these files gives."""
    return read_result(campaign.document, recount_slot(campaign.document, [encode_file(one) for one in files]))


def test_a_file_is_read_as_it_was_written_and_any_reader_of_parquet_opens_it(campaign):
    kept = random_kept(campaign, 600, 1)
    data = encode_file(kept)
    again = decode_file(data, campaign)
    assert {number: _pairs(one) for number, one in again.items()} == {n: _pairs(one) for n, one in kept.items()}
    table = pq.read_table(io.BytesIO(data))
    assert table.column_names == ["question", "id", "payload"]
    assert table.num_rows == sum(len(one.ids) for one in kept.values())


def test_the_order_of_reports_leaves_no_trace_in_a_file(campaign):
    kept = random_kept(campaign, 300, 2)
    mixed = {}
    for number, one in reversed(kept.items()):
        order = np.random.default_rng(3).permutation(len(one.ids))
        mixed[number] = Reports(one.ids[order], one.payloads[order])
    assert encode_file(kept) == encode_file(mixed)


def test_nothing_archived_counts_nothing(campaign):
    assert decode_file(encode_file({}), campaign) == {}
    for result in (
        recount_slot(campaign.document, []),
        recount_slot(campaign.document, [encode_file({})]),
        add_results(campaign.document, []),
    ):
        found = read_result(campaign.document, result)
        assert (found.reports, found.duplicates, found.conflicts, found.refused) == (0, 0, (), 0)


@pytest.mark.parametrize("alike", [False, True], ids=["random ids", "ids that begin alike"])
def test_a_report_counts_once_in_however_many_files_it_is(campaign, alike):
    kept = random_kept(campaign, 600, 4)
    if alike:
        kept[1].ids[:, :8] = kept[1].ids[0, :8]
    some = {number: Reports(one.ids[::3], one.payloads[::3]) for number, one in kept.items()}
    found = recounted(campaign, some, kept, some)
    assert found.tally == tally_of(campaign, kept)
    assert found.duplicates == 2 * sum(len(one.ids) for one in some.values())
    assert found.conflicts == ()


def test_an_id_with_two_answers_and_what_no_device_can_have_sent_count_for_none_and_are_told(campaign):
    kept = random_kept(campaign, 600, 5)
    other = {
        1: other_answers(campaign, 1, Reports(kept[1].ids[:2], kept[1].payloads[:2])),
        2: Reports(kept[1].ids[5:6], kept[2].payloads[:1]),
    }
    wrong = {1: Reports(np.full((1, 16), 7, np.uint8), np.full_like(kept[1].payloads[:1], 0x7F))}
    found = recounted(campaign, kept, other, wrong, kept)
    left = dict(kept)
    left[1] = Reports(np.delete(kept[1].ids, [0, 1, 5], axis=0), np.delete(kept[1].payloads, [0, 1, 5], axis=0))
    assert found.tally == tally_of(campaign, left)
    assert set(found.conflicts) == {kept[1].ids[row].tobytes() for row in (0, 1, 5)}
    assert (found.refused, found.duplicates) == (1, found.reports)


@given(st.sampled_from([1, 2, 4, 16, 256]), st.integers(0, 2**32))
def test_slots_share_no_id_and_add_up_to_the_same_bytes_in_any_order(campaign, slots, seed):
    kept = random_kept(campaign, 60, seed)
    parts: dict[int, dict[int, Reports]] = {}
    for number, one in kept.items():
        places = slot_of(one.ids, slots)
        assert ((places >= 0) & (places < slots)).all()
        for slot in np.unique(places).tolist():
            chosen = places == slot
            parts.setdefault(slot, {})[number] = Reports(one.ids[chosen], one.payloads[chosen])
    results = [recount_slot(campaign.document, [encode_file(part)]) for part in parts.values()]
    sums = {add_results(campaign.document, order) for order in itertools.islice(itertools.permutations(results), 5)}
    halves = results[: len(results) // 2], results[len(results) // 2 :]
    sums.add(add_results(campaign.document, [add_results(campaign.document, half) for half in halves]))
    assert len(sums) == 1
    assert read_result(campaign.document, sums.pop()).tally == tally_of(campaign, kept)


@pytest.mark.parametrize("slots", [0, 3, 512, -1])
def test_a_number_of_slots_that_does_not_divide_a_byte_is_refused(slots):
    with pytest.raises(ValueError, match="slots must be a power of two"):
        slot_of(np.zeros((1, 16), dtype=np.uint8), slots)


def _table(question, ids, payloads):
    sink = io.BytesIO()
    columns = {
        "question": pa.array(question, pa.uint16()),
        "id": pa.array(ids, pa.binary(16)),
        "payload": pa.array(payloads, pa.large_binary()),
    }
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no Parquet file"),
        (b"PAR1 and nothing else", "no Parquet file"),
        (_table([99], [bytes(16)], [b"\0"]), "names question 99"),
        (_table([1], [bytes(16)], [b""]), "not [0-9]+ bytes long"),
        (_table([2, 1], [bytes(16)] * 2, [b"\0"] * 2), "not in the order"),
        (_table([1], [None], [b"\0"]), "empty cells"),
    ],
)
def test_what_is_no_file_of_the_campaign_is_refused_by_name(campaign, data, words):
    with pytest.raises(StoreError, match=f"some.parquet .*{words}"):
        recount_slot(campaign.document, [data], ["some.parquet"])


@pytest.mark.parametrize("bound", ["MOST_ROWS", "MOST_BYTES"])
def test_a_file_that_would_fill_the_memory_is_refused_before_it_is_unpacked(campaign, bound, monkeypatch):
    """A few bytes may be packed values by the million: rows as well as bytes have a bound of their own."""
    data = encode_file(random_kept(campaign, 30, 7))
    monkeypatch.setattr(f"ldp_aggregator.archive.locations.{bound}", 29)
    monkeypatch.setattr(pq.ParquetFile, "read", Mock(side_effect=AssertionError("it was unpacked")))
    with pytest.raises(StoreError, match="the archive writes fewer"):
        decode_file(data, campaign)


def test_a_file_cut_anywhere_and_a_damaged_result_are_refused(campaign):
    data = encode_file(random_kept(campaign, 30, 7))
    for end in range(0, len(data), 37):
        with pytest.raises(StoreError):
            decode_file(data[:end], campaign)
    for result in (b"", b"\xc0", b"\x94\x00"):
        with pytest.raises(StoreError, match="damaged"):
            add_results(campaign.document, [result])


@pytest.fixture(params=["folder", "file", "memory"])
def place(request, tmp_path):
    if request.param == "memory":
        return open_place(f"memory://{uuid.uuid4().hex}/deep")
    folder = tmp_path / "some where"
    return open_place(str(folder) if request.param == "folder" else f"file://{folder}")


def test_what_was_put_is_listed_read_moved_and_removed(place):
    assert place.names("a/b") == []
    place.put("a/b/two", b"2")
    place.put("a/b/one", b"1")
    place.put("a/c", b"elsewhere")
    assert place.names("a/b") == ["a/b/one", "a/b/two"]
    assert place.read("a/b/one") == b"1"
    assert place.move("a/b/one", "d/one")
    assert not place.move("a/b/one", "d/one")
    assert place.names("a/b") == ["a/b/two"]
    assert place.read("d/one") == b"1"
    assert open_place(place.url).read("d/one") == b"1", "it is opened again by its address"
    place.remove("d/one")
    place.remove("d/one")
    assert place.names("d") == []
    with pytest.raises(StoreError, match=r"one.* cannot be read"):
        place.read("d/one")


@pytest.mark.parametrize("url", ["", " ", "nosuch://bucket/path", "file://elsewhere/path"])
def test_an_address_that_nothing_opens_is_refused(url):
    with pytest.raises(StoreError):
        open_place(url)


def test_a_folder_is_its_owners_alone_and_keeps_its_place_when_the_process_changes_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = open_place("relative")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    place.put("a/one", b"1")
    file = tmp_path / "relative" / "a" / "one"
    assert file.read_bytes() == b"1"
    if sys.platform != "win32":  # Windows has no modes.
        assert [path.stat().st_mode & 0o077 for path in (file, file.parent, file.parent.parent)] == [0, 0, 0]


def test_a_file_that_cannot_be_written_or_is_half_written_is_not_there_at_all(tmp_path, monkeypatch):
    place = open_place(str(tmp_path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(StoreError, match="cannot be written: No space left on device"):
            place.put("one", b"1")
    assert list(tmp_path.iterdir()) == []
    place.put("a/one", b"1")
    (tmp_path / "a" / ".two.123").write_bytes(b"ha")
    assert place.names("a") == ["a/one"], "half-written files of others are not listed"


def test_files_of_servers_that_wrote_different_numbers_of_slots_are_counted_with_those_that_may_share_an_id():
    """Of four slots the second holds the fifth to the eighth of sixteen."""
    names = ["016-00-a", "016-04-b", "016-07-c", "016-08-d", "004-01-e", "004-03-f"]
    place = SimpleNamespace(names=lambda folder: [f"{folder}/{name}.parquet" for name in names] + [f"{folder}/notes"])
    found = [[name.removeprefix("X/reports/")[:-8] for name in part] for part in parts_of(place, "X")]
    assert found == [["016-00-a"], ["016-04-b", "016-07-c", "004-01-e"], ["016-08-d"], ["004-03-f"]]
