"""Pages of other origins: what a browser may fetch here from a site that is not this server (CORS, Fetch standard).

Uploads carry a media type of their own, for which browsers ask first (a preflight, ``OPTIONS``); documents and models
are public. No credentials are ever allowed: nothing on the public listener knows a browser by its cookies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final

from aiohttp import hdrs, web

from ldp_aggregator.server.api.rows import Handler
from ldp_aggregator.server.context import Context

Answer = Callable[[web.Request], Awaitable[web.Response]]

EVERY_ORIGIN: Final = "*"

MAX_AGE: Final = 86400
"""Seconds for which a browser may remember a preflight: the longest that any of them does (Firefox; Chromium cuts it to
two hours). What is allowed to an origin hardly ever changes, and a device uploads seldom.
"""

_ALLOWED_HEADERS: Final = "Content-Type"
_EXPOSED_HEADERS: Final = "Date, ETag, Model-Version, Retry-After"


def origin_headers(allowed: Collection[str], origin: str | None) -> dict[str, str]:
    """The headers that let a page of ``origin`` read an answer; ``allowed`` is the setting, ``origin`` the request's.

    Nothing for a page that is not allowed; ``Vary`` for everybody wherever the answer depends on who asks.
    """
    if EVERY_ORIGIN in allowed:
        granted, vary = EVERY_ORIGIN, {}
    else:
        granted, vary = origin or "", {"Vary": "Origin"} if allowed else {}
        if granted not in allowed:
            return vary
    return {"Access-Control-Allow-Origin": granted, "Access-Control-Expose-Headers": _EXPOSED_HEADERS, **vary}


def preflight_headers(allowed: Collection[str], origin: str | None, methods: str) -> dict[str, str]:
    """The headers of the answer to a preflight, none for an origin that is not allowed."""
    granted = origin_headers(allowed, origin)
    if "Access-Control-Allow-Origin" not in granted:
        return {}
    del granted["Access-Control-Expose-Headers"]
    return {
        **granted,
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
        "Access-Control-Max-Age": str(MAX_AGE),
    }


def for_other_origins(answer: Answer, allowed: Collection[str], *, embeddable: bool) -> Answer:
    """``answer``, readable by the pages that are allowed. ``embeddable``: by any page that isolates itself, too."""

    async def shared(request: web.Request) -> web.Response:
        response = await answer(request)
        response.headers.update(origin_headers(allowed, request.headers.get(hdrs.ORIGIN)))
        if embeddable:
            response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return response

    return shared


def answering_preflights(refuse: Handler, allowed: Collection[str], methods: str) -> Handler:
    """Answers the preflights of allowed origins; ``refuse`` has all else whose method a path does not take."""

    async def answer(request: web.Request, context: Context) -> web.Response:
        if request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers:
            headers = preflight_headers(allowed, request.headers.get(hdrs.ORIGIN), methods)
            if headers:
                return web.Response(status=204, headers=headers)
        return await refuse(request, context)

    return answer
