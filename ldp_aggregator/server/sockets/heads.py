"""The head of a request, read as far as it decides who answers: an upload takes the short way, all else is aiohttp's.

Only what is beyond doubt is recognised. A head that could be understood in two ways, or that asks for anything that
the short way does not do, is left to aiohttp's parser, which has the last word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import httptools

from protocols.wire.upload import MEDIA_TYPE

END: Final = b"\r\n\r\n"

_TARGET: Final = re.compile(rb"/v1/campaigns/([A-Za-z0-9_-]{43})/reports")
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_ONCE: Final = frozenset({b"host", b"content-length", b"content-type", b"connection"})
"""Headers that mean something to the short way; none of them twice."""
_ELSEWHERE: Final = frozenset(
    {b"authorization", b"content-encoding", b"expect", b"origin", b"cookie", b"trailer", b"te"}
)
"""Headers with a meaning that the short way does not know. So has every header of this project's own, ``LDP-...``."""
_ALIKE: Final = _ONCE | {b"accept", b"accept-encoding", b"user-agent"}
"""Headers that many devices send alike."""
_UNFRAMED: Final = frozenset({b"transfer-encoding", b"upgrade"})
"""Headers after which the length of a body is not the Content-Length."""


@dataclass(frozen=True, slots=True)
class Head:
    """``length`` is that of the body, None where only a parser of the whole can tell. ``campaign_id`` is that of an
    upload that can take the short way, None for every other request.
    """

    length: int | None
    campaign_id: str | None = None
    keeps_open: bool = True


UNCLEAR: Final = Head(None)

MOST_KNOWN: Final = 256
LONGEST_KNOWN: Final = 512
"""Heads of uploads that are remembered, and their bytes."""
_known: Final[dict[bytes, Head]] = {}


class _Reader:
    """What httptools calls while it parses."""

    __slots__ = ("body", "complete", "headers", "target")

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.target = b""
        self.complete = self.body = False

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.complete = True

    def on_body(self, _body: bytes) -> None:
        self.body = True


def read_head(head: bytes) -> Head:
    """``head`` ends with the first empty line of what a client has sent.

    The same app sends the same head from every device, so those of uploads are remembered for a while, unless a header
    may tell one device from another.
    """
    known = _known.get(head)
    if known is not None:
        return known
    reader = _Reader()
    found = _read(head, reader)
    alike = len(head) <= LONGEST_KNOWN and all(name in _ALIKE for name, _ in reader.headers)
    if found.campaign_id is not None and alike:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[head] = found
    return found


def _read(head: bytes, reader: _Reader) -> Head:
    parser = httptools.HttpRequestParser(reader)
    try:
        parser.feed_data(head)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return UNCLEAR
    if not reader.complete or reader.body:
        return UNCLEAR
    found: dict[bytes, bytes] = {}
    plain = parser.get_http_version() == "1.1"
    for name, value in reader.headers:
        if name in _ONCE:
            if name in found:
                return UNCLEAR
            found[name] = value
        elif name in _UNFRAMED:
            return UNCLEAR
        elif name in _ELSEWHERE or name.startswith(b"ldp-"):
            plain = False
    length = found.get(b"content-length", b"0")
    method = parser.get_method()
    if not _LENGTH.fullmatch(length) or method == b"CONNECT":
        return UNCLEAR
    target = _TARGET.fullmatch(reader.target)
    if (
        plain
        and target is not None
        and method == b"POST"
        and found.get(b"content-type") == _MEDIA_TYPE
        and b"host" in found
        and length != b"0"
    ):
        return Head(int(length), target[1].decode(), parser.should_keep_alive())
    return Head(int(length))


_MEDIA_TYPE: Final = MEDIA_TYPE.encode()
