"""What the client asks of the network: one request, one answer.

The wire contract, for whoever brings a transport of their own: redirects are not followed, certificates are verified,
an answer longer than ``largest_answer`` is refused, and everything that yields no complete answer is a TransportError.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import urlsplit

PROBLEM_TYPE: Final = "application/problem+json"
_LONGEST_CODE: Final = 64


@dataclass(frozen=True)
class Request:
    """``attempt`` counts the tries of the same bytes, from 1."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    attempt: int = 1
    largest_answer: int = 1 << 20


@dataclass(frozen=True)
class Response:
    """A complete answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def problem_code(self) -> str | None:
        """The stable code of a problem document (RFC 9457), None for anything else, such as a proxy's error page."""
        if self.headers.get("content-type", "").partition(";")[0].strip().lower() != PROBLEM_TYPE:
            return None
        try:
            code = json.loads(self.body)["code"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return code if isinstance(code, str) and 0 < len(code) <= _LONGEST_CODE and code.isprintable() else None

    def retry_after(self, now: float) -> float:
        """Seconds that the server asks to wait, 0 where it does not; ``now`` is used where it gives no Date."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return float(text[:9])
        moment = _http_date(text)
        if moment is None:
            return 0.0
        # The server's own clock where it is known: the device's may be wrong by a day.
        sent = _http_date(self.headers.get("date", ""))
        return max(0.0, moment - (now if sent is None else sent))


@dataclass(frozen=True)
class TransportStatus:
    """Answered requests, those of them that repeated an earlier one, and the bytes of their bodies."""

    requests: int = 0
    retries: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


class Transport(Protocol):
    """Sends requests; shared by any number of clients and threads."""

    def send(self, request: Request, timeout: float) -> Response:
        """The answer, within about ``timeout`` seconds. Raises TransportError where there is none."""


def is_loopback(host: str) -> bool:
    """Whether a host name can only be this machine."""
    parts = host.split(".")
    in_127 = len(parts) == 4 and parts[0] == "127" and all(part.isascii() and part.isdigit() for part in parts)
    return host in {"localhost", "::1"} or in_127


def check_url(url: str, *, allow_plain_http: bool) -> str:
    """The base URL without a trailing slash. Raises ValueError for one that reports must not be sent to."""
    parts = urlsplit(url)
    if parts.scheme not in {"https", "http"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("url must be like https://collect.example.org, without query or fragment")
    if parts.username is not None:
        raise ValueError("url must not carry a user name or password")
    if parts.scheme == "http" and not allow_plain_http and not is_loopback(parts.hostname):
        raise ValueError("url must be https; plain http is for loopback, or for Policy(allow_plain_http=True)")
    return url.rstrip("/")


def _http_date(text: str) -> float | None:
    if not text:
        return None
    # Imported here: the mail package is slow to load, and hardly a server sends a date.
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
