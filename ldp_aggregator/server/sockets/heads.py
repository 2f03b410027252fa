"""The head of a request, read as far as it decides who answers: an upload is taken here, all else is aiohttp's.

Only what is beyond doubt is recognised as an upload. A head that could be understood in two ways, or that asks for
anything that the door does not do, is left to aiohttp's parser; what is no HTTP is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import httptools

from ldp_aggregator.server.problems import ProblemError
from protocols.wire import MEDIA_TYPE

END: Final = b"\r\n\r\n"

_LINE: Final = re.compile(rb"POST /v1/campaigns/([A-Za-z0-9_-]{43})/reports HTTP/1\.1\r\n")
_LENGTH: Final = re.compile(rb"[1-9][0-9]{0,14}")
_ONCE: Final = frozenset({b"host", b"content-length", b"content-type", b"connection"})
"""Headers that mean something to the door; none of them twice."""
_ELSEWHERE: Final = frozenset(
    {b"content-encoding", b"expect", b"origin", b"trailer", b"te", b"transfer-encoding", b"upgrade"}
)
"""Headers with a meaning that the door does not know, or after which a body is not as long as its Content-Length."""
_ALIKE: Final = _ONCE | {b"accept", b"accept-encoding", b"user-agent"}
"""Headers that many devices send alike."""


@dataclass(frozen=True, slots=True)
class Head:
    """That of an upload to a campaign with a body of ``length`` bytes. ``claims``: it shows a token."""

    campaign_id: str
    length: int
    keeps_open: bool
    claims: bool
    headers: tuple[tuple[str, str], ...]


MOST_KNOWN: Final = 256
LONGEST_KNOWN: Final = 512
"""Heads of uploads that are remembered, and their bytes."""
_known: Final[dict[bytes, Head]] = {}


class _Reader:
    """The callbacks of httptools while it parses."""

    __slots__ = ("body", "complete", "headers")

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = self.body = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.complete = True

    def on_body(self, _body: bytes) -> None:
        self.body = True


def read_head(head: bytes) -> Head | None:
    """The upload that a head announces, None for what is aiohttp's. ``head`` ends with the first empty line of what a
    client has sent. Raises ProblemError for what is no HTTP.

    The same app sends the same head from every device, so those of uploads are remembered for a while, unless a header
    may tell one device from another.
    """
    known = _known.get(head)
    if known is not None:
        return known
    reader = _Reader()
    parser = httptools.HttpRequestParser(reader)
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        return None
    except httptools.HttpParserError:
        raise ProblemError("malformed-request") from None
    line = _LINE.match(head)
    if line is None or not reader.complete or reader.body:
        return None
    found = _read(reader.headers, line[1].decode(), keeps_open=parser.should_keep_alive())
    if found is not None and len(head) <= LONGEST_KNOWN and all(name in _ALIKE for name, _ in reader.headers):
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[head] = found
    return found


def _read(headers: list[tuple[bytes, bytes]], campaign_id: str, *, keeps_open: bool) -> Head | None:
    once: dict[bytes, bytes] = {}
    claims = False
    for name, value in headers:
        if name in _ELSEWHERE or name in once:
            return None
        if name in _ONCE:
            once[name] = value
        claims = claims or name == b"authorization"
    length = once.get(b"content-length", b"")
    if b"host" not in once or once.get(b"content-type") != _MEDIA_TYPE or not _LENGTH.fullmatch(length):
        return None
    texts = tuple((name.decode("latin-1"), value.decode("utf-8", "surrogateescape")) for name, value in headers)
    return Head(campaign_id, int(length), keeps_open, claims, texts)


_MEDIA_TYPE: Final = MEDIA_TYPE.encode()
