"""The door: plain http.server, one thread and one request per connection, of which each holds no more than it has sent,
for a time of its own, and answers from a table of routes. Something that ends TLS stands before it.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from ldp_client.network.transport import PROBLEM_TYPE
from ldp_client.policy import GATEWAY_RETRY_AFTER, GATEWAY_TIMEOUT
from ldp_protocols import LdpError

MOST_CONNECTIONS: Final = 64
"""Most connections at once; the next one takes the place of the oldest whose request is not there yet, or gets 503."""

LONGEST_FAREWELL: Final = 1.0
"""Seconds for a connection that has to go."""

STOP_SECONDS: Final = 5.0
"""Seconds that requests under way have when the door is closed."""

LARGEST_REQUEST_HEAD: Final = 1 << 14
"""Bytes of a request before its body."""

JSON: Final = "application/json"
ANY: Final = "*"
"""A route with this method answers every method."""

_LONGEST_LENGTH: Final = 19
"""Digits of a Content-Length that are worth reading; the number is compared as a whole."""


class RefusedError(LdpError):
    """An answer that is a problem document, with its HTTP ``status``; ``again`` where the client is to come again."""

    def __init__(
        self, status: int, code: str, detail: str = "", *, again: bool = False, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(code, detail)
        self.status, self.detail = status, detail
        self.headers = {**(headers or {}), **({"Retry-After": str(GATEWAY_RETRY_AFTER)} if again else {})}

    def document(self) -> bytes:
        members = {"type": "about:blank", "status": self.status, "code": self.code}
        return json.dumps(members | ({"detail": self.detail} if self.detail else {})).encode("ascii")


@dataclass(frozen=True)
class Request:
    """A request that is all there: the groups of its route's path, its headers, its body, seconds to answer it in."""

    groups: Sequence[str]
    headers: Message[str, str]
    body: bytes
    patience: float


@dataclass(frozen=True)
class Answer:
    """An answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    """``path`` is a pattern. A route that takes a body names its ``media_type``, and the ``longest``; ``check`` is
    asked with the headers before that is read, and refuses by raising RefusedError.
    """

    method: str
    path: str
    answer: Callable[[Request], Answer]
    media_type: str = ""
    longest: int = 0
    check: Callable[[Message[str, str]], None] | None = None


class Counts:
    """Requests by route, method and status, and refusals by code, in this process."""

    def __init__(self) -> None:
        self.answered: Counter[tuple[str, str, int]] = Counter()
        self.refused: Counter[str] = Counter()
        self.open = 0
        self._lock = threading.Lock()

    def count(self, route: str, method: str, status: int) -> None:
        with self._lock:
            self.answered[route, method, status] += 1

    def refuse(self, code: str) -> None:
        with self._lock:
            self.refused[code] += 1

    def come(self, number: int) -> None:
        with self._lock:
            self.open += number


class Door(ThreadingHTTPServer):
    """Answers from ``routes``; ``serve_forever()`` and ``shutdown()`` as in the standard library.

    ``seconds`` is what a connection may take in all, whatever it sends meanwhile. If all places are taken the oldest
    connection goes whose request is not there yet. What an answer raises is a :class:`RefusedError`.
    """

    daemon_threads = True
    request_queue_size = 1024

    def __init__(
        self,
        routes: Sequence[Route],
        host: str,
        port: int,
        *,
        seconds: float = GATEWAY_TIMEOUT,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self.routes = [(re.compile(route.path), route) for route in routes]
        self.seconds = seconds
        self.counts = Counts()
        self._asking: dict[Any, None] = {}
        self._places = threading.BoundedSemaphore(most_connections)
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for the connection, if there is a place."""
        if not self._places.acquire(blocking=False) and not self._make_room():
            self._turn_away(request)
            self.shutdown_request(request)
            return
        self.counts.come(1)
        try:
            super().process_request(request, client_address)
        except BaseException:
            # No thread was started, so none gives the place back.
            self._leave()
            raise

    def _make_room(self) -> bool:
        """End the oldest connection whose request is not there yet, and take its place."""
        for oldest in tuple(self._asking):
            self.heard(oldest)
            self._turn_away(oldest)
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
            return self._places.acquire(timeout=LONGEST_FAREWELL)
        return False

    def _turn_away(self, connection: Any) -> None:
        self.counts.refuse("too-many-connections")
        with contextlib.suppress(OSError):
            connection.send(_BUSY, getattr(socket, "MSG_DONTWAIT", 0))

    def _leave(self) -> None:
        self.counts.come(-1)
        self._places.release()

    def listen_to(self, connection: Any) -> None:
        """A request is awaited on this connection."""
        self._asking[connection] = None

    def heard(self, connection: Any) -> None:
        """The request has arrived, or never will."""
        self._asking.pop(connection, None)

    def finish(self) -> None:
        """Wait for the answers to what is there already, for a while."""
        until = time.monotonic() + STOP_SECONDS
        while self.counts.open > len(self._asking) and time.monotonic() < until:
            time.sleep(0.02)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A device that hangs up is nobody's problem, and its address is not printed."""


class _TooLongError(OSError):
    """The end of a request's head has not been read yet."""


class _Incoming(io.RawIOBase):
    """Read what a device sends: complete in time or never, and not more than is asked for."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._socket = sock
        self._until = until
        self.most = LARGEST_REQUEST_HEAD

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if self.most <= 0:
            raise _TooLongError
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        count = self._socket.recv_into(memoryview(buffer)[: self.most])
        self.most -= count
        return count


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "ldp-relay"
    sys_version = ""
    disable_nagle_algorithm = True
    server: Door

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._until = time.monotonic() + self.server.seconds
        self._incoming = _Incoming(self.connection, self._until)
        self.rfile = io.BufferedReader(self._incoming)
        self.server.listen_to(self.connection)

    def finish(self) -> None:
        self.server.heard(self.connection)
        super().finish()

    def handle(self) -> None:
        # One request, whatever it says: nothing behind a body can pass for a second one.
        try:
            self.handle_one_request()
        except _TooLongError:
            self._refuse(
                RefusedError(431, "headers-too-large", f"at most {LARGEST_REQUEST_HEAD} bytes are read"), "none"
            )
        self.close_connection = True

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        path = "none"
        try:
            route, groups = self._route()
            path = route.path
            body = self._body(route) if route.media_type else b""
            if body is None:
                return
            self.server.heard(self.connection)
            answer = route.answer(Request(groups, self.headers, body, self._left() / 2))
        except RefusedError as refusal:
            self._refuse(refusal, path)
        else:
            self._answer(answer, path)

    def _route(self) -> tuple[Route, Sequence[str]]:
        found = [(route, match) for path, route in self.server.routes if (match := path.fullmatch(self.path))]
        if not found:
            raise RefusedError(404, "not-found")
        for route, match in found:
            if route.method in (self.command, ANY):
                return route, match.groups()
        raise RefusedError(
            405, "method-not-allowed", headers={"Allow": ", ".join(sorted(one.method for one, _ in found))}
        )

    def _body(self, route: Route) -> bytes | None:
        """Read the body, None where it ends too early. Raises RefusedError for what stays unread."""
        if self.headers.get("Content-Type") != route.media_type:
            raise RefusedError(415, "wrong-media-type", f"send {route.media_type}")
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or not lengths:
            raise RefusedError(411, "length-required")
        # RFC 9110, section 8.6: one field, digits only. Two that agree are refused too: no client says it twice.
        if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            raise RefusedError(400, "malformed-length")
        if len(lengths[0]) > _LONGEST_LENGTH or int(lengths[0]) > route.longest:
            raise RefusedError(413, "body-too-large", f"at most {route.longest} bytes are accepted")
        if route.check is not None:
            route.check(self.headers)
        length = int(lengths[0])
        self._incoming.most = length
        try:
            body = self.rfile.read(length)
        except TimeoutError:
            raise RefusedError(408, "body-timeout") from None
        return body if len(body) == length else None

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a malformed request with a problem document; nothing of the request is repeated."""
        status, problem = _NO_REQUEST.get(code, (400, "malformed-request"))
        self._refuse(RefusedError(status, problem), "none")

    def _refuse(self, refusal: RefusedError, path: str) -> None:
        self.server.counts.refuse(refusal.code)
        headers = {"Content-Type": PROBLEM_TYPE, **refusal.headers}
        self._answer(Answer(refusal.status, refusal.document(), headers), path)

    def _answer(self, answer: Answer, path: str) -> None:
        self.connection.settimeout(max(0.001, self._left()))
        self.send_response(answer.status)
        for name, value in {"Content-Type": JSON, "Connection": "close", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
        self.server.counts.count(path, self.command or "none", answer.status)

    def _left(self) -> float:
        return self._until - time.monotonic()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Silent: who sent something, and when, is not written down."""


_NO_REQUEST: Final = {
    414: (431, "headers-too-large"),
    431: (431, "headers-too-large"),
    501: (405, "method-not-allowed"),
}
"""Status and code in place of each status with which http.server refuses by itself."""


def _busy() -> bytes:
    refusal = RefusedError(503, "too-many-connections", again=True)
    body = refusal.document()
    lines = {"Content-Type": PROBLEM_TYPE, "Content-Length": str(len(body)), **refusal.headers, "Connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 503 Service Unavailable\r\n{head}\r\n".encode("ascii") + body


_BUSY: Final = _busy()
