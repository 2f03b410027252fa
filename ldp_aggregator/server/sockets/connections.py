"""The connections of a listener together: how many there are, who has to go, and who has run out of time."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol

from ldp_aggregator.server.metrics import ConnectionWatch
from ldp_aggregator.server.problems import MEDIA_TYPE, retry_later
from ldp_aggregator.server.sockets.handler import LINGER_SECONDS

LOG: Final = logging.getLogger("ldp_aggregator")

MOST_REFUSALS: Final = 128
"""Connections that are being refused in words at one time; more are cut off."""
WATCH_SECONDS: Final = 0.1
"""How often it is looked who has run out of time. One look at all of them is cheaper than a timer for each request."""


class Watched(Protocol):
    """What is asked of a connection."""

    @property
    def is_idle(self) -> bool:
        """Whether no complete request has arrived that was not answered."""
        ...

    def look(self, now: float) -> None:
        """End what has taken too long; ``now`` is the loop's time."""
        ...

    def finish(self) -> None:
        """Answer what has arrived, and then close."""
        ...

    def cut(self) -> None:
        """End it now, whatever is still to be written."""
        ...


class Connections:
    """The open connections of one listener, the one that was silent longest first, ``most`` of them at a time."""

    def __init__(self, most: int, watch: ConnectionWatch) -> None:
        self._most = most
        self.watch = watch
        self._open: dict[Watched, None] = {}
        self._refusals: set[Refusal] = set()
        self._look_timer: asyncio.TimerHandle | None = None
        self._empty: asyncio.Future[None] | None = None

    def admit(self, connection: Watched) -> bool:
        """Whether there is room. Where there is none, the longest idle connection goes and makes some."""
        if len(self._open) >= self._most:
            idle = next((other for other in self._open if other.is_idle), None)
            if idle is None:
                return False
            self.remove(idle)
            idle.cut()
        self._open[connection] = None
        self.watch.open(len(self._open))
        if self._look_timer is None:
            self._look_timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._look)
        return True

    def heard(self, connection: Watched) -> None:
        """The connection has sent something."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def remove(self, connection: Watched) -> None:
        self._open.pop(connection, None)
        self.watch.open(len(self._open))
        if not self._open and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def refuse(self, transport: asyncio.Transport) -> None:
        """Tell a client to come back later, for as long as that takes few of us."""
        self.watch.refused("too-many-connections")
        if len(self._refusals) >= MOST_REFUSALS:
            transport.abort()
            return
        refusal = Refusal(transport, self._refusals.discard)
        self._refusals.add(refusal)
        transport.set_protocol(refusal)

    async def finish(self) -> None:
        """Let every connection answer what it has, and end."""
        for connection in list(self._open):
            connection.finish()
        if self._open:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty

    def cut(self) -> None:
        """End every connection now."""
        for connection in list(self._open):
            connection.cut()
        for refusal in list(self._refusals):
            refusal.cut()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._open):
            try:
                connection.look(now)
            except Exception as error:  # noqa: PERF203 - one socket's failure is not the others'
                LOG.warning("a connection was cut", extra={"reason": type(error).__name__})
                connection.cut()
        self._look_timer = loop.call_later(WATCH_SECONDS, self._look) if self._open else None


class Refusal(asyncio.Protocol):
    """A connection that was one too many. It is told so once it asks, and then read until the client has heard it: a
    socket that is closed with something unread is reset, and a reset overtakes the answer.
    """

    def __init__(self, transport: asyncio.Transport, gone: Any) -> None:
        self._transport = transport
        self._gone = gone
        self._told = False
        self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self.cut)

    def data_received(self, data: bytes) -> None:
        if not self._told:
            self._told = True
            self._transport.write(_too_many())
            if self._transport.can_write_eof():
                self._transport.write_eof()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._timer.cancel()
        self._gone(self)

    def cut(self) -> None:
        self._transport.abort()


def _too_many() -> bytes:
    """The whole answer: there is no request yet that aiohttp could answer."""
    problem = retry_later("too-many-connections")
    body = problem.body()
    head = (
        f"HTTP/1.1 429 Too Many Requests\r\nContent-Type: {MEDIA_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nRetry-After: {problem.headers['Retry-After']}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
