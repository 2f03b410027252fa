"""The choice of runs to merge, and merging them block by block, so that memory does not grow with the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ldp_aggregator.store.runs.files import Draft, Run, write_run
from ldp_aggregator.store.runs.keys import Keys, joined, merged

LEAST_RUN: Final = 1 << 14
LARGEST_FLUSH: Final = 1 << 20
FLUSH_SCALE: Final = 1 << 30
"""Recent ids become a run once there are as many as the square of what is in runs already, over this number, and
within the two bounds above: a store of a few millions takes little memory, one of tens of millions gets few runs."""
BACKLOG: Final = 2 * LARGEST_FLUSH
"""Recent ids with which a commit waits for the run that is being written."""
FAN_IN: Final = 8
"""Runs of about one size that become one. An id is written once for each power of it."""


def is_due(recent: int, stored: int) -> bool:
    """The recent ids of a campaign with so many ``stored`` in runs are enough for another one."""
    return recent >= min(max(LEAST_RUN, stored * stored // FLUSH_SCALE), LARGEST_FLUSH)


def is_behind(recent: int) -> bool:
    """So many recent ids are more than memory should hold."""
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


def merge_runs(folder: Path, campaign: str, runs: Sequence[Run], pause: Callable[[], None]) -> Draft:
    """Write the union of runs of a campaign that share no id as one; returns the draft.

    ``pause`` is called every few thousand ids, and may raise. Raises StoreError where a run is damaged: the runs stay.
    """
    parts = merged_blocks([run.blocks() for run in runs], pause)
    return write_run(folder, campaign, sum(map(len, runs)), parts, runs[0].filter.secret)


def _tier(size: int) -> int:
    tier = 0
    while size > LEAST_RUN * FAN_IN // 2:
        size //= FAN_IN
        tier += 1
    return tier


def merged_blocks(sources: Sequence[Iterator[Keys]], pause: Callable[[], None]) -> Iterator[Keys]:
    """The union of sorted sources that share no id, in increasing order; little more than a block of each is in memory.

    ``pause`` is called between blocks.
    """
    going = dict(enumerate(sources))
    held: dict[int, Keys] = {}
    bound = None
    while True:
        pause()
        for place in [place for place in going if place not in held or held[place].high[-1] == bound]:
            more = next(going[place], None)
            if more is None:
                del going[place]
            else:
                held[place] = joined([held[place], more]) if place in held else more
        if not going:
            break
        # Nothing that is to come begins with less than this; with this itself some may.
        bound = min(held[place].high[-1] for place in going)
        parts = []
        for place, keys in list(held.items()):
            cut = int(np.searchsorted(keys.high, bound))
            if cut:
                parts.append(keys.slice(0, cut))
            if cut < len(keys):
                held[place] = keys.slice(cut, len(keys))
            else:
                del held[place]
        if parts:
            yield merged(parts)
    if held:
        yield merged(list(held.values()))
