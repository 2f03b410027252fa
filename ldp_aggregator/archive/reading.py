"""The layout of an archive, and the work of recounting it, cut into parts that share no id.

Under the archive's address::

    <campaign id>/document.json
    <campaign id>/reports/<number of slots>-<slot>-<group>.parquet

A *group* is what one server committed at once. A part is picklable and names what it needs, so it can run anywhere
that the address can be read from.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Final

from ldp_aggregator.archive.files import ArchiveError
from ldp_aggregator.archive.places import Place, open_place
from ldp_aggregator.archive.slots import Recount, add_results, check_slots, read_result, recount_slot
from protocols import Campaign, DocumentError

DOCUMENT: Final = "document.json"
REPORTS: Final = "reports"
SUFFIX: Final = ".parquet"
RECOUNTS: Final = 5
"""How often a recount begins again."""


@dataclass(frozen=True)
class SlotWork:
    """One slot of an archived campaign: its document and the files to read."""

    url: str
    document: bytes
    names: tuple[str, ...]

    def run(self) -> bytes:
        """Read the files and count them; see :func:`ldp_aggregator.archive.slots.recount_slot`."""
        place = open_place(self.url)
        return recount_slot(self.document, [place.read(name) for name in self.names], self.names)


Engine = Callable[[bytes, "list[SlotWork]"], bytes]
"""Runs every part and adds the results up with :func:`ldp_aggregator.archive.slots.add_results`."""


def recount(url: str, campaign_id: str, engine: Engine | None = None) -> Recount:
    """Count an archived campaign again, in this process or on an ``engine``. Raises ArchiveError.

    Again from the beginning where a server put small files together meanwhile, which are gone then.
    """
    place = open_place(url)
    document = place.read(f"{campaign_id}/{DOCUMENT}")
    try:
        Campaign.parse(document, campaign_id)
    except DocumentError as error:
        raise ArchiveError(f"{place.url}/{campaign_id}/{DOCUMENT}: {error}") from None
    for _ in range(RECOUNTS):
        parts = parts_of(place, campaign_id)
        try:
            work = [SlotWork(place.url, document, names) for names in parts]
            return read_result(document, engine(document, work) if engine else on_processes(document, work, 1))
        except Exception:
            if {name for names in parts for name in names} <= set(place.names(f"{campaign_id}/{REPORTS}")):
                raise
    raise ArchiveError(f"the archive of {campaign_id} did not stand still; count again, or stop its servers")


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
        raise ArchiveError(f"{name} is not called as the archive calls its files") from None
    return int(slots), number


def on_processes(document: bytes, work: Sequence[SlotWork], workers: int | None = None) -> bytes:
    """Run the parts on so many processes, one a processor by default."""
    wanted = min(workers or len(_processors()), len(work))
    if wanted < 2:
        return add_results(document, (part.run() for part in work))
    # A child of its own: a forked one would inherit whatever threads the caller has.
    with ProcessPoolExecutor(wanted, mp_context=multiprocessing.get_context("spawn")) as pool:
        return add_results(document, pool.map(SlotWork.run, work))


def on_dask(document: bytes, work: Sequence[SlotWork]) -> bytes:
    """Run the parts where Dask runs things now: here, or where a ``dask.distributed.Client`` is connected."""
    import dask

    return add_results(document, dask.compute(*[dask.delayed(SlotWork.run)(part) for part in work]))


def _processors() -> range | set[int]:
    """Those that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
