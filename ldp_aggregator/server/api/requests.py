"""Reading requests: bodies within their limits, tokens, parameters. Every refusal is a ProblemError."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from ldp_aggregator.server.context import ID_PATTERN, Context
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.tokens import find_token
from ldp_aggregator.store.contract import UNKNOWN, Store, StoredToken

_CHUNK: Final = 1 << 16

CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
"""What a 401 says would be right."""


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


async def authorise(request: web.Request, store: Store, *scopes: str) -> StoredToken:
    """Refuse a request without a token of one of these scopes. Tokens are read anew: a revoked one ends at once."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise ProblemError("missing-token", headers=CHALLENGE)
    token = find_token(text.strip(), await store.tokens())
    if token is None:
        raise ProblemError("wrong-token", headers=CHALLENGE)
    if token.scope not in scopes:
        raise ProblemError("wrong-scope", f"this takes the scope {' or '.join(scopes)}; the token has {token.scope}")
    return token


class HeldBody:
    """``async with HeldBody(request, context, media_types) as body``: its bytes are held in the queue's budget inside
    the block, from the moment they arrive. ``most`` is a limit below the server's own.
    """

    __slots__ = ("_held", "_ingest", "_length", "_request", "_seconds")

    def __init__(
        self, request: web.Request, context: Context, media_types: tuple[str, ...], *, most: int | None = None
    ) -> None:
        limits = context.settings.limits
        self._request = request
        self._ingest = context.ingest
        self._seconds = limits.body_seconds
        self._length = check_head(request, media_types, min(limits.body_bytes, most or limits.body_bytes))
        self._held = 0

    async def __aenter__(self) -> bytes:
        try:
            if self._request.content.is_eof():  # Nearly always: a small body comes with its headers.
                self._hold(self._length)
                return await self._request.content.read()
            return await self._read_slowly()
        except BaseException:
            self._ingest.release(self._held)
            raise

    async def __aexit__(self, *_: object) -> None:
        self._ingest.release(self._held)

    def _hold(self, size: int) -> None:
        self._ingest.hold(size)
        self._held += size

    async def _read_slowly(self) -> bytes:
        self._hold(0)
        chunks = []
        async with _deadline(self._seconds):
            while self._held < self._length and (chunk := await self._request.content.read(_CHUNK)):
                self._hold(len(chunk))
                chunks.append(chunk)
        return b"".join(chunks)


def check_head(request: web.Request, media_types: tuple[str, ...], most: int) -> int:
    """Refuse a body by its headers alone; returns its length."""
    if "Content-Encoding" in request.headers:
        raise ProblemError("compressed-body")
    if request.headers.get("Content-Type") not in media_types and request.content_type not in media_types:
        raise ProblemError("wrong-media-type", f"send {' or '.join(media_types)}")
    length = request.content_length
    if length is None:
        raise ProblemError("length-required")
    if length > most:
        raise ProblemError("body-too-large", f"at most {most} bytes are accepted, not {length}")
    return length


@asynccontextmanager
async def _deadline(seconds: float) -> AsyncIterator[None]:
    """A body that does not arrive in time. (``asyncio.timeout`` is not in Python 3.10.)"""
    task = asyncio.current_task()
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = True
        if task is not None:
            task.cancel()

    handle = asyncio.get_running_loop().call_later(seconds, expire)
    try:
        yield
    except asyncio.CancelledError:
        if expired:
            raise ProblemError("body-timeout", headers={"Connection": "close"}) from None
        raise
    finally:
        handle.cancel()
