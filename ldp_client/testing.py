"""For an app's own tests: a server that speaks the aggregator's HTTP contract, a clock to turn, and coins to script.

::

    with FakeServer() as server:
        campaign = server.publish(draft)
        device = Device(":memory:", max_total_epsilon=1)
        asked = device.campaign(server.url, campaign.id, max_epsilon=1)
        asked.grant()
        asked.contribute({"age": "young"}, "yes")
        assert device.run_once(timeout=5)
        assert server.counted(campaign.id) == 1
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from ldp_client.network.transport import PROBLEM_TYPE
from ldp_client.policy import LARGEST_UPLOAD
from ldp_protocols import Campaign, DocumentError, ScriptedCoins, decode_upload
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.wire import MEDIA_TYPE

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Answer", "FakeClock", "FakeServer", "ScriptedCoins"]


class FakeClock:
    """A clock that stands still until it is turned; sleeping turns it."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self.elapsed = 0.0
        self.slept: list[float] = []

    def time(self) -> float:
        """Seconds since 1970."""
        return self.now

    def monotonic(self) -> float:
        """Seconds that only :meth:`advance` and :meth:`sleep` move."""
        return self.elapsed

    def sleep(self, seconds: float, /) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.elapsed += seconds

    def jump(self, seconds: float) -> None:
        """Set the clock, as a user or a time server does; no time passes."""
        self.now += seconds


@dataclass(frozen=True)
class Answer:
    """A server's answer to give. ``drop`` hangs up instead; ``commit`` counts the upload before it answers."""

    status: int = 200
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    drop: bool = False
    commit: bool = False


class FakeServer:
    """Serves campaigns and models, and counts reports by their ids, on a loopback port of its own.

    ``uploads`` are the bodies received, in order; ``answer_with`` may be set to a function that is asked first for
    every upload (by its number from 0) and may return an :class:`Answer`.
    """

    def __init__(self) -> None:
        self.uploads: list[bytes] = []
        self.requests: list[tuple[str, str]] = []
        self.answer_with: Callable[[int], Answer | None] = lambda _: None
        self.largest_upload = LARGEST_UPLOAD
        self.states: dict[str, str] = {}
        """By a campaign's id ``closing``, ``closed``, ``full``, ``deleted`` or ``not-yet``; else it is open."""
        self._campaigns: dict[str, Campaign] = {}
        self._models: dict[str, bytes] = {}
        self._directories: dict[str, bytes] = {}
        self._reports: dict[str, dict[bytes, bytes]] = {}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.fake = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The base URL for a device's campaigns."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def publish(self, draft: Mapping[str, Any] | Campaign) -> Campaign:
        """Serve a campaign."""
        campaign = draft if isinstance(draft, Campaign) else Campaign.compile(draft)
        self._campaigns[campaign.id] = campaign
        self._reports.setdefault(campaign.id, {})
        return campaign

    def publish_model(self, campaign_id: str, document: str | bytes) -> None:
        """Serve a model."""
        self._models[campaign_id] = document.encode() if isinstance(document, str) else document

    def publish_directory(self, key: str, document: bytes) -> None:
        """Serve what a publisher has signed."""
        self._directories[key] = document

    def counted(self, campaign_id: str) -> int:
        """Distinct reports accepted."""
        return len(self._reports[campaign_id])

    def reports(self, campaign_id: str) -> dict[bytes, bytes]:
        """Payload by report id."""
        with self._lock:
            return dict(self._reports[campaign_id])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _get(self, path: str) -> Answer:
        parts = path.strip("/").split("/")
        if parts[:2] == ["v1", "directories"] and len(parts) == 3:
            directory = self._directories.get(parts[2])
            if directory is None:
                return Answer(404, "no-directory")
            return Answer(headers={"Content-Type": "application/json"}, body=directory)
        if parts[:2] != ["v1", "campaigns"] or len(parts) not in {3, 4}:
            return Answer(404, "not-found")
        campaign = self._campaigns.get(parts[2])
        if campaign is None:
            return Answer(404, "unknown-campaign")
        if parts[3:] == ["state"]:
            state = json.dumps({"state": self.states.get(campaign.id, "open")})
            return Answer(headers={"Content-Type": "application/json"}, body=state.encode())
        body = campaign.document if len(parts) == 3 else self._models.get(campaign.id)
        if body is None or parts[3:] not in ([], ["model"]):
            return Answer(404, "no-model")
        return Answer(headers={"Content-Type": "application/json"}, body=body)

    def _post(self, path: str, media_type: str | None, body: bytes) -> Answer:
        parts = path.strip("/").split("/")
        campaign = self._campaigns.get(parts[2]) if len(parts) == 4 and parts[3] == "reports" else None
        if campaign is None:
            return Answer(404, "unknown-campaign")
        if media_type != MEDIA_TYPE:
            return Answer(415, "wrong-media-type")
        if len(body) > self.largest_upload:
            return Answer(413, "body-too-large")
        with self._lock:
            number = len(self.uploads)
            self.uploads.append(body)
        forced = self.answer_with(number)
        if forced is not None and not forced.commit:
            return forced
        answer = self._count(campaign, body)
        return answer if forced is None else forced

    def _count(self, campaign: Campaign, body: bytes) -> Answer:
        try:
            blocks = decode_upload(body, campaign)
        except DocumentError as error:
            return Answer(400, error.code)
        rejected = []
        with self._lock:
            for block in blocks:
                mechanism = campaign.counted[block.question].mechanism
                for position in range(block.count):
                    identifier = block.ids[position * ID_BYTES :][:ID_BYTES]
                    payload = block.payloads[position * mechanism.width :][: mechanism.width]
                    try:
                        mechanism.check(payload)
                    except DocumentError as error:
                        rejected.append([identifier.hex(), error.code])
                        continue
                    self._reports[campaign.id].setdefault(identifier, payload)
        return Answer(
            headers={"Content-Type": "application/json"}, body=json.dumps({"rejected": rejected}).encode("ascii")
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    fake: FakeServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up (or is killed) is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        fake = self.server.fake
        fake.requests.append(("GET", self.path))
        self._answer(fake._get(self.path))

    def do_POST(self) -> None:
        fake = self.server.fake
        fake.requests.append(("POST", self.path))
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:
            # The client was killed in mid-sentence.
            self.close_connection = True
            return
        self._answer(fake._post(self.path, self.headers.get("Content-Type"), body))

    def _answer(self, answer: Answer) -> None:
        if answer.drop:
            self.close_connection = True
            return
        headers, body = dict(answer.headers), answer.body
        if answer.code is not None:
            headers["Content-Type"] = PROBLEM_TYPE
            body = json.dumps({"status": answer.status, "code": answer.code}).encode()
        self.send_response(answer.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Silent: a request's path is nobody's business here."""
