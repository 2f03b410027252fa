"""The OpenAPI document, made of the same rows as the routes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from aiohttp import web

from ldp_aggregator.server.api.rows import JSON, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES

PROBLEM: Final = {
    "type": "object",
    "required": ["type", "title", "status", "code"],
    "properties": {
        "type": {"const": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"enum": sorted(PROBLEMS)},
        "detail": {"type": "string"},
        "field": {"type": "string"},
    },
}
"""A problem document, RFC 9457. ``field`` stands in those about a draft."""


def openapi_document(operations: Iterable[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = operation.to_json()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ldp-aggregator",
            "version": version("ldp-bayes"),
            "description": "Campaigns out, locally private reports in, models out. Codes of single reports: "
            + "; ".join(f"{code}: {text}" for code, text in REPORT_CODES.items()),
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": PROBLEM},
        },
    }


def openapi_operation(path: str, operations: Iterable[Operation]) -> Operation:
    """The operation that serves the document of ``operations`` and itself."""
    described = list(operations)

    @cache
    def body() -> bytes:
        return json.dumps(openapi_document(described), indent=1).encode()

    async def get_openapi(_request: web.Request, _context: Context) -> web.Response:
        """The description of this API."""
        return web.Response(body=body(), content_type=JSON)

    own = Operation("GET", path, get_openapi, answers={200: (JSON, {"type": "object"})})
    described.append(own)
    return own
