"""Crowds of strangers that hold what they can of a server, and what honest clients get meanwhile."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

SECOND = 1.0
"""An honest client has its answer within it."""
COMING = 20.0
"""In so many seconds a crowd was heard."""
SHARE = 0.99
"""So many of them have."""
TRICKLE = 100_000
"""Bytes that all strangers together send in a second, once they are there."""
TICK = 0.05
LONGEST_BODY = 4 << 20
"""Bytes that strangers announce."""


def head_of(method: str, path: str, size: int, line: int, media_type: str, *, body: int = LONGEST_BODY) -> bytes:
    """A head of about so many bytes, in lines no longer than the server takes; a body is announced."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {media_type}", f"Content-Length: {body}"]
    first = "\r\n".join([*lines, ""]).encode()
    room, filled = size - len(first) - 2, b""
    for number in itertools.count():
        name = b"X-%d: " % number
        fill = min(line, room) - len(name) - 2
        if fill < 1:
            break
        filled += name + b"y" * fill + b"\r\n"
        room -= len(name) + fill + 2
    return first + filled + b"\r\n"


class Stranger(asyncio.Protocol):
    """Says ``said`` at once, and drips from then on; ``reads`` what it is answered, or does not."""

    def __init__(self, said: bytes, *, reads: bool = True) -> None:
        self.said, self.reads, self.ended = said, reads, False
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self.said)
        if not self.reads:
            transport.pause_reading()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.ended = True

    def drip(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)


class Crowd:
    """So many strangers at an address, who come again when they are sent away: each says the next of ``sayings``.

    A saying is what is said, and whether the answer to it is read.
    """

    def __init__(self, url: str, sayings: Iterable[tuple[bytes, bool]], number: int) -> None:
        address = urlsplit(url)
        self._address = (address.hostname, address.port)
        self._sayings, self._number = itertools.cycle(sayings), number
        self._there: list[Stranger] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Crowd:
        for _ in range(self._number):
            await self._come()
        self._task = asyncio.create_task(self._trickle())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        for one in self._there:
            one.transport.abort()
        await asyncio.sleep(0)

    async def _come(self) -> int:
        said, reads = next(self._sayings)
        loop = asyncio.get_running_loop()
        try:
            _, one = await loop.create_connection(lambda: Stranger(said, reads=reads), *self._address)
        except OSError:
            return 0
        self._there.append(one)
        return len(said)

    async def _trickle(self) -> None:
        room, turn = 0, 0
        while True:
            room = min(room + int(TRICKLE * TICK), TRICKLE)
            self._there = [one for one in self._there if not one.ended]
            while len(self._there) < self._number and room > 0:
                room -= max(1, await self._come())
            each = max(1, room // max(1, len(self._there)))
            for _ in range(len(self._there)):
                if room < each:
                    break
                turn = (turn + 1) % len(self._there)
                self._there[turn].drip(b"x" * each)
                room -= each
            await asyncio.sleep(TICK)


Ask = Callable[[int], Awaitable[bool]]
"""Number of a try to whether it was answered as it should be."""


async def good_of(asks: Sequence[Ask], tries: int) -> float:
    """The share of honest requests, so many of each kind, that have a good answer within a second.

    The coming of a crowd is a flood of many megabytes in a moment; what is looked at is what it holds, and so it is
    waited for until all of it was heard.
    """
    for ask in asks:
        await asyncio.wait_for(ask(0), COMING)
    good = 0
    for number in range(tries):
        for ask in asks:
            with suppress(OSError, EOFError, asyncio.TimeoutError):
                good += await asyncio.wait_for(ask(number), SECOND)
    return good / (tries * len(asks))
