"""Several processes on the same two sockets. The first process binds, starts the others, and stops when one ends."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Final

from ldp_aggregator.server.logs import log_to_standard_error
from ldp_aggregator.server.metrics import FOLDER_VARIABLE
from ldp_aggregator.server.process import COMMIT_SECONDS, serve
from ldp_aggregator.server.sockets.listener import Addresses, Listeners
from ldp_aggregator.service.settings import Settings

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

SWITCH_SECONDS: Final = 0.0005
"""How long one thread may keep the interpreter while another waits. The writer's thread gives it up at every statement
and would wait the default of 5 ms to get it back from a busy event loop."""


class WorkerError(Exception):
    """A worker ended that was not told to."""


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
    spawn = multiprocessing.get_context("spawn")
    stopping = False
    workers: list[SpawnProcess] = []

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True
        _signal(workers, signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    signal.signal(signal.SIGHUP, lambda *_: _signal(workers, signal.SIGHUP))
    values = settings.model_dump()
    reports = []
    for _ in range(settings.workers):
        receiver, sender = spawn.Pipe(duplex=False)
        worker = spawn.Process(target=_work, args=(values, listeners, sender))
        worker.start()
        sender.close()
        workers.append(worker)
        reports.append(receiver)
    if stopping:
        stop()
    if all(_is_ready(report) for report in reports):
        ready()
        wait([worker.sentinel for worker in workers])
    failed = not stopping
    stop()
    deadline = time.monotonic() + settings.limits.drain_seconds + COMMIT_SECONDS
    for worker in workers:
        worker.join(max(deadline - time.monotonic(), 0))
        if worker.is_alive():
            worker.kill()
    if failed:
        raise WorkerError("a worker process ended by itself; its log says why")


def _is_ready(report: Connection) -> bool:
    try:
        return bool(report.recv())
    except EOFError:
        return False


def _signal(workers: list[SpawnProcess], number: int) -> None:
    for worker in workers:
        if worker.is_alive() and worker.pid is not None:
            os.kill(worker.pid, number)


def _work(values: dict[str, Any], listeners: Listeners, report: Connection) -> None:
    """The life of one worker."""
    # A terminal sends Ctrl-C to every process; the first one passes it on as SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = Settings(**values)
    log_to_standard_error(settings.log_level)
    run_loop(serve(settings, listeners, lambda: report.send(True)))
