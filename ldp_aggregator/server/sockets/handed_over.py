"""Connections that aiohttp answers: everything but uploads that take the short way.

A connection is handed over once, for good, so that nothing has to be known of what aiohttp has written. It is given one
request after another, as soon as the last one was answered: what a client sends ahead, announces or leaves half said
stays with us, and so do the times and the budget. What is no request never reaches it, and what it refuses by itself is
refused in our words. Asked of it are a handler for each connection and one middleware.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from ldp_aggregator.server.problems import SECURITY_HEADERS, ProblemError
from ldp_aggregator.server.sockets.connections import Connection, Connections, overloaded
from ldp_aggregator.server.sockets.heads import MOST_HEADERS, read_head
from ldp_aggregator.service.rights import ON_USE
from ldp_aggregator.service.settings import Limits

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

READ_BYTES: Final = 1 << 14
"""Bytes that a body may be ahead of its handler before reading pauses."""
NEVER: Final = 3650 * 86400.0
"""Seconds after which aiohttp would close an idle connection; ours are closed by who watches them."""
STAND_IN: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
"""Request in place of a malformed one, so that it is refused in its turn, after the requests before it."""

_SILENT: Final = logging.getLogger("ldp_aggregator.http")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # aiohttp's messages carry the client's address.


class RequestHandler(web.RequestHandler):
    """aiohttp's, of which every word is ours."""

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Refuse what aiohttp could not read, or could not answer; nothing of it is repeated."""
        connection = _listener_to(self.transport)
        if connection is None or request.writer.output_size > 0:
            raise ConnectionError("nobody hears what is wrong")
        return connection.refuse_unread(ProblemError("malformed-request" if status < 500 else "internal-error"))


def make_runner(app: web.Application, limits: Limits) -> web.AppRunner:
    """A runner for whose ``server`` :func:`make_handler` makes handlers."""
    return web.AppRunner(app, handle_signals=False, shutdown_timeout=limits.drain_seconds, access_log=None)


def make_handler(runner: web.AppRunner, limits: Limits) -> RequestHandler:
    """A handler of one connection. Its own limits are beyond ours."""
    if runner.server is None:
        raise RuntimeError("the runner was not set up")
    return RequestHandler(
        runner.server,
        loop=asyncio.get_running_loop(),
        access_log=None,  # type: ignore[arg-type]
        logger=_SILENT,
        keepalive_timeout=NEVER,
        max_line_size=2 * limits.header_bytes,
        max_field_size=2 * limits.header_bytes,
        max_headers=2 * MOST_HEADERS,
        lingering_time=0,
        read_bufsize=READ_BYTES,
        auto_decompress=False,
    )


class _Line(asyncio.Transport):
    """A connection's transport, as aiohttp has it: what it closes is closed in the connection's way, and reading pauses
    for the sake of either.
    """

    def __init__(self, connection: HandedOver, transport: asyncio.Transport) -> None:
        super().__init__()
        self.connection, self._transport = connection, transport
        self.is_reading_for_handler = True

    def write(self, data: Any) -> None:
        self._transport.write(data)

    def writelines(self, list_of_data: Any) -> None:
        self._transport.writelines(list_of_data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self.is_reading_for_handler = False
        self.connection.read_or_not()

    def resume_reading(self) -> None:
        self.is_reading_for_handler = True
        self.connection.read_or_not()

    def close(self) -> None:
        self.connection.say_goodbye()

    def abort(self) -> None:
        self._transport.abort()


class HandedOver(Connection):
    """``handler`` answers what the client asks for from here on."""

    def __init__(self, others: Connections, handler: RequestHandler) -> None:
        super().__init__(others)
        self._handler = handler
        self._line: _Line
        self._request: web.Request | None = None
        self._task: asyncio.Task[Any] | None = None
        self._has_request = False
        """True while the handler has a request that is not answered."""
        self._missing: int | None = 0
        """Bytes of its body that have not come; None if it says itself where it ends."""
        self._problem: ProblemError | None = None
        """The answer to the current request, whatever the handler would say; it is the last one."""
        self._dropped = False
        """True if bytes that were sent ahead were dropped for want of room."""

    def take_over(self, before: Connection, transport: asyncio.Transport, data: bytes, *, last: bool) -> None:
        """Take the place of the connection that was heard ``before``, and what it has read."""
        self._transport, self._last = transport, last
        self._line = _Line(self, transport)
        self._others.replace(before, self)
        transport.set_protocol(self)
        self._handler.connection_made(self._line)
        self.data_received(data)

    @property
    def is_between(self) -> bool:
        return not self._has_request and self._missing == 0

    @property
    def is_answering(self) -> bool:
        return self._has_request and self._is_complete

    @property
    def _is_complete(self) -> bool:
        if self._missing is None:
            return self._request is not None and self._request.content.is_eof()
        return self._missing == 0

    def data_received(self, data: bytes) -> None:
        if not self._is_leaving and self._problem is None:
            self._hear(data)
            self._go_on()

    def eof_received(self) -> bool:
        """Answer a client that has closed its sending side. (TLS has no such state.)"""
        self._heard_all = True
        if self._is_leaving or not self._has_request or self._transport.get_extra_info("sslcontext") is not None:
            return False
        if not self._is_complete:
            self._refuse(ProblemError("body-timeout"))
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._handler.resume_writing()
        self._go_on()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._release()
        # Not at once: the handler's task, which may have been made a moment ago, has to begin before it can end.
        self._loop.call_soon(self._handler.connection_lost, exc)

    def finish(self) -> None:
        self._last = True
        if self.is_between:
            self._wait(0)

    def give_way(self) -> None:
        if self._unread_deadline < math.inf:
            self.cut()
        elif self.is_answering:
            self._dropped = True
            self._drop()
        else:
            self._refuse(overloaded())

    def say_goodbye(self) -> None:
        """aiohttp has closed the connection."""
        if not self._is_leaving:
            self._leave(unread=self._problem is not None or not self._is_complete)
            self._read_or_not()

    def read_or_not(self) -> None:
        """Read, unless aiohttp is to have no more, or what has come has to be answered first. What is not looked at any
        more is read in any case.
        """
        if not self._transport.is_closing():
            reads = self._is_leaving or (self._line.is_reading_for_handler and not self._paused)
            (self._transport.resume_reading if reads else self._transport.pause_reading)()

    def refusal(self, problem: ProblemError) -> web.Response:
        """An answer of ours, after which the connection ends."""
        self._others.refused(problem.code)
        response = problem.response()
        response.headers.update(SECURITY_HEADERS | {"Cache-Control": "no-store"})
        response.force_close()
        return response

    def refuse_unread(self, problem: ProblemError) -> web.Response:
        """The answer to what aiohttp did not read as a request."""
        self._problem, self._last, self._has_request = problem, True, False
        self._release()
        self._drop()
        return self.refusal(problem)

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Have ``handler`` answer, for as long as the body takes to arrive and has its room."""
        self._request, self._task = request, asyncio.current_task()
        ON_USE.set(self._note_token)
        response: web.StreamResponse | None = None
        try:
            if self._problem is None:
                response = await handler(request)
        except web.HTTPException:  # The router's alone: what it is asked for is no path, such as "*".
            self._problem = ProblemError("not-found")
        except asyncio.CancelledError:
            if self._problem is None:
                raise
            getattr(self._task, "uncancel", int)()  # Since Python 3.11 a task remembers.
        finally:
            self._last = self._last or self._problem is not None or not self._is_complete
            self._has_request, self._request, self._task = False, None, None
            self._release()
        if response is None:
            return self.refusal(self._problem or overloaded())
        if self._last:
            response.force_close()
        # What is answered now is written before another connection has its turn.
        self._rest()
        self._go_on()
        return response

    def _rest(self) -> None:
        super()._rest()
        if self._heard_all:
            self._wait(0)

    def _time_is_up(self) -> None:
        if self._has_request and self._problem is None:
            self._refuse(ProblemError("body-timeout"))
        elif self.is_idle and not self._is_leaving:
            self._leave()
        else:
            self.cut()

    def _go_on(self) -> None:
        """Feed the handler the requests that it can answer now, and nothing after its last answer."""
        if self._last and not self._has_request:
            self._drop()
            return
        while self._ahead and self._problem is None:
            if self._missing != 0:
                self._give(self._ahead[: self._missing])
            elif self._has_request or self._unread_deadline < math.inf or not self._begin():
                break
        if self._dropped and not self._has_request:
            self._refuse(overloaded())
        self._balance()

    def _begin(self) -> bool:
        """Begin the next request; False where its head is not there yet."""
        try:
            data = self._next_head()
            head = None if data is None else read_head(data)
        except ProblemError as problem:
            self._refuse(problem)
            return False
        if data is None or head is None:
            return False
        self._last = self._last or not head.keeps_open
        self._has_request, self._missing = True, head.length
        self._wait(self._limits.body_seconds)
        self._arrived = len(data)
        self._feed(data)
        return True

    def _give(self, part: bytes) -> None:
        """Pass a part of a body to the handler."""
        self._ahead = self._ahead[len(part) :]
        self._arrived += len(part)
        if self._missing is not None:
            self._missing -= len(part)
        self._feed(part)

    def _feed(self, data: bytes) -> None:
        if self._missing == 0:
            self._deadline = math.inf  # The rest is up to us.
            if not self._hold(self._arrived):
                self._refuse(overloaded())
        self._handler.data_received(data)

    def _refuse(self, problem: ProblemError) -> None:
        """Answer with this, in its turn, whatever the current request is, and if it is none."""
        self._problem, self._last = problem, True
        self._wait(self._limits.answer_seconds)
        if self._task is not None:
            self._task.cancel()
        elif not self._has_request:
            self._has_request = True
            self._handler.data_received(STAND_IN)
        self._drop()

    def _read_or_not(self) -> None:
        if self._transport is not None:
            self.read_or_not()

    def _note_token(self) -> None:
        self.is_stranger = False


@web.middleware
async def watched(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Middleware by which the connection of a request awaits its answer."""
    connection = _listener_to(request.transport)
    if connection is None:
        raise ConnectionResetError("the connection ended before its request was handled")
    return await connection.answer(request, handler)


def _listener_to(transport: asyncio.BaseTransport | None) -> HandedOver | None:
    return transport.connection if isinstance(transport, _Line) else None
