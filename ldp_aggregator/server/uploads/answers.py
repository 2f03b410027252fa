"""Answers to uploads as bytes: what aiohttp would send, made once where it is always the same."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from ldp_aggregator.server.problems import MEDIA_TYPE, ProblemError
from ldp_aggregator.store.contract import Outcome

SECURITY_HEADERS: Final = {
    "Server": "ldp-aggregator",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""On every answer. Nothing this server sends is meant to be framed, sniffed or run."""

JSON: Final = "application/json"
ALL_COUNTED: Final = b'{"rejected": []}'


def rejected_body(outcome: Outcome) -> bytes:
    """The body of a 200: the reports that were not counted."""
    if not outcome.rejected:
        return ALL_COUNTED
    return json.dumps({"rejected": [[report.hex(), code] for report, code in outcome.rejected]}).encode()


def encode_answer(
    status: int, media_type: str, body: bytes, *, close: bool, headers: Mapping[str, str] | None = None
) -> bytes:
    """A whole answer. ``Connection`` is said by ``close`` alone."""
    lines = {"Content-Type": media_type, **(headers or {}), **SECURITY_HEADERS, "Cache-Control": "no-store"}
    lines |= {"Content-Length": str(len(body)), "Date": formatdate(usegmt=True)}
    lines.pop("Connection", None)
    if close:
        lines["Connection"] = "close"
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + body


def encode_problem(problem: ProblemError, *, close: bool) -> bytes:
    """A problem document as an answer."""
    return encode_answer(problem.status, MEDIA_TYPE, problem.body(), close=close, headers=problem.headers)


class CountedAnswer:
    """The answer that nearly everybody gets, made anew every second for its date."""

    def __init__(self) -> None:
        self._second = -1
        self._bytes = (b"", b"")

    def bytes(self, *, close: bool) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._bytes = (
                encode_answer(HTTPStatus.OK, JSON, ALL_COUNTED, close=False),
                encode_answer(HTTPStatus.OK, JSON, ALL_COUNTED, close=True),
            )
        return self._bytes[close]
