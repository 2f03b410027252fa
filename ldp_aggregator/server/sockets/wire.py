"""What every connection of a client needs, whatever is asked: times, a share of the budget, and an orderly end."""

from __future__ import annotations

import asyncio
import math
from enum import Enum, auto
from typing import Any, Final, cast

from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.server.sockets.connections import Connections
from ldp_aggregator.server.sockets.handler import LINGER_SECONDS, Handler
from ldp_aggregator.server.sockets.memory import Memory
from ldp_aggregator.server.uploads.answers import encode_problem
from ldp_aggregator.service.settings import Limits

UNSENT_BYTES: Final = 1 << 14
"""More of an answer than this that a client does not read counts in the budget, and has a time."""


class State(Enum):
    """What a connection does."""

    BETWEEN = auto()
    """It waits for a request, of which the beginning may be there."""
    READING = auto()
    """The body of an upload arrives."""
    COUNTING = auto()
    """An upload is in the writer's queue."""
    HANDLING = auto()
    """aiohttp answers a request."""
    HANDED_OVER = auto()
    """aiohttp reads what no length is known of, answers, and that is the end."""
    LEAVING = auto()
    """The last answer was given; what still comes is not looked at."""


class Wire(asyncio.Protocol):
    """A connection that answers nothing yet. What arrives waits in ``_ahead`` for :meth:`_proceed` to look at it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits, others: Connections, memory: Memory) -> None:
        self._loop, self._limits, self._others, self._memory = loop, limits, others, memory
        self._transport: Any = None
        self._handler: Handler | None = None
        self._state = State.BETWEEN
        self._deadline = self._unsent_deadline = math.inf
        self._ahead = b""
        """What has arrived and nobody has taken."""
        self._ahead_held = self._request_held = 0
        """Bytes in the budget: of what is ahead, and of the request that is being answered."""
        self._missing = 0
        """Bytes of the current request's body that have not arrived."""
        self._parts: list[bytes] = []
        self._paused = False
        self._last = False
        """Whether the connection closes with the current answer."""
        self.body = b""

    def finish(self) -> None:
        """Answer what has arrived, and then close."""
        raise NotImplementedError

    def _proceed(self) -> None:
        """Begin requests for as long as they are there and can be answered at once."""
        raise NotImplementedError

    @property
    def is_idle(self) -> bool:
        return self._state is State.BETWEEN

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not isinstance: uvloop's transports are no subclasses of asyncio's.
        if not self._others.admit(self):
            self._others.refuse(cast("asyncio.Transport", transport))
            return
        self._transport = transport
        self._transport.set_write_buffer_limits(high=UNSENT_BYTES)
        self._deadline = self._loop.time() + self._limits.header_seconds

    def pause_writing(self) -> None:
        if self._handler is not None:
            self._handler.pause_writing()
        self._unsent_deadline = self._loop.time() + self._limits.answer_seconds
        self._memory.wait_for(self, self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        if self._handler is not None:
            self._handler.resume_writing()
        self._memory.read(self)
        self._unsent_deadline = math.inf
        self._proceed()
        self._balance()

    def _time_is_up(self) -> None:
        self.cut()

    def look(self, now: float) -> None:
        if now >= self._unsent_deadline:
            self.cut()
        elif now >= self._deadline:
            self._time_is_up()
        elif self._deadline == math.inf and self._transport is not None and self._transport.is_closing():
            self._deadline = now + self._limits.answer_seconds

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _release(self) -> None:
        self._memory.give(self._request_held)
        self._request_held = 0
        self.body = b""

    def _leave(self) -> None:
        """Close. Where more comes than was looked at, it is read until the client has heard the answer."""
        self._state = State.LEAVING
        unread = self._missing > 0 or self._paused or bool(self._ahead)
        self._ahead, self._parts = b"", []
        if unread and not self._transport.is_closing():
            self._deadline = self._loop.time() + LINGER_SECONDS
            try:
                if self._transport.can_write_eof():
                    self._transport.write_eof()
            except OSError:
                self.cut()  # It is not connected any more.
        else:
            self._deadline = self._loop.time() + self._limits.answer_seconds
            self._transport.close()
        self._balance()

    def _turn_away(self, problem: ProblemError) -> None:
        """Answer what nobody handles, and close."""
        self._last = True
        self._others.watch.refused(problem.code)
        self._transport.write(encode_problem(problem, close=True))
        self._leave()

    def _balance(self) -> None:
        """What stays for later needs room in the budget; where it has to wait for an answer, nothing more is read."""
        grown = len(self._ahead) - self._ahead_held
        if grown > 0 and not self._memory.take(grown):
            self._ahead = self._ahead[: self._ahead_held]
            self.cut()
        elif grown:
            if grown < 0:
                self._memory.give(-grown)
            self._ahead_held += grown
        waits = bool(self._ahead) and (self._state is not State.BETWEEN or self._unsent_deadline < math.inf)
        if waits is not self._paused:
            self._paused = waits
            if self._transport is not None and not self._transport.is_closing():
                (self._transport.pause_reading if waits else self._transport.resume_reading)()

    def _split(self, data: bytes) -> tuple[bytes, bytes]:
        """What is missing of a body, and what comes after it."""
        return data[: self._missing], data[self._missing :]

    def connection_lost(self, exc: BaseException | None) -> None:
        self._others.remove(self)
        self._memory.read(self)
        if self._handler is not None:
            self._handler.connection_lost(exc)
        if self._state is not State.COUNTING:  # Else it is in the queue, and given back after its commit.
            self._release()
        self._state = State.LEAVING
        self._handler = self._transport = None
        self._ahead, self._parts = b"", []
        self._balance()
