"""One connection of a client: uploads of devices are taken from it as bytes, every other request is aiohttp's.

Requests are answered one after another, and what a client sends ahead stays here until its turn has come: the next
request begins when the answer to the last one was written and the client reads. No task, future or request object is
made for an upload; its connection waits in the writer's queue itself.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, cast

from ldp_aggregator.server.problems import ProblemError, retry_later
from ldp_aggregator.server.sockets.connections import Connections
from ldp_aggregator.server.sockets.handler import Handler
from ldp_aggregator.server.sockets.heads import END, UNCLEAR, Head, read_head
from ldp_aggregator.server.sockets.memory import Memory
from ldp_aggregator.server.sockets.wire import State, Wire
from ldp_aggregator.server.uploads.answers import JSON, encode_answer, encode_problem, rejected_body
from ldp_aggregator.server.uploads.desk import Desk, too_slow
from ldp_aggregator.service.settings import Limits
from ldp_aggregator.store.contract import UNAVAILABLE, Outcome
from protocols import Campaign

LOG: Final = logging.getLogger("ldp_aggregator")

HEAD_LINES: Final = 4
"""A head may be as long as so many lines of the greatest length."""
_HOPS: Final = 4
"""Turns of the loop that aiohttp takes to get from an answer to waiting for the next request."""
_LINGERING_SECONDS: Final = 0.02


class Connection(Wire):
    """``desk`` takes uploads; without one every request is aiohttp's."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        others: Connections,
        memory: Memory,
        make_handler: Callable[[Callable[[], None]], Handler],
        desk: Desk | None,
    ) -> None:
        super().__init__(loop, limits, others, memory)
        self._make_handler, self._desk = make_handler, desk
        self._head_begun = True
        self._proceeding = self._starved = self._heard_all = False
        self.campaign: Campaign
        self.since = 0.0
        """When the head of the current upload was read."""

    @property
    def reports(self) -> int:
        """Of the upload in the queue: nearly always one, never more than the campaign has groups."""
        return 1

    def data_received(self, data: bytes) -> None:
        self._others.heard(self)
        if self._state is State.LEAVING:
            return
        if self._state is State.HANDED_OVER:
            self._hand_over(data)
            return
        self._ahead = self._ahead + data if self._ahead else data
        if self._state is State.BETWEEN:
            self._proceed()
        elif self._state is State.READING:
            self._read_body()
        elif self._state is State.HANDLING and self._missing:
            self._feed()
        self._balance()

    def eof_received(self) -> bool:
        """Who has said all he wants to say still gets his answer. (TLS has no such state.)"""
        waits = self._state in (State.COUNTING, State.HANDLING) and not self._missing
        if waits and self._transport.get_extra_info("sslcontext") is None:
            self._heard_all = True
            return True
        # Nobody hears another answer, so no other request is begun.
        self._last, self._ahead = True, b""
        self._balance()
        return False

    def settle(self, outcome: Outcome) -> None:
        """The answer to the upload in the queue, after its commit."""
        if outcome.refused is not None:
            again = outcome.refused == UNAVAILABLE
            self.refuse(retry_later(outcome.refused) if again else ProblemError(outcome.refused))
        elif outcome.rejected:
            self._answer(HTTPStatus.OK, encode_answer(HTTPStatus.OK, JSON, rejected_body(outcome), close=self._last))
        elif self._desk is not None:
            self._answer(HTTPStatus.OK, self._desk.answer.bytes(close=self._last))

    def refuse(self, problem: ProblemError) -> None:
        """The answer to an upload of which nothing was counted."""
        self._answer(problem.status, encode_problem(problem, close=self._last), problem.code)

    def _time_is_up(self) -> None:
        if self._state is State.READING:
            self._last = True
            self.refuse(too_slow())
        else:
            self.cut()

    def finish(self) -> None:
        self._last = True
        if self._handler is not None:
            self._handler.answer_once()
        if self._state is State.BETWEEN:
            self._leave()

    def _proceed(self) -> None:
        """Begin requests for as long as they are there and can be answered at once."""
        if self._proceeding:
            return
        self._proceeding = True
        try:
            while self._ahead and self._state is State.BETWEEN and self._unsent_deadline == math.inf:
                if not self._begin():
                    break
        finally:
            self._proceeding = False

    def _begin(self) -> bool:
        """Begin the next request; False where its head is not there yet."""
        end = self._ahead.find(END) + len(END)
        whole = end >= len(END)
        if (end if whole else len(self._ahead)) > HEAD_LINES * self._limits.header_bytes:
            self._turn_away(ProblemError("headers-too-large"))
            return True
        if not whole and self._ahead[:1].isupper():
            if not self._head_begun:
                self._head_begun = True
                self._deadline = self._loop.time() + self._limits.header_seconds
            return False
        head = read_head(self._ahead[:end]) if whole else UNCLEAR
        if head.length is None:
            data, self._ahead = self._ahead, b""
            self._hand_over(data)
            return True
        campaign = self._desk.campaign_of(head) if head.campaign_id is not None and self._desk is not None else None
        rest, self._missing = self._ahead[end:], head.length
        if campaign is None:
            self._handle(self._ahead[:end], rest)
        else:
            self._ahead = rest
            self._upload(campaign, head)
        return True

    def _upload(self, campaign: Campaign, head: Head) -> None:
        """Take an upload: its room, then its body, then a place in the queue."""
        self._last = self._last or not head.keeps_open
        self.campaign = campaign
        self.since = time.perf_counter()
        try:
            cast("Desk", self._desk).hold(campaign, self._missing)
        except ProblemError as problem:
            self._drop_body()
            self._last = self._last or self._missing > 0
            self.refuse(problem)
            return
        self._request_held = self._missing
        self._state = State.READING
        self._deadline = math.inf
        self._read_body()
        if self._missing:
            self._deadline = self._loop.time() + self._limits.body_seconds

    def _read_body(self) -> None:
        ahead = self._ahead
        if len(ahead) < self._missing:
            self._parts.append(ahead)
            self._ahead = b""
            self._missing -= len(ahead)
            return
        body, self._ahead = (ahead, b"") if len(ahead) == self._missing else self._split(ahead)
        if self._parts:
            body = b"".join((*self._parts, body))
            self._parts = []
        self._missing = 0
        self.body = body
        self._state = State.COUNTING
        self._deadline = math.inf
        cast("Desk", self._desk).take(self)

    def _drop_body(self) -> None:
        """Skip what is there of a body that nobody will read."""
        dropped, self._ahead = self._split(self._ahead)
        self._missing -= len(dropped)

    def _answer(self, status: int, data: bytes, code: str | None = None) -> None:
        """The answer to an upload."""
        if self._desk is not None:
            self._desk.note(self.campaign, status, time.perf_counter() - self.since, code)
        self._release()
        if self._transport is None:
            return
        try:
            self._transport.write(data)
            self._done()
        except Exception as error:
            # The writer and its other clients are not to suffer from what this one's socket does.
            LOG.warning("an answer was not written", extra={"reason": type(error).__name__})
            self.cut()

    def _done(self) -> None:
        """An answer was written."""
        if self._last or (self._heard_all and not self._ahead):
            self._leave()
            return
        self._state = State.BETWEEN
        self._head_begun = self._starved = False
        self._deadline = self._loop.time() + self._limits.idle_seconds
        if not self._proceeding and (self._ahead or self._paused):
            self._proceed()
            self._balance()

    def _handle(self, head: bytes, rest: bytes) -> None:
        """Have aiohttp answer one request."""
        here = min(len(rest), self._missing)
        self._ahead = rest
        if not self._memory.take(here):
            self._drop_body()
            self._turn_away(retry_later("overloaded"))
            return
        self._request_held = here
        self._state = State.HANDLING
        self._deadline = math.inf
        handler = self._ready_handler()
        if self._last:
            handler.answer_once()
        handler.data_received(head)
        if here:
            body, self._ahead = self._split(rest)
            self._missing -= here
            handler.data_received(body)

    def _ready_handler(self) -> Handler:
        if self._handler is None:
            self._handler = self._make_handler(self._handler_answered)
            self._handler.connection_made(self._transport)
        return self._handler

    def _feed(self) -> None:
        """More of a body that aiohttp reads."""
        piece, self._ahead = self._split(self._ahead)
        self._missing -= len(piece)
        handler = self._ready_handler()
        if self._starved:
            return
        if self._memory.take(len(piece)):
            self._request_held += len(piece)
            handler.data_received(piece)
            return
        self._starved = True
        problem = retry_later("overloaded")
        problem.headers["Connection"] = "close"
        if not handler.fail_body(problem):
            self.cut()

    def _hand_over(self, data: bytes) -> None:
        """Give aiohttp everything from here on, for one answer."""
        if not self._memory.take(len(data)):
            self.cut()
            return
        self._request_held += len(data)
        handler = self._ready_handler()
        if self._state is not State.HANDED_OVER:
            self._state = State.HANDED_OVER
            self._deadline = self._loop.time() + self._limits.header_seconds + self._limits.body_seconds
            handler.answer_once()
        handler.data_received(data)

    def _handler_answered(self) -> None:
        self._await_handler(_HOPS)

    def _await_handler(self, hops: int) -> None:
        """aiohttp has written its answer, and may still read and drop a body."""
        if self._state not in (State.HANDLING, State.HANDED_OVER) or self._transport.is_closing():
            return
        if self._handler is not None and self._handler.is_idle and (self._starved or not self._missing):
            self._release()
            self._last = self._last or self._starved
            self._done()
        elif hops:
            self._loop.call_soon(self._await_handler, hops - 1)
        else:
            self._loop.call_later(_LINGERING_SECONDS, self._await_handler, 0)
