"""Delivers one queue: joins the storage, the upload state machine and a transport. Client and relay both use it.

Whoever does the network I/O, the order is the same: :meth:`Sender.next_task`, send, :meth:`Sender.on_result`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ldp_client.delivery.machine import Delivery, Idle, Send, Task, Wait, batch_limit, judge, next_task, schedule
from ldp_client.delivery.queue import Outbox
from ldp_client.errors import ClientError, TransportError
from ldp_client.network.aggregator import Aggregator
from ldp_client.network.transport import Request, Response
from ldp_client.policy import Policy
from ldp_client.runtime.clock import Clock
from ldp_client.runtime.fork import ForkSafeLock
from ldp_client.storage.contract import Storage, Transaction
from protocols.exact.coins import ONE, SYSTEM_COINS


@dataclass(frozen=True)
class Event:
    """Something an app may want to count. ``kind`` is ``sent``, ``retry``, ``dropped``, ``quarantined`` or ``problem``;
    ``code`` is the reason, ``count`` the number of reports.
    """

    kind: str
    code: str | None
    count: int


class Sender:
    """The delivery of one campaign's reports to ``url``."""

    def __init__(
        self,
        server: Aggregator,
        outbox: Outbox,
        storage: Storage,
        *,
        may_send: Callable[[Transaction], bool],
        clock: Clock,
        policy: Policy,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self.clock = clock
        self.policy = policy
        self.problem: str | None = None
        """The code of the last failure, None once something has gone well again."""
        self._server = server
        self._outbox = outbox
        self._storage = storage
        self._may_send = may_send
        self._on_event = on_event
        self._storage_failures = 0
        self._storage_pause = 0.0
        self._running = ForkSafeLock()

    def next_task(self, first_delay: float = 0.0) -> Task:
        """What to do now: Send, Wait or Idle. ``first_delay`` spreads the first try of a queue at random.

        Never raises: a storage that fails is a reason to wait.
        """
        pause = self._storage_pause - self.clock.monotonic()
        if pause > 0:
            return Wait(pause)
        try:
            return self._next_task(first_delay)
        except ClientError as error:
            return self._pause(error.code)

    def request(self, task: Send) -> Request:
        """The HTTP request that carries out a task."""
        return self._server.upload(task.body, task.attempt)

    def on_result(self, task: Send, answer: Response | TransportError) -> None:
        """Take note of what came back for ``task``. Never raises."""
        now, jitter = self.clock.time(), _jitter()
        try:
            with self._storage.transaction(write=True) as transaction:
                before = self._outbox.delivery(transaction)
                verdict = judge(before, task, answer, now, jitter, self.policy)
                # A queue emptied meanwhile, by a withdrawal or by another process, stays as it is.
                after = self._outbox.apply(transaction, verdict) if before.queued else before
        except ClientError as error:
            # The reports stay queued and are sent again: the server knows their ids.
            self._pause(error.code)
            return
        self._storage_failures = 0
        self.problem = verdict.problem
        self._tell(before, after, verdict.problem)

    def step(self, timeout: float, first_delay: float = 0.0) -> Task:
        """Look, and send at once what is due within ``timeout`` seconds; returns the task that was due. Never raises.

        Threads of one process take turns.
        """
        if not self._running.acquire(timeout=max(0.0, timeout)):
            return Wait(self.policy.backoff_base)
        try:
            task = self.next_task(first_delay)
            if isinstance(task, Send) and timeout > 0:
                self.on_result(task, self.exchange(task, min(timeout, self.policy.request_timeout)))
            return task
        except Exception:
            # Whatever it is (a clock or a storage of the app's own), the app must not hear of it from here.
            return self._pause("internal-error")
        finally:
            self._running.release()

    def run_once(self, deadline: float, *, first_delay: float = 0.0) -> bool:
        """Send what is due within ``deadline`` seconds, waiting between tries; True when nothing is left to send.
        Never raises.
        """
        until = self.clock.monotonic() + deadline
        while True:
            task = self.step(until - self.clock.monotonic(), first_delay)
            remaining = until - self.clock.monotonic()
            if isinstance(task, Idle):
                return True
            if remaining <= 0 or (isinstance(task, Wait) and task.seconds >= remaining):
                return False
            if isinstance(task, Wait):
                self.clock.sleep(task.seconds)

    def exchange(self, task: Send, timeout: float) -> Response | TransportError:
        """Carry out a task with the client's own transport; every failure comes back as a value."""
        try:
            return self._server.transport().send(self.request(task), timeout)
        except TransportError as error:
            return error
        except Exception:
            # A transport of the app's own may raise anything; the report only has to be tried again.
            return TransportError("unreachable")

    def _next_task(self, first_delay: float) -> Task:
        now = self.clock.time()
        with self._storage.transaction(write=False) as transaction:
            if not self._may_send(transaction):
                return Idle()
            delivery = self._outbox.delivery(transaction)
            if not delivery.queued:
                return Idle()
            waiting = self._outbox.front(transaction, batch_limit(delivery, self.policy))
        planned = schedule(delivery, now, first_delay, _jitter(), self.policy)
        if planned != delivery and (planned.not_before or 0.0) > now:
            with self._storage.transaction(write=True) as transaction:
                current = self._outbox.delivery(transaction)
                planned = schedule(current, now, first_delay, _jitter(), self.policy)
                self._outbox.set_delivery(transaction, planned)
        return next_task(planned, waiting, now, self.policy)

    def _pause(self, code: str) -> Wait:
        """Leave a failing storage alone for a while; kept in memory, where else."""
        self.problem = code
        window = min(self.policy.backoff_longest, self.policy.backoff_base * 2.0 ** min(self._storage_failures, 60))
        self._storage_failures += 1
        delay = max(_jitter() * window, self.policy.backoff_base)
        self._storage_pause = self.clock.monotonic() + delay
        self._emit(Event("problem", code, 0))
        return Wait(delay)

    def _tell(self, before: Delivery, after: Delivery, problem: str | None) -> None:
        if after.sent > before.sent:
            self._emit(Event("sent", None, after.sent - before.sent))
        for kind, old, new in (
            ("dropped", before.dropped, after.dropped),
            ("quarantined", before.quarantined, after.quarantined),
        ):
            for code, count in new.items():
                if count > old.get(code, 0):
                    self._emit(Event(kind, code, count - old.get(code, 0)))
        if after.retries > before.retries:
            self._emit(Event("retry", problem, after.queued))

    def _emit(self, event: Event) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            self.problem = "callback-failed"


def _jitter() -> float:
    """Uniform on [0, 1). Never from the client's own coins: those are for answers, and may be scripted."""
    return SYSTEM_COINS.words(1)[0] / ONE
