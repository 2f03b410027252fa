"""The layout of an archive, and the work of recounting it, cut into parts that share no id.

Under the archive's address::

    <campaign id>/document.json
    <campaign id>/reports/<number of slots>-<slot>-<group>.parquet

A *group* is what one server committed at once. A part is picklable and names what it needs, so it can run anywhere
that the address can be read from.

Ids of a campaign are spread over slots by their first bits, so a report and its retries are always in the same slot,
whichever server took them: slots are counted apart, in any order, on any engine, and their results add up exactly.
Within a slot a report counts once. An id with two answers is a *conflict*: none of them counts, and it is listed; no
single store ever accepts one.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Final

import msgpack
import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.archive.locations import Place, Reports, decode_file, joined, open_place, without_refused
from ldp_aggregator.counting.parts import add_part, encode_part, part_of_tally
from ldp_aggregator.counting.payloads import Sums, count, digests
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.mechanisms.analysis import Rows
from ldp_aggregator.store.contract import StoreError
from ldp_protocols import Campaign, DocumentError
from ldp_protocols.framing import ID_BYTES

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
    """Check a number of slots. Raises ValueError."""
    if not 1 <= slots <= MOST_SLOTS or slots & (slots - 1):
        raise ValueError(f"slots must be a power of two up to {MOST_SLOTS}, not {slots}")


def recount_slot(document: bytes, files: Sequence[bytes], names: Sequence[str] = ()) -> bytes:
    """Count the Parquet files of one slot of the campaign with this document; ``names`` are for errors.

    Returns a result for :func:`add_results`. Raises StoreError for what is no file of the campaign.
    """
    campaign = Campaign.parse(document)
    named = zip(files, names or ["a file"] * len(files), strict=True)
    gathered = joined(decode_file(data, campaign, name) for data, name in named)
    sound = {question: without_refused(campaign, question, reports) for question, reports in sorted(gathered.items())}
    refused = sum(len(part.ids) for part in gathered.values()) - sum(len(part.ids) for part in sound.values())
    chosen, duplicates, conflicts = _choose(sound)
    sums: Sums = {}
    for question, reports in sound.items():
        rows = reports.payloads[chosen[question]]
        if len(rows):
            sums[question] = (len(rows), count(campaign.counted[question], rows))
    return _pack(duplicates, refused, conflicts, encode_part(sums))


def add_results(document: bytes, results: Iterable[bytes]) -> bytes:
    """The sum of results of different slots; the same bytes in whatever order they come."""
    campaign = Campaign.parse(document)
    tally = Tally(campaign)
    duplicates = refused = 0
    conflicts: list[bytes] = []
    for result in results:
        more_duplicates, more_refused, more_conflicts, part = _unpack(result)
        duplicates += more_duplicates
        refused += more_refused
        conflicts += more_conflicts
        add_part(tally, part)
    return _pack(duplicates, refused, b"".join(sorted(conflicts)), part_of_tally(tally))


def read_result(document: bytes, result: bytes) -> Recount:
    """A result, as what it says."""
    duplicates, refused, conflicts, part = _unpack(result)
    tally = Tally(Campaign.parse(document))
    add_part(tally, part)
    return Recount(tally, duplicates, tuple(conflicts), refused)


def _choose(sound: dict[int, Reports]) -> tuple[dict[int, NDArray[np.bool_]], int, bytes]:
    """Choose the rows of each question that count; tell how many repeat one, and the ids in conflict, joined."""
    if not sound:
        return {}, 0, b""
    ids = np.concatenate([reports.ids for reports in sound.values()])
    halves = np.ascontiguousarray(ids).view(">u8").astype(np.uint64)
    order = np.argsort(halves[:, 0], kind="stable")
    ordered = halves[order]
    same = ordered[1:] == ordered[:-1]
    if (same[:, 0] & ~same[:, 1]).any():  # Two ids begin alike, which drawn ones hardly ever do.
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        ordered = halves[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    run = np.cumsum(first)
    repeats = np.flatnonzero(~first)
    other = _digests(sound, order[repeats]) != _digests(sound, order[repeats - 1])
    lost = np.isin(run, run[repeats[other]]) if other.any() else np.zeros(len(order), dtype=bool)
    counted = np.zeros(len(order), dtype=bool)
    counted[order[first & ~lost]] = True
    ends = np.cumsum([len(reports.ids) for reports in sound.values()])[:-1]
    chosen = dict(zip(sound, np.split(counted, ends), strict=True))
    return chosen, int((~first & ~lost).sum()), ids[order[first & lost]].tobytes()


def _digests(sound: dict[int, Reports], places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The digest, as the store keeps it, of the reports at some places."""
    found = np.zeros(len(places), dtype=np.uint64)
    start = 0
    for question, reports in sound.items():
        here = (places >= start) & (places < start + len(reports.ids))
        found[here] = digests(question, reports.payloads[places[here] - start])
        start += len(reports.ids)
    return found


def _pack(duplicates: int, refused: int, conflicts: bytes, part: bytes) -> bytes:
    packed: bytes = msgpack.packb([duplicates, refused, conflicts, part])
    return packed


def _unpack(result: bytes) -> tuple[int, int, list[bytes], bytes]:
    try:
        duplicates, refused, ids, part = msgpack.unpackb(result)
    except (ValueError, TypeError, msgpack.UnpackException):
        raise StoreError("a result of recount_slot is damaged") from None
    return duplicates, refused, [ids[start : start + ID_BYTES] for start in range(0, len(ids), ID_BYTES)], part


DOCUMENT: Final = "document.json"
REPORTS: Final = "reports"
SUFFIX: Final = ".parquet"
RECOUNTS: Final = 5
"""Times that a recount begins again."""


@dataclass(frozen=True)
class SlotWork:
    """One slot of an archived campaign: its document and the files to read."""

    url: str
    document: bytes
    names: tuple[str, ...]

    def run(self) -> bytes:
        """Read the files and count them; see :func:`ldp_aggregator.archive.recount.recount_slot`."""
        place = open_place(self.url)
        return recount_slot(self.document, [place.read(name) for name in self.names], self.names)


Engine = Callable[[bytes, "list[SlotWork]"], bytes]
"""Runs every part and adds the results up with :func:`ldp_aggregator.archive.recount.add_results`."""


def recount(url: str, campaign_id: str, engine: Engine | None = None) -> Recount:
    """Count an archived campaign again, in this process or on an ``engine``. Raises StoreError.

    Again from the beginning where a server put small files together meanwhile, which are gone then.
    """
    place = open_place(url)
    document = place.read(f"{campaign_id}/{DOCUMENT}")
    try:
        Campaign.parse(document, campaign_id)
    except DocumentError as error:
        raise StoreError(f"{place.url}/{campaign_id}/{DOCUMENT}: {error}") from None
    for _ in range(RECOUNTS):
        parts = parts_of(place, campaign_id)
        try:
            work = [SlotWork(place.url, document, names) for names in parts]
            return read_result(document, engine(document, work) if engine else on_processes(document, work, 1))
        except Exception:
            if {name for names in parts for name in names} <= set(place.names(f"{campaign_id}/{REPORTS}")):
                raise
    raise StoreError(f"the archive of {campaign_id} changed during the count; count again, or stop its servers")


def file_name(slot: int, slots: int, group: str) -> str:
    """The name of what a group has in one of so many slots."""
    return f"{slots:03d}-{slot:02x}-{group}{SUFFIX}"


def parts_of(place: Place, campaign_id: str) -> list[tuple[str, ...]]:
    """Names of the files of an archived campaign, slot by slot.

    Servers may have written different numbers of slots; all numbers are powers of two, so the least divides the others.
    """
    names = [name for name in place.names(f"{campaign_id}/{REPORTS}") if name.endswith(SUFFIX)]
    found = [(*_read_name(name), name) for name in names]
    least = min((slots for slots, _, _ in found), default=1)
    parts: dict[int, list[str]] = {}
    for slots, slot, name in found:
        parts.setdefault(slot * least // slots, []).append(name)
    return [tuple(names) for _, names in sorted(parts.items())]


def _read_name(name: str) -> tuple[int, int]:
    try:
        slots, slot, _ = name.rsplit("/", 1)[-1].split("-")
        check_slots(int(slots))
        number = int(slot, 16)
    except ValueError:
        raise StoreError(f"{name} is not a name of an archive's file") from None
    return int(slots), number


def on_processes(document: bytes, work: Sequence[SlotWork], workers: int | None = None) -> bytes:
    """Run the parts on so many processes, one a processor by default."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = min(workers or mine, len(work))
    if wanted < 2:
        return add_results(document, (part.run() for part in work))
    # A child of its own: a forked one would inherit whatever threads the caller has.
    with ProcessPoolExecutor(wanted, mp_context=multiprocessing.get_context("spawn")) as pool:
        return add_results(document, pool.map(SlotWork.run, work))


def on_dask(document: bytes, work: Sequence[SlotWork]) -> bytes:
    """Run the parts where Dask runs things now: here, or where a ``dask.distributed.Client`` is connected."""
    import dask

    return add_results(document, dask.compute(*[dask.delayed(SlotWork.run)(part) for part in work]))
