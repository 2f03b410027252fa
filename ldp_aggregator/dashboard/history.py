"""How many reports there were when: samples that one process keeps in memory, fewer the further they reach back.

The store keeps sums and no times, so that nothing tells when a device answered. What is kept here is as coarse as its
samples, is lost with the process, and says from when on it knows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from ldp_aggregator.store import Store
from ldp_aggregator.store.clock import Clock
from ldp_aggregator.store.contract import StoreError

LOG: Final = logging.getLogger("ldp_aggregator")

SAMPLE_SECONDS: Final = 30.0
MOST_SAMPLES: Final = 240
"""Of one process; two hours at first. When they are full every other one goes, and the next come half as often."""
MOST_CAMPAIGNS: Final = 200

Sample = tuple[datetime, Mapping[str, int]]


class History:
    """Numbers of reports by campaign, sampled."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        self._every = 1
        self._skipped = 0

    def note(self, at: datetime, reports: Mapping[str, int]) -> None:
        """Keep a sample, or let it pass where samples have become rarer."""
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        self._samples.append((at, dict(reports)))
        if len(self._samples) >= MOST_SAMPLES:
            self._samples = self._samples[::2]
            self._every *= 2

    @property
    def since(self) -> datetime | None:
        """The first sample's time."""
        return self._samples[0][0] if self._samples else None

    def of(self, campaign_id: str) -> list[tuple[datetime, int]]:
        """The samples of one campaign, oldest first."""
        return [(at, reports[campaign_id]) for at, reports in self._samples if campaign_id in reports]


def thinned(points: Sequence[tuple[datetime, int]], most: int) -> list[tuple[datetime, int]]:
    """At most so many of the points, evenly, the last one among them."""
    step = -(-len(points) // most) if points else 1
    return list(points[::-1][::step][::-1])


async def sample(store: Store, history: History, clock: Clock, seconds: float = SAMPLE_SECONDS) -> None:
    """Until cancelled. A store that does not answer is asked again later."""
    while True:
        try:
            states = (await store.campaigns())[-MOST_CAMPAIGNS:]
            history.note(clock(), {state.id: state.reports for state in states})
        except StoreError as error:
            LOG.warning("no sample of the numbers of reports", extra={"reason": str(error)})
        await asyncio.sleep(seconds)
