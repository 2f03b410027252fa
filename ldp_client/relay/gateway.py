"""The relay's door: devices speak to it as they would to the aggregator, or, where their campaign has a gateway, as to
any relay of Oblivious HTTP (RFC 9458), sealed; a sealed upload is answered 202 when it is on disk, for what it becomes
is not known yet.

Plain http.server, one thread and one request per connection: for the devices behind a gateway. Devices need https (or
loopback) like everywhere, so where it is reached over a network, something that ends TLS stands before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from ldp_client.errors import TransportError
from ldp_client.network.transport import PROBLEM_TYPE
from ldp_client.policy import GATEWAY_RETRY_AFTER, GATEWAY_TIMEOUT, LARGEST_UPLOAD
from ldp_client.relay.forwarding import Relay
from ldp_protocols import DocumentError, LdpError
from ldp_protocols.oblivious import REQUEST_TYPE
from ldp_protocols.wire import MEDIA_TYPE

MOST_CONNECTIONS: Final = 64
"""At once; the next ones are told to come back, where nobody is silent who could go."""

LONGEST_FAREWELL: Final = 1.0
"""Seconds for a connection that has to go."""

LARGEST_REQUEST_HEAD: Final = 1 << 14
"""Bytes of a request before its body."""

SEALED_PATH: Final = "/ohttp"
"""Where sealed uploads are taken."""

_DIRECTORIES: Final = "/v1/directories/"

_LONGEST_LENGTH: Final = 19
"""Digits of a Content-Length that are worth reading; the number is compared as a whole."""


Admission = Callable[[str, Mapping[str, str]], Awaitable[bool]]
"""Campaign id and headers of an upload to whether it is admitted; the aggregator asks the same."""


class Gateway(ThreadingHTTPServer):
    """Serves one relay; ``serve_forever()`` and ``shutdown()`` as in the standard library.

    ``timeout`` is what a connection may take in all, in seconds, whatever it sends meanwhile. Where all places are
    taken the oldest connection goes whose request is not there yet. ``admission`` is asked before an upload is read:
    without it a batch may be one device, and the reports that somebody made up around its own.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        relay: Relay,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        timeout: float = GATEWAY_TIMEOUT,
        most_connections: int = MOST_CONNECTIONS,
        admission: Admission | None = None,
    ) -> None:
        self.relay, self.admission = relay, admission
        self._asking: dict[Any, None] = {}
        self.seconds = timeout
        self._places = threading.BoundedSemaphore(most_connections)
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """The base URL for clients on this machine."""
        return f"http://127.0.0.1:{self.server_port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for the connection, where there is a place."""
        if not self._places.acquire(blocking=False) and not self._make_room():
            request.setblocking(False)
            with contextlib.suppress(OSError):
                request.send(_BUSY)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            # No thread was started, so none gives the place back.
            self._places.release()
            raise

    def _make_room(self) -> bool:
        """End the oldest connection whose request is not there yet, and take its place."""
        for oldest in tuple(self._asking):
            self.heard(oldest)
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
            return self._places.acquire(timeout=LONGEST_FAREWELL)
        return False

    def listen_to(self, connection: Any) -> None:
        """A request is to come."""
        self._asking[connection] = None

    def heard(self, connection: Any) -> None:
        """It is there, or will never be."""
        self._asking.pop(connection, None)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A device that hangs up is nobody's problem, and its address is not printed."""


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
        if left <= 0 or self.most <= 0:
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
    server: Gateway

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
        self.handle_one_request()
        self.close_connection = True

    def do_GET(self) -> None:
        self.server.heard(self.connection)
        relay, path = self.server.relay, f"/v1/campaigns/{self.server.relay.campaign_id}"
        try:
            if self.path == path:
                self._answer(200, relay.campaign(timeout=self._patience()).document, {})
            elif self.path == path + "/model":
                self._answer(200, relay.model(timeout=self._patience()), {})
            elif self.path.startswith(_DIRECTORIES):
                self._answer(200, relay.directory(self.path.removeprefix(_DIRECTORIES)), {})
            else:
                self._problem(404, "unknown-campaign")
        except LdpError as error:
            absent = isinstance(error, TransportError) and error.status == 404 and self.path.startswith(_DIRECTORIES)
            if absent or error.code == "no-model":
                self._problem(404, error.code)
            else:
                self._problem(503, error.code, {"Retry-After": str(GATEWAY_RETRY_AFTER)})

    def do_POST(self) -> None:
        refusal = self._refusal()
        if refusal is not None:
            self._problem(*refusal)
            return
        admission = self.server.admission
        if admission is not None and not asyncio.run(_ask(admission, self.server.relay.campaign_id, self.headers)):
            self._problem(403, "not-admitted")
            return
        length = int(self.headers["Content-Length"])
        self._incoming.most = length
        body = self.rfile.read(length)
        if len(body) < length:
            return
        self.server.heard(self.connection)
        try:
            if self.path == SEALED_PATH:
                self.server.relay.collect_sealed(body, timeout=self._patience())
                self._answer(202, b"", {})
                return
            refused = self.server.relay.collect(body, timeout=self._patience())
        except DocumentError as error:
            self._problem(400, error.code)
        except LdpError as error:
            self._problem(503, error.code, {"Retry-After": str(GATEWAY_RETRY_AFTER)})
        else:
            self._answer(200, json.dumps({"rejected": list(refused.items())}).encode("ascii"), {})

    def _refusal(self) -> tuple[int, str] | None:
        """Return the reason why the body stays unread."""
        taken = {f"/v1/campaigns/{self.server.relay.campaign_id}/reports": MEDIA_TYPE, SEALED_PATH: REQUEST_TYPE}
        if self.path not in taken:
            return 404, "unknown-campaign"
        if self.headers.get("Content-Type") != taken[self.path]:
            return 415, "wrong-media-type"
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or not lengths:
            return 411, "length-required"
        # RFC 9110, section 8.6: one field, digits only. Two that agree are refused too: no client says it twice.
        if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            return 400, "malformed-length"
        too_long = len(lengths[0]) > _LONGEST_LENGTH or int(lengths[0]) > LARGEST_UPLOAD
        return (413, "body-too-large") if too_long else None

    def _problem(self, status: int, code: str, headers: Mapping[str, str] | None = None) -> None:
        self._answer(status, _problem_document(status, code), {"Content-Type": PROBLEM_TYPE, **(headers or {})})

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.connection.settimeout(max(0.001, self._left()))
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Connection": "close", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _patience(self) -> float:
        """Half of what is left: the rest is for the answer, also where it is that something took too long."""
        return self._left() / 2

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Silent: who sent something, and when, is not written down."""


async def _ask(admission: Admission, campaign_id: str, headers: Any) -> bool:
    return await admission(campaign_id, headers)


def _problem_document(status: int, code: str) -> bytes:
    return json.dumps({"type": "about:blank", "status": status, "code": code}).encode("ascii")


def _busy() -> bytes:
    body = _problem_document(503, "too-many-connections")
    head = (
        f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: {PROBLEM_TYPE}\r\nContent-Length: {len(body)}\r\n"
        f"Retry-After: {GATEWAY_RETRY_AFTER}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


_BUSY: Final = _busy()
