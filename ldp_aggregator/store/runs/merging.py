"""Which runs are merged, and how: in slices of the ids' range, so that memory does not grow with the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ldp_aggregator.store.runs.files import Run, write_run
from ldp_aggregator.store.runs.keys import Keys, merged

LEAST_RUN: Final = 1 << 14
LARGEST_FLUSH: Final = 1 << 20
FLUSH_SCALE: Final = 1 << 30
"""Recent ids become a run once there are as many as the square of what is in runs already, over this number, and
within the two bounds above: a store of a few millions takes little memory, one of tens of millions gets few runs."""
BACKLOG: Final = 2 * LARGEST_FLUSH
"""Recent ids with which a commit waits for the run that is being written."""
FAN_IN: Final = 8
"""Runs of about one size that become one. An id is written once for each power of it."""
SLICE_IDS: Final = 1 << 14
"""About how many ids are in memory at once while runs are merged."""


def is_due(recent: int, stored: int) -> bool:
    """Whether the recent ids of a campaign with so many ``stored`` in runs are enough for another one."""
    return recent >= min(max(LEAST_RUN, stored * stored // FLUSH_SCALE), LARGEST_FLUSH)


def is_behind(recent: int) -> bool:
    """Whether so many recent ids are more than memory should hold."""
    return recent >= BACKLOG


def crowded(sizes: Mapping[str, int]) -> list[str]:
    """Names of the runs to merge next, given every run's number of ids; none while every size has room."""
    tiers: dict[int, list[str]] = {}
    for name, size in sizes.items():
        tiers.setdefault(_tier(size), []).append(name)
    for _, names in sorted(tiers.items()):
        if len(names) >= FAN_IN:
            return sorted(names)
    return []


def merge_runs(folder: Path, runs: Sequence[Run], bits: int) -> Path:
    """Write the union of runs that share no id as one, with so many filter bits for each; returns the draft.

    Raises StoreError.
    """
    try:
        return write_run(folder, sum(map(len, runs)), _slices(runs), runs[0].filter.secret, bits)
    finally:
        for run in runs:
            run.release()


def _tier(size: int) -> int:
    tier = 0
    while size > LEAST_RUN * FAN_IN // 2:
        size //= FAN_IN
        tier += 1
    return tier


def _slices(runs: Sequence[Run]) -> Iterator[Keys]:
    """The ids in increasing order, cut at first halves of the longest run."""
    longest = max(runs, key=len)
    step = max(1, SLICE_IDS * len(longest) // max(1, sum(map(len, runs))))
    cuts = longest.keys.high[step::step]
    bounds = np.array([np.concatenate([[0], np.searchsorted(run.keys.high, cuts), [len(run)]]) for run in runs])
    for column in range(bounds.shape[1] - 1):
        parts = [
            run.keys.slice(int(start), int(stop))
            for run, start, stop in zip(runs, bounds[:, column], bounds[:, column + 1], strict=True)
            if stop > start
        ]
        if parts:
            yield merged(parts)
        for run in runs:
            run.release()
