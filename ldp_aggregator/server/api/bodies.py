"""Reading bodies, within their limits and in time. Every refusal is a ProblemError."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Final

from aiohttp import web

from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import ProblemError

_CHUNK: Final = 1 << 16


@asynccontextmanager
async def held_body(
    request: web.Request, context: Context, media_types: tuple[str, ...], *, most: int | None = None
) -> AsyncIterator[bytes]:
    """The body; the connection holds its bytes in the budget from the moment they arrive until the answer.

    ``most`` is a limit below the server's own.
    """
    limits = context.settings.limits
    length = check_head(request, media_types, min(limits.body_bytes, most or limits.body_bytes))
    context.ingest.hold(0)  # A server that is stopping refuses before it reads.
    chunks: list[bytes] = []
    arrived = 0
    # Nearly always a small body comes with its headers, and there is nothing to wait for.
    waiting = nullcontext() if request.content.is_eof() else _deadline(limits.body_seconds)
    try:
        async with waiting:
            while arrived < length and (chunk := await request.content.read(_CHUNK)):
                arrived += len(chunk)
                chunks.append(chunk)
    except ConnectionError:
        raise ProblemError("malformed-request", "the connection ended within the body") from None
    problem = getattr(request.protocol, "body_problem", None)
    if arrived < length and problem is not None:
        raise problem
    yield b"".join(chunks)


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
