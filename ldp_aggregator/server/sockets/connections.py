"""A connection's times and its share of a budget; and the connections of a listener together: how many there are, who
has to go, who has run out of time, and the one budget for what a process holds of its clients' bytes.
"""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any, Final

from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.service.settings import Limits

LOG: Final = logging.getLogger("ldp_aggregator")

PUBLIC: Final = "public"
"""The listener of devices; the others are for operators."""
LINGER_SECONDS: Final = 2.0
"""Seconds that a refused body is still read, so that the client sees the answer and not a reset."""
MOST_REFUSALS: Final = 128
"""Connections that are being refused in words at one time; more are cut off."""
WATCH_SECONDS: Final = 0.1
"""Seconds between two looks at who has run out of time; cheaper than a timer for each request."""


class Memory:
    """``most`` bytes for what clients send and what they do not read. Who does not read holds up nobody: where room is
    needed, the one who has not read for longest loses the connection.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._unread: dict[Connection, int] = {}

    @property
    def held(self) -> int:
        """Bytes held now."""
        return self._held

    def take(self, size: int) -> bool:
        """Hold so many more bytes; False where there is no room for them."""
        while self._held + size > self._most:
            if not self._unread:
                return False
            reader = next(iter(self._unread))
            self.read(reader)
            reader.cut()
        self._held += size
        return True

    def give(self, size: int) -> None:
        """Give room back."""
        self._held -= size

    def wait_for(self, reader: Connection, size: int) -> None:
        """An answer of which so many bytes are not read. They are there already, so it may be this reader who goes."""
        self._unread[reader] = size
        self._held += size
        self.take(0)

    def read(self, reader: Connection) -> None:
        """The answer was read, or never will be."""
        self._held -= self._unread.pop(reader, 0)


class Connections:
    """The open connections of one listener, the one that was silent longest first.

    Where all places are taken the longest idle connection goes. Where a ``listener`` is not the public one it is the
    oldest on which nobody has shown a token, whatever it does: whoever has one gets in, and stays.
    """

    def __init__(self, limits: Limits, metrics: Metrics, listener: str) -> None:
        self.limits = limits
        self.memory = Memory(limits.queue_bytes)
        """Operators have a budget of their own, or a flood of uploads would shut them out."""
        self._metrics, self._is_public = metrics, listener == PUBLIC
        self._number_open = metrics.connections.labels(listener)
        self.loop = asyncio.get_running_loop()
        self.server: Any = None
        """The socket that accepts them, once it does."""
        self._open: dict[Connection, int] = {}
        """Each with its number: the oldest has the least."""
        self._number = 0
        self._refused: set[Connection] = set()
        self._look_timer: asyncio.TimerHandle | None = None
        self._empty: asyncio.Future[None] | None = None

    def admit(self, connection: Connection) -> bool:
        """Take a place, if need be of somebody who goes; False where there is none."""
        if len(self._open) >= self.limits.connections:
            leaving = None
            if not self._is_public:  # By age alone: whoever has just come is idle, too, until he is heard.
                strangers = (other for other in self._open if other.is_stranger)
                leaving = min(strangers, key=self._open.__getitem__, default=None)
            leaving = leaving or next((other for other in self._open if other.is_idle), None)
            if leaving is None:
                return False
            self.remove(leaving)
            leaving.cut()
        self._number += 1
        self._open[connection] = self._number
        self._number_open.set(len(self._open))
        if self._look_timer is None:
            self._look_timer = self.loop.call_later(WATCH_SECONDS, self._look)
        return True

    def heard(self, connection: Connection) -> None:
        """The connection has sent something."""
        number = self._open.pop(connection, None)
        if number is not None:
            self._open[connection] = number

    def replace(self, connection: Connection, by: Connection) -> None:
        """The same client, and somebody else who listens to it."""
        number = self._open.pop(connection, None)
        if number is not None:
            self._open[by] = number

    def remove(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        self._refused.discard(connection)
        self._number_open.set(len(self._open))
        if not self._open and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def refuse(self, connection: Connection) -> bool:
        """Keep one that was not admitted until it is told so; False where too many are."""
        self.refused("too-many-connections")
        if len(self._refused) >= MOST_REFUSALS:
            return False
        self._refused.add(connection)
        return True

    def refused(self, code: str) -> None:
        """One was refused before there was a request that a handler could answer."""
        self._metrics.refusals.labels(code).inc()

    async def finish(self) -> None:
        """Let every connection answer what it has, and end."""
        for connection in list(self._open):
            connection.finish()
        if self._open:
            self._empty = self.loop.create_future()
            await self._empty

    def cut(self) -> None:
        """End every connection now."""
        for connection in (*self._open, *self._refused):
            connection.cut()

    def _look(self) -> None:
        now = self.loop.time()
        if self._is_public:
            self._metrics.queue_bytes.set(self.memory.held)
        for connection in (*self._open, *self._refused):
            try:
                connection.look(now)
            except Exception as error:  # noqa: PERF203 - one socket's failure is not the others'
                LOG.warning("a connection was cut", extra={"reason": type(error).__name__})
                connection.cut()
        self._look_timer = self.loop.call_later(WATCH_SECONDS, self._look) if self._open or self._refused else None


class Connection(asyncio.Protocol):
    """All deadlines are here: a subclass sets ``_deadline`` to when what it waits for has to be there."""

    def __init__(self, others: Connections) -> None:
        self._others, self._loop, self._limits = others, others.loop, others.limits
        self._transport: Any = None
        self._deadline = self._unread_deadline = math.inf
        self._held = 0
        """Bytes in the budget: of the request that is being answered."""
        self._last = False
        """True where the connection closes with the current answer."""

    @property
    def is_idle(self) -> bool:
        """No complete request has arrived that was not answered."""
        raise NotImplementedError

    @property
    def is_stranger(self) -> bool:
        """No token in use was shown."""
        return True

    def finish(self) -> None:
        """Answer what has arrived, and then close."""
        raise NotImplementedError

    def pause_writing(self) -> None:
        self._unread_deadline = self._loop.time() + self._limits.answer_seconds
        self._others.memory.wait_for(self, self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._others.memory.read(self)
        self._unread_deadline = math.inf

    def connection_lost(self, exc: BaseException | None) -> None:
        self._others.remove(self)
        self._others.memory.read(self)
        self._transport = None

    def look(self, now: float) -> None:
        """End what has taken too long; ``now`` is the loop's time."""
        if now >= self._unread_deadline:
            self.cut()
        elif self._unread_deadline == math.inf and now >= self._deadline:
            self._time_is_up()
        elif self._deadline == math.inf and self._transport is not None and self._transport.is_closing():
            self._deadline = now + self._limits.answer_seconds

    def cut(self) -> None:
        """End it now, whatever is still to be written."""
        if self._transport is not None:
            self._transport.abort()

    def _wait(self, seconds: float) -> None:
        self._deadline = self._loop.time() + seconds

    def _time_is_up(self) -> None:
        self.cut()

    def _hold(self, size: int) -> bool:
        """Hold so many bytes of a request until :meth:`_release`; False where the budget has no room."""
        if not self._others.memory.take(size):
            return False
        self._held += size
        return True

    def _release(self) -> None:
        self._others.memory.give(self._held)
        self._held = 0
