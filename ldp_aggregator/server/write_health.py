"""Does writing work? What the writer last saw, for whoever asks; asking costs nothing and waits for nobody."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

STALE_SECONDS: Final = 30.0
"""A store that has not written for so long hangs: the writer writes every few seconds, whether or not there are
reports, and waits 20 seconds for another process's transaction.
"""


class WriteHealth:
    """``clock`` gives seconds that only go forward."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrote_at: float | None = None

    def succeeded(self) -> None:
        self._wrote_at = self._clock()

    def failed(self) -> None:
        self._wrote_at = None

    @property
    def is_well(self) -> bool:
        """Whether the last write worked, and was not long ago."""
        return self._wrote_at is not None and self._clock() - self._wrote_at < STALE_SECONDS
