"""The processors of this machine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from ldp_aggregator.archive.reading import SlotWork
from ldp_aggregator.archive.slots import add_results


def on_processes(document: bytes, work: Sequence[SlotWork], workers: int | None = None) -> bytes:
    """Run the parts on so many processes, one a processor by default."""
    wanted = min(workers or len(_processors()), len(work))
    if wanted < 2:
        return add_results(document, (part.run() for part in work))
    # A child of its own: a forked one would inherit whatever threads the caller has.
    with ProcessPoolExecutor(wanted, mp_context=multiprocessing.get_context("spawn")) as pool:
        return add_results(document, pool.map(SlotWork.run, work))


def _processors() -> range | set[int]:
    """Those that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
