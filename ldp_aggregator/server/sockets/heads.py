"""Heads of requests: how the body behind one is framed, and which of them are uploads that take the short way.

A head is read as far as it decides who answers. Only what is beyond doubt is recognised as an upload: a head that could
be understood in two ways is refused, and one that asks for anything that the door does not do is left to aiohttp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import httptools

from ldp_aggregator.server.gateway import SHORT_BYTES
from ldp_aggregator.server.problems import ProblemError
from ldp_protocols.oblivious import REQUEST_TYPE
from ldp_protocols.wire import MEDIA_TYPE

END: Final = b"\r\n\r\n"
HEAD_LINES: Final = 4
"""Longest head, in lines of the greatest length."""
MOST_HEADERS: Final = 100
"""Most headers, as in other servers: a parsed head of short lines takes much more room than its bytes."""

_SEALED: Final = b"POST /v1/ohttp HTTP/1.1\r\n"
_LINE: Final = re.compile(rb"POST /v1/campaigns/([A-Za-z0-9_-]{43})/reports HTTP/1\.1\r\n")
_LENGTH: Final = re.compile(rb"[1-9][0-9]{0,14}")
_ANY_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_AUTHORIZATION: Final = b"authorization"
_CONTENT_LENGTH: Final = b"content-length"
_ONCE: Final = frozenset({b"host", _CONTENT_LENGTH, b"content-type", b"connection", _AUTHORIZATION})
"""Headers that mean something to the door; an upload has none of them twice."""
_ELSEWHERE: Final = {b"content-encoding", b"expect", b"origin", b"trailer", b"te", b"transfer-encoding", b"upgrade"}
"""Headers with a meaning that the door does not know, or after which a body is not as long as its Content-Length."""
_ALIKE: Final = _ONCE - {_AUTHORIZATION} | {b"accept", b"accept-encoding", b"user-agent"}
"""Headers that many devices send alike."""


@dataclass(frozen=True, slots=True)
class Head:
    """A body of ``length`` bytes follows, or (None) one that says itself where it ends."""

    length: int | None
    keeps_open: bool


@dataclass(frozen=True, slots=True)
class UploadHead:
    """Head of an upload with a body of ``length`` bytes; ``campaign_id`` is None for a sealed one.
    ``authorization`` is its header ``Authorization``.
    """

    campaign_id: str | None
    length: int
    keeps_open: bool
    authorization: str | None
    headers: tuple[tuple[str, str], ...]


_SHOWN: Final = re.compile(rb"\r\n[Aa]uthorization: ([!-~]+(?: [!-~]+)*)(?=\r\n[^ \t])")
"""The line of a header ``Authorization`` that no further line continues."""
MOST_CACHED: Final = 256
LONGEST_KNOWN: Final = 512
"""Bytes of the longest head that is cached; :data:`MOST_CACHED` heads are."""
_cached: Final[dict[bytes, UploadHead]] = {}


class _Reader:
    """The callbacks of httptools while it parses."""

    __slots__ = ("body", "complete", "headers", "requests")

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = self.body = False
        self.requests = 0

    def on_message_begin(self) -> None:
        self.requests += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.complete = True

    def on_body(self, _body: bytes) -> None:
        self.body = True


def read_head(head: bytes) -> UploadHead | Head:
    """Read a head, which ends with the first empty line of what a client has sent. Raises ProblemError for what is no
    HTTP, or may be two requests.

    The same app sends the same head from every device, so those of uploads are remembered for a while, unless a header
    may tell one device from another. What a device shows is a line of its own: the rest is remembered without it.
    """
    cached = _cached.get(head)
    if cached is not None:
        return cached
    header = _SHOWN.search(head)
    rest = head if header is None else head[: header.start()] + head[header.end() :]
    cached = None if header is None else _cached.get(rest)
    if header is not None and cached is not None:
        text = header[1].decode("ascii")
        headers = (*cached.headers, ("authorization", text))
        return UploadHead(cached.campaign_id, cached.length, cached.keeps_open, text, headers)
    reader = _Reader()
    parser = httptools.HttpRequestParser(reader)
    tunnels = False
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        tunnels = True
    except httptools.HttpParserError:
        raise ProblemError("malformed-request") from None
    if not reader.complete or reader.body or reader.requests > 1:
        raise ProblemError("malformed-request", "the head does not end where its first empty line is")
    if parser.get_http_version() != "1.0" and sum(name == b"host" for name, _ in reader.headers) != 1:
        raise ProblemError("malformed-request", "a request has one Host")
    if len(reader.headers) > MOST_HEADERS:
        raise ProblemError("headers-too-large", f"at most {MOST_HEADERS} headers are accepted")
    line = _LINE.match(head)
    if tunnels or (line is None and not head.startswith(_SEALED)):
        return _read_other(reader.headers, keeps_open=not tunnels and parser.should_keep_alive())
    campaign_id = None if line is None else line[1].decode()
    found = _read_upload(reader.headers, campaign_id, keeps_open=parser.should_keep_alive())
    if found is None:
        return _read_other(reader.headers, keeps_open=parser.should_keep_alive())
    if len(rest) <= LONGEST_KNOWN and all(name in _ALIKE for name, _ in reader.headers if name != _AUTHORIZATION):
        if header is not None:
            read_head(rest)
        elif found.authorization is None:
            if len(_cached) >= MOST_CACHED:
                _cached.clear()
            _cached[head] = found
    return found


def _read_upload(headers: list[tuple[bytes, bytes]], campaign_id: str | None, *, keeps_open: bool) -> UploadHead | None:
    once: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _ELSEWHERE or name in once:
            return None
        if name in _ONCE:
            once[name] = value
    length = once.get(_CONTENT_LENGTH, b"")
    media_type = REQUEST_TYPE if campaign_id is None else MEDIA_TYPE
    if b"host" not in once or once.get(b"content-type") != media_type.encode() or not _LENGTH.fullmatch(length):
        return None
    if campaign_id is None and int(length) > SHORT_BYTES:
        return None
    authorization = once[_AUTHORIZATION].decode("latin-1") if _AUTHORIZATION in once else None
    texts = tuple((name.decode("latin-1"), value.decode("utf-8", "surrogateescape")) for name, value in headers)
    return UploadHead(campaign_id, int(length), keeps_open, authorization, texts)


def _read_other(headers: list[tuple[bytes, bytes]], *, keeps_open: bool) -> Head:
    """Everything else. What follows an offer to speak something else, which nobody here takes up, is not read."""
    lengths = [value for name, value in headers if name == _CONTENT_LENGTH]
    names = {name for name, _ in headers}
    if any(value.lower() != b"100-continue" for name, value in headers if name == b"expect"):
        raise ProblemError("unmet-expectation")
    if b"transfer-encoding" in names:
        if lengths:
            raise ProblemError("malformed-request", "a body has a Content-Length or a Transfer-Encoding, not both")
        return Head(None, keeps_open=False)
    if len(lengths) > 1 or not all(map(_ANY_LENGTH.fullmatch, lengths)):
        raise ProblemError("malformed-request", "Content-Length is one whole number")
    length = int(lengths[0]) if lengths else 0
    return Head(length, keeps_open=keeps_open and b"upgrade" not in names)
