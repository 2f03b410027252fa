"""The standard library's HTTP: honours proxies, verifies certificates, follows no redirect, keeps no connection.

Every request has a connection of its own. A device makes a handful in a campaign's life, so that a kept one would save
next to nothing; it would link campaigns, a report and a later question for the model, and people who share a backend;
it would go stale and leave in doubt what arrived; and a fork would inherit it.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from ldp_client.errors import TransportError
from ldp_client.network.dialling import Patience, Proxies, dial, proxy_credentials
from ldp_client.network.transport import Cancellation, Request, Response

LARGEST_HEAD: Final = 1 << 16
"""Bytes of an answer before its body."""

_PIECE: Final = 1 << 16


class HttpTransport:
    """Thread-safe and fork-safe, since there is nothing to share; one is enough for a process.

    Parameters
    ----------
    context
        TLS settings; None takes the system's certificate store and full verification.
    proxies
        Scheme (or ``all``) to proxy: ``http://host:port`` or ``socks5h://host:port``. None takes those of the
        environment. Loopback never goes through a proxy. Raises ConfigurationError for one that cannot be used.
    """

    begins_body = True

    def __init__(self, *, context: ssl.SSLContext | None = None, proxies: Mapping[str, str] | None = None) -> None:
        self._context = context
        self._proxies = Proxies(proxies)

    def send(self, request: Request, timeout: float, cancellation: Cancellation | None = None) -> Response:
        """See :class:`ldp_client.network.transport.Transport`."""
        patience = Patience(timeout, cancellation)
        try:
            return self._exchange(request, patience)
        except (http.client.HTTPException, OSError) as error:
            # Never sent again from here: whoever asked decides, and may have been told to stop meanwhile.
            raise TransportError("cancelled" if patience.cancellation.cancelled else _problem(error)) from None
        except ValueError:
            raise TransportError("bad-request") from None

    def _exchange(self, request: Request, patience: Patience) -> Response:
        parts = urlsplit(request.url)
        secure, host = parts.scheme == "https", parts.hostname or ""
        standard = 443 if secure else 80
        port = parts.port or standard
        target = parts.path + (f"?{parts.query}" if parts.query else "") or "/"
        headers = {**request.headers, "Connection": "close"}
        proxy = self._proxies.proxy(parts.scheme, host, patience)
        if proxy is not None and not proxy.socks and not secure:
            target = request.url
            headers.update(proxy_credentials(proxy))
        connection = http.client.HTTPConnection(host, port)
        connection.default_port = standard
        # A connection that is lost stays lost.
        connection.auto_open = 0
        # A class to the type checker, any callable to http.client.
        connection.response_class = partial(_BoundedResponse, patience)  # type: ignore[assignment]
        connection.putrequest(request.method, target)
        for name, value in headers.items():
            connection.putheader(name, value)
        if request.body is not None:
            connection.putheader("Content-Length", str(len(request.body)))
        connection.sock = dial(host, port, self._tls() if secure else None, proxy, patience)
        with contextlib.closing(connection):
            return _converse(connection, connection.sock, request, patience)

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context


def _converse(
    connection: http.client.HTTPConnection, sock: socket.socket, request: Request, patience: Patience
) -> Response:
    patience.cancellation.begin_body()
    patience.arm(sock)
    connection.endheaders()
    if request.body:
        patience.arm(sock)
        connection.send(request.body)
    answer = connection.getresponse()
    # Closed whatever happens: read1 does not end an exchange, and the answer may own the socket.
    with contextlib.closing(answer):
        body = _read(answer, request.largest_answer)
    return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)


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
    """An answer that is complete in time or never, and whose headers end: a socket's timeout alone starts anew with
    every byte that a slow server drips.
    """

    def __init__(self, patience: Patience, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        reader: Any = self.fp
        read = reader.raw.readinto
        head = 0

        def read_in_time(buffer: bytearray) -> int | None:
            nonlocal head
            # Before reading: what comes at once may be a head and the most of a body, 128 KiB since Python 3.14.
            if self.headers is None and head >= LARGEST_HEAD:
                raise _TooLongError
            patience.arm(sock)
            count: int | None = read(buffer)
            head += count or 0
            return count

        reader.raw.readinto = read_in_time


class _TooLongError(OSError):
    """An answer above the request's limit."""


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
