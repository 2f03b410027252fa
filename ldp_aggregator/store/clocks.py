"""The time by which a store decides, and how far to believe it.

A wall clock may be wrong for a minute or a day, and what is decided by it may be for good. So nobody says a final word
by a clock that it has not itself run with for :data:`GRACE`; and one that jumped against the seconds that went by
decides nothing at all until it has settled.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Final

LOG: Final = logging.getLogger("ldp_aggregator")

Clock = Callable[[], datetime]
"""The time, injected so that tests can step it."""


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


GRACE: Final = timedelta(days=1)
"""Time between the end of a campaign and what cannot be undone: enough to notice a wrong clock."""
JUMP: Final = timedelta(minutes=5)
"""More than any step by which a time service corrects a clock that it keeps."""
SETTLE: Final = timedelta(minutes=10)
"""Time after a jump until the clock is believed again; a restart of the server believes it at once."""


_BEGINNING: Final = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Moment:
    """The time, since when this process has had it from a clock that did not jump, and whether it is believed."""

    now: datetime
    since: datetime = _BEGINNING
    settled: bool = True

    def is_past(self, end: datetime) -> bool:
        """The end was a grace period ago, all of which this process has seen."""
        return self.now - max(end, self.since) >= GRACE


def elapsed_seconds() -> float:
    """Seconds that went by, those in which the machine slept among them where it counts them."""
    kind = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if kind is None else time.clock_gettime(kind)


class SteadyClock:
    """``wall`` tells the time, ``elapsed`` the seconds that went by. Safe for several threads."""

    def __init__(self, wall: Clock = utc_now, elapsed: Callable[[], float] = elapsed_seconds) -> None:
        self.wall = wall
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._begun: datetime | None = None
        self._ahead = 0.0
        self._settled_at = elapsed()

    @classmethod
    def of(cls, clock: Clock | None) -> SteadyClock:
        """A clock that is passed in is believed: what it goes by went by."""
        if clock is None:
            return cls()
        return clock if isinstance(clock, SteadyClock) else cls(clock, lambda: clock().timestamp())

    def __call__(self) -> datetime:
        return self.wall()

    @property
    def is_settled(self) -> bool:
        """True if the clock was settled at its last reading."""
        return self._elapsed() >= self._settled_at

    def read(self, now: datetime | None = None) -> Moment:
        """The moment; ``now`` is what another clock, a database's, tells instead."""
        with self._lock:
            now, elapsed = now or self.wall(), self._elapsed()
            ahead = now.timestamp() - elapsed
            if self._begun is None:
                self._begun = now
            elif abs(ahead - self._ahead) > JUMP.total_seconds():
                LOG.error("the clock jumped")
                self._begun, self._settled_at = now, elapsed + SETTLE.total_seconds()
            self._ahead = ahead
            return Moment(now, self._begun, elapsed >= self._settled_at)
