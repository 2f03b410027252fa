"""Several processes on the same sockets. The first process binds, starts the others, and replaces one that dies."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Final

from ldp_aggregator.server.logs import log_to_standard_error
from ldp_aggregator.server.metrics import FOLDER_VARIABLE, mark_dead
from ldp_aggregator.server.process import COMMIT_SECONDS, serve
from ldp_aggregator.server.sockets.listener import Addresses, Listeners
from ldp_aggregator.service.settings import Settings

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

LOG: Final = logging.getLogger("ldp_aggregator")

SWITCH_SECONDS: Final = 0.0005
"""How long one thread may keep the interpreter while another waits. The writer's thread gives it up at every statement
and would wait the default of 5 ms to get it back from a busy event loop."""


FIRST_DELAY_SECONDS: Final = 1.0
LONGEST_DELAY_SECONDS: Final = 30.0
"""A worker that died is replaced after the first delay, doubled for every one that died since the last calm time."""
CALM_SECONDS: Final = 120.0
WAKE_SECONDS: Final = 0.5
"""How often the first process looks whether it was told to stop."""
MOST_DEATHS: Final = 10
"""More without a calm time between them are no accident: the server ends, and whoever watches it may do better."""


class WorkerError(Exception):
    """Workers end that were not told to, and new ones too."""


def serve_with_workers(settings: Settings, ready: Callable[[Addresses], None]) -> None:
    """Serve with as many processes as the settings say. Raises OSError where a port cannot be had,
    WorkerError and EndedError where it cannot go on.
    """
    log_to_standard_error(settings.log_level)
    listeners = Listeners.bind(settings)
    addresses = listeners.addresses(settings)
    if settings.workers == 1:
        run_loop(serve(settings, listeners, lambda: ready(addresses)))
    else:
        with tempfile.TemporaryDirectory(prefix="ldp-metrics-") as folder:
            os.environ[FOLDER_VARIABLE] = folder
            _supervise(settings, listeners, lambda: ready(addresses))


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """On uvloop where it is installed."""
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        import uvloop
    except ModuleNotFoundError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def _supervise(settings: Settings, listeners: Listeners, ready: Callable[[], None]) -> None:
    crew = Crew(settings, listeners)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: crew.stop(number))
    signal.signal(signal.SIGHUP, lambda *_: crew.tell(signal.SIGHUP))
    crew.start()
    if crew.is_ready():
        ready()
        crew.keep()
    failed = not crew.stopping
    if failed:
        crew.stop(signal.SIGTERM)
    crew.join(settings.limits.pause_seconds + settings.limits.drain_seconds + COMMIT_SECONDS)
    if failed:
        raise WorkerError("worker processes end by themselves; their logs say why")


class Crew:
    """The worker processes of one server."""

    def __init__(self, settings: Settings, listeners: Listeners) -> None:
        self._spawn = multiprocessing.get_context("spawn")
        self._number = settings.workers
        self._values = settings.model_dump()
        self._listeners = listeners
        self._workers: list[SpawnProcess] = []
        self._reports: list[Connection] = []
        self.stopping = False

    def start(self) -> None:
        """Start as many as are missing."""
        known = set(self._workers)
        while len(self._workers) < self._number and not self.stopping:
            receiver, sender = self._spawn.Pipe(duplex=False)
            worker = self._spawn.Process(target=_work, args=(self._values, self._listeners, sender))
            worker.start()
            sender.close()
            self._workers.append(worker)
            self._reports.append(receiver)
        if (
            self.stopping
        ):  # Whoever was started while the signal came has not had it; for the others it would be another.
            _signal([worker for worker in self._workers if worker not in known], signal.SIGTERM)

    def is_ready(self) -> bool:
        """Wait until every one serves; False where one has ended first."""
        return all(_is_ready(report) for report in self._reports)

    def keep(self) -> None:
        """Replace whoever dies, until told to stop or until that is of no use."""
        deaths, last = 0, time.monotonic()
        while not self.stopping:
            wait([worker.sentinel for worker in self._workers], timeout=WAKE_SECONDS)
            dead = [worker for worker in self._workers if not worker.is_alive()]
            if self.stopping or not dead:
                continue
            now = time.monotonic()
            deaths, last = (len(dead) if now - last > CALM_SECONDS else deaths + len(dead)), now
            for worker in dead:
                LOG.error("a worker died and is replaced", extra={"worker": worker.pid})
                mark_dead(worker.pid)
                self._workers.remove(worker)
            if deaths > MOST_DEATHS:
                return
            self._pause(min(FIRST_DELAY_SECONDS * 2 ** (deaths - 1), LONGEST_DELAY_SECONDS))
            self.start()

    def stop(self, number: int) -> None:
        """Pass a signal on, and replace nobody any more."""
        self.stopping = True
        self.tell(number)

    def tell(self, number: int) -> None:
        _signal(self._workers, number)

    def join(self, seconds: float) -> None:
        """Wait for all of them; who is left then is killed."""
        deadline = time.monotonic() + seconds
        for worker in self._workers:
            worker.join(max(deadline - time.monotonic(), 0))
            if worker.is_alive():
                worker.kill()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.stopping and time.monotonic() < until:
            time.sleep(min(WAKE_SECONDS, max(until - time.monotonic(), 0)))


def _signal(workers: Iterable[SpawnProcess], number: int) -> None:
    for worker in workers:
        if worker.is_alive() and worker.pid is not None:
            os.kill(worker.pid, number)


def _is_ready(report: Connection) -> bool:
    try:
        return bool(report.recv())
    except EOFError:
        return False


def _work(values: dict[str, Any], listeners: Listeners, report: Connection) -> None:
    """The life of one worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Until the server listens to it.
    settings = Settings(**values)
    log_to_standard_error(settings.log_level)
    run_loop(serve(settings, listeners, lambda: report.send(True)))
