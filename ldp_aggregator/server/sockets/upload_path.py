"""The first to hear a client: uploads are taken from their bytes, and whoever asks for anything else is aiohttp's.

No future or request object is made for an upload, and no task where nobody has to be asked; its connection waits in the
writer's queue itself.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final, cast

from multidict import CIMultiDict

from ldp_aggregator.server.gateway import GatewayKeys, SealedUpload
from ldp_aggregator.server.intake import Intake
from ldp_aggregator.server.problems import JSON, ProblemError, as_problem, encode_answer, encode_problem, retry_later
from ldp_aggregator.server.sockets.connections import LINGER_SECONDS, Connection, Connections, overloaded
from ldp_aggregator.server.sockets.handed_over import HandedOver, RequestHandler
from ldp_aggregator.server.sockets.heads import Head, UploadHead, read_head
from ldp_aggregator.server.upload_queue import ALL_COUNTED, UploadBounds, answer_to
from ldp_aggregator.store.contract import LOG, Outcome, kind_of
from ldp_protocols.oblivious import RESPONSE_TYPE

UNSENT_BYTES: Final = 1 << 14
"""More of an answer than this that a client does not read counts in the budget, and has a time."""

MakeHandler = Callable[[], RequestHandler]


class State(Enum):
    """The states of a connection."""

    BETWEEN = auto()
    """No request, or a part of its head."""
    ASKING = auto()
    """The admission of an upload is being decided."""
    READING = auto()
    """The body of an upload arrives."""
    COUNTING = auto()
    """An upload is in the writer's queue."""
    REFUSED = auto()
    """Beyond the limit of connections: refused at its first request."""


class ClientConnection(Connection):
    """``intake`` takes uploads, those that ``gateway`` opens too; without one every request is aiohttp's."""

    def __init__(
        self, others: Connections, make_handler: MakeHandler, intake: Intake | None, gateway: GatewayKeys | None = None
    ) -> None:
        super().__init__(others)
        self._make_handler, self._intake, self._gateway = make_handler, intake, gateway
        self._state = State.BETWEEN
        self._proceeding = self._dropped = False
        self._head: UploadHead
        self._asking: asyncio.Task[None] | None = None
        self._missing = 0
        """Bytes of the current upload that have not arrived."""
        self._parts: list[bytes] = []
        self.bounds: UploadBounds
        self.body = b""
        self.authorization: str | None = None
        self.since = 0.0
        """Time at which the head of the current upload was read."""

    @property
    def is_between(self) -> bool:
        return self._state is State.BETWEEN

    @property
    def is_patient(self) -> bool:
        return False

    @property
    def is_answering(self) -> bool:
        return self._state is State.COUNTING

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=UNSENT_BYTES)
        if self._others.admit(self):
            self._wait(self._limits.header_seconds)
        elif self._others.refuse(self):
            self._state = State.REFUSED
            self._wait(LINGER_SECONDS)
        else:
            self._is_leaving = True
            self.cut()

    def data_received(self, data: bytes) -> None:
        if self._is_leaving:
            return
        if self._state is State.REFUSED:
            self._turn_away(retry_later("too-many-connections"))
            return
        self._hear(data)
        if self._state is State.BETWEEN:
            self._proceed()
        elif self._state is State.READING:
            self._read_body()
        self._balance()

    def eof_received(self) -> bool:
        """Answer a client that has closed its sending side. (TLS has no such state.)"""
        arrived = self._state is State.COUNTING or (self._state is State.ASKING and len(self._ahead) >= self._missing)
        if arrived and self._transport.get_extra_info("sslcontext") is None:
            self._heard_all = True
            return True
        # Nobody hears another answer, so no other request is begun.
        self._last = True
        self._drop()
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
        self._parts = []

    def give_way(self) -> None:
        if self._unread_deadline < math.inf:
            self.cut()
        elif self._state is State.COUNTING:
            self._dropped = True
            self._drop()
        elif self._state is State.BETWEEN:
            self._turn_away_counted(overloaded())
        else:
            if self._asking is not None:
                self._asking.cancel()
                self._asking = None
            self._last = True
            self._refuse_unread(overloaded())

    def settle(self, outcome: Outcome) -> None:
        """The answer to the upload in the queue, after its commit."""
        if outcome.refused is None and not outcome.rejected:
            self._answer(200, encode_answer(200, JSON, ALL_COUNTED, close=self._last))
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

    def _time_is_up(self) -> None:
        if self._state is State.READING and not self._is_leaving:
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
            self._turn_away_counted(problem)
        finally:
            self._proceeding = False

    def _begin(self) -> bool:
        """Begin the next request; False where its head is not there yet. Raises ProblemError."""
        data = self._next_head()
        if data is None:
            return False
        head = read_head(data)
        if isinstance(head, Head) or self._intake is None or (head.campaign_id is None and self._gateway is None):
            self._hand_over(data + self._ahead)
        else:
            self._arrived = len(data)
            self._upload(head, self._intake)
        return True

    def _hand_over(self, data: bytes) -> None:
        """aiohttp has the connection from here on, with what has been read of it."""
        self._is_leaving = True
        self._drop()
        transport, self._transport = self._transport, None
        HandedOver(self._others, self._make_handler()).take_over(self, transport, data, last=self._last)

    def _upload(self, head: UploadHead, intake: Intake) -> None:
        """Take an upload: whether it is welcome, then its body, its room, and a place in the queue."""
        self._last = self._last or not head.keeps_open
        self._head, self._missing = head, head.length
        self.since = time.perf_counter()
        self._deadline = math.inf
        self.authorization = head.authorization
        if head.campaign_id is None:
            self._welcome_sealed(cast("GatewayKeys", self._gateway), intake)
            return
        bounds = intake.cached_bounds(head.campaign_id, claims=head.authorization is not None)
        if bounds is None:
            self._state = State.ASKING
            self._asking = self._loop.create_task(self._ask(head.campaign_id, CIMultiDict(head.headers), intake))
        else:
            self._welcome(bounds, intake)

    async def _ask(self, campaign_id: str, headers: CIMultiDict[str], intake: Intake) -> None:
        problem = None
        try:
            bounds = await intake.bounds(campaign_id, headers)
        except Exception as error:  # Whatever it is, the client gets a document.
            problem = as_problem(error, intake.metrics)
        self._asking = None
        if problem is None:
            self._welcome(bounds, intake)
        else:
            self._refuse_unread(problem)
        self._balance()

    def _welcome(self, bounds: UploadBounds, intake: Intake) -> None:
        try:
            intake.begin(bounds, self._missing)
        except ProblemError as problem:
            self._refuse_unread(problem)
            return
        self.bounds = bounds
        self.is_stranger = self.is_stranger and not bounds.is_relay
        self._read()

    def _welcome_sealed(self, gateway: GatewayKeys, intake: Intake) -> None:
        """A sealed upload: its campaign, and whether it is admitted, are known once it is opened."""
        try:
            gateway.check_open()
            if intake.ingest.is_draining:
                raise retry_later("stopping")
        except ProblemError as problem:
            self._refuse_unread(problem)
            return
        self._read()

    def _read(self) -> None:
        self._state = State.READING
        self._read_body()
        if self._missing:
            self._wait(self._limits.body_seconds)

    def _read_body(self) -> None:
        ahead = self._ahead
        if len(ahead) < self._missing:
            self._parts.append(ahead)
            self._arrived += len(ahead)
            self._ahead = b""
            self._missing -= len(ahead)
            return
        body, self._ahead = ahead[: self._missing], ahead[self._missing :]
        size = self._arrived + len(body)
        if self._parts:
            body = b"".join((*self._parts, body))
            self._parts = []
        self._missing = 0
        self._deadline = math.inf
        if not self._hold(size):
            self._refuse_unread(overloaded())
            return
        self.body = body
        self._state = State.COUNTING
        intake = cast("Intake", self._intake)
        if self._head.campaign_id is None:
            self._open(cast("GatewayKeys", self._gateway), intake)
        else:
            intake.ingest.take(self)

    def _open(self, gateway: GatewayKeys, intake: Intake) -> None:
        try:
            opened = gateway.open(self.body)
        except ProblemError as problem:
            self.refuse(problem)
            return
        SealedUpload(opened, intake, gateway.departures, self._answer_sealed).begin()

    def _answer_sealed(self, answer: bytes) -> None:
        self._answer(200, encode_answer(200, RESPONSE_TYPE, answer, close=self._last))

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
        self.body, self._parts, self._arrived = b"", [], 0
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
        if self._last or (self._heard_all and not self._ahead and not self._dropped):
            self._leave(unread=self._missing > 0)
            return
        self._state = State.BETWEEN
        if self._dropped:
            self._turn_away_counted(overloaded())
            return
        self._rest()
        if not self._proceeding and (self._ahead or self._paused):
            self._proceed()
            self._balance()

    def _turn_away_counted(self, problem: ProblemError) -> None:
        self._others.refused(problem.code)
        self._turn_away(problem)
