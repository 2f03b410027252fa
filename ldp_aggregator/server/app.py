"""The two applications, public and admin, on one store; and what every answer has in common."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from ldp_aggregator.server import admin, public
from ldp_aggregator.server.context import CAMPAIGNS, INGEST, SETTINGS, STORE, Campaigns
from ldp_aggregator.server.ingest import RETRY_SECONDS, Ingest
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


def make_apps(store: Store, ingest: Ingest, settings: Settings) -> tuple[web.Application, web.Application]:
    """The public and the admin application."""
    campaigns = Campaigns(store)
    apps = []
    for routes in (public.routes(), admin.routes()):
        app = web.Application(middlewares=[answer_problems], client_max_size=settings.limits.body_bytes)
        app[STORE], app[INGEST], app[SETTINGS], app[CAMPAIGNS] = store, ingest, settings, campaigns
        app.add_routes(routes)
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
        response = retry_later("store-unavailable", RETRY_SECONDS).response()
    except web.HTTPException as error:
        headers = {name: error.headers[name] for name in ("Allow",) if name in error.headers}
        response = ProblemError(_HTTP_CODES.get(error.status, "malformed-request"), headers=headers).response()
    except Exception as error:
        LOG.error("internal error", extra={"reason": type(error).__name__}, exc_info=error)
        response = ProblemError("internal-error").response()
    for name, value in SECURITY_HEADERS.items():
        response.headers[name] = value
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
    return response
