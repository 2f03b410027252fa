"""The server: open the store, make its applications, listen, say so, serve until told to stop, drain. And its log, as
lines of JSON: what happened, to which campaign; never a value, a report's id, a token or an address of a client.

Pages of other origins may fetch from the public application what a browser lets them (CORS, Fetch standard). Uploads
carry a media type of their own, for which browsers ask first (a preflight, ``OPTIONS``); documents and models are
public. No credentials are ever allowed: nothing on the public listener knows a browser by its cookies.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import signal
import ssl
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime, timezone
from typing import Any, Final

from aiohttp import hdrs, web

from ldp_aggregator.dashboard.page_sources import Sources
from ldp_aggregator.dashboard.routes import add_admin_pages, add_public_pages
from ldp_aggregator.server.api import admin, public, sealed
from ldp_aggregator.server.api.routing import Context, Handler, Operation, openapi_operation
from ldp_aggregator.server.caches import CampaignCache, FederatedModels
from ldp_aggregator.server.gateway import GatewayKeys
from ldp_aggregator.server.housekeeping import keep
from ldp_aggregator.server.intake import Intake
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES, SECURITY_HEADERS, ProblemError, as_problem
from ldp_aggregator.server.sockets.connections import Connections, make_runner, watched
from ldp_aggregator.server.sockets.listener import Addresses, Listeners, listen, load_tls, raise_limit, reload_tls
from ldp_aggregator.server.upload_queue import Ingest
from ldp_aggregator.service.publishing import counts_of
from ldp_aggregator.service.settings import Limits, Settings
from ldp_aggregator.store import Store, open_store
from ldp_aggregator.store.contract import LOG
from ldp_protocols import Campaign

PUBLIC: Final = (
    *public.OPERATIONS,
    *sealed.OPERATIONS,
    openapi_operation("/openapi.json", (*public.OPERATIONS, *sealed.OPERATIONS)),
)
ADMIN: Final = (*admin.OPERATIONS, openapi_operation("/openapi.json", admin.OPERATIONS))
OPERATIONS: Final = (*admin.WATCHING, openapi_operation("/openapi.json", admin.WATCHING))

EVERY_ORIGIN: Final = "*"
MAX_AGE: Final = 86400
"""Seconds for which a browser may remember a preflight: the longest that any of them does (Firefox; Chromium cuts it to
two hours). What is allowed to an origin hardly ever changes, and a device uploads seldom."""

Answer = Callable[[web.Request], Awaitable[web.Response]]


def make_apps(context: Context) -> tuple[web.Application, web.Application, web.Application]:
    """The public, the admin and the operations application.

    Problems are answered by a wrapper of each handler, not by a middleware: it is on every upload's way, and aiohttp's
    chain of middlewares costs more than what this one does. Paths and methods that do not exist have handlers, too.
    """
    sources = _sources(context)
    return (
        _make_app(PUBLIC, context, lambda app: add_public_pages(app, sources)),
        _make_app(ADMIN, context, lambda app: add_admin_pages(app, sources)),
        _make_app(OPERATIONS, context, lambda _app: None),
    )


def _sources(context: Context) -> Sources:
    async def federated_model(campaign: Campaign) -> bytes | None:
        try:
            return await context.federated_models.body(campaign)
        except ProblemError:
            return None

    return Sources(
        store=context.store,
        campaign=context.campaigns.get,
        federated_model=federated_model,
        exposition=context.metrics.render,
        is_well=lambda: context.ingest.is_well,
        queue_age=lambda: context.ingest.queue_age,
        count=context.metrics.count_request,
        mutated=lambda kind: context.metrics.mutations.labels(kind).inc(),
        report_codes=REPORT_CODES,
        upload_codes={code: kind.title for code, kind in PROBLEMS.items()},
        body_bytes=context.limits.body_bytes,
        behind_tls=context.settings.admin_behind_tls,
        is_archived=context.settings.archive is not None,
    )


def _make_app(
    operations: Sequence[Operation], context: Context, add_pages: Callable[[web.Application], None]
) -> web.Application:
    """Paths are tried in the order they are added in: the API's first, of which uploads are nearly all there is."""
    app = web.Application(middlewares=[watched])
    origins = frozenset(context.settings.allowed_origins)
    for operation in operations:
        handler = answering(operation.answer, context, operation.path, operation.method)
        if operation.for_pages:
            handler = _for_other_origins(handler, origins, embeddable=operation.method == "GET")
        app.router.add_route(operation.method, operation.path, handler)
        if operation.method == "GET":
            app.router.add_route("HEAD", operation.path, handler)
    for path in dict.fromkeys(operation.path for operation in operations):
        there = [operation for operation in operations if operation.path == path]
        allowed = ", ".join(sorted(operation.method for operation in there))
        refuse = _refusing("method-not-allowed", Allow=allowed)
        if any(operation.for_pages for operation in there):
            refuse = _answering_preflights(refuse, origins, allowed)
        app.router.add_route("*", path, answering(refuse, context, path, "other"))
    add_pages(app)
    app.router.add_route("*", "/{path:.*}", answering(_refusing("not-found"), context, "none", "any"))
    return app


def answering(handler: Handler, context: Context, path: str, method: str) -> Answer:
    """``handler`` for aiohttp: every failure becomes a problem document, every answer is counted and gets its headers.

    ``path`` and ``method`` are what the answer is counted under, whatever the client wrote.
    """

    async def answer(request: web.Request) -> web.Response:
        started = time.perf_counter()
        try:
            response = await handler(request, context)
        except Exception as error:  # Whatever it is, the client gets a document and not a traceback.
            problem = as_problem(error, context.metrics)
            context.metrics.refusals.labels(problem.code).inc()
            response = problem.response()
        response.headers.update(SECURITY_HEADERS)
        response.headers.setdefault("Cache-Control", "no-store")
        context.metrics.count_request(path, method, response.status, time.perf_counter() - started)
        return response

    return answer


def _refusing(code: str, **headers: str) -> Handler:
    async def refuse(_request: web.Request, _context: Context) -> web.Response:
        raise ProblemError(code, headers=headers)

    return refuse


def origin_headers(allowed: Collection[str], origin: str | None) -> dict[str, str]:
    """The headers that let a page of ``origin`` read an answer; ``allowed`` is the setting, ``origin`` the request's.

    Nothing for a page that is not allowed; ``Vary`` for everybody wherever the answer depends on who asks.
    """
    granted, vary = (EVERY_ORIGIN, {}) if EVERY_ORIGIN in allowed else (origin, {"Vary": "Origin"} if allowed else {})
    if granted is None or granted not in allowed:
        return vary
    exposed = "Date, ETag, Model-Version, Retry-After"
    return {"Access-Control-Allow-Origin": granted, "Access-Control-Expose-Headers": exposed, **vary}


def preflight_headers(allowed: Collection[str], origin: str | None, methods: str) -> dict[str, str]:
    """The headers of the answer to a preflight, none for an origin that is not allowed."""
    granted = origin_headers(allowed, origin)
    if granted.pop("Access-Control-Expose-Headers", None) is None:
        return {}
    return granted | {
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": "Authorization, Content-Type",
        "Access-Control-Max-Age": str(MAX_AGE),
    }


def _for_other_origins(answer: Answer, allowed: Collection[str], *, embeddable: bool) -> Answer:
    """``answer``, readable by the pages that are allowed. ``embeddable``: by any page that isolates itself, too."""

    async def shared(request: web.Request) -> web.Response:
        response = await answer(request)
        response.headers.update(origin_headers(allowed, request.headers.get(hdrs.ORIGIN)))
        if embeddable:
            response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return response

    return shared


def _answering_preflights(refuse: Handler, allowed: Collection[str], methods: str) -> Handler:
    """Answers the preflights of allowed origins; ``refuse`` has all else whose method a path does not take."""

    async def answer(request: web.Request, context: Context) -> web.Response:
        if request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers:
            headers = preflight_headers(allowed, request.headers.get(hdrs.ORIGIN), methods)
            if headers:
                return web.Response(status=204, headers=headers)
        return await refuse(request, context)

    return answer


OPERATIONS_SECONDS: Final = 1.0
"""For whoever reads health or metrics while everything else has ended."""

SWITCH_SECONDS: Final = 0.0005
"""Seconds that a thread keeps the interpreter while another waits. The writer's thread gives it up at every statement
and would wait the default of 5 ms to get it back from a busy event loop."""

M_ARENA_MAX: Final = -8
"""In glibc's malloc.h. One heap for all threads: with one for each, more is lost between what is in use."""


def run_server(settings: Settings, ready: Callable[[Addresses], None]) -> str | None:
    """Serve in this process; returns as :func:`serve` does. Raises OSError where a port cannot be had."""
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
    stop, hurry, leaving = asyncio.Event(), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def told(number: int) -> None:
        if number == signal.SIGINT or stop.is_set():
            hurry.set()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told, number)
    raise_limit(settings.connections)
    tls = load_tls(settings)
    loop.add_signal_handler(signal.SIGHUP, reload_tls, settings, tls)
    async with running(settings, listeners, tls=tls, leaving=leaving) as ended:
        ready()
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((stopping, ended), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        culprit = ended.result() if ended.done() else None
        leaving.set()
        if culprit is None and settings.pause_seconds > 0:
            LOG.info("leaving")
            with suppress(asyncio.TimeoutError):
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
    limits: Limits | None = None,
) -> AsyncIterator[asyncio.Future[str]]:
    """A server on its listeners for as long as the block lasts. A store that is passed in is not closed.

    Gives what is done once the server cannot go on, with the name of what ended. From ``leaving`` on it is not ready.
    """
    leaving = leaving or asyncio.Event()
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
    models = FederatedModels(opened, settings.federation_groups)
    context = Context(opened, ingest, metrics, settings, limits, campaigns, models, intake, leaving, gateway)
    await ingest.beat()
    writer = asyncio.create_task(ingest.write(), name="writer")
    housekeeping = asyncio.create_task(keep(opened, metrics, settings=settings), name="housekeeping")
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    _watch(ended, writer, housekeeping)
    runners = [make_runner(app, limits) for app in make_apps(context)]
    accepting: list[Connections] = []
    sockets = (listeners.public, listeners.admin, listeners.operations)
    try:
        for name, runner, bound in zip(Listeners.NAMES, runners, sockets, strict=True):
            await runner.setup()
            connections = Connections(limits, metrics, name)
            uploads, secured = (intake, tls) if bound is listeners.public else (None, None)
            task = await listen(runner, bound, connections, intake=uploads, tls=secured)
            accepting.append(connections)
            if task is not None:
                _watch(ended, task)
        yield ended
    finally:
        leaving.set()
        await end_connections(runners[:-1], accepting[:-1], limits.drain_seconds)
        ingest.drain()
        housekeeping.cancel()
        await asyncio.wait((writer, housekeeping))
        # The operations listener goes last: until everything is committed it says that this instance stops.
        await end_connections(runners[-1:], accepting[-1:], OPERATIONS_SECONDS)
        if store is None:
            await opened.close()


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


async def end_connections(runners: Sequence[web.AppRunner], accepting: Sequence[Connections], seconds: float) -> None:
    """Accept no more and let open requests end. What has not after ``seconds`` in all is cut off, whoever does not read
    his answer.
    """
    until = asyncio.get_running_loop().time() + seconds
    for connections in accepting:
        connections.server.close()
    finishing = [asyncio.create_task(connections.finish()) for connections in accepting]
    if finishing:
        await asyncio.wait(finishing, timeout=seconds)
    for connections in accepting:
        connections.cut()
    ending = [*finishing, *(asyncio.create_task(runner.cleanup()) for runner in runners)]
    _, late = await asyncio.wait(ending, timeout=max(until - asyncio.get_running_loop().time(), 0))
    for task in late:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


FIELDS: Final = ("campaign", "reason", "kind", "address")
"""What a message may carry beside its text; anything else is left out. ``address`` is one of our own."""

_OURS: Final = "ldp_aggregator"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": _event(record),
        }
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[1] is not None:
            # Places in the code only: an exception's text may quote what a client sent.
            line["trace"] = [f"{f.filename}:{f.lineno} {f.name}" for f in traceback.extract_tb(record.exc_info[2])]
        return json.dumps(line, ensure_ascii=False)


def _event(record: logging.LogRecord) -> str:
    """Say what happened. A library's message may repeat an exception's, and that what a client sent: of those only the
    pattern is told, and nothing where it was filled in already.
    """
    if record.name.partition(".")[0] == _OURS:
        return record.getMessage()
    return str(record.msg) if record.args else f"a message of {record.name}"


@contextmanager
def logged_to_standard_error(level: str) -> Iterator[None]:
    """Send everything that this process logs to standard error, for the service manager to keep; then log as before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    before = root.handlers[:], root.level, ours.level
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    ours.setLevel(level.upper())
    try:
        yield
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
