"""The gateway of Oblivious HTTP (RFC 9458): opens requests that devices sealed to its keys, has the uploads in them
counted, and seals the answers.

It takes uploads and nothing else. What is inside counts like an upload that came by itself, with its own headers.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from multidict import CIMultiDict

from ldp_aggregator.server.hpke import Secrets, receive
from ldp_aggregator.server.intake import Intake
from ldp_aggregator.server.problems import JSON, ProblemError, as_problem
from ldp_aggregator.server.problems import MEDIA_TYPE as PROBLEM_TYPE
from ldp_aggregator.server.upload_queue import ALL_COUNTED, UploadBounds, answer_to
from ldp_aggregator.service.drafts import check_gateway
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.service.signing import gateway_of, read_gateway_seeds
from ldp_aggregator.store.contract import LOG, UNKNOWN, Outcome, kind_of
from ldp_protocols import Campaign, DocumentError
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.oblivious import (
    ENC_BYTES,
    HEADER_BYTES,
    LEAST_SEALED,
    BinaryRequest,
    BinaryResponse,
    decode_request,
    encode_response,
    seal_header,
    seal_info,
)
from ldp_protocols.wire import MEDIA_TYPE

MOST_AT_ONCE: Final = 64
"""Requests that are opened in one go: some milliseconds, for which others wait."""
SHORT_BYTES: Final = 16 << 10
"""A sealed request of at most so many bytes is opened at once, which costs hardly more than an upload in the clear; to
hand it to a thread costs as much as a part of that. Longer ones wait their turn there.
"""
ANSWER_BYTES: Final = 2048
"""Zeros fill every answer up to so many bytes: a relay does not see whether a report was refused."""
ANSWER_SECONDS: Final = 0.1
"""An answer leaves a multiple of so many seconds after its request: its time says nothing of the outcome."""
TICK_SECONDS: Final = 0.005
"""Or at the tick of the clock that follows: those of a tick leave together, by one timer."""

_ALL_COUNTED: Final = encode_response(
    BinaryResponse(200, (("content-type", JSON),), ALL_COUNTED), multiple=ANSWER_BYTES
)
"""The answer that nearly everybody gets."""
_MOST_REJECTED: Final = 25
"""Reports that an answer has room to name: only a client that is broken sends one that no device can have sent."""
_PATH: Final = re.compile(r"(?:/[!-~]*)?/v1/campaigns/([A-Za-z0-9_-]{43})/reports")
"""Path of an upload inside, after any prefix that a proxy serves this server under."""


class Opened:
    """A sealed request, or what is wrong with the message that was sealed; and what seals the one answer to it."""

    __slots__ = ("_secrets", "request")

    def __init__(self, request: BinaryRequest | DocumentError, secrets: Secrets) -> None:
        self.request, self._secrets = request, secrets

    def seal(self, answer: bytes) -> bytes:
        """RFC 9458, section 4.4."""
        nonce = os.urandom(self._secrets.schedule.nonce_bytes)
        return nonce + self._secrets.seal_answer(nonce, answer)


@dataclass(frozen=True, slots=True)
class Inside:
    """An upload that was sealed."""

    campaign_id: str
    headers: CIMultiDict[str]
    body: bytes

    @classmethod
    def of(cls, request: BinaryRequest | DocumentError) -> Inside:
        """The upload that a request is. Raises ProblemError."""
        if isinstance(request, DocumentError):
            raise ProblemError("malformed-request", str(request))
        path = _PATH.fullmatch(request.path)
        if path is None:
            raise ProblemError("not-found", "the gateway takes uploads, and nothing else")
        if request.method != "POST":
            raise ProblemError("method-not-allowed", headers={"Allow": "POST"})
        headers = CIMultiDict([(name, _text(value)) for name, value in request.headers])
        if "Expect" in headers:  # RFC 9458, section 5.1
            raise ProblemError("malformed-request", "a sealed request has no header Expect")
        if "Content-Encoding" in headers:
            raise ProblemError("compressed-body")
        if headers.get("Content-Type") != MEDIA_TYPE:
            raise ProblemError("wrong-media-type", f"send {MEDIA_TYPE}")
        return cls(path[1], headers, request.body)


def _text(value: str) -> str:
    """A header's value as one that came by itself is read."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "surrogateescape")


class Departures:
    """Answers until they leave. When that is depends on when their requests came, and on nothing else."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[tuple[Callable[[bytes], object], bytes]]] = {}

    def wait(self, since: float, answer: Callable[[bytes], object], sealed: bytes) -> None:
        """Call ``answer`` in time, whose request came at ``since``, on the clock of ``time.perf_counter``."""
        now = time.perf_counter()
        tick = math.ceil((now + -(now - since) % ANSWER_SECONDS) / TICK_SECONDS)
        leaving = self._waiting.get(tick)
        if leaving is None:
            leaving = self._waiting[tick] = []
            asyncio.get_running_loop().call_later(tick * TICK_SECONDS - now, self._leave, tick)
        leaving.append((answer, sealed))

    def _leave(self, tick: int) -> None:
        for answer, sealed in self._waiting.pop(tick):
            try:
                answer(sealed)
            except Exception as error:  # The others of the tick have an answer, too.
                LOG.warning("an answer was not written", extra={"reason": kind_of(error)})


class SealedUpload:
    """An opened request on its way to a commit: an :class:`~ldp_aggregator.server.upload_queue.Upload`.

    ``answer`` is given the sealed answer, after the commit; once, whatever happens, for every failure is for the
    device's eyes only (RFC 9458, section 5.2).
    """

    __slots__ = (
        "_answer",
        "_asking",
        "_departures",
        "_intake",
        "_opened",
        "authorization",
        "body",
        "bounds",
        "campaign_id",
        "since",
    )

    bounds: UploadBounds
    body: bytes
    authorization: str | None
    is_patient = True

    def __init__(
        self, opened: Opened, intake: Intake, departures: Departures, answer: Callable[[bytes], object]
    ) -> None:
        self._opened, self._intake, self._departures, self._answer = opened, intake, departures, answer
        self._asking: asyncio.Task[None] | None = None
        self.campaign_id = UNKNOWN
        self.since = time.perf_counter()

    def begin(self) -> None:
        """Queue it; where somebody has to be asked whether it is welcome, once that is known."""
        try:
            upload = Inside.of(self._opened.request)
            self.campaign_id, self.body, self.authorization = (
                upload.campaign_id,
                upload.body,
                upload.headers.get("Authorization"),
            )
            bounds = self._intake.cached_bounds(self.campaign_id, claims=self.authorization is not None)
            if bounds is None:
                self._asking = asyncio.get_running_loop().create_task(self._ask(upload.headers))
            else:
                self._take(bounds)
        except Exception as error:  # Whatever it is, the client gets a document.
            self.refuse(as_problem(error, self._intake.metrics))

    def settle(self, outcome: Outcome) -> None:
        try:
            body = answer_to(outcome)
        except ProblemError as problem:
            self.refuse(problem)
            return
        if body is ALL_COUNTED:
            self._tell(_ALL_COUNTED)
        else:
            rejected = outcome.rejected[:_MOST_REJECTED]
            answer = BinaryResponse(200, (("content-type", JSON),), answer_to(Outcome(rejected=rejected)))
            self._tell(encode_response(answer, multiple=ANSWER_BYTES))

    def refuse(self, problem: ProblemError) -> None:
        self._intake.metrics.refusals.labels(problem.code).inc()
        self._intake.note_refused(self.campaign_id, problem.code)
        headers = {"Content-Type": PROBLEM_TYPE, **problem.headers}
        lines = tuple((name.lower(), value) for name, value in headers.items())
        answer = encode_response(BinaryResponse(problem.status, lines, problem.body()), multiple=ANSWER_BYTES)
        if len(answer) > ANSWER_BYTES:
            short = ProblemError(problem.code).body()
            answer = encode_response(BinaryResponse(problem.status, lines, short), multiple=ANSWER_BYTES)
        self._tell(answer)

    def _tell(self, answer: bytes) -> None:
        """Answer in time: what is written to the disk, and what is not, take as long."""
        self._departures.wait(self.since, self._answer, self._opened.seal(answer))

    async def _ask(self, headers: CIMultiDict[str]) -> None:
        try:
            self._take(await self._intake.bounds(self.campaign_id, headers))
        except Exception as error:  # Likewise.
            self.refuse(as_problem(error, self._intake.metrics))

    def _take(self, bounds: UploadBounds) -> None:
        self._intake.begin(bounds, len(self.body))
        self.bounds = bounds
        self._intake.ingest.take(self)


class GatewayKeys:
    """The keys by their identifiers, none where the server is no gateway.

    Long requests, and batches of them, are opened and read beside the event loop, in one thread, which takes those that
    wait together.
    """

    def __init__(self, seeds: Sequence[bytes] = (), *, elsewhere: bool = False) -> None:
        self._keys = _private(seeds)
        self._elsewhere = elsewhere
        self.departures = Departures()
        self._thread = ThreadPoolExecutor(1, "gateway")
        self._waiting: deque[tuple[bytes, asyncio.Future[Opened]]] = deque()
        self._opening: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, settings: Settings) -> GatewayKeys:
        """The keys of the settings. Raises LdpError if the file holds none."""
        keys = cls(elsewhere=settings.gateway_elsewhere)
        keys.read_again(settings)
        return keys

    def read_again(self, settings: Settings) -> None:
        """Replace the keys by those of the file. Raises LdpError, and changes nothing."""
        if settings.gateway_key is not None:
            self._keys = _private(read_gateway_seeds(settings.gateway_key))

    def lacks(self, keys: Collection[Gateway]) -> bool:
        """True if one of these keys is neither here nor said to be at another server."""
        present = {(gateway.key_id, gateway.public_key) for gateway, _, _ in self._keys.values()}
        return not self._elsewhere and any((key.key_id, key.public_key) not in present for key in keys)

    def check_receivable(self, campaign: Campaign) -> None:
        """Refuse a campaign whose answers nobody could open. Raises DraftError."""
        if campaign.gateway is not None and self.lacks(campaign.gateway.keys):
            check_gateway(campaign, list(dict.fromkeys(gateway for gateway, _, _ in self._keys.values())))

    def check_open(self) -> None:
        """Check that this server has a key. Raises ProblemError."""
        if not self._keys:
            raise ProblemError("unknown-gateway-key", "this server is no gateway")

    def open(self, sealed: bytes) -> Opened:
        """RFC 9458, section 4.3. Raises ProblemError, of which the answer is not sealed: section 5.2."""
        header, enc = sealed[:HEADER_BYTES], sealed[HEADER_BYTES : HEADER_BYTES + ENC_BYTES]
        if len(sealed) < LEAST_SEALED:
            raise ProblemError("malformed-sealed", f"a sealed request has at least {LEAST_SEALED} bytes")
        found = self._keys.get(header)
        if found is None:
            raise ProblemError("unknown-gateway-key")
        gateway, aead, key = found
        try:
            secrets = receive(key, gateway.public_key, enc, aead, seal_info(header))
            message = secrets.open(sealed[HEADER_BYTES + ENC_BYTES :])
        except (ValueError, InvalidTag):  # A point that makes no secret; it was not sealed to this key.
            raise ProblemError("malformed-sealed") from None
        try:
            return Opened(decode_request(message), secrets)
        except DocumentError as error:
            return Opened(error, secrets)

    async def open_in_turn(self, sealed: bytes) -> Opened:
        """An opened request, which waits its turn in the thread."""
        opened: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
        self._waiting.append((sealed, opened))
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_waiting())
        return await opened

    async def open_all(self, sealed: Sequence[bytes]) -> list[Opened | ProblemError]:
        """Opened requests of a batch. A single request waits for a part of a batch at most."""
        opened: list[Opened | ProblemError] = []
        for start in range(0, len(sealed), MOST_AT_ONCE):
            opened += await self._open_some(sealed[start : start + MOST_AT_ONCE])
        return opened

    async def _open_waiting(self) -> None:
        while self._waiting:
            group = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
            for (_, waiting), end in zip(group, await self._open_some([one for one, _ in group]), strict=True):
                if waiting.done():
                    continue  # Whoever waited has gone.
                if isinstance(end, ProblemError):
                    waiting.set_exception(end)
                else:
                    waiting.set_result(end)
        self._opening = None

    async def _open_some(self, sealed: Sequence[bytes]) -> list[Opened | ProblemError]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._opened, sealed)

    def _opened(self, sealed: Sequence[bytes]) -> list[Opened | ProblemError]:
        ends: list[Opened | ProblemError] = []
        for one in sealed:
            try:
                ends.append(self.open(one))
            except ProblemError as problem:
                ends.append(problem)
        return ends


def _private(seeds: Sequence[bytes]) -> Mapping[bytes, tuple[Gateway, int, X25519PrivateKey]]:
    """The keys by the headers of what is sealed to them: key and algorithms, RFC 9458, section 4.1."""
    return {
        seal_header(gateway.key_id, aead): (gateway, aead, X25519PrivateKey.from_private_bytes(seed))
        for seed in seeds
        for gateway in (gateway_of(seed),)
        for aead in gateway.aeads
    }
