"""The background thread: delivers when something is due, sleeps otherwise, and never troubles the app."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Callable

from ldp_client.delivery.machine import Idle, Wait
from ldp_client.delivery.sender import Sender
from ldp_client.policy import CLOSE_TIMEOUT, IDLE_CHECK
from ldp_client.runtime import jitter, tell_after_fork


class BackgroundDriver:
    """One daemon thread for a sender, however many ask for it. A fork leaves it behind; the child's next wake starts
    its own.
    """

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
        """Do ``work`` at a random moment within the first delay, in a thread of its own, whatever it raises; once where
        the same name is asked for again before that. False where nothing is delivered in the background.
        """
        with self._changed:
            if not self.running:
                return False
            if name not in self._timers:
                timer = threading.Timer(self._first_delay * jitter(), self._do, (name, work))
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
            self._timers.clear()

    def close(self, timeout: float) -> None:
        """Stop, waiting at most ``timeout`` seconds for a send under way, which is then given up."""
        self.stop()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        thread.join(min(max(0.0, timeout), threading.TIMEOUT_MAX))
        if thread.is_alive():
            self._sender.flight.cancel()

    def _do(self, name: str, work: Callable[[], object]) -> None:
        with self._changed:
            self._timers.pop(name, None)
        with contextlib.suppress(Exception):
            work()

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
