"""Connections and their limits: how many, how long headers may take, and what malformed HTTP is answered.

aiohttp has no time-out for headers that trickle in, takes any number of connections, and logs the address of a client
that sends garbage; this subclass of its connection does none of that.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from ldp_aggregator.server.ingest import RETRY_SECONDS
from ldp_aggregator.server.problems import MEDIA_TYPE, ProblemError
from ldp_aggregator.service.settings import Limits

BACKLOG: Final = 1024
LINGER_SECONDS: Final = 2.0
"""How long a refused body is still read, so that the client sees the answer and not a reset."""

_SILENT: Final = logging.getLogger("ldp_aggregator.http")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # aiohttp's messages carry the client's address.


class Connection(RequestHandler):
    """One connection of a client."""

    __slots__ = ("_header_timer", "_limits", "_refused")

    def __init__(self, manager: Any, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
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
        self._refused = False
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert self._manager is not None  # noqa: S101 - set by the constructor
        if len(self._manager.connections) >= self._limits.connections and isinstance(transport, asyncio.Transport):
            self._refused = True
            transport.write(_TOO_MANY)
            transport.close()
            return
        super().connection_made(transport)
        self._start_header_timer()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        before = self._request_count
        super().data_received(data)
        if self._request_count > before:
            self._stop_header_timer()
        elif self._header_timer is None and self._current_request is None:
            self._start_header_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_header_timer()
        if not self._refused:
            super().connection_lost(exc)

    def handle_error(
        self, request: Any, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Bytes that are no request. The exception's message may repeat them, so it is not passed on."""
        code = "headers-too-large" if "Too Long" in type(exc).__name__ or _is_too_long(exc) else "malformed-request"
        response = ProblemError("internal-error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else code).response()
        response.force_close()
        return response

    def _start_header_timer(self) -> None:
        self._header_timer = self._loop.call_later(self._limits.header_seconds, self._header_time_is_up)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _header_time_is_up(self) -> None:
        self._header_timer = None
        if self._current_request is None and self.transport is not None:
            self.transport.abort()


async def listen(
    runner: web.AppRunner, bound: socket.socket, limits: Limits, tls: ssl.SSLContext | None
) -> asyncio.Server:
    """Accept connections for a runner that was set up."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        lambda: Connection(runner.server, loop, limits), sock=bound, ssl=tls, backlog=BACKLOG
    )


def bind(host: str, port: int) -> socket.socket:
    """A bound socket. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


def url_of(bound: socket.socket, *, tls: bool) -> str:
    host, port = bound.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _is_too_long(error: BaseException | None) -> bool:
    from aiohttp.http_exceptions import LineTooLong

    return isinstance(error, LineTooLong)


def _too_many() -> bytes:
    problem = ProblemError("too-many-connections").response()
    body = problem.body if isinstance(problem.body, bytes) else json.dumps({}).encode()
    head = (
        f"HTTP/1.1 {problem.status} Too Many Requests\r\nContent-Type: {MEDIA_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nRetry-After: {RETRY_SECONDS}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


_TOO_MANY: Final = _too_many()
