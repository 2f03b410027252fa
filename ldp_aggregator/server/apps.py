"""The three applications: their routes, and what every answer of theirs has: a problem document where something fails,
headers, a place in the metrics.

Pages of other origins may fetch from the public application what a browser lets them (CORS, Fetch standard). Uploads
carry a media type of their own, for which browsers ask first (a preflight, ``OPTIONS``); documents and models are
public. No credentials are ever allowed: nothing on the public listener knows a browser by its cookies.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from aiohttp import hdrs, web

from ldp_aggregator.dashboard.page_sources import Sources
from ldp_aggregator.dashboard.routes import add_admin_pages, add_public_pages
from ldp_aggregator.server.api import admin, public, sealed
from ldp_aggregator.server.api.routing import Context, Handler, Operation, openapi_operation
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES, SECURITY_HEADERS, ProblemError, as_problem
from ldp_aggregator.server.sockets.handed_over import watched
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
        readings=context.metrics.readings,
        is_well=lambda: context.ingest.is_well,
        queue_age=lambda: context.ingest.queue_age,
        count=context.metrics.count_request,
        mutated=lambda kind: context.metrics.mutations.labels(kind).inc(),
        report_codes=REPORT_CODES,
        upload_codes={code: kind.title for code, kind in PROBLEMS.items()},
        body_bytes=context.limits.body_bytes,
        check_receivable=context.gateway.check_receivable,
        behind_tls=context.settings.admin_behind_tls,
        is_archived=context.settings.archive is not None,
        has_try=context.settings.try_page,
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
