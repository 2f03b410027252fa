"""Numbers of the pages as they were worked out last: nobody waits long for newer ones while there are some."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar

PATIENCE: Final = 0.02
"""Seconds that a page waits for newer numbers, if the last ones took less, before it shows those that there are."""
LATER: Final = 0.05
"""Seconds after which longer work begins, so that it does not compete with the page that shows the last numbers."""
MOST_KEPT: Final = 256
"""Numbers that stay in memory, those that were asked for last."""

Value = TypeVar("Value")
Work = Callable[[], Awaitable[Value]]


class Latest:
    """The last value of each key, with the version that it is of. A newer one is worked out once for all who ask."""

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[Hashable, Any, float]] = {}
        self._working: dict[Hashable, asyncio.Task[Any]] = {}

    async def exact(self, key: Hashable, version: Hashable, work: Work[Value]) -> Value:
        """The value of this version. Raises what ``work`` raises, and then keeps what there was."""
        while not self.has(key, version):
            is_another = key in self._working
            working = self.start(key, version, work)
            value: Value = await asyncio.shield(working)  # Who hangs up leaves it to the others.
            if not is_another:
                return value
        last: Value = self._last(key)
        return last

    async def soon(self, key: Hashable, version: Hashable, work: Work[Value]) -> Value:
        """The value of this version if it is there within :data:`PATIENCE`, else the last one that there is; waits
        only for the first. Raises what ``work`` raises.
        """
        if not self.has(key, version):
            _, _, seconds = self._found.get(key, (None, None, 0.0))
            is_long = seconds > PATIENCE
            working = self.start(key, version, work, LATER if is_long else 0.0)
            if not is_long:
                await asyncio.wait([working], timeout=PATIENCE if key in self._found else None)
                if working.done():
                    working.result()
        last: Value = self._last(key)
        return last

    def start(self, key: Hashable, version: Hashable, work: Work[Any], delay: float = 0.0) -> asyncio.Task[Any]:
        """Begin to work a value out, if none of this key is being worked out; a failure is told to those who wait."""
        working = self._working.get(key)
        if working is None:
            working = self._working[key] = asyncio.create_task(self._work(key, version, work, delay))
            working.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return working

    def has(self, key: Hashable, version: Hashable) -> bool:
        """True if the last value is of this version."""
        return key in self._found and self._found[key][0] == version

    def _last(self, key: Hashable) -> Any:
        self._found[key] = found = self._found.pop(key)  # At the end: the one that goes last.
        return found[1]

    async def _work(self, key: Hashable, version: Hashable, work: Work[Value], delay: float) -> Value:
        try:
            await asyncio.sleep(delay)
            begun = time.perf_counter()
            value = await work()
        finally:
            del self._working[key]
        self._found.pop(key, None)
        self._found[key] = version, value, time.perf_counter() - begun
        while len(self._found) > MOST_KEPT:
            del self._found[next(iter(self._found))]
        return value
