"""The client's contract with the network: one request, one answer.

The wire contract, for whoever brings a transport of their own:

* redirects are not followed, certificates are verified, an answer longer than ``largest_answer`` is refused, and
  everything that yields no complete answer is a TransportError;
* a request carries its own headers and what HTTP needs (``Host``, ``Content-Length``, ``Connection``,
  ``Accept-Encoding: identity``), the same for every device: no cookies, no credentials, no user agent, nothing that an
  app adds to its other requests;
* requests with different ``isolate`` keys never share a connection, nor a circuit of a proxy;
* :meth:`Cancellation.begin_body` is called right before the first byte of the request leaves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from ldp_client.errors import TransportError
from ldp_client.runtime import ForkSafeLock
from ldp_protocols.errors import LdpError

PROBLEM_TYPE: Final = "application/problem+json"
UNREADABLE_CODE: Final = "unreadable-code"
"""In place of a server's code that is none."""

_LONGEST_CODE: Final = 64
_CODE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_LONGEST_HOST: Final = 253
_LONGEST_LABEL: Final = 63
_HOST: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.:%")


@dataclass(frozen=True, slots=True)
class Request:
    """``attempt`` counts the tries of the same bytes, from 1. ``isolate``: see the contract above."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    attempt: int = 1
    largest_answer: int = 1 << 20
    isolate: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def media_type(self) -> str:
        """The type of the body, in lower case and without parameters; empty where none is given."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def problem_code(self) -> str | None:
        """The stable code of a problem document (RFC 9457), None for anything else, such as a proxy's error page."""
        if self.media_type != PROBLEM_TYPE:
            return None
        import json  # like the other modules of texts here, which an app's start need not load

        try:
            code = json.loads(self.body)["code"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return clean_code(code) if isinstance(code, str) else None

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


def clean_code(code: str) -> str:
    """A server's code as far as it is one; it becomes a key that is kept, and is printed."""
    return code if 0 < len(code) <= _LONGEST_CODE and _CODE.issuperset(code) else UNREADABLE_CODE


class Cancellation:
    """Means to stop one exchange, thread-safe. One that has begun goes on: the server may have it all already."""

    __slots__ = ("_begun", "_cancelled", "_close", "_lock")

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._cancelled = False
        self._begun = False
        self._close: list[Callable[[], None]] = []

    def cancel(self) -> bool:
        """Close whatever is connecting or waiting; True if no byte of the request leaves, False if it had begun."""
        with self._lock:
            if self._begun:
                return False
            self._cancelled = True
            close, self._close = self._close, []
        for each in close:
            _quietly(each)
        return True

    @property
    def cancelled(self) -> bool:
        """True where the exchange was stopped in time."""
        return self._cancelled

    @property
    def begun(self) -> bool:
        """True where bytes of the request may have left."""
        return self._begun

    def begin_body(self) -> None:
        """The transport is about to send the first byte, headers included. Raises TransportError once cancelled."""
        with self._lock:
            if self._cancelled:
                raise TransportError("cancelled")
            self._begun = True
            self._close = []

    def on_cancel(self, close: Callable[[], None]) -> None:
        """Have :meth:`cancel` call ``close``, from its own thread; called at once where it was cancelled already."""
        with self._lock:
            if not self._cancelled:
                self._close.append(close)
                return
        _quietly(close)


class Transport(Protocol):
    """Sends requests; shared by any number of devices and threads.

    One that calls :meth:`Cancellation.begin_body` says so by an attribute ``begins_body`` that is true. For any other
    an upload counts as begun before ``send`` is called: a withdrawal then cannot stop it, and gives nothing back.
    """

    def send(self, request: Request, timeout: float, cancellation: Cancellation | None = None) -> Response:
        """The answer, within ``timeout`` seconds from looking up the name to the last byte. Raises TransportError."""


def is_loopback(host: str) -> bool:
    """True if a host name can only be this machine."""
    parts = host.split(".")
    in_127 = len(parts) == 4 and parts[0] == "127" and all(part.isascii() and part.isdigit() for part in parts)
    return host in {"localhost", "::1"} or in_127


def check_url(url: str, *, allow_plain_http: bool) -> str:
    """The base URL without a trailing slash. Raises LdpError for one that reports must not be sent to."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _bad_url(f"url must be an address: {error}") from None
    plain = url.isascii() and url.isprintable() and " " not in url
    if not plain or parts.scheme not in {"https", "http"} or not host or "?" in url or "#" in url:
        raise _bad_url("url must be like https://collect.example.org, in ASCII, without query or fragment")
    if parts.username is not None:
        raise _bad_url("url must not carry a user name or password")
    if not is_host(host) or port == 0:
        raise _bad_url("url must name a host (of another script: as xn--...), and a port from 1 to 65535 if any")
    if parts.scheme == "http" and not allow_plain_http and not is_loopback(host):
        raise _bad_url("url must be https; plain http is for loopback, or for Policy(allow_plain_http=True)")
    return url.rstrip("/")


def check_relay(url: str, *, allow_plain_http: bool) -> None:
    """Raise LdpError for the address of a relay that nothing may be sent to."""
    try:
        check_url(url, allow_plain_http=allow_plain_http)
    except LdpError as error:
        raise LdpError("bad-relay", f"relay: {error}") from None


def check_apart(relay: str, url: str) -> None:
    """Raise LdpError for a relay that is the aggregator itself: on its host, or on a loopback one's port."""
    from urllib.parse import urlsplit

    one, other = urlsplit(relay), urlsplit(url)
    if one.hostname == other.hostname and (one.port == other.port or not is_loopback(one.hostname or "")):
        raise LdpError("bad-relay", "relay: must be on another host than the campaign's url, and somebody else's")


def is_host(host: str) -> bool:
    """True if a text can be a host's name or address."""
    labels = host.rstrip(".").split(".")
    return (
        len(host) <= _LONGEST_HOST
        and _HOST.issuperset(host.lower())
        and all(0 < len(label) <= _LONGEST_LABEL for label in labels)
    )


def _bad_url(problem: str) -> LdpError:
    return LdpError("bad-url", problem)


def _quietly(close: Callable[[], None]) -> None:
    """A socket that is closed already is as good as one that lets itself be closed."""
    with contextlib.suppress(Exception):
        close()


def _http_date(text: str) -> float | None:
    if not text:
        return None
    # Imported here: the mail package is slow to load, and hardly a server sends a date.
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
