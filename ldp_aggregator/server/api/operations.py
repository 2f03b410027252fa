"""The operations listener, for those who watch this instance: without secrets and without tokens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from ldp_aggregator.server.api.routing import JSON, STORED, AdmittedRequest, Operation, object_of
from ldp_aggregator.server.problems import ProblemError, retry_later

EXPOSITION: Final = "text/plain"
_ADDRESS: Final = re.compile(r"[0-9.]+|[0-9a-f:.]*:[0-9a-f:.%]*")
"""No name of a host is like this."""


Answer = Callable[[AdmittedRequest], Awaitable[web.Response]]


def under_known_names(handler: Answer) -> Answer:
    """``handler``, for whoever asks under an address or a known name: a page that has its own name lead here, so that a
    browser takes both for one origin, reads nothing.
    """

    @wraps(handler)
    async def answer(asked: AdmittedRequest) -> web.Response:
        host = urlsplit(f"//{asked.request.host}").hostname or ""
        if host not in ("localhost", *asked.context.settings.operations_names) and not _ADDRESS.fullmatch(host):
            raise ProblemError("unknown-host")
        return await handler(asked)

    return answer


@under_known_names
async def get_health(_: AdmittedRequest) -> web.Response:
    """The process runs."""
    return web.json_response({"status": "ok"})


@under_known_names
async def get_metrics(asked: AdmittedRequest) -> web.Response:
    """Counts and times in Prometheus' exposition format."""
    asked.context.metrics.queue_age.set(asked.context.ingest.queue_age)
    body = await asyncio.to_thread(asked.context.metrics.render)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


@under_known_names
async def get_readiness(asked: AdmittedRequest) -> web.Response:
    """The store takes writes, as the writer last saw it, and this instance is not about to stop; 503 otherwise."""
    if asked.context.leaving.is_set():
        raise retry_later("stopping")
    if not asked.context.ingest.is_well:
        raise retry_later("store-unavailable")
    return web.json_response({"status": "ready"})


_WATCHED: Final = partial(Operation, "GET", query=None)
_NAMED: Final = ("unknown-host",)
_STATUS: Final = object_of(status={"type": "string"})

OPERATIONS: Final = (
    _WATCHED("/healthz", get_health, answers={200: (JSON, _STATUS)}, codes=_NAMED),
    _WATCHED("/readyz", get_readiness, answers={200: (JSON, _STATUS)}, codes=("stopping", *STORED, *_NAMED)),
    _WATCHED("/metrics", get_metrics, answers={200: (EXPOSITION, {"type": "string"})}, codes=_NAMED),
)
