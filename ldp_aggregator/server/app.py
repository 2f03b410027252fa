"""The two applications, public and admin, on one store; and what every answer has in common."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from ldp_aggregator.server import admin, public
from ldp_aggregator.server.context import CAMPAIGNS, INGEST, METRICS, SETTINGS, STORE, Campaigns
from ldp_aggregator.server.ingest import RETRY_SECONDS, Ingest
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.openapi import openapi_operation
from ldp_aggregator.server.problems import ProblemError, retry_later
from ldp_aggregator.settings import Settings
from ldp_aggregator.store.contract import UNKNOWN, Store, StoreError, UnknownCampaignError

LOG: Final = logging.getLogger("ldp_aggregator")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SECURITY_HEADERS: Final = {
    "Server": "ldp-aggregator",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""On every answer. Nothing this server sends is meant to be framed, sniffed or run."""

_HTTP_CODES: Final = {
    404: "not-found",
    405: "method-not-allowed",
    413: "body-too-large",
}


PUBLIC: Final = (*public.OPERATIONS, openapi_operation("/openapi.json", public.OPERATIONS))
ADMIN: Final = (*admin.OPERATIONS, openapi_operation("/openapi.json", admin.OPERATIONS))


def make_apps(
    store: Store, ingest: Ingest, metrics: Metrics, settings: Settings
) -> tuple[web.Application, web.Application]:
    """The public and the admin application."""
    campaigns = Campaigns(store)
    apps = []
    for operations in (PUBLIC, ADMIN):
        app = web.Application(middlewares=[answer_problems])
        app[STORE], app[INGEST], app[SETTINGS], app[CAMPAIGNS] = store, ingest, settings, campaigns
        app[METRICS] = metrics
        app.add_routes([operation.route for operation in operations])
        apps.append(app)
    return apps[0], apps[1]


@web.middleware
async def answer_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every failure becomes a problem document; every answer gets the common headers."""
    try:
        response = await handler(request)
    except ProblemError as error:
        response = error.response()
    except UnknownCampaignError:
        response = ProblemError(UNKNOWN).response()
    except StoreError as error:
        LOG.error("store error", extra={"reason": str(error)})
        request.app[METRICS].store_errors.inc()
        response = retry_later("store-unavailable", RETRY_SECONDS).response()
    except web.HTTPException as error:
        headers = {name: error.headers[name] for name in ("Allow",) if name in error.headers}
        response = ProblemError(_HTTP_CODES.get(error.status, "malformed-request"), headers=headers).response()
    except Exception as error:
        LOG.error("internal error", extra={"reason": type(error).__name__}, exc_info=error)
        response = ProblemError("internal-error").response()
    response.headers.update(SECURITY_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    resource = request.match_info.route.resource
    route = "none" if resource is None else resource.canonical
    request.app[METRICS].count_request(route, request.method if resource else "any", response.status)
    return response
