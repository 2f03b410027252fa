"""The background thread: delivers when something is due, sleeps otherwise, and never troubles the app."""

from __future__ import annotations

import atexit
import os
import threading
import weakref

from ldp_client.delivery.machine import Idle, Wait
from ldp_client.delivery.sender import Sender


class BackgroundDriver:
    """One daemon thread per client that asked for it. A fork leaves it behind; the child's next wake starts its own."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._first_delay = 0.0
        self._process = 0
        self._thread: threading.Thread | None = None
        self._wanted = False
        self._awake = threading.Event()
        _ALL.add(self)

    @property
    def running(self) -> bool:
        """Whether the thread lives, in this process."""
        return self._thread is not None and self._process == os.getpid() and self._thread.is_alive()

    def start(self, first_delay: float) -> None:
        """Deliver from now on."""
        self._first_delay = first_delay
        self._wanted = True
        self.wake()

    def wake(self) -> None:
        """Look at the queue now, unless closed."""
        if not self._wanted:
            return
        if self.running:
            self._awake.set()
            return
        self._process = os.getpid()
        self._awake = threading.Event()
        thread = threading.Thread(target=self._run, args=(self._awake,), name="ldp-client", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # No more threads, or the interpreter is shutting down: the reports wait in the storage.
            return
        self._thread = thread

    def close(self, timeout: float) -> None:
        """Stop, waiting at most ``timeout`` seconds for a send under way."""
        self._wanted = False
        if self.running and self._thread is not None:
            self._awake.set()
            self._thread.join(timeout)

    def close_at_exit(self) -> None:
        """Stop within the policy's time."""
        self.close(self._sender.policy.close_timeout)

    def _run(self, awake: threading.Event) -> None:
        policy = self._sender.policy
        while self._wanted:
            awake.clear()
            task = self._sender.step(policy.request_timeout, self._first_delay)
            if isinstance(task, Idle):
                # Another process may fill the queue, so look again now and then.
                awake.wait(policy.idle_check)
            elif isinstance(task, Wait):
                awake.wait(min(task.seconds, policy.idle_check))


_ALL: weakref.WeakSet[BackgroundDriver] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for driver in list(_ALL):
        driver.close_at_exit()
