"""A connection that is aiohttp's: its documented handler answers, and the times and the budget stay with us.

A connection is handed over once, for good, so that nothing has to be known of what aiohttp has read or written. What is
asked of it are a handler, which a :class:`aiohttp.web.Server` makes, and one middleware.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from ldp_aggregator.server.problems import SECURITY_HEADERS, ProblemError, retry_later
from ldp_aggregator.server.sockets.connections import LINGER_SECONDS, Connection, Connections
from ldp_aggregator.service.rights import ON_USE
from ldp_aggregator.service.settings import Limits

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
        self._head_begun = self._too_slow = self._known = self._heard_all = False

    @property
    def is_idle(self) -> bool:
        return self._request is None and not self._head_begun and self._unread_deadline == math.inf

    @property
    def is_stranger(self) -> bool:
        return not self._known

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
        self._known = True

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
