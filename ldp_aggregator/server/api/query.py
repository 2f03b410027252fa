"""What a path, a query and a condition say. Every refusal is a ProblemError."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import ETag, web

from ldp_aggregator.server.context import ID_PATTERN
from ldp_aggregator.server.problems import ProblemError
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
