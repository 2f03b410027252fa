"""Whether this instance is well, for those who watch it: a listener of its own, without secrets and without tokens."""

from __future__ import annotations

import asyncio
import re
from functools import wraps
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from ldp_aggregator.server.api.rows import JSON, STORED, Handler, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import ProblemError, retry_later

EXPOSITION: Final = "text/plain"
_ADDRESS: Final = re.compile(r"[0-9.]+|[0-9a-f:.]*:[0-9a-f:.%]*")
"""No name of a host is like this."""


def under_known_names(handler: Handler) -> Handler:
    """``handler``, for whoever asks under an address or a known name: a page that has its own name lead here, so that a
    browser takes both for one origin, reads nothing.
    """

    @wraps(handler)
    async def answer(request: web.Request, context: Context) -> web.Response:
        host = urlsplit(f"//{request.host}").hostname or ""
        if host not in ("localhost", *context.settings.operations_names) and not _ADDRESS.fullmatch(host):
            raise ProblemError("unknown-host")
        return await handler(request, context)

    return answer


@under_known_names
async def get_health(_request: web.Request, _context: Context) -> web.Response:
    """The process runs."""
    return web.json_response({"status": "ok"})


@under_known_names
async def get_metrics(_request: web.Request, context: Context) -> web.Response:
    """Counts and times in Prometheus' exposition format."""
    context.metrics.queue_age.set(context.ingest.queue_age)
    body = await asyncio.to_thread(context.metrics.render)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


@under_known_names
async def get_readiness(_request: web.Request, context: Context) -> web.Response:
    """The store takes writes, as the writer last saw it, and this instance is not about to stop; 503 otherwise."""
    if context.leaving.is_set():
        raise retry_later("stopping")
    if not context.ingest.health.is_well:
        raise retry_later("store-unavailable")
    return web.json_response({"status": "ready"})


_NAMED: Final = ("unknown-host",)
_STATUS: Final = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}

OPERATIONS: Final = (
    Operation("GET", "/healthz", get_health, answers={200: (JSON, _STATUS)}, codes=_NAMED),
    Operation("GET", "/readyz", get_readiness, answers={200: (JSON, _STATUS)}, codes=("stopping", *STORED, *_NAMED)),
    Operation("GET", "/metrics", get_metrics, answers={200: (EXPOSITION, {"type": "string"})}, codes=_NAMED),
)
