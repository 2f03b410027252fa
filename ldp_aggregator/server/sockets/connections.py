"""A connection's times and its share of a budget; and the connections of a listener together: how many there are, who
has to go, who has run out of time, and the one budget for what a process holds of its clients' bytes.

A connection that is not for uploads is handed over to aiohttp once, for good, so that nothing has to be known of what
aiohttp has read or written: its documented handler answers, and the times and the budget stay with us. What is asked of
it are a handler, which a :class:`aiohttp.web.Server` makes, and one middleware.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.problems import SECURITY_HEADERS, ProblemError, retry_later
from ldp_aggregator.service.rights import ON_USE
from ldp_aggregator.service.settings import Limits
from ldp_aggregator.store.contract import LOG, kind_of

PUBLIC: Final = "public"
"""The listener of devices; the others are for operators."""
LINGER_SECONDS: Final = 2.0
"""Seconds that a refused body is still read, so that the client sees the answer and not a reset."""
MOST_REFUSALS: Final = 128
"""Connections that are being refused in words at one time; more are cut off."""
WATCH_SECONDS: Final = 0.1
"""Seconds between two looks at who has run out of time; cheaper than a timer for each request."""


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
            except Exception as error:  # One socket's failure is not the others'.
                LOG.warning("a connection was cut", extra={"reason": kind_of(error)})
                connection.cut()
        self._look_timer = self.loop.call_later(WATCH_SECONDS, self._look) if self._open or self._refused else None


class Memory:
    """``most`` bytes for what clients send and what they do not read. Who does not read holds up nobody: where room is
    needed, the one who has not read for longest loses the connection.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.held = 0
        """Bytes held now."""
        self._unread: dict[Connection, int] = {}

    def take(self, size: int) -> bool:
        """Hold so many more bytes; False where there is no room for them."""
        while self.held + size > self._most:
            if not self._unread:
                return False
            reader = next(iter(self._unread))
            self.read(reader)
            reader.cut()
        self.held += size
        return True

    def give(self, size: int) -> None:
        """Give room back."""
        self.held -= size

    def wait_for(self, reader: Connection, size: int) -> None:
        """An answer of which so many bytes are not read. They are there already, so it may be this reader who goes."""
        self._unread[reader] = size
        self.held += size
        self.take(0)

    def read(self, reader: Connection) -> None:
        """The answer was read, or never will be."""
        self.held -= self._unread.pop(reader, 0)


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
        self.is_stranger = True
        """No token in use was shown."""

    @property
    def is_idle(self) -> bool:
        """No complete request has arrived that was not answered."""
        raise NotImplementedError

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


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MakeHandler = Callable[[], asyncio.Protocol]

READ_BYTES: Final = 1 << 14
"""Bytes that a body may be ahead of its handler before reading pauses."""
NEVER: Final = 3650 * 86400.0
"""Seconds after which aiohttp would close an idle connection; ours are closed by who watches them."""

_SILENT: Final = logging.getLogger("ldp_aggregator.http")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # aiohttp's messages carry the client's address.


def make_runner(app: web.Application, limits: Limits) -> web.AppRunner:
    """A runner whose ``server`` makes the handlers of connections."""
    return web.AppRunner(
        app,
        handle_signals=False,
        shutdown_timeout=limits.drain_seconds,
        access_log=None,
        logger=_SILENT,
        keepalive_timeout=NEVER,
        max_line_size=limits.header_bytes,
        max_field_size=limits.header_bytes,
        lingering_time=LINGER_SECONDS,
        read_bufsize=READ_BYTES,
        auto_decompress=False,
    )


class HandedOver(Connection):
    """``handler`` has what the client sends from here on."""

    def __init__(self, others: Connections, handler: Any) -> None:
        super().__init__(others)
        self._handler = handler
        self._request: web.Request | None = None
        self._task: asyncio.Task[Any] | None = None
        self._head_begun = self._too_slow = self._heard_all = False

    @property
    def is_idle(self) -> bool:
        return self._request is None and not self._head_begun and self._unread_deadline == math.inf

    def take_over(self, before: Connection, transport: asyncio.Transport, data: bytes, *, last: bool) -> None:
        """Take the place of the connection that was heard ``before``, and what it has read."""
        self._transport, self._last = transport, last
        self._others.replace(before, self)
        transport.set_protocol(self)
        self._handler.connection_made(transport)
        self.data_received(data)

    def data_received(self, data: bytes) -> None:
        self._others.heard(self)
        if self._request is None and not self._head_begun:
            self._head_begun = True
            self._wait(self._limits.header_seconds)
        self._handler.data_received(data)

    def eof_received(self) -> bool:
        """Give his answer to who has said all he wants to say. (TLS has no such state.)"""
        if self._request is None:
            self._heard_all = self._head_begun
            self._wait(0)  # A request that has arrived already begins before the next look.
        else:
            self._heard_all = self._request.content.is_eof()
        return self._heard_all and self._transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._handler.resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        # Not at once: the handler's task, which may have been made a moment ago, has to begin before it can end.
        self._loop.call_soon(self._handler.connection_lost, exc)

    def finish(self) -> None:
        self._last = True
        if self._request is None:
            self._wait(0)  # A request that has arrived already begins before the next look.

    def look(self, now: float) -> None:
        if self._request is not None and self._request.content.is_eof():
            self._deadline = math.inf  # The rest is up to us.
        super().look(now)

    def _time_is_up(self) -> None:
        if self._request is None or self._task is None:
            if (self._heard_all or self._last) and not self._transport.is_closing():
                self._deadline = math.inf
                self._transport.close()
            else:
                self.cut()
        else:
            self._too_slow = True
            self._deadline = math.inf
            self._task.cancel()

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Have ``handler`` answer, once there is room for the body, and for as long as that takes to arrive."""
        if not self._hold(min(request.content_length or 0, self._limits.body_bytes)):
            return self._refusal(retry_later("overloaded"))
        self._request, self._task = request, asyncio.current_task()
        self._head_begun = False
        if not request.content.is_eof():
            # Nothing more comes from who has said all he wants to say, but what has come may still be read.
            self._wait(0 if self._heard_all else self._limits.body_seconds)
        else:
            self._deadline = math.inf
        ON_USE.set(self._note_token)
        try:
            response = await handler(request)
        except asyncio.CancelledError:
            if not self._too_slow:
                raise
            getattr(self._task, "uncancel", int)()  # Since Python 3.11 a task remembers.
            response = self._refusal(ProblemError("body-timeout"))
        finally:
            self._release()
            self._request = self._task = None
            # Another request that has arrived already begins before the next look.
            self._wait(0 if self._heard_all else self._limits.idle_seconds)
        if self._last:
            response.force_close()
        return response

    def _note_token(self) -> None:
        self.is_stranger = False

    def _refusal(self, problem: ProblemError) -> web.Response:
        self._others.refused(problem.code)
        response = problem.response()
        response.headers.update(SECURITY_HEADERS | {"Cache-Control": "no-store"})
        response.force_close()
        return response


@web.middleware
async def watched(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Has every request answered under the eyes of its connection."""
    connection = None if request.transport is None else request.transport.get_protocol()
    if isinstance(connection, HandedOver):
        return await connection.answer(request, handler)
    raise ConnectionResetError("the connection ended before its request was handled")
