"""What publishers have signed: kept and served as it is. A server can withhold a directory, and cannot make one."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final

from aiohttp import web

from ldp_aggregator.server.admission import authorise
from ldp_aggregator.server.api.query import cacheable, parameters, read_body
from ldp_aggregator.server.api.rows import JSON, STORED, Operation
from ldp_aggregator.server.context import ID_PATTERN, Context
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.acting import actor_of, recorded
from ldp_aggregator.service.signing import described
from ldp_aggregator.store.contract import OLDER
from protocols import DocumentError
from protocols.document.directory import LARGEST_DIRECTORY, read_directory


async def get_directory(request: web.Request, context: Context) -> web.Response:
    """The newest directory that was signed with this key."""
    parameters(request, ())
    body = await context.store.directory(_key(request))
    if body is None:
        raise ProblemError("no-directory")
    return cacheable(request, body, hashlib.sha256(body).hexdigest(), "public, no-cache")


async def put_directory(request: web.Request, context: Context) -> web.Response:
    """Keep a directory in place of an older one, if the key's holder has signed it."""
    token = await authorise(request, context.store, "admin")
    parameters(request, ())
    key = _key(request)
    body = await read_body(request, context, (JSON,), most=LARGEST_DIRECTORY)
    try:
        directory = await asyncio.to_thread(read_directory, body, key)
    except DocumentError as error:
        raise ProblemError("invalid-directory", str(error)) from None
    async with recorded(context.store, actor_of(token), "publish directory", None, f"{key} {described(directory)}"):
        await context.store.put_directory(key, directory.version, body)
    return web.json_response({"version": directory.version})


def _key(request: web.Request) -> str:
    """The public key in the path, which has the form of a campaign's id."""
    text = request.match_info["key"]
    if not ID_PATTERN.fullmatch(text):
        raise ProblemError("no-directory")
    return text


PUBLIC: Final = (
    Operation(
        "GET",
        "/v1/directories/{key}",
        get_directory,
        answers={200: (JSON, {"type": "object", "required": ["statement", "signature"]}), 304: None},
        codes=("no-directory", "malformed-query", *STORED),
        for_pages=True,
    ),
)
ADMIN: Final = (
    Operation(
        "PUT",
        "/admin/v1/directories/{key}",
        put_directory,
        scopes=("admin",),
        bodies={JSON: {"type": "object"}},
        answers={200: (JSON, {"type": "object", "required": ["version"]})},
        codes=("no-directory", "invalid-directory", OLDER, "malformed-query", *STORED),
    ),
)
