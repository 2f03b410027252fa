"""The standard library's HTTP, with kept connections: honours proxies, verifies certificates, follows no redirect."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import select
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from ldp_client.errors import TransportError
from ldp_client.network.transport import Request, Response, TransportStatus, is_loopback
from ldp_client.runtime.fork import ForkSafeLock

if TYPE_CHECKING:
    from typing import Self

_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class _Route:
    """Where to connect for a request: to the server itself, or to a proxy."""

    secure: bool
    host: str
    port: int | None
    proxy: str | None


class HttpTransport:
    """Thread-safe and fork-safe; one is enough for a process.

    Parameters
    ----------
    context
        TLS settings; None takes the system's certificate store and full verification.
    proxies
        Scheme to proxy URL; None takes those of the environment. Loopback never goes through a proxy.
    most_idle
        Connections kept open between requests.
    """

    def __init__(
        self,
        *,
        context: ssl.SSLContext | None = None,
        proxies: Mapping[str, str] | None = None,
        most_idle: int = 64,
    ) -> None:
        self._context = context
        self._from_environment = proxies is None
        self._proxies = dict(getproxies() if proxies is None else proxies)
        self._most_idle = most_idle
        self._lock = ForkSafeLock()
        self._process = os.getpid()
        self._idle: list[tuple[_Route, http.client.HTTPConnection]] = []
        self._status = TransportStatus()

    def status(self) -> TransportStatus:
        """What went over the network so far."""
        return self._status

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def send(self, request: Request, timeout: float) -> Response:
        """See :class:`ldp_client.network.transport.Transport`."""
        parts = urlsplit(request.url)
        route = self._route(parts)
        until = time.monotonic() + timeout
        connection = self._take(route) or self._connect(route)
        try:
            return self._exchange(connection, route, parts, request, until)
        except (http.client.HTTPException, OSError) as error:
            # Never sent again from here: whoever asked decides, and may have been told to stop meanwhile.
            connection.close()
            raise TransportError(_problem(error)) from None

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        route: _Route,
        parts: SplitResult,
        request: Request,
        until: float,
    ) -> Response:
        remaining = until - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        connection.timeout = remaining
        # A class to the type checker, any callable to http.client.
        connection.response_class = partial(_BoundedResponse, until)  # type: ignore[assignment]
        if connection.sock is not None:
            connection.sock.settimeout(remaining)
        target = parts.path + (f"?{parts.query}" if parts.query else "") or "/"
        headers = dict(request.headers)
        if route.proxy is not None and not route.secure:
            target = request.url
            headers.update(_proxy_headers(route.proxy))
        connection.request(request.method, target, request.body, headers)
        answer = connection.getresponse()
        # Closed whatever happens: read1 does not end an exchange, and the answer may own the socket.
        with contextlib.closing(answer):
            body = _read(answer, request.largest_answer)
        self._count(
            requests=1,
            retries=request.attempt > 1,
            bytes_sent=len(request.body or b""),
            bytes_received=len(body),
        )
        if answer.will_close:
            connection.close()
        else:
            self._keep(route, connection)
        return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)

    def _route(self, parts: SplitResult) -> _Route:
        host = parts.hostname or ""
        direct = is_loopback(host) or (self._from_environment and bool(self._proxies) and proxy_bypass(host))
        proxy = None if direct else self._proxies.get(parts.scheme) or self._proxies.get("all")
        return _Route(parts.scheme == "https", host, parts.port, proxy)

    def _connect(self, route: _Route) -> http.client.HTTPConnection:
        proxy = None if route.proxy is None else urlsplit(route.proxy if "//" in route.proxy else f"//{route.proxy}")
        host, port = (route.host, route.port) if proxy is None else (proxy.hostname or "", proxy.port)
        if not route.secure:
            return http.client.HTTPConnection(host, port)
        if self._context is None:
            self._context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, port, context=self._context)
        if route.proxy is not None:
            connection.set_tunnel(route.host, route.port, _proxy_headers(route.proxy))
        return connection

    def _take(self, route: _Route) -> http.client.HTTPConnection | None:
        with self._lock:
            self._drop_inherited()
            kept = [connection for known, connection in self._idle if known == route]
            self._idle = [(known, connection) for known, connection in self._idle if known != route]
            chosen = None
            while kept and chosen is None:
                candidate = kept.pop()
                if _is_stale(candidate):
                    candidate.close()
                else:
                    chosen = candidate
            self._idle.extend((route, connection) for connection in kept)
        return chosen

    def _keep(self, route: _Route, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._drop_inherited()
            if len(self._idle) < self._most_idle:
                self._idle.append((route, connection))
                return
        connection.close()

    def _drop_inherited(self) -> None:
        """After a fork the connections are the parent's: two processes must not speak on one of them."""
        if self._process != os.getpid():
            self._process = os.getpid()
            for _, connection in self._idle:
                if connection.sock is not None:
                    # Closes this process's copy of the descriptor only; a TLS goodbye would end the parent's session.
                    os.close(connection.sock.detach())
            self._idle = []

    def _count(self, **counts: int) -> None:
        with self._lock:
            self._status = replace(
                self._status, **{name: getattr(self._status, name) + count for name, count in counts.items()}
            )


def _is_stale(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed an idle connection: only then is there something to read from it."""
    if connection.sock is None:
        return True
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(connection.sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([connection.sock], [], [], 0)[0])


def _read(answer: http.client.HTTPResponse, largest: int) -> bytes:
    """The body, as far as it is not too long."""
    pieces = []
    size = 0
    while piece := answer.read1(_PIECE):
        size += len(piece)
        pieces.append(piece)
        if size > largest:
            raise _TooLongError
    if answer.length:
        raise http.client.IncompleteRead(b"")
    return b"".join(pieces)


class _BoundedResponse(http.client.HTTPResponse):
    """An answer that is complete at ``until`` or never: a socket's timeout alone starts anew with every byte that a
    slow server drips.
    """

    def __init__(self, until: float, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        reader: Any = self.fp
        read = reader.raw.readinto

        def read_in_time(buffer: bytearray) -> int | None:
            remaining = until - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            sock.settimeout(remaining)
            count: int | None = read(buffer)
            return count

        reader.raw.readinto = read_in_time


class _TooLongError(OSError):
    """An answer above the request's limit."""


def _proxy_headers(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode("ascii")}


def _problem(error: Exception) -> str:
    if isinstance(error, _TooLongError):
        return "answer-too-long"
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "tls-untrusted"
    if isinstance(error, (http.client.HTTPException, ConnectionResetError, BrokenPipeError)):
        return "connection-lost"
    return "unreachable"
