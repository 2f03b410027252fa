"""Everything the server refuses, in one table: code, HTTP status, title; and answers as bytes, which are what aiohttp
would send. Refusals are RFC 9457 problem documents.

Codes are stable and are what programs look at; titles and details are for people and may be reworded.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.store import contract
from ldp_aggregator.store.contract import LOG, StoreError, kind_of
from ldp_protocols.errors import PAYLOAD_CODES, LdpError

MEDIA_TYPE: Final = "application/problem+json"

RETRY_SECONDS: Final = (1, 8)
"""Seconds from which Retry-After is drawn: clients that were refused together do not come back together."""
LATER_SECONDS: Final[Mapping[str, tuple[int, int]]] = {
    contract.UNAVAILABLE: RETRY_SECONDS,
    contract.UNSETTLED: (60, 600),
    contract.CLOSING: (3600, 10800),
}
"""Seconds for what the store refuses and may take another time."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of :data:`PROBLEMS`."""

    status: int
    title: str
    type: str = "about:blank"


OHTTP_KEY: Final = "https://iana.org/assignments/http-problem-types#ohttp-key"
"""RFC 9458, section 5.3."""

PROBLEMS: Final[Mapping[str, Kind]] = {
    "malformed-upload": Kind(400, "The body is not the one valid encoding of an upload"),
    "malformed-share": Kind(400, "The body is not the one valid encoding of a share for this campaign"),
    "impossible-share": Kind(400, "No table gives the share: sums beyond its rows, or too many rows"),
    "malformed-query": Kind(400, "A query parameter is unknown or has no meaning"),
    "malformed-request": Kind(400, "The request is not HTTP as this server understands it"),
    "invalid-directory": Kind(400, "The directory is not one that this key has signed"),
    "invalid-draft": Kind(400, "The draft cannot be compiled into a campaign"),
    "unknown-gateway-key": Kind(400, "The request is sealed to a key that this gateway does not have", OHTTP_KEY),
    "malformed-sealed": Kind(400, "The request is not one that was sealed to this gateway's key"),
    "missing-token": Kind(401, "This needs a token: Authorization: Bearer TOKEN"),
    contract.REVOKED: Kind(401, "The token is not known, was revoked or has expired"),
    "wrong-scope": Kind(403, "The token's scope does not allow this"),
    "wrong-campaign": Kind(403, "The token is limited to other campaigns"),
    "not-admitted": Kind(403, "The upload was not admitted"),
    "not-mixed": Kind(403, "Answers to a campaign with a crowd come in the batches of a relay, which mixes them"),
    "batch-too-small": Kind(403, "The batch is of fewer devices than the campaign's crowd has"),
    contract.UNKNOWN: Kind(404, "No campaign has this id"),
    "no-directory": Kind(404, "This server has no directory of this key"),
    "no-model": Kind(404, "The campaign has no model yet, or not this version"),
    "not-found": Kind(404, "There is nothing at this path"),
    "method-not-allowed": Kind(405, "The path does not take this method"),
    "body-timeout": Kind(408, "The body did not arrive in time"),
    contract.CLOSED: Kind(409, "The campaign accepts no more reports"),
    contract.CLOSING: Kind(409, "The campaign is closed or full, which may still be taken back; come back later"),
    contract.NOT_OPEN: Kind(409, "The campaign does not accept reports yet"),
    contract.TAKES_SHARES: Kind(409, "The campaign is federated: it takes shares of nodes, and no reports of devices"),
    contract.TAKES_REPORTS: Kind(409, "The campaign takes reports of devices, and no shares of nodes"),
    contract.REPLACED: Kind(409, "The node has replaced its share as often as the campaign's document allows"),
    contract.DELETED: Kind(410, "The campaign was deleted; its id is never used again"),
    contract.OLDER: Kind(409, "A newer directory of this key is here, or another of its version"),
    contract.NOT_CLOSED: Kind(409, "The campaign is not closed"),
    contract.TOO_EARLY: Kind(
        409, "The campaign was closed less than a day ago, or something of it waits to be archived"
    ),
    contract.SEALED: Kind(409, "The campaign is sealed: its ids are gone, and it takes no report again"),
    "missing-answer-token": Kind(
        401, "The campaign takes answers with a token of its issuer: Authorization: PrivateToken"
    ),
    "wrong-answer-token": Kind(401, "The token does not belong to this answer"),
    "nothing-to-train": Kind(409, "The reports counted so far do not give a model"),
    "useless-model": Kind(409, "The features are not known to tell anything of the class, or not enough"),
    "length-required": Kind(411, "The request needs a Content-Length"),
    "body-too-large": Kind(413, "The body is larger than this server accepts; split it"),
    "too-many-reports": Kind(413, "The upload holds more reports than this server accepts at once; split it"),
    "wrong-media-type": Kind(415, "The body is not of the media type this path takes"),
    "compressed-body": Kind(415, "No Content-Encoding is accepted; send the body as it is"),
    "unmet-expectation": Kind(417, "The only value of Expect that is accepted is 100-continue"),
    "too-many-connections": Kind(429, "Too many connections are open; come back later"),
    "too-many-uploads": Kind(429, "The campaign gets more uploads than it takes; come back later"),
    "unknown-host": Kind(
        421, "This listener does not answer under this name; use its address, or set operations_names"
    ),
    "headers-too-large": Kind(431, "The request's headers are larger than this server accepts"),
    "internal-error": Kind(500, "The server failed; nothing was counted"),
    "not-installed": Kind(501, "This server was installed without the libraries that train"),
    "overloaded": Kind(503, "The server has as much to do as it takes on; come back later"),
    contract.UNAVAILABLE: Kind(503, "The store did not commit; nothing was counted"),
    contract.UNSETTLED: Kind(503, "This server's clock jumped; it decides nothing until it has settled"),
    "stopping": Kind(503, "The server is stopping; come back later"),
}

REPORT_CODES: Final[Mapping[str, str]] = {
    **PAYLOAD_CODES,
    contract.CONFLICTING: "the id was counted before, with another answer; a device answers once",
    contract.CLOSED: "the campaign accepts no more reports",
    contract.CLOSING: "the campaign is closed or full, or the report's window over; that may still be taken back",
    contract.WINDOW_NOT_OPEN: "the report's window is still to come; the device's clock is ahead, send it again then",
    contract.WINDOW_OVER: "the report's window ended more than a week ago",
}
"""Codes of single reports in the ``rejected`` list of a 200; the rest of the upload was counted."""


class ProblemError(Exception):
    """Raise to answer with a problem document. ``code`` is a key of :data:`PROBLEMS`."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail or PROBLEMS[code].title)
        self.code, self.status, self.detail = code, PROBLEMS[code].status, detail
        self.headers, self.members = dict(headers or {}), dict(members or {})

    def body(self) -> bytes:
        """The problem document."""
        kind = PROBLEMS[self.code]
        document = {"type": kind.type, "title": kind.title, "status": kind.status, "code": self.code}
        if self.detail:
            document["detail"] = self.detail
        return json.dumps(document | self.members, ensure_ascii=False).encode()

    def response(self) -> web.Response:
        return web.Response(status=self.status, body=self.body(), content_type=MEDIA_TYPE, headers=self.headers)


def retry_later(
    code: str, detail: str = "", *, least: int = RETRY_SECONDS[0], longest: int = RETRY_SECONDS[1]
) -> ProblemError:
    """A problem that goes away by itself. When to come back is drawn, so that not all do at one time."""
    seconds = random.randint(least, longest)  # noqa: S311 - it spreads load, and keeps no secret
    return ProblemError(code, detail, headers={"Retry-After": str(seconds)})


def refused_by_store(code: str, *, headers: Mapping[str, str] | None = None) -> ProblemError:
    """The problem that a store's refusal is, with a time to come again where there is one."""
    if code not in LATER_SECONDS:
        return ProblemError(code, headers=headers)
    least, longest = LATER_SECONDS[code]
    return retry_later(code, least=least, longest=longest)


def as_problem(error: Exception, metrics: Metrics) -> ProblemError:
    """Problem that answers a failure of any kind; the server's own failures are logged and counted."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, LdpError) and error.code == contract.UNKNOWN:
        return ProblemError(contract.UNKNOWN)
    if isinstance(error, LdpError) and error.code in {"not-installed", *contract.REFUSED}:
        return ProblemError(error.code, str(error))
    if isinstance(error, StoreError):
        if error.code == contract.UNSETTLED:
            return refused_by_store(error.code)
        LOG.error("store error", extra={"reason": kind_of(error)})
        metrics.store_errors.inc()
        return retry_later(contract.UNAVAILABLE)
    LOG.error("internal error", extra={"reason": kind_of(error)}, exc_info=error)
    return ProblemError("internal-error")


SECURITY_HEADERS: Final = {
    "Server": "ldp-aggregator",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every answer. Nothing this server sends is meant to be framed, sniffed or run."""

JSON: Final = "application/json"


def encode_answer(
    status: int, media_type: str, body: bytes, *, close: bool, headers: Mapping[str, str] | None = None
) -> bytes:
    """A whole answer. ``Connection`` is said by ``close`` alone."""
    more = tuple(headers.items()) if headers else ()
    return _head(status, media_type, len(body), close, more, int(time.time())) + body


@lru_cache(maxsize=64)
def _head(
    status: int, media_type: str, length: int, close: bool, headers: tuple[tuple[str, str], ...], second: int
) -> bytes:
    """The head of an answer, which for a second is that of all answers like it."""
    lines = {**dict(headers), "Content-Type": media_type, **SECURITY_HEADERS, "Cache-Control": "no-store"}
    lines |= {"Content-Length": str(length), "Date": formatdate(second, usegmt=True)}
    lines.pop("Connection", None)
    if close:
        lines["Connection"] = "close"
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode()


def encode_problem(problem: ProblemError, *, close: bool) -> bytes:
    """A problem document as an answer."""
    return encode_answer(problem.status, MEDIA_TYPE, problem.body(), close=close, headers=problem.headers)
