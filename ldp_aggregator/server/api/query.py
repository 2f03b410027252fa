"""What a path, a query, a condition and a body say, within their limits. Every refusal is a ProblemError."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aiohttp import ETag, web

from ldp_aggregator.server.context import ID_PATTERN, Context
from ldp_aggregator.server.problems import ProblemError, retry_later
from ldp_aggregator.store.contract import UNKNOWN


def campaign_id(request: web.Request) -> str:
    """The id in the path."""
    text = request.match_info["id"]
    if not ID_PATTERN.fullmatch(text):
        raise ProblemError(UNKNOWN)
    return text


def parameters(request: web.Request, known: Iterable[str]) -> dict[str, str]:
    """The query's parameters, each at most once; unknown ones are refused."""
    known = tuple(known)
    for name in request.query:
        if name not in known:
            raise ProblemError("malformed-query", f"the parameters here are {', '.join(known) or 'none'}")
        if len(request.query.getall(name)) > 1:
            raise ProblemError("malformed-query", f"{name} stands in the query more than once")
    return dict(request.query)


def whole_number(values: dict[str, str], name: str, *, most: int = 2**53) -> int | None:
    """A parameter that is a positive whole number, None where it is absent."""
    text = values.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and 1 <= int(text) <= most):
        raise ProblemError("malformed-query", f"{name} must be a whole number from 1 to {most}")
    return int(text)


def cacheable(request: web.Request, body: bytes, tag: str, cache: str) -> web.Response:
    """A 200, or a 304 where the client has it already."""
    headers = {"ETag": f'"{tag}"', "Cache-Control": cache}
    have = request.if_none_match
    if have and any(entry.value in ("*", tag) for entry in have if isinstance(entry, ETag)):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type="application/json", headers=headers)


_CHUNK: Final = 1 << 16


async def read_body(
    request: web.Request, context: Context, media_types: tuple[str, ...], *, most: int | None = None
) -> bytes:
    """The body, for which the connection has made room and set a time. ``most`` is a limit below the server's own."""
    limit = context.settings.limits.body_bytes
    limit = min(limit, most or limit)
    length = check_head(request, media_types)
    if length > limit:
        raise ProblemError("body-too-large", f"at most {limit} bytes are accepted, not {length}")
    if context.ingest.is_draining:  # Refuse before it is read.
        raise retry_later("stopping")
    body = bytearray()
    try:
        while len(body) < length and (chunk := await request.content.read(_CHUNK)):
            body += chunk
    except ConnectionError:
        raise ProblemError("malformed-request", "the connection ended within the body") from None
    return bytes(body)


def check_head(request: web.Request, media_types: tuple[str, ...]) -> int:
    """Refuse a body by its headers alone; returns its length."""
    if "Content-Encoding" in request.headers:
        raise ProblemError("compressed-body")
    if request.headers.get("Content-Type") not in media_types and request.content_type not in media_types:
        raise ProblemError("wrong-media-type", f"send {' or '.join(media_types)}")
    length = request.content_length
    if length is None:
        raise ProblemError("length-required")
    return length
