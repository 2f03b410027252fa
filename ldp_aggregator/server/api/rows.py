"""An operation of the HTTP API as one row: the server's routes and the OpenAPI document are both made of these."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

from aiohttp import web

from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import MEDIA_TYPE as PROBLEM_TYPE
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES

JSON: Final = "application/json"

EVERYWHERE: Final = ("malformed-request", "headers-too-large", "too-many-connections", "internal-error")
"""Codes that any request may meet."""
STORED: Final = ("store-unavailable",)
GUARDED: Final = ("missing-token", "wrong-token", "wrong-scope", "wrong-campaign")
WITH_BODY: Final = (
    "body-timeout",
    "body-too-large",
    "compressed-body",
    "length-required",
    "overloaded",
    "stopping",
    "wrong-media-type",
)

Schema = Mapping[str, Any]
Handler = Callable[[web.Request, Context], Awaitable[web.Response]]


@dataclass(frozen=True)
class Operation:
    """``query`` and ``bodies`` map names and media types to JSON schemas, ``answers`` statuses to (media type, schema).

    ``scopes`` are those of which a token must have one; ``codes`` the problems of this operation beyond the usual.
    """

    method: str
    path: str
    handler: Handler
    scopes: tuple[str, ...] = ()
    query: Mapping[str, Schema] = field(default_factory=dict)
    bodies: Mapping[str, Schema] = field(default_factory=dict)
    answers: Mapping[int, tuple[str, Schema] | None] = field(default_factory=dict)
    codes: tuple[str, ...] = ()
    optional_scopes: bool = False
    """Whether a setting decides if the token is needed."""
    for_pages: bool = False
    """Whether pages of other origins may use it, where the operator names them (:mod:`.origins`)."""

    @property
    def summary(self) -> str:
        """The handler's docstring."""
        return inspect.getdoc(self.handler) or ""

    def all_codes(self) -> tuple[str, ...]:
        """Every problem this operation may answer."""
        codes = [*EVERYWHERE, *self.codes]
        codes += GUARDED if self.scopes else ()
        codes += WITH_BODY if self.bodies else ()
        return tuple(sorted(set(codes)))

    def to_json(self) -> dict[str, Any]:
        """As an OpenAPI operation object."""
        places = re.findall(r"\{(\w+)\}", self.path)
        parameters = [_parameter(name, "path", {"type": "string"}) for name in places]
        parameters += [_parameter(name, "query", schema) for name, schema in self.query.items()]
        document: dict[str, Any] = {
            "operationId": self.handler.__name__,
            "summary": self.summary,
            "parameters": parameters,
            "responses": {str(status): _answer(status, content) for status, content in self.answers.items()}
            | self._problems(),
        }
        if self.bodies:
            document["requestBody"] = {
                "required": True,
                "content": {media: {"schema": dict(schema)} for media, schema in self.bodies.items()},
            }
        if self.scopes:
            document["security"] = [{"token": list(self.scopes)}] + ([{}] if self.optional_scopes else [])
        return document

    def _problems(self) -> dict[str, Any]:
        by_status: dict[int, list[str]] = {}
        for code in self.all_codes():
            by_status.setdefault(PROBLEMS[code].status, []).append(code)
        return {
            str(status): {
                "description": "; ".join(f"{code}: {PROBLEMS[code].title}" for code in codes),
                "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                "x-codes": codes,
            }
            for status, codes in sorted(by_status.items())
        }


def _parameter(name: str, place: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": dict(schema)}


def _answer(status: int, content: tuple[str, Schema] | None) -> dict[str, Any]:
    if content is None:
        return {"description": "The client has it already" if status == HTTPStatus.NOT_MODIFIED else "Done"}
    media, schema = content
    return {"description": "Done", "content": {media: {"schema": dict(schema)}}}


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
