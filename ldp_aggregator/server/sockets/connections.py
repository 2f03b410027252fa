"""A connection's times and its part of a budget; and the connections of a listener together: how many there are, who
has to go, who has run out of time, and the one budget for what a process holds of its clients' bytes.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, Final

from ldp_aggregator.server.metrics import DoorMetrics
from ldp_aggregator.server.problems import ProblemError, encode_problem, retry_later
from ldp_aggregator.server.sockets.heads import END, HEAD_LINES
from ldp_aggregator.server.sockets.memory import Memory
from ldp_aggregator.service.settings import Limits
from ldp_aggregator.store.contract import LOG, kind_of

PUBLIC: Final = "public"
"""The listener of devices; the others are for operators."""
LINGER_SECONDS: Final = 2.0
"""Seconds that a refused body is still read, so that the client sees the answer and not a reset."""
MOST_REFUSALS: Final = 128
"""Connections that are being refused in words at one time; more are cut off."""
WATCH_SECONDS: Final = 0.1
"""Seconds between two looks at who has run out of time; cheaper than a timer for each request."""


class Connections:
    """The open connections of one listener, the one whose last request began longest ago first.

    If all places are taken, the first client goes that the server waits for: for a request, for the rest of one, or
    until it reads its answer; of these a stranger (without a token in use) first. Clients that wait for the server
    stay, but for strangers on a listener of operators, who always get in.
    """

    def __init__(self, limits: Limits, metrics: DoorMetrics, listener: str) -> None:
        self.limits = limits
        self.memory = Memory(limits.queue_bytes)
        """Operators have a budget of their own, or a flood of uploads would shut them out."""
        self._metrics, self._is_public = metrics, listener == PUBLIC
        self._number_open = metrics.connections.labels(listener)
        self.loop = asyncio.get_running_loop()
        self.server: Any = None
        """The socket that accepts them, once it does."""
        self._open: dict[Connection, None] = {}
        self._refused: set[Connection] = set()
        self._look_timer: asyncio.TimerHandle | None = None
        self._empty: asyncio.Future[None] | None = None

    def admit(self, connection: Connection) -> bool:
        """Take a place, if need be of somebody who goes; False if there is none."""
        if len(self._open) >= self.limits.connections and not self._make_room():
            return False
        self._open[connection] = None
        self._number_open.set(len(self._open))
        if self._look_timer is None:
            self._look_timer = self.loop.call_later(WATCH_SECONDS, self._look)
        return True

    def _make_room(self) -> bool:
        waiting = [one for one in self._open if one.is_waiting]
        strangers = waiting if self._is_public else [*waiting, *self._open]
        leaving = next((one for one in strangers if one.is_stranger), None) or next(iter(waiting), None)
        if leaving is None:
            return False
        del self._open[leaving]
        if leaving.is_idle or leaving.is_answering or len(self._refused) >= MOST_REFUSALS:
            leaving.cut()
        else:
            self._refused.add(leaving)
            leaving.give_way()
        return True

    def begins(self, connection: Connection) -> None:
        """A request of this connection begins."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def replace(self, connection: Connection, by: Connection) -> None:
        """Replace a connection by another one to the same client."""
        if connection in self._open:
            del self._open[connection]
            self._open[by] = None

    def remove(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        self._refused.discard(connection)
        self._number_open.set(len(self._open))
        if not self._open and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def refuse(self, connection: Connection) -> bool:
        """Keep one that was not admitted until it is told so; False if too many are."""
        self.refused("too-many-connections")
        if len(self._refused) >= MOST_REFUSALS:
            return False
        self._refused.add(connection)
        return True

    def refused(self, code: str) -> None:
        """A connection was refused before a handler could answer."""
        self._metrics.refusals.labels(code).inc()

    async def finish(self) -> None:
        """Let every connection answer what it has, and end."""
        for connection in list(self._open):
            connection.finish()
        if self._open:
            self._empty = self.loop.create_future()
            await self._empty

    def cut(self) -> None:
        """End every connection now."""
        for connection in (*self._open, *self._refused):
            connection.cut()

    def _look(self) -> None:
        now = self.loop.time()
        if self._is_public:
            self._metrics.queue_bytes.set(self.memory.used)
        for connection in (*self._open, *self._refused):
            try:
                connection.look(now)
            except Exception as error:  # One socket's failure is not the others'.
                LOG.warning("a connection was cut", extra={"reason": kind_of(error)})
                connection.cut()
        self._look_timer = self.loop.call_later(WATCH_SECONDS, self._look) if self._open or self._refused else None


class Connection(asyncio.Protocol):
    """A client of whom bytes come. All deadlines are here: a subclass sets ``_deadline`` to when what it waits for has
    to be there.

    Requests are answered one after another, and what a client sends ahead stays here until its turn has come: the next
    one begins when the last one was answered and the client reads.
    """

    def __init__(self, others: Connections) -> None:
        self._others, self._loop, self._limits = others, others.loop, others.limits
        self._transport: Any = None
        self._deadline = self._unread_deadline = math.inf
        self._ahead = b""
        """The bytes that arrived and nobody has taken."""
        self._looked = 0
        """Leading bytes of them that hold no end of a head."""
        self._head_is_timed = True
        """True while the time limit of the next head runs: from the start, or from its first byte."""
        self._arrived = 0
        """Bytes of a request that is not complete, beside those."""
        self._unfinished = 0
        """Bytes in the budget: of requests that are not complete."""
        self._reserved = 0
        """Bytes in the budget: of the request that is being answered."""
        self._last = False
        """True if the connection closes with the current answer."""
        self._heard_all = False
        """True once the client has closed its sending side."""
        self._is_leaving = False
        """True after the last answer, or once the connection was handed over; further bytes are ignored."""
        self._paused = False
        self.is_stranger = True
        """True if it has shown no token in use."""

    @property
    def is_between(self) -> bool:
        """No request has begun that was not answered, but for what is there of its head."""
        raise NotImplementedError

    @property
    def is_answering(self) -> bool:
        """A request is all there, and its answer is up to us."""
        raise NotImplementedError

    @property
    def is_idle(self) -> bool:
        """True if no byte has come of a request that was not answered."""
        return self.is_between and not self._ahead

    @property
    def is_waiting(self) -> bool:
        """True if the client has to send or read next."""
        return not self.is_answering or self._unread_deadline < math.inf

    def give_way(self) -> None:
        """Drop what has come of requests that are not complete, and say so; see :class:`Memory`."""
        raise NotImplementedError

    def finish(self) -> None:
        """Answer what has arrived, and then close."""
        self._last = True
        if self.is_between:
            self._leave()

    def pause_writing(self) -> None:
        self._unread_deadline = self._loop.time() + self._limits.answer_seconds
        self._others.memory.note_unread(self, self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._others.memory.read(self)
        self._unread_deadline = math.inf

    def connection_lost(self, exc: BaseException | None) -> None:
        self._others.remove(self)
        self._others.memory.read(self)
        self._transport, self._is_leaving = None, True
        self._drop()

    def look(self, now: float) -> None:
        """End what has taken too long; ``now`` is the loop's time."""
        if now >= self._unread_deadline:
            self.cut()
        elif self._unread_deadline == math.inf and now >= self._deadline:
            self._time_is_up()
        elif self._deadline == math.inf and self._transport is not None and self._transport.is_closing():
            self._deadline = now + self._limits.answer_seconds

    def cut(self) -> None:
        """End it now, whatever is still to be written."""
        if self._transport is not None:
            self._transport.abort()

    def _wait(self, seconds: float) -> None:
        self._deadline = self._loop.time() + seconds

    def _time_is_up(self) -> None:
        self.cut()

    def _hear(self, data: bytes) -> None:
        """Add what has come to what is there."""
        if self.is_idle:
            self._others.begins(self)
        self._ahead = self._ahead + data if self._ahead else data

    def _next_head(self) -> bytes | None:
        """Take the head of the next request, None if it is not all there. Raises ProblemError."""
        if self._ahead.startswith(b"\r\n"):
            self._ahead = self._ahead[2:]  # RFC 9112, 2.2: some clients end a body with a line of its own.
        at = self._ahead.find(END, self._looked)
        most = self._limits.header_bytes
        if at < 0:
            line = len(self._ahead) - 1 - self._ahead.rfind(b"\n")
            if line > most or len(self._ahead) > HEAD_LINES * most:
                raise ProblemError("headers-too-large")
            begins = not self._ahead or self._ahead[:1].isupper() or self._ahead == b"\r"
            if not begins or self._ahead.find(b"\n\n", self._looked) >= 0:
                raise ProblemError("malformed-request")
            if self._ahead and not self._head_is_timed:
                self._head_is_timed = True
                self._wait(self._limits.header_seconds)
            self._looked = max(1, len(self._ahead) - len(END) + 1) if self._ahead else 0
            return None
        self._looked, end = 0, at + len(END)
        if end > most and (end > HEAD_LINES * most or max(map(len, self._ahead[:end].split(b"\r\n"))) > most):
            raise ProblemError("headers-too-large")
        head, self._ahead = self._ahead[:end], self._ahead[end:]
        return head

    def _hold(self, size: int) -> bool:
        """Hold so many bytes of a request that is complete until :meth:`_release`; False if there is no room."""
        if self._unfinished:
            self._unfinished = 0
            self._others.memory.note_unfinished(self, 0)
        self._arrived = 0
        if not self._others.memory.take(size):
            return False
        self._reserved += size
        return True

    def _release(self) -> None:
        self._others.memory.give(self._reserved)
        self._reserved = 0

    def _drop(self) -> None:
        """Forget what has come and nobody has taken."""
        self._ahead, self._looked, self._arrived = b"", 0, 0
        self._balance()

    def _balance(self) -> None:
        """Account for what stays for later; where that waits for an answer, nothing more is read."""
        unfinished = len(self._ahead) + self._arrived
        if unfinished != self._unfinished:
            self._unfinished = unfinished
            self._others.memory.note_unfinished(self, unfinished)
        waits = bool(self._ahead) and (not self.is_between or self._unread_deadline < math.inf)
        if waits is not self._paused:
            self._paused = waits
            self._read_or_not()

    def _rest(self) -> None:
        """An answer was given: the next request may take its time."""
        self._head_is_timed = False
        self._wait(self._limits.idle_seconds)

    def _read_or_not(self) -> None:
        """Have the transport read, unless what has come has to be answered first."""
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if self._paused else self._transport.resume_reading)()

    def _turn_away(self, problem: ProblemError) -> None:
        """Answer what nobody handles, and close."""
        self._transport.write(encode_problem(problem, close=True))
        self._leave(unread=True)

    def _leave(self, *, unread: bool = False) -> None:
        """Close. If more may come than was looked at, it is read until the client has heard the answer."""
        self._is_leaving, self._deadline = True, math.inf
        unread = not self._heard_all and (unread or bool(self._ahead) or self._paused)
        self._drop()
        if self._transport is None or self._transport.is_closing():
            return
        if unread:
            self._wait(LINGER_SECONDS)
            try:
                if self._transport.can_write_eof():
                    self._transport.write_eof()
            except OSError:
                self.cut()  # It is not connected any more.
        else:
            self._wait(self._limits.answer_seconds)
            self._transport.close()


def overloaded() -> ProblemError:
    """The refusal of what there is no room for."""
    return retry_later("overloaded")
