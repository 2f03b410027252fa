"""The pure count of one slot: bytes in, bytes out.

Ids of a campaign are spread over slots by their first bits, so a report and its retries are always in the same slot,
whichever server took them: slots are counted apart, in any order, on any engine, and their results add up exactly.
Within a slot a report counts once. An id with two answers is a *conflict*: none of them counts, and it is listed; no
single store ever accepts one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgpack
import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.archive.files import ArchiveError, Kept, decode_file
from ldp_aggregator.counting.decoding import Sums, count, refusals
from ldp_aggregator.counting.digest import digests
from ldp_aggregator.counting.parts import add_part, encode_part, part_of_tally
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.mechanisms.facts import Rows
from protocols import Campaign
from protocols.wire import ID_BYTES

MOST_SLOTS: Final = 256


@dataclass(frozen=True)
class Recount:
    """The sums of an archive, and what does not count.

    Attributes
    ----------
    tally
        The exact sums of every report that counts.
    duplicates
        Files' rows that repeat a report that counts.
    conflicts
        Ids with more than one answer, in increasing order; none of their answers counts.
    refused
        Rows that no device can have sent.
    """

    tally: Tally
    duplicates: int
    conflicts: tuple[bytes, ...]
    refused: int

    @property
    def reports(self) -> int:
        return int(self.tally.n.sum())


def slot_of(ids: Rows, slots: int) -> NDArray[np.int64]:
    """The slot of every id, shape (n,): its first byte's leading bits."""
    check_slots(slots)
    return (ids[:, 0].astype(np.int64) * slots) >> 8


def check_slots(slots: int) -> None:
    """Raises ValueError where a campaign cannot have so many slots."""
    if not 1 <= slots <= MOST_SLOTS or slots & (slots - 1):
        raise ValueError(f"slots must be a power of two up to {MOST_SLOTS}, not {slots}")


def recount_slot(document: bytes, files: Sequence[bytes], names: Sequence[str] = ()) -> bytes:
    """Count the Parquet files of one slot of the campaign with this document; ``names`` are for errors.

    Returns a result for :func:`add_results`. Raises ArchiveError for what is no file of the campaign.
    """
    campaign = Campaign.parse(document)
    gathered: dict[int, list[Kept]] = {}
    for data, name in zip(files, names or ["a file"] * len(files), strict=True):
        for question, kept in decode_file(data, campaign, name).items():
            gathered.setdefault(question, []).append(kept)
    sound = {}
    refused = 0
    for question, parts in sorted(gathered.items()):
        ids = np.concatenate([part.ids for part in parts])
        rows = np.concatenate([part.payloads for part in parts])
        wrong = list(refusals(campaign.questions[question], rows))
        if wrong:
            ids, rows = np.delete(ids, wrong, axis=0), np.delete(rows, wrong, axis=0)
        refused += len(wrong)
        sound[question] = Kept(ids, rows)
    chosen, duplicates, conflicts = _choose(sound)
    sums: Sums = {}
    for question, kept in sound.items():
        rows = kept.payloads[chosen[question]]
        if len(rows):
            sums[question] = (len(rows), count(campaign.questions[question], rows))
    return _pack(duplicates, refused, conflicts, encode_part(sums))


def add_results(document: bytes, results: Iterable[bytes]) -> bytes:
    """The sum of results of different slots; the same bytes in whatever order they come."""
    campaign = Campaign.parse(document)
    tally = Tally(campaign)
    duplicates = refused = 0
    conflicts: list[bytes] = []
    for result in results:
        more_duplicates, more_refused, ids, part = _unpack(result)
        duplicates += more_duplicates
        refused += more_refused
        conflicts += [ids[start : start + ID_BYTES] for start in range(0, len(ids), ID_BYTES)]
        add_part(tally, part)
    return _pack(duplicates, refused, b"".join(sorted(conflicts)), part_of_tally(tally))


def read_result(document: bytes, result: bytes) -> Recount:
    """A result, as what it says."""
    duplicates, refused, ids, part = _unpack(result)
    tally = Tally(Campaign.parse(document))
    add_part(tally, part)
    conflicts = tuple(ids[start : start + ID_BYTES] for start in range(0, len(ids), ID_BYTES))
    return Recount(tally, duplicates, conflicts, refused)


def _choose(sound: dict[int, Kept]) -> tuple[dict[int, NDArray[np.bool_]], int, bytes]:
    """Choose the rows of each question that count; tell how many repeat one, and the ids in conflict, joined."""
    lengths = [len(kept.ids) for kept in sound.values()]
    if not sum(lengths):
        return {question: np.zeros(0, dtype=bool) for question in sound}, 0, b""
    ids = np.concatenate([kept.ids for kept in sound.values()])
    halves = np.ascontiguousarray(ids).view(">u8").astype(np.uint64)
    order = np.argsort(halves[:, 0], kind="stable")
    ordered = halves[order]
    same = ordered[1:] == ordered[:-1]
    if (same[:, 0] & ~same[:, 1]).any():  # Two ids begin alike, which drawn ones hardly ever do.
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        ordered = halves[order]
    repeats = np.zeros(len(order), dtype=bool)
    repeats[1:] = (ordered[1:] == ordered[:-1]).all(axis=1)
    counted = np.ones(len(order), dtype=bool)
    counted[order[repeats]] = False
    duplicates, conflicts = int(repeats.sum()), b""
    if duplicates:
        run = np.cumsum(~repeats) - 1
        crowded = (np.bincount(run) > 1)[run]
        places = order[crowded]
        checks = _digests(sound, places)
        runs = run[crowded]
        starts = np.flatnonzero(np.diff(runs, prepend=-1))
        first = np.repeat(checks[starts], np.diff([*starts, len(runs)]))
        bad = np.unique(runs[checks != first])
        if len(bad):
            lost = np.isin(run, bad)
            counted[order[lost]] = False
            duplicates -= int((repeats & lost).sum())
            conflicts = ids[order[lost & ~repeats]].tobytes()
    chosen, start = {}, 0
    for question, length in zip(sound, lengths, strict=True):
        chosen[question] = counted[start : start + length]
        start += length
    return chosen, duplicates, conflicts


def _digests(sound: dict[int, Kept], places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The digest, as the store keeps it, of the reports at some places."""
    found = np.zeros(len(places), dtype=np.uint64)
    start = 0
    for question, kept in sound.items():
        here = (places >= start) & (places < start + len(kept.ids))
        found[here] = digests(question, kept.payloads[places[here] - start])
        start += len(kept.ids)
    return found


def _pack(duplicates: int, refused: int, conflicts: bytes, part: bytes) -> bytes:
    packed: bytes = msgpack.packb([duplicates, refused, conflicts, part])
    return packed


def _unpack(result: bytes) -> tuple[int, int, bytes, bytes]:
    try:
        duplicates, refused, conflicts, part = msgpack.unpackb(result)
    except (ValueError, TypeError, msgpack.UnpackException):
        raise ArchiveError("a result of recount_slot is damaged") from None
    return duplicates, refused, conflicts, part
