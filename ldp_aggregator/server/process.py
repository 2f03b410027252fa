"""The server: open the store, make its applications, listen, say so, serve until told to stop, drain."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from ldp_aggregator.server.api.routing import Context
from ldp_aggregator.server.apps import make_apps
from ldp_aggregator.server.caches import CampaignCache, FederatedModels
from ldp_aggregator.server.gateway import GatewayKeys
from ldp_aggregator.server.housekeeping import keep
from ldp_aggregator.server.intake import Intake
from ldp_aggregator.server.log import logged_to_standard_error
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.sockets.connections import Connections
from ldp_aggregator.server.sockets.handed_over import make_runner
from ldp_aggregator.server.sockets.listener import (
    Addresses,
    Listeners,
    end_connections,
    listen,
    load_tls,
    raise_limit,
    reload_tls,
)
from ldp_aggregator.server.upload_queue import Ingest
from ldp_aggregator.service.archives import counts_of
from ldp_aggregator.service.settings import Limits, Settings, database_in_file, secrets_in_files
from ldp_aggregator.store import Store, open_store
from ldp_aggregator.store.contract import LOG, kind_of

OPERATIONS_SECONDS: Final = 1.0
"""Seconds that the operations listener stays after everything else has ended."""

SWITCH_SECONDS: Final = 0.0005
"""Seconds that a thread keeps the interpreter while another waits. The writer's thread gives it up at every statement
and would wait the default of 5 ms to get it back from a busy event loop."""

M_ARENA_MAX: Final = -8
"""Number of the option in glibc's malloc.h: one heap for all threads, which wastes less than one for each."""


def run_server(settings: Settings, ready: Callable[[Addresses], None]) -> str | None:
    """Serve in this process; returns as :func:`serve` does. Raises OSError if a port cannot be had."""
    # Whoever has it read its secrets again while it starts does not end it: it reads them anyway.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with logged_to_standard_error(settings.log_level):
        listeners = Listeners.bind(settings)
        addresses = listeners.addresses(settings)
        return run_loop(serve(settings, listeners, lambda: ready(addresses)))


def run_loop(main: Coroutine[Any, Any, str | None]) -> str | None:
    """Run on uvloop where it is installed."""
    sys.setswitchinterval(SWITCH_SECONDS)
    with suppress(OSError, AttributeError, TypeError):  # Other C libraries than glibc have no such thing.
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.run(main)
    else:
        return uvloop.run(main)


async def serve(settings: Settings, listeners: Listeners, ready: Callable[[], None]) -> str | None:
    """Serve until SIGTERM or SIGINT, then stop accepting, answer what was accepted, commit it and return.

    After SIGTERM it first says for ``pause_seconds`` that it is not ready, and goes on serving; SIGINT, or
    another SIGTERM, ends that. Returns what ended by itself, where the server cannot go on.
    """
    stop, hurry, leaving, hung_up = (asyncio.Event() for _ in range(4))
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        if number == signal.SIGINT or stop.is_set():
            hurry.set()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    raise_limit(settings.connections)
    loop.add_signal_handler(signal.SIGHUP, hung_up.set)
    async with running(settings, listeners, tls=load_tls(settings), leaving=leaving, hung_up=hung_up) as ended:
        ready()
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((stopping, ended), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        culprit = ended.result() if ended.done() else None
        leaving.set()
        if culprit is None and settings.pause_seconds > 0:
            LOG.info("leaving")
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), settings.pause_seconds)
        LOG.info("stopping")
    LOG.info("stopped")
    return culprit


@asynccontextmanager
async def running(
    settings: Settings,
    listeners: Listeners,
    *,
    store: Store | None = None,
    tls: ssl.SSLContext | None = None,
    leaving: asyncio.Event | None = None,
    hung_up: asyncio.Event | None = None,
    limits: Limits | None = None,
) -> AsyncIterator[asyncio.Future[str]]:
    """A server on its listeners for as long as the block lasts. A store that is passed in is not closed.

    Gives what is done once the server cannot go on, with the name of what ended. From ``leaving`` on it is not ready;
    whenever somebody ``hung_up`` it reads its secrets again.
    """
    leaving, hung_up, due = leaving or asyncio.Event(), hung_up or asyncio.Event(), asyncio.Event()
    opened = store or await open_store(settings.data, settings.database_address)
    limits, metrics = limits or settings.limits, Metrics()
    campaigns = CampaignCache(opened)
    try:
        ingest = Ingest(await counts_of(opened, settings), metrics, group_reports=limits.group_reports)
        intake = Intake(opened, ingest, metrics, settings, limits, campaigns)
        gateway = GatewayKeys.of(settings)
    except BaseException:
        if store is None:
            await opened.close()
        raise
    models = FederatedModels(opened)
    context = Context(opened, ingest, metrics, settings, limits, campaigns, models, intake, leaving, gateway)
    readers = {
        "certificate": lambda: reload_tls(settings, tls),
        "gateway keys": lambda: gateway.read_again(settings),
        "database address": lambda: opened.reconnect(database_in_file()),
    }
    await ingest.beat()
    writer = asyncio.create_task(ingest.write(), name="writer")
    keeper = keep(opened, metrics, settings=settings, gateway=gateway, due=due)
    housekeeping = asyncio.create_task(keeper, name="housekeeping")
    rereading = asyncio.create_task(read_again(settings, readers, hung_up, due), name="rereading")
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    _watch(ended, writer, housekeeping, rereading)
    runners = [make_runner(app, limits) for app in make_apps(context)]
    accepting: list[Connections] = []
    sockets = (listeners.public, listeners.admin, listeners.operations)
    try:
        for name, runner, bound in zip(Listeners.NAMES, runners, sockets, strict=True):
            await runner.setup()
            connections = Connections(limits, metrics, name)
            uploads, secured = (intake, tls) if bound is listeners.public else (None, None)
            task = await listen(runner, bound, connections, intake=uploads, gateway=gateway, tls=secured)
            accepting.append(connections)
            if task is not None:
                _watch(ended, task)
        yield ended
    finally:
        leaving.set()
        await end_connections(runners[:-1], accepting[:-1], limits.drain_seconds)
        ingest.drain()
        housekeeping.cancel()
        rereading.cancel()
        await asyncio.wait((writer, housekeeping, rereading))
        # The operations listener goes last: until everything is committed it says that this instance stops.
        await end_connections(runners[-1:], accepting[-1:], OPERATIONS_SECONDS)
        if store is None:
            await opened.close()


async def read_again(
    settings: Settings,
    readers: Mapping[str, Callable[[], Awaitable[None] | None]],
    hung_up: asyncio.Event,
    due: asyncio.Event,
) -> None:
    """Rereading of every secret that is in a file, at each SIGHUP (``hung_up``) until cancelled. One that fails leaves
    the old one in use and does not stop the others; ``due`` is set at the end.
    """
    while True:
        await hung_up.wait()
        hung_up.clear()
        for kind in secrets_in_files(settings):
            try:
                waiting = readers[kind]()
                if waiting is not None:
                    await waiting
            except Exception as error:  # Whatever is wrong with it, the server goes on.
                LOG.error("secret not read again", extra={"kind": kind, "reason": kind_of(error)})
            else:
                LOG.info("secret read again", extra={"kind": kind})
        due.set()


def _watch(ended: asyncio.Future[str], *tasks: asyncio.Task[None]) -> None:
    """Have ``ended`` done, with its name, once one of the tasks is."""

    def note(task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        if task.exception() is not None:
            LOG.critical("ended by itself", extra={"kind": task.get_name()}, exc_info=task.exception())
        if not ended.done():
            ended.set_result(task.get_name())

    for task in tasks:
        task.add_done_callback(note)
