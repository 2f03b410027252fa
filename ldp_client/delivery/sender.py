"""Delivers queues: joins the storage, the upload state machine and a transport. Device and relay both use it.

Whoever does the network I/O, the order is the same: :meth:`Sender.next_task`, send, :meth:`Sender.on_result`. One
upload is under way at a time, whatever the number of queues and threads. The background thread delivers when something
is due, sleeps otherwise, and never troubles the app.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from ldp_client.delivery import schedule as uploads
from ldp_client.delivery.queue import Listed, Outbox, listed
from ldp_client.delivery.schedule import Delivery, Event, Idle, OnEvent, Outcome, Place, Send, Task, Verdict, Wait
from ldp_client.errors import StorageError, TransportError
from ldp_client.log import SILENT, Teller
from ldp_client.policy import CLOSE_TIMEOUT, IDLE_CHECK, Policy
from ldp_client.runtime import Clock, ForkSafeLock, jitter, tell_after_fork, within
from ldp_protocols.errors import LdpError

if TYPE_CHECKING:
    from ldp_client.network.aggregator import Aggregator
    from ldp_client.network.transport import Cancellation, Request, Response
    from ldp_client.storage.contract import Storage, Transaction

_MOST_STEPS: Final = 1000
"""Queues that one look may put in order (schedule, expire) before it has to rest."""


class Permits(Protocol):
    """Say who may send what to whom."""

    def asleep(self, transaction: Transaction) -> bool:
        """True if nothing at all is to be sent."""

    def may_leave(self, transaction: Transaction, place: Place) -> bool:
        """True if the reports of a place may be sent at all."""

    def aggregator(self, transaction: Transaction, place: Place) -> Aggregator | None:
        """The aggregator for a place's reports; None where they may not leave. TransportError for a bad address."""

    def token(self, transaction: Transaction, place: Place) -> bytes | None:
        """The token that is shown with the answer of a place, where there is one."""

    def begin(self, task: Send) -> bool:
        """Record durably, and in the person's log, that an upload's first byte is leaving. False where it may not."""

    def was_withdrawn(self, transaction: Transaction, place: Place) -> bool:
        """True if reports of the place were deleted while they were on their way."""

    def settle(self, transaction: Transaction, place: Place, outcome: Outcome) -> None:
        """The queue of a place has become empty, the last of it with this outcome."""


class Flight:
    """The upload under way: one at most, which others may stop or wait for. Thread-safe; in a child nothing is."""

    def __init__(self) -> None:
        self.after_fork()
        tell_after_fork(self)

    def after_fork(self) -> None:
        """Forget what is under way: it is the parent's."""
        self._now: tuple[Place, Cancellation, int] | None = None
        self._landed = threading.Condition()

    @contextlib.contextmanager
    def of(self, place: Place, attempt: Cancellation) -> Iterator[Cancellation]:
        """An upload of a place, until it has been taken note of."""
        self._now = (place, attempt, threading.get_ident())
        try:
            yield attempt
        finally:
            with self._landed:
                self._now = None
                self._landed.notify_all()

    @property
    def place(self) -> Place | None:
        """The owner of the upload."""
        now = self._now
        return None if now is None else now[0]

    def cancel(self, place: Place | None = None) -> bool:
        """Stop it (where it is of ``place``); True where there was none, or nothing of it has left nor will."""
        now = self._now
        return True if now is None or place not in {None, now[0]} else now[1].cancel()

    def await_landing(self, place: Place, timeout: float) -> bool:
        """Wait for it to end, where it is of ``place``; False where ``timeout`` seconds pass first."""

        def landed() -> bool:
            """True if none of that place is under way in another thread."""
            now = self._now
            return now is None or now[0] != place or now[2] == threading.get_ident()

        with self._landed:
            return self._landed.wait_for(landed, timeout)


class Sender:
    """The delivery of all queues of a storage."""

    def __init__(
        self,
        storage: Storage,
        permits: Permits,
        *,
        clock: Clock,
        policy: Policy,
        on_event: OnEvent | None = None,
        teller: Teller = SILENT,
    ) -> None:
        self.clock = clock
        self.policy = policy
        self.problem: str | None = None
        """The code of the last failure, None once something has gone well again."""
        self.flight = Flight()
        self.used = False
        """True once somebody has asked for a delivery."""
        self._storage = storage
        self._permits = permits
        self._on_event = on_event
        self._teller = teller
        self._problems: dict[Place, str] = {}
        self._asked: dict[Place, Aggregator] = {}
        """By the place of a request that somebody else sends: what opens the answer to it."""
        self._storage_failures = 0
        self._storage_pause = 0.0
        self._running = ForkSafeLock()

    def problem_of(self, place: Place) -> str | None:
        """The code of a place's last failure, or of the storage's."""
        return self._problems.get(place) or self.problem

    def problem_in(self, scope: str) -> str | None:
        """The code of the first failure of a scope that is not over, also in a campaign that nobody has decided on."""
        noted = list(self._problems.items())  # Other threads note theirs meanwhile.
        return self.problem or next((code for place, code in noted if place.scope == scope), None)

    def note(self, place: Place, problem: str | None) -> None:
        """Keep the code of a place's last failure for :meth:`problem_of`; None where something has gone well."""
        if problem is None:
            self._problems.pop(place, None)
        else:
            self._problems[place] = problem

    def next_task(self, first_delay: float = 0.0) -> Task:
        """Send, Wait or Idle; ``first_delay`` spreads a queue's first try. Never raises: failing storage means Wait."""
        self.used = True
        pause = self._storage_pause - self.clock.monotonic()
        if pause > 0:
            return Wait(pause)
        try:
            for _ in range(_MOST_STEPS):
                task = self._look(first_delay)
                if task is not None:
                    return task
        except LdpError as error:
            return self._pause(error.code, error)
        return Wait(0.0)

    def request(self, task: Send) -> Request:
        """The HTTP request of a task to send now, on its way from here on. Raises TransportError, StorageError."""
        aggregator = self._aggregator(task)
        request = aggregator.upload(task.body, task.attempt, task.token)
        if not self._permits.begin(task):
            raise TransportError("cancelled")
        self._asked[task.place] = aggregator
        return request

    def on_result(self, task: Send, answer: Response | TransportError) -> None:
        """Take note of what came back for the :meth:`request` of ``task``. Never raises."""
        aggregator = self._asked.pop(task.place, None)
        if aggregator is not None and not isinstance(answer, TransportError):
            try:
                answer = aggregator.opened(answer)
            except TransportError as error:
                answer = error
        self._teller.answered("upload", task.place.campaign_id, answer)
        self._take(task, answer)

    def _take(self, task: Send, answer: Response | TransportError) -> None:
        """Take note of an answer that was opened. Never raises."""
        if isinstance(answer, TransportError) and answer.code == "cancelled":
            return
        now, outbox = self.clock.time(), Outbox(task.place.campaign_id, task.place.scope)
        try:
            with self._storage.transaction(write=True) as transaction:
                before = outbox.delivery(transaction)
                verdict = uploads.judge(before, task, answer, now, jitter(), self.policy)
                after = self._apply(transaction, outbox, before, verdict)
                self._part(transaction, task.place, now)
        except LdpError as error:
            # The reports stay queued and are sent again: the server knows their ids.
            self._pause(error.code, error)
            return
        self._storage_failures = 0
        self.problem = verdict.problem
        self.note(task.place, verdict.problem)
        self._tell(before, after, verdict.problem, task.place)

    def step(self, timeout: float, first_delay: float = 0.0) -> Task:
        """Send what is due within ``timeout`` seconds, in turn with other threads; returns that task. Never raises."""
        until = self.clock.monotonic() + timeout
        if not self._running.acquire(timeout):
            return Wait(self.policy.backoff_base)
        try:
            task = self.next_task(first_delay)
            now = self.clock.monotonic()
            if isinstance(task, Send) and now < until:
                self._deliver(task, min(until, now + self.policy.request_timeout))
            return task
        except Exception as error:
            # Whatever it is (a clock or a storage of the app's own), the app must not hear of it from here.
            return self._pause("internal-error", error)
        finally:
            self._running.release()

    def run_once(self, timeout: float, *, first_delay: float = 0.0, stop: Callable[[], bool] = lambda: False) -> bool:
        """Send what is due within ``timeout`` seconds, until ``stop``; True when nothing is left. Never raises."""
        until = self.clock.monotonic() + timeout
        with within(timeout):
            while not stop():
                task = self.step(until - self.clock.monotonic(), first_delay)
                remaining = until - self.clock.monotonic()
                if isinstance(task, Idle):
                    return True
                if remaining <= 0 or (isinstance(task, Wait) and task.seconds >= remaining):
                    return False
                if isinstance(task, Wait):
                    self.clock.sleep(task.seconds)
        return False

    def emit(self, event: Event) -> None:
        """Tell the app; a callback that fails is its own trouble, and shown as such."""
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            self.problem = "callback-failed"

    def _deliver(self, task: Send, until: float) -> None:
        from ldp_client.network.transport import Cancellation

        class Attempt(Cancellation):
            """Asks once more, and makes it durable, right before the first byte leaves."""

            __slots__ = ()

            def begin_body(attempt) -> None:  # noqa: N805 - self is the sender
                if not attempt.begun and not self._permits.begin(task):
                    attempt.cancel()
                super().begin_body()

        with self.flight.of(task.place, Attempt()) as attempt:
            self._take(task, self._exchange(task, until, attempt))

    def _exchange(self, task: Send, until: float, attempt: Cancellation) -> Response | TransportError:
        """Carry out a task by ``until``, of the clock's monotonic seconds; every failure comes back as a value."""
        try:
            aggregator = self._aggregator(task)
            request, transport = aggregator.upload(task.body, task.attempt, task.token), aggregator.transport
            if self.clock.monotonic() >= until:
                return TransportError("cancelled")  # Nothing was tried, so that nothing has failed.
            if not getattr(transport, "begins_body", False):
                # Safety: a transport that does not say when it begins is taken to begin at once.
                attempt.begin_body()
            return aggregator.opened(transport.send(request, max(0.0, until - self.clock.monotonic()), attempt))
        except TransportError as error:
            return error
        except LdpError as error:
            self._pause(error.code, error)
            return TransportError("cancelled")
        except Exception:
            # A transport of the app's own may raise anything; the report only has to be tried again.
            return TransportError("unreachable")

    def _look(self, first_delay: float) -> Task | None:
        """One look at the queues; None where a queue was put in order and another look is needed."""
        now = self.clock.time()
        with self._storage.transaction(write=False) as transaction:
            if self._permits.asleep(transaction):
                return Idle()
            entries = list(listed(transaction))
            if not entries:
                return Idle()
            chosen = min(entries, key=lambda entry: self._reckoned(entry, now, first_delay))
            outbox = Outbox(chosen.place.campaign_id, chosen.place.scope)
            delivery = outbox.delivery(transaction)
            allowed = self._permits.may_leave(transaction, chosen.place)
            planned = uploads.schedule(delivery, now, first_delay, 0.0, self.policy)
            unplanned = delivery.schedule is None and first_delay > 0
            seconds = uploads.wait(planned, now)
            if allowed and not unplanned and not delivery.has_expired(now):
                if seconds and planned == delivery:
                    return Wait(seconds)
                token = self._permits.token(transaction, chosen.place)
                limit = uploads.batch_limit(delivery, self.policy) if token is None else None
                reports = () if seconds else outbox.front(transaction, limit)
                if reports and not delivery.queued:
                    # The state is damaged: no answer could be kept, and the same would be sent without end.
                    raise StorageError("storage-corrupt")
                if reports:
                    return uploads.batch(planned, reports, self.policy, chosen.place, token)
        self._put_in_order([entry.place for entry in entries], chosen.place, now, first_delay)
        return None

    def _reckoned(self, entry: Listed, now: float, first_delay: float) -> float:
        """The time at which an entry is due, as far as its time can be believed."""
        return min(entry.at, now + uploads.longest_wait(entry.tried, first_delay, self.policy)) if entry.at else 0.0

    def _put_in_order(self, places: list[Place], chosen: Place, now: float, first_delay: float) -> None:
        """Schedule what is not scheduled, bring near what a clock set back has left far ahead, give up what has
        expired, and take off the list what is empty or may not be sent.
        """
        outcomes: list[tuple[Delivery, Delivery, Place]] = []
        with self._storage.transaction(write=True) as transaction:
            for place in places:
                outbox = Outbox(place.campaign_id, place.scope)
                before = outbox.delivery(transaction)
                after = uploads.schedule(before, now, first_delay, jitter(), self.policy)
                if place == chosen and not self._permits.may_leave(transaction, place):
                    outbox.clear(transaction)
                elif before.has_expired(now):
                    expired = outbox.expire(transaction, self.policy)
                    self._permits.settle(transaction, place, Outcome.EXPIRED)
                    outcomes.append((before, expired, place))
                elif place == chosen and not outbox.front(transaction, 1):
                    outbox.clear(transaction)
                elif after != before:
                    outbox.set_delivery(transaction, after)
        for before, expired, place in outcomes:
            self._tell(before, expired, Outcome.EXPIRED.value, place)

    def _part(self, transaction: Transaction, sent: Place, now: float) -> None:
        """Plan the person's other due queues anew: an upload that leaves as another ends would tell whose it is."""
        for entry in listed(transaction):
            if entry.place.scope == sent.scope and entry.place != sent and 0 < entry.at <= now:
                outbox = Outbox(entry.place.campaign_id, entry.place.scope)
                outbox.set_delivery(transaction, replace(outbox.delivery(transaction), schedule=None))

    def _apply(self, transaction: Transaction, outbox: Outbox, before: Delivery, verdict: Verdict) -> Delivery:
        place = outbox.place
        withdrawn = self._permits.was_withdrawn(transaction, place)
        after = outbox.apply(transaction, verdict, after_withdrawal=withdrawn)
        if verdict.settled and not after.queued and (before.queued or (withdrawn and after.sent > before.sent)):
            self._permits.settle(transaction, place, Outcome.ARRIVED if after.sent else Outcome.REFUSED)
        return after

    def _aggregator(self, task: Send) -> Aggregator:
        with self._storage.transaction(write=False) as transaction:
            aggregator = self._permits.aggregator(transaction, task.place)
        if aggregator is None:
            raise TransportError("cancelled")
        return aggregator

    def _pause(self, code: str, error: Exception) -> Wait:
        """Leave a failing storage alone for a while; kept in memory, where else."""
        self._teller.tell("delivery", "", code, error)
        self.problem = code
        window = min(self.policy.backoff_longest, self.policy.backoff_base * 2.0 ** min(self._storage_failures, 60))
        self._storage_failures += 1
        delay = max(jitter() * window, self.policy.backoff_base)
        self._storage_pause = self.clock.monotonic() + delay
        self.emit(Event("problem", code, 0))
        return Wait(delay)

    def _tell(self, before: Delivery, after: Delivery, problem: str | None, place: Place) -> None:
        for event in uploads.events(before, after, problem, place.campaign_id):
            self.emit(event)


class BackgroundDriver:
    """One daemon thread for a sender and all who start it; a forked child's next wake starts its own."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._first_delay = 0.0
        self._wanted = False
        self.after_fork()
        tell_after_fork(self)
        _ALL.add(self)

    def after_fork(self) -> None:
        """The thread is the parent's."""
        self._changed = threading.Condition()
        self._looks = 0
        self._timers: dict[str, threading.Timer] = {}
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """True while the thread lives, in this process."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, first_delay: float) -> None:
        """Deliver from now on."""
        self._first_delay = first_delay
        self._sender.used = True
        with self._changed:
            self._wanted = True
        self.wake()

    def wake(self) -> None:
        """Look at the queues now, unless closed."""
        with self._changed:
            if not self._wanted:
                return
            self._looks += 1
            self._changed.notify_all()
            if self.running:
                return
            self._thread = threading.Thread(target=self._run, name="ldp-client", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                # No more threads, or the interpreter is shutting down: the reports wait in the storage.
                self._thread = None

    def later(self, name: str, work: Callable[[], object]) -> bool:
        """Do ``work`` in a thread of its own, whatever it raises: at a random moment within the policy's first delay,
        or at once where nothing is delivered in the background; once where the same name is asked for again before its
        end. False where there is no thread for it.
        """
        with self._changed:
            if name not in self._timers:
                longest = min(self._first_delay, self._sender.policy.first_delay) if self.running else 0.0
                timer = threading.Timer(longest * jitter(), self._do, (name, work))
                timer.daemon = True
                try:
                    timer.start()
                except RuntimeError:
                    return False
                self._timers[name] = timer
        return True

    def stop(self) -> None:
        """Start nothing further; does not wait."""
        with self._changed:
            self._wanted = False
            self._changed.notify_all()
            for timer in self._timers.values():
                timer.cancel()

    def close(self, timeout: float) -> None:
        """Stop, waiting at most ``timeout`` seconds for what is under way; a send is then given up."""
        until = time.monotonic() + timeout
        self.stop()
        with self._changed:
            thread, begun = self._thread, [*self._timers.values()]
            self._timers.clear()
        for one in (thread, *begun):
            if one is not None and one is not threading.current_thread() and one.is_alive():
                one.join(min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX))
        if thread is not None and thread is not threading.current_thread() and thread.is_alive():
            self._sender.flight.cancel()

    def _do(self, name: str, work: Callable[[], object]) -> None:
        with contextlib.suppress(Exception):
            work()
        with self._changed:
            self._timers.pop(name, None)

    def _run(self) -> None:
        request_timeout = self._sender.policy.request_timeout
        while True:
            with self._changed:
                if not self._wanted:
                    # Safety: under the lock, so that a start meanwhile either is seen here or finds no thread.
                    self._thread = None
                    return
                looks = self._looks
            task = self._sender.step(request_timeout, self._first_delay)
            # Another process may fill the queue, and clocks are set back, so look again now and then.
            pause = IDLE_CHECK if isinstance(task, Idle) else 0.0
            if isinstance(task, Wait):
                pause = min(task.seconds, IDLE_CHECK)
            with self._changed:
                if looks == self._looks and self._wanted:
                    self._changed.wait(pause)


_ALL: weakref.WeakSet[BackgroundDriver] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """One deadline for all: an app with many devices does not exit later than one with one."""
    drivers = list(_ALL)
    for driver in drivers:
        driver.stop()
    started = time.monotonic()
    for driver in drivers:
        driver.close(CLOSE_TIMEOUT - (time.monotonic() - started))
