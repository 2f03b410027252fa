"""The two applications, public and admin, on one store; and what every answer has in common."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiohttp import web

from ldp_aggregator.dashboard.routes import add_admin_pages, add_public_pages
from ldp_aggregator.dashboard.sources import Sources
from ldp_aggregator.server.api import admin, public
from ldp_aggregator.server.api.openapi import openapi_operation
from ldp_aggregator.server.api.rows import Handler, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES, RETRY_SECONDS, ProblemError, retry_later
from ldp_aggregator.store.contract import UNKNOWN, StoreError, UnknownCampaignError
from protocols import Campaign

LOG: Final = logging.getLogger("ldp_aggregator")

SECURITY_HEADERS: Final = {
    "Server": "ldp-aggregator",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""On every answer. Nothing this server sends is meant to be framed, sniffed or run."""

PUBLIC: Final = (*public.OPERATIONS, openapi_operation("/openapi.json", public.OPERATIONS))
ADMIN: Final = (*admin.OPERATIONS, openapi_operation("/openapi.json", admin.OPERATIONS))


def make_apps(context: Context) -> tuple[web.Application, web.Application]:
    """The public and the admin application.

    Problems are answered by a wrapper of each handler, not by a middleware: it is on every upload's way, and aiohttp's
    chain of middlewares costs more than what this one does. Paths and methods that do not exist have handlers, too.
    """
    sources = _sources(context)
    return (
        _make_app(PUBLIC, context, lambda app: add_public_pages(app, sources)),
        _make_app(ADMIN, context, lambda app: add_admin_pages(app, sources)),
    )


def _sources(context: Context) -> Sources:
    """What the pages are made from."""

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
        is_well=lambda: context.ingest.health.is_well,
        count=context.metrics.count_request,
        mutated=lambda kind: context.metrics.mutations.labels(kind).inc(),
        sentences={code: kind.title for code, kind in PROBLEMS.items()} | dict(REPORT_CODES),
        body_bytes=context.settings.limits.body_bytes,
    )


def _make_app(
    operations: Sequence[Operation], context: Context, add_pages: Callable[[web.Application], None]
) -> web.Application:
    """Paths are tried in the order they are added in: the API's first, of which uploads are nearly all there is."""
    app = web.Application()
    for operation in operations:
        handler = answering(operation.handler, context, operation.path, operation.method)
        app.router.add_route(operation.method, operation.path, handler)
        if operation.method == "GET":
            app.router.add_route("HEAD", operation.path, handler)
    for path in dict.fromkeys(operation.path for operation in operations):
        allowed = ", ".join(sorted(operation.method for operation in operations if operation.path == path))
        app.router.add_route(
            "*", path, answering(_refusing("method-not-allowed", Allow=allowed), context, path, "other")
        )
    add_pages(app)
    app.router.add_route("*", "/{path:.*}", answering(_refusing("not-found"), context, "none", "any"))
    return app


def answering(
    handler: Handler, context: Context, path: str, method: str
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """``handler`` for aiohttp: every failure becomes a problem document, every answer is counted and gets its headers.

    ``path`` and ``method`` are what the answer is counted under, whatever the client wrote.
    """

    async def answer(request: web.Request) -> web.Response:
        try:
            response = await handler(request, context)
        except Exception as error:  # Whatever it is, the client gets a document and not a traceback.
            response = _problem(error, context).response()
        response.headers.update(SECURITY_HEADERS)
        response.headers.setdefault("Cache-Control", "no-store")
        context.metrics.count_request(path, method, response.status)
        return response

    return answer


def _refusing(code: str, **headers: str) -> Handler:
    async def refuse(_request: web.Request, _context: Context) -> web.Response:
        raise ProblemError(code, headers=headers)

    return refuse


def _problem(error: Exception, context: Context) -> ProblemError:
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, UnknownCampaignError):
        return ProblemError(UNKNOWN)
    if isinstance(error, StoreError):
        LOG.error("store error", extra={"reason": str(error)})
        context.metrics.store_errors.inc()
        return retry_later("store-unavailable", RETRY_SECONDS)
    LOG.error("internal error", extra={"reason": type(error).__name__}, exc_info=error)
    return ProblemError("internal-error")
