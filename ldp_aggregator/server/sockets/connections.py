"""Connections and their limits: how many, how long headers may take, and what malformed HTTP is answered.

aiohttp has no time-out for headers that trickle in, takes any number of connections, and logs the address of a client
that sends garbage; this subclass of its connection does none of that.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler

from ldp_aggregator.server.metrics import ConnectionWatch
from ldp_aggregator.server.problems import MEDIA_TYPE, ProblemError, retry_later
from ldp_aggregator.service.settings import Limits

LINGER_SECONDS: Final = 2.0
"""How long a refused body is still read, so that the client sees the answer and not a reset."""
MOST_REFUSALS: Final = 128
"""Connections that are being refused in words at one time; more are cut off."""

_SILENT: Final = logging.getLogger("ldp_aggregator.http")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # aiohttp's messages carry the client's address.


class Connections:
    """The open connections of one listener, the one that was silent longest first, ``most`` of them at a time."""

    def __init__(self, most: int, watch: ConnectionWatch) -> None:
        self._most = most
        self.watch = watch
        self._open: dict[Connection, None] = {}
        self._refusals: set[Refusal] = set()

    def admit(self, connection: Connection) -> bool:
        """Whether there is room. Where there is none, the longest idle connection goes and makes some."""
        if len(self._open) >= self._most:
            idle = next((other for other in self._open if other.is_idle), None)
            if idle is None:
                return False
            self.remove(idle)
            idle.cut()
        self._open[connection] = None
        self.watch.open(len(self._open))
        return True

    def heard(self, connection: Connection) -> None:
        """The connection has sent something."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def remove(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        self.watch.open(len(self._open))

    def refuse(self, transport: asyncio.Transport) -> None:
        """Tell a client to come back later, for as long as that takes few of us."""
        self.watch.refused("too-many-connections")
        if len(self._refusals) >= MOST_REFUSALS:
            transport.abort()
            return
        refusal = Refusal(transport, self._refusals.discard)
        self._refusals.add(refusal)
        transport.set_protocol(refusal)

    def cut(self) -> None:
        """End every connection now."""
        for connection in list(self._open):
            connection.cut()
        for refusal in list(self._refusals):
            refusal.cut()


class Connection(RequestHandler):
    """One connection of a client."""

    __slots__ = ("_header_timer", "_limits", "_others")

    def __init__(self, manager: Any, loop: asyncio.AbstractEventLoop, limits: Limits, others: Connections) -> None:
        super().__init__(
            manager,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # None is documented, and turns the log off.
            logger=_SILENT,
            keepalive_timeout=limits.idle_seconds,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            lingering_time=LINGER_SECONDS,
            auto_decompress=False,
        )
        self._limits = limits
        self._others = others
        self._header_timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no complete request has arrived that was not answered."""
        return self._waiter is not None and not self._waiter.done() and not self._messages

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not isinstance: uvloop's transports are no subclasses of asyncio's.
        if not self._others.admit(self):
            self._others.refuse(cast("asyncio.Transport", transport))
            return
        super().connection_made(transport)
        self._start_header_timer()

    def data_received(self, data: bytes) -> None:
        self._others.heard(self)
        before = self._request_count
        super().data_received(data)
        if self._request_count > before:
            self._stop_header_timer()
        elif self._header_timer is None and self._current_request is None:
            self._start_header_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._others.remove(self)
        self._stop_header_timer()
        super().connection_lost(exc)

    def handle_error(
        self, request: Any, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Bytes that are no request. The exception's message may repeat them, so it is not passed on."""
        code = "headers-too-large" if isinstance(exc, LineTooLong) else "malformed-request"
        code = "internal-error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else code
        self._others.watch.refused(code)
        response = ProblemError(code).response()
        response.force_close()
        return response

    def cut(self) -> None:
        """End it now, whatever is still to be written."""
        if self.transport is not None:
            self.transport.abort()

    def _start_header_timer(self) -> None:
        self._header_timer = self._loop.call_later(self._limits.header_seconds, self._header_time_is_up)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _header_time_is_up(self) -> None:
        self._header_timer = None
        if self._current_request is None:
            self.cut()


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
