"""The first to hear a client: uploads are taken from their bytes, and whoever asks for anything else is aiohttp's.

A head is read as far as it decides who answers. Only what is beyond doubt is recognised as an upload: a head that could
be understood in two ways, or that asks for anything that the door does not do, is left to aiohttp's parser; what is no
HTTP is refused.

Uploads are answered one after another, and what a client sends ahead stays here until its turn has come: the next
request begins when the answer to the last one was written and the client reads. No future or request object is made for
an upload, and no task where nobody has to be asked; its connection waits in the writer's queue itself.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, cast

import httptools
from multidict import CIMultiDict

from ldp_aggregator.server.intake import Intake
from ldp_aggregator.server.problems import JSON, ProblemError, as_problem, encode_answer, encode_problem, retry_later
from ldp_aggregator.server.sockets.connections import LINGER_SECONDS, Connection, Connections, HandedOver, MakeHandler
from ldp_aggregator.server.upload_queue import UploadBounds, answer_to
from ldp_aggregator.store.contract import LOG, Outcome, kind_of
from ldp_protocols.wire import MEDIA_TYPE

UNSENT_BYTES: Final = 1 << 14
"""More of an answer than this that a client does not read counts in the budget, and has a time."""
HEAD_LINES: Final = 4
"""A head may be as long as so many lines of the greatest length."""

END: Final = b"\r\n\r\n"

_LINE: Final = re.compile(rb"POST /v1/campaigns/([A-Za-z0-9_-]{43})/reports HTTP/1\.1\r\n")
_LENGTH: Final = re.compile(rb"[1-9][0-9]{0,14}")
_AUTHORIZATION: Final = b"authorization"
_ONCE: Final = frozenset({b"host", b"content-length", b"content-type", b"connection", _AUTHORIZATION})
"""Headers that mean something to the door; none of them twice."""
_ELSEWHERE: Final = {b"content-encoding", b"expect", b"origin", b"trailer", b"te", b"transfer-encoding", b"upgrade"}
"""Headers with a meaning that the door does not know, or after which a body is not as long as its Content-Length."""
_ALIKE: Final = _ONCE - {_AUTHORIZATION} | {b"accept", b"accept-encoding", b"user-agent"}
"""Headers that many devices send alike."""


@dataclass(frozen=True, slots=True)
class Head:
    """That of an upload to a campaign with a body of ``length`` bytes. ``shown`` is its header ``Authorization``."""

    campaign_id: str
    length: int
    keeps_open: bool
    shown: str | None
    headers: tuple[tuple[str, str], ...]


MOST_KNOWN: Final = 256
LONGEST_KNOWN: Final = 512
"""Heads of uploads that are remembered, and their bytes."""
_known: Final[dict[bytes, Head]] = {}


class _Reader:
    """The callbacks of httptools while it parses."""

    __slots__ = ("body", "complete", "headers")

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = self.body = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.complete = True

    def on_body(self, _body: bytes) -> None:
        self.body = True


def read_head(head: bytes) -> Head | None:
    """The upload that a head announces, None for what is aiohttp's. ``head`` ends with the first empty line of what a
    client has sent. Raises ProblemError for what is no HTTP.

    The same app sends the same head from every device, so those of uploads are remembered for a while, unless a header
    may tell one device from another.
    """
    known = _known.get(head)
    if known is not None:
        return known
    reader = _Reader()
    parser = httptools.HttpRequestParser(reader)
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        return None
    except httptools.HttpParserError:
        raise ProblemError("malformed-request") from None
    line = _LINE.match(head)
    if line is None or not reader.complete or reader.body:
        return None
    found = _read(reader.headers, line[1].decode(), keeps_open=parser.should_keep_alive())
    if found is not None and len(head) <= LONGEST_KNOWN and all(name in _ALIKE for name, _ in reader.headers):
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[head] = found
    return found


def _read(headers: list[tuple[bytes, bytes]], campaign_id: str, *, keeps_open: bool) -> Head | None:
    once: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _ELSEWHERE or name in once:
            return None
        if name in _ONCE:
            once[name] = value
    length = once.get(b"content-length", b"")
    if b"host" not in once or once.get(b"content-type") != MEDIA_TYPE.encode() or not _LENGTH.fullmatch(length):
        return None
    shown = once[_AUTHORIZATION].decode("latin-1") if _AUTHORIZATION in once else None
    texts = tuple((name.decode("latin-1"), value.decode("utf-8", "surrogateescape")) for name, value in headers)
    return Head(campaign_id, int(length), keeps_open, shown, texts)


class State(Enum):
    """The states of a connection."""

    BETWEEN = auto()
    """It waits for a request, of which the beginning may be there."""
    ASKING = auto()
    """It is asked whether an upload is taken."""
    READING = auto()
    """The body of an upload arrives."""
    COUNTING = auto()
    """An upload is in the writer's queue."""
    REFUSED = auto()
    """It was one too many, and is told so once it asks."""
    LEAVING = auto()
    """The last answer was given, or somebody else listens; what still comes is not looked at."""


class ClientConnection(Connection):
    """``intake`` takes uploads; without one every request is aiohttp's."""

    def __init__(self, others: Connections, make_handler: MakeHandler, intake: Intake | None) -> None:
        super().__init__(others)
        self._make_handler, self._intake = make_handler, intake
        self._state = State.BETWEEN
        self._ahead = b""
        """The bytes that arrived and nobody has taken."""
        self._ahead_held = 0
        self._head_begun = True
        self._proceeding = self._heard_all = self._paused = False
        self._head: Head
        self._asking: asyncio.Task[None] | None = None
        self._missing = 0
        """Bytes of the current upload that have not arrived."""
        self._parts: list[bytes] = []
        self.terms: UploadBounds
        self.body = b""
        self.shown: str | None = None
        self.since = 0.0
        """When the head of the current upload was read."""

    @property
    def is_idle(self) -> bool:
        return self._state is State.BETWEEN

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=UNSENT_BYTES)
        if self._others.admit(self):
            self._wait(self._limits.header_seconds)
        elif self._others.refuse(self):
            self._state = State.REFUSED
            self._wait(LINGER_SECONDS)
        else:
            self._state = State.LEAVING
            self.cut()

    def data_received(self, data: bytes) -> None:
        self._others.heard(self)
        if self._state is State.LEAVING:
            return
        if self._state is State.REFUSED:
            self._ahead = data
            self._turn_away(retry_later("too-many-connections"))
            return
        self._ahead = self._ahead + data if self._ahead else data
        if self._state is State.BETWEEN:
            self._proceed()
        elif self._state is State.READING:
            self._read_body()
        self._balance()

    def eof_received(self) -> bool:
        """Give his answer to who has said all he wants to say. (TLS has no such state.)"""
        arrived = self._state is State.COUNTING or (self._state is State.ASKING and len(self._ahead) >= self._missing)
        if arrived and self._transport.get_extra_info("sslcontext") is None:
            self._heard_all = True
            return True
        # Nobody hears another answer, so no other request is begun.
        self._last, self._ahead = True, b""
        self._balance()
        return False

    def resume_writing(self) -> None:
        super().resume_writing()
        self._proceed()
        self._balance()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._asking is not None:
            self._asking.cancel()
        if self._state is not State.COUNTING:  # Else it is in the queue, and given back after its commit.
            self._release()
        super().connection_lost(exc)
        self._state = State.LEAVING
        self._ahead, self._parts = b"", []
        self._balance()

    def settle(self, outcome: Outcome) -> None:
        """The answer to the upload in the queue, after its commit."""
        if outcome.refused is None and not outcome.rejected:
            self._answer(200, cast("Intake", self._intake).all_counted(close=self._last))
            return
        try:
            body = answer_to(outcome)
        except ProblemError as problem:
            self.refuse(problem)
        else:
            self._answer(200, encode_answer(200, JSON, body, close=self._last))

    def refuse(self, problem: ProblemError) -> None:
        """The answer to an upload of which nothing was counted."""
        self._answer(problem.status, encode_problem(problem, close=self._last), problem.code)

    def finish(self) -> None:
        """Answer what has arrived, and then close."""
        self._last = True
        if self._state is State.BETWEEN:
            self._leave()

    def _time_is_up(self) -> None:
        if self._state is State.READING:
            self._last = True
            self.refuse(ProblemError("body-timeout"))
        else:
            self.cut()

    def _proceed(self) -> None:
        """Begin requests for as long as they are there and can be answered at once."""
        if self._proceeding:
            return
        self._proceeding = True
        try:
            while self._ahead and self._state is State.BETWEEN and self._unread_deadline == math.inf:
                if not self._begin():
                    break
        except ProblemError as problem:
            self._others.refused(problem.code)
            self._turn_away(problem)
        finally:
            self._proceeding = False

    def _begin(self) -> bool:
        """Begin the next request; False where its head is not there yet. Raises ProblemError."""
        if self._ahead.startswith(b"\r\n"):
            self._ahead = self._ahead[2:]  # RFC 9112, 2.2: some clients end a body with a line of its own.
        end = self._ahead.find(END) + len(END)
        whole = end >= len(END)
        size, most = end if whole else len(self._ahead), self._limits.header_bytes
        if size > most and (size > HEAD_LINES * most or max(map(len, self._ahead[:size].split(b"\r\n"))) > most):
            raise ProblemError("headers-too-large")
        if not whole:
            if self._ahead and not (self._ahead[:1].isupper() or self._ahead == b"\r"):
                raise ProblemError("malformed-request")
            if self._ahead and not self._head_begun:
                self._head_begun = True
                self._wait(self._limits.header_seconds)
            return False
        head = read_head(self._ahead[:end])
        if head is None or self._intake is None:
            self._hand_over()
        else:
            self._ahead = self._ahead[end:]
            self._upload(head, self._intake)
        return True

    def _hand_over(self) -> None:
        """aiohttp has the connection from here on, with what has been read of it."""
        self._state, data, self._ahead = State.LEAVING, self._ahead, b""
        self._balance()
        transport, self._transport = self._transport, None
        HandedOver(self._others, self._make_handler()).take_over(self, transport, data, last=self._last)

    def _upload(self, head: Head, intake: Intake) -> None:
        """Take an upload: whether it is welcome, its room, then its body, then a place in the queue."""
        self._last = self._last or not head.keeps_open
        self._head, self._missing = head, head.length
        self.since = time.perf_counter()
        self._deadline = math.inf
        self.shown = head.shown
        terms = intake.known_terms(head.campaign_id, claims=head.shown is not None)
        if terms is None:
            self._state = State.ASKING
            self._asking = self._loop.create_task(self._ask(head, intake))
        else:
            self._welcome(terms, intake)

    async def _ask(self, head: Head, intake: Intake) -> None:
        problem = None
        try:
            terms = await intake.terms(head.campaign_id, CIMultiDict(head.headers))
        except Exception as error:  # Whatever it is, the client gets a document.
            problem = as_problem(error, intake.metrics)
        self._asking = None
        if problem is None:
            self._welcome(terms, intake)
        else:
            self._refuse_unread(problem)
        self._balance()

    def _welcome(self, terms: UploadBounds, intake: Intake) -> None:
        try:
            intake.begin(terms, self._missing)
            # What has arrived of the body while others were asked is part of what is held for all of it.
            self._others.memory.give(self._ahead_held)
            self._ahead_held = 0
            if not self._hold(self._missing):
                raise retry_later("overloaded")
        except ProblemError as problem:
            self._refuse_unread(problem)
            return
        self.terms = terms
        self._state = State.READING
        self._read_body()
        if self._missing:
            self._wait(self._limits.body_seconds)

    def _read_body(self) -> None:
        ahead = self._ahead
        if len(ahead) < self._missing:
            self._parts.append(ahead)
            self._ahead = b""
            self._missing -= len(ahead)
            return
        body, self._ahead = ahead[: self._missing], ahead[self._missing :]
        if self._parts:
            body = b"".join((*self._parts, body))
            self._parts = []
        self._missing = 0
        self.body = body
        self._state = State.COUNTING
        self._deadline = math.inf
        cast("Intake", self._intake).ingest.take(self)

    def _refuse_unread(self, problem: ProblemError) -> None:
        """Refuse an upload whose body nobody will read; what is there of it is skipped."""
        dropped, self._ahead = self._ahead[: self._missing], self._ahead[self._missing :]
        self._missing -= len(dropped)
        self._last = self._last or self._missing > 0
        self.refuse(problem)

    def _answer(self, status: int, data: bytes, code: str | None = None) -> None:
        """The answer to an upload."""
        cast("Intake", self._intake).note(self._head.campaign_id, status, time.perf_counter() - self.since, code)
        self._release()
        self.body = b""
        if self._transport is None:
            return
        try:
            self._transport.write(data)
            self._done()
        except Exception as error:
            # The writer and its other clients are not to suffer from what this one's socket does.
            LOG.warning("an answer was not written", extra={"reason": kind_of(error)})
            self.cut()

    def _done(self) -> None:
        """An answer was written."""
        if self._last or (self._heard_all and not self._ahead):
            self._leave()
            return
        self._state = State.BETWEEN
        self._head_begun = False
        self._wait(self._limits.idle_seconds)
        if not self._proceeding and (self._ahead or self._paused):
            self._proceed()
            self._balance()

    def _turn_away(self, problem: ProblemError) -> None:
        """Answer what nobody handles, and close."""
        self._transport.write(encode_problem(problem, close=True))
        self._leave()

    def _leave(self) -> None:
        """Close. Where more comes than was looked at, it is read until the client has heard the answer."""
        self._state = State.LEAVING
        unread = self._missing > 0 or self._paused or bool(self._ahead)
        self._ahead, self._parts = b"", []
        if unread and not self._transport.is_closing():
            self._wait(LINGER_SECONDS)
            try:
                if self._transport.can_write_eof():
                    self._transport.write_eof()
            except OSError:
                self.cut()  # It is not connected any more.
        else:
            self._wait(self._limits.answer_seconds)
            self._transport.close()
        self._balance()

    def _balance(self) -> None:
        """Find room in the budget for what stays for later; where that waits for an answer, nothing more is read."""
        memory, grown = self._others.memory, len(self._ahead) - self._ahead_held
        if grown > 0 and not memory.take(grown):
            self._ahead = self._ahead[: self._ahead_held]
            self.cut()
        elif grown:
            if grown < 0:
                memory.give(-grown)
            self._ahead_held += grown
        waits = bool(self._ahead) and (self._state is not State.BETWEEN or self._unread_deadline < math.inf)
        if waits is not self._paused and self._transport is not None:
            self._paused = waits
            if not self._transport.is_closing():
                (self._transport.pause_reading if waits else self._transport.resume_reading)()
