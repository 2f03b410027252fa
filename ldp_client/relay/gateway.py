"""The relay's door: devices speak to it as they would to the aggregator.

Plain http.server, one thread per connection: for the tens of devices behind a gateway. Devices need https (or loopback)
like everywhere, so where it is reached over a network, something that ends TLS stands before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ldp_client.errors import ClientError, ModelUnavailableError
from ldp_client.network.transport import PROBLEM_TYPE
from ldp_client.policy import GATEWAY_RETRY_AFTER, GATEWAY_TIMEOUT, LARGEST_UPLOAD
from ldp_client.relay.forwarding import Relay
from protocols import ProtocolError
from protocols.wire.upload import MEDIA_TYPE


class Gateway(ThreadingHTTPServer):
    """Serves one relay; ``serve_forever()`` and ``shutdown()`` as in the standard library."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, relay: Relay, host: str = "127.0.0.1", port: int = 0) -> None:
        self.relay = relay
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """The base URL for clients on this machine."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A device that hangs up is nobody's problem, and its address is not printed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "ldp-relay"
    sys_version = ""
    timeout = GATEWAY_TIMEOUT
    disable_nagle_algorithm = True
    server: Gateway

    def do_GET(self) -> None:
        relay, path = self.server.relay, f"/v1/campaigns/{self.server.relay.campaign_id}"
        try:
            if self.path == path:
                self._answer(200, relay.campaign().document, {"ETag": f'"{relay.campaign_id}"'})
            elif self.path == path + "/model":
                model = relay.model()
                etag = f'"{hashlib.sha256(model).hexdigest()}"'
                known = self.headers.get("If-None-Match") == etag
                self._answer(304 if known else 200, b"" if known else model, {"ETag": etag})
            else:
                self._problem(404, "unknown-campaign")
        except ModelUnavailableError as error:
            self._problem(404, error.code)
        except (ClientError, ProtocolError) as error:
            self._problem(503, error.code, {"Retry-After": str(GATEWAY_RETRY_AFTER)})

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        refusal = self._refusal(length)
        if refusal is not None:
            # The body stays unread, so the connection cannot be used again.
            self.close_connection = True
            self._problem(*refusal, {"Connection": "close"})
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            return
        try:
            refused = self.server.relay.collect(body)
        except ClientError as error:
            self._problem(503, error.code, {"Retry-After": str(GATEWAY_RETRY_AFTER)})
        except ProtocolError as error:
            self._problem(400, error.code)
        else:
            self._answer(200, json.dumps({"rejected": list(refused.items())}).encode("ascii"), {})

    def _refusal(self, length: str) -> tuple[int, str] | None:
        if self.path != f"/v1/campaigns/{self.server.relay.campaign_id}/reports":
            return 404, "unknown-campaign"
        if self.headers.get("Content-Type") != MEDIA_TYPE:
            return 415, "wrong-media-type"
        if not (length.isascii() and length.isdigit()):
            return 411, "length-required"
        return (413, "body-too-large") if int(length[:18]) > LARGEST_UPLOAD else None

    def _problem(self, status: int, code: str, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps({"type": "about:blank", "status": status, "code": code}).encode("ascii")
        self._answer(status, body, {"Content-Type": PROBLEM_TYPE, **(headers or {})})

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 304:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Silent: who sent something, and when, is not written down."""
