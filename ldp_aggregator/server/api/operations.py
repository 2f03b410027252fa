"""Whether this instance is well, for those who watch it: a listener of its own, without secrets and without tokens."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from ldp_aggregator.server.api.rows import JSON, STORED, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import retry_later

EXPOSITION: Final = "text/plain"


async def get_health(_request: web.Request, _context: Context) -> web.Response:
    """The process runs."""
    return web.json_response({"status": "ok"})


async def get_metrics(_request: web.Request, context: Context) -> web.Response:
    """Counts and times in Prometheus' exposition format."""
    context.metrics.queue_age.set(context.ingest.queue_age)
    body = await asyncio.to_thread(context.metrics.render)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


async def get_readiness(_request: web.Request, context: Context) -> web.Response:
    """The store takes writes, as the writer last saw it, and this instance is not about to stop; 503 otherwise."""
    if context.leaving.is_set():
        raise retry_later("stopping")
    if not context.ingest.health.is_well:
        raise retry_later("store-unavailable")
    return web.json_response({"status": "ready"})


_STATUS: Final = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}

OPERATIONS: Final = (
    Operation("GET", "/healthz", get_health, answers={200: (JSON, _STATUS)}),
    Operation("GET", "/readyz", get_readiness, answers={200: (JSON, _STATUS)}, codes=("stopping", *STORED)),
    Operation("GET", "/metrics", get_metrics, answers={200: (EXPOSITION, {"type": "string"})}),
)
