"""An operation of the HTTP API as one row: the routes, what a request is held to, and the OpenAPI document are made of
these. Every refusal is a ProblemError.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

from aiohttp import ETag, web

from ldp_aggregator.server.access import authorised
from ldp_aggregator.server.caches import ID_PATTERN, CampaignCache, FederatedModels
from ldp_aggregator.server.gateway import GatewayKeys
from ldp_aggregator.server.intake import Intake
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.problems import JSON as JSON
from ldp_aggregator.server.problems import MEDIA_TYPE as PROBLEM_TYPE
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES, ProblemError, retry_later
from ldp_aggregator.server.upload_queue import Ingest
from ldp_aggregator.service.rights import actor_of, recorded
from ldp_aggregator.service.settings import Limits, Settings
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import DELETED, UNKNOWN, StoredToken

EVERYWHERE: Final = (
    *("malformed-request", "headers-too-large", "unmet-expectation", "too-many-connections", "overloaded"),
    "internal-error",
)
"""Codes that any request may meet."""
STORED: Final = ("store-unavailable",)
GUARDED: Final = ("missing-token", "wrong-token", "wrong-scope", "wrong-campaign")
WITH_BODY: Final = (
    *("body-timeout", "body-too-large", "compressed-body", "length-required"),
    *("stopping", "wrong-media-type"),
)
LARGEST_NUMBER: Final = 2**53
_CHUNK: Final = 1 << 16

Schema = Mapping[str, Any]


def object_of(**properties: Schema) -> Schema:
    """The schema of an object that has all of these."""
    return {"type": "object", "required": list(properties), "properties": properties}


@dataclass(frozen=True, slots=True)
class Context:
    """Passed to every handler."""

    store: Store
    ingest: Ingest
    metrics: Metrics
    settings: Settings
    limits: Limits
    campaigns: CampaignCache
    federated_models: FederatedModels
    intake: Intake
    leaving: asyncio.Event
    """Set once this instance wants no more requests."""
    gateway: GatewayKeys = field(default_factory=GatewayKeys)


Handler = Callable[[web.Request, Context], Awaitable[web.Response]]


@dataclass(frozen=True)
class AdmittedRequest:
    """A request that its operation has let in: whose token it shows, and its query as values of their types."""

    operation: Operation
    http: web.Request
    context: Context
    campaign_id: str
    """The id in the path, where there is one."""
    _token: StoredToken | None
    values: Mapping[str, Any]

    @property
    def store(self) -> Store:
        return self.context.store

    @property
    def token(self) -> StoredToken:
        """The token, where the operation needs one."""
        if self._token is None:
            raise RuntimeError("this operation asks for no token")
        return self._token

    def recorded(self, act: str, campaign_id: str | None = None, detail: str = "") -> AbstractAsyncContextManager[None]:
        """Do in the block what the token's holder asks for, written down first."""
        return recorded(self.store, actor_of(self.token), act, campaign_id, detail)

    def check_head(self) -> int:
        """Refuse a body by its headers alone; returns its length."""
        headers, media_types = self.http.headers, self.operation.bodies
        if "Content-Encoding" in headers:
            raise ProblemError("compressed-body")
        if headers.get("Content-Type") not in media_types and self.http.content_type not in media_types:
            raise ProblemError("wrong-media-type", f"send {' or '.join(media_types)}")
        if self.http.content_length is None:
            raise ProblemError("length-required")
        return self.http.content_length

    async def body(self, most: int | None = None) -> bytes:
        """The body, for which the connection has set a time. ``most`` is a limit below the operation's."""
        limit = self.context.limits.body_bytes
        limit = min(limit, self.operation.longest or limit, most or limit)
        length = self.check_head()
        if length > limit:
            raise ProblemError("body-too-large", f"at most {limit} bytes are accepted, not {length}")
        if self.context.ingest.is_draining:  # Refuse before it is read.
            raise retry_later("stopping")
        body = bytearray()
        try:
            while len(body) < length and (chunk := await self.http.content.read(_CHUNK)):
                body += chunk
        except ConnectionError:
            raise ProblemError("malformed-request", "the connection ended within the body") from None
        return bytes(body)

    def cacheable(self, body: bytes, tag: str, cache: str) -> web.Response:
        """A 200, or a 304 where the client has it already."""
        headers = {"ETag": f'"{tag}"', "Cache-Control": cache}
        have = self.http.if_none_match
        if have and any(entry.value in ("*", tag) for entry in have if isinstance(entry, ETag)):
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=JSON, headers=headers)


@dataclass(frozen=True)
class Operation:
    """``query`` and ``bodies`` map names and media types to JSON schemas, ``answers`` statuses to (media type, schema).

    ``scopes`` are those of which a token must have one; ``codes`` the problems of this operation beyond the usual.
    Where ``query`` is None it is not looked at. A body of more than ``longest`` bytes is refused by its head (None: of
    more than the server takes).
    """

    method: str
    path: str
    handler: Callable[[AdmittedRequest], Awaitable[web.Response]]
    scopes: tuple[str, ...] = ()
    query: Mapping[str, Schema] | None = field(default_factory=dict)
    bodies: Mapping[str, Schema] = field(default_factory=dict)
    answers: Mapping[int, tuple[str, Schema] | None] = field(default_factory=dict)
    codes: tuple[str, ...] = STORED
    longest: int | None = None
    optional_scopes: bool = False
    """True where a setting decides if the token is needed."""
    for_pages: bool = False
    """True where pages of other origins may use it, where the operator names them."""

    async def answer(self, request: web.Request, context: Context) -> web.Response:
        """Check the path, the token and the query, in this order, and have the handler answer."""
        name = request.match_info.get("id", "")
        if "{id}" in self.path and not ID_PATTERN.fullmatch(name):
            raise ProblemError(UNKNOWN)
        token = None
        if self.scopes and not self.optional_scopes:
            token = await authorised(request.headers, context.store, *self.scopes, campaign_id=name or None)
        return await self.handler(AdmittedRequest(self, request, context, name, token, self._values(request)))

    def _values(self, request: web.Request) -> dict[str, Any]:
        """The query's parameters, each at most once; unknown ones are refused."""
        if self.query is None:
            return {}
        values = {}
        for name, text in request.query.items():
            if name not in self.query:
                raise ProblemError("malformed-query", f"the parameters here are {', '.join(self.query) or 'none'}")
            if name in values:
                raise ProblemError("malformed-query", f"{name} stands in the query more than once")
            values[name] = _value(name, text, self.query[name])
        return values

    def all_codes(self) -> tuple[str, ...]:
        """Every problem this operation may answer."""
        codes = [*EVERYWHERE, *self.codes]
        codes += GUARDED if self.scopes else ()
        codes += WITH_BODY if self.bodies else ()
        codes += (UNKNOWN, DELETED) if "{id}" in self.path else ()
        codes += () if self.query is None else ("malformed-query",)
        return tuple(sorted(set(codes)))

    def to_json(self) -> dict[str, Any]:
        """OpenAPI operation object."""
        places = re.findall(r"\{(\w+)\}", self.path)
        parameters = [_parameter(name, "path", {"type": "string"}) for name in places]
        parameters += [_parameter(name, "query", schema) for name, schema in (self.query or {}).items()]
        document: dict[str, Any] = {
            "operationId": self.handler.__name__,
            "summary": inspect.getdoc(self.handler) or "",
            "parameters": parameters,
            "responses": {str(status): _answer(status, content) for status, content in self.answers.items()}
            | self._problems(),
        }
        if self.bodies:
            content = {media: {"schema": dict(schema)} for media, schema in self.bodies.items()}
            document["requestBody"] = {"required": True, "content": content}
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


def _value(name: str, text: str, schema: Schema) -> Any:
    """A parameter as its schema has it: one of some words, true or false, or a positive whole number."""
    if "enum" in schema:
        if text not in schema["enum"]:
            raise ProblemError("malformed-query", f"{name} must be one of {', '.join(schema['enum'])}")
        return text
    if schema["type"] == "boolean":
        if text not in ("true", "false"):
            raise ProblemError("malformed-query", f"{name} must be true or false")
        return text == "true"
    most = schema.get("maximum", LARGEST_NUMBER)
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and 1 <= int(text) <= most):
        raise ProblemError("malformed-query", f"{name} must be a whole number from 1 to {most}")
    return int(text)


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
        "type": {"enum": sorted({kind.type for kind in PROBLEMS.values()})},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"enum": sorted(PROBLEMS)},
        "detail": {"type": "string"},
        "field": {"type": "string"},
    },
}
"""A problem document, RFC 9457. ``field`` stands in those about a draft."""

TOKEN: Final = {"type": "http", "scheme": "bearer"}


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
        "components": {"securitySchemes": {"token": TOKEN}, "schemas": {"Problem": PROBLEM}},
    }


def openapi_operation(path: str, operations: Iterable[Operation]) -> Operation:
    """The operation that serves the document of ``operations`` and itself."""
    described = list(operations)

    @cache
    def body() -> bytes:
        return json.dumps(openapi_document(described), indent=1).encode()

    async def get_openapi(_: AdmittedRequest) -> web.Response:
        """The description of this API."""
        return web.Response(body=body(), content_type=JSON)

    own = Operation("GET", path, get_openapi, query=None, answers={200: (JSON, {"type": "object"})}, codes=())
    described.append(own)
    return own
