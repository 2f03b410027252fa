"""The way of a node's share to the aggregator, and out of it again: the standard library's HTTP, and a few tries.

Both requests may be repeated freely: the same share counts once, and withdrawing twice is withdrawing. So whatever
yields no clear answer is tried again with the same bytes. Redirects are not followed: they would carry the token along.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from ldp_aggregator.node_statistics import MEDIA_TYPE, campaign_of

ATTEMPTS: Final = 5
TIMEOUT_SECONDS: Final = 30.0
FIRST_DELAY_SECONDS: Final = 1.0
"""Before the n-th repetition: a random time below this, doubled each time; Retry-After is the least."""
LONGEST_DELAY_SECONDS: Final = 60.0
RETRYABLE: Final = frozenset({408, 429, 500, 502, 503, 504})

_LARGEST_ANSWER: Final = 1 << 16


@dataclass(frozen=True)
class Aggregator:
    """The aggregator that knows a node's secret token; plain http is for loopback, unless ``allow_plain_http``."""

    url: str
    token: str
    allow_plain_http: bool = False

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("the url must be like https://collect.example.org, without query or fragment")
        if parts.username is not None:
            raise ValueError("the url must not carry a user name or password")
        if parts.scheme == "http" and not self.allow_plain_http and not self.is_loopback:
            raise ValueError("the url must be https: plain http shows the token to everybody on the way")
        if not (self.token.isascii() and self.token.isprintable() and self.token.strip() == self.token != ""):
            raise ValueError("a token is one word of printable ASCII, as 'ldp-aggregator token create' prints it")

    @property
    def is_loopback(self) -> bool:
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def send_share(to: Aggregator, share: bytes, *, sleep: Callable[[float], None] = time.sleep) -> str:
    """Deliver a share, and return the node's name. Raises DocumentError before sending, or ConnectionError."""
    return str(_ask(to, "POST", campaign_of(share), share, sleep).get("node", ""))


def withdraw_share(to: Aggregator, campaign_id: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Take this node's share out of a campaign; done, too, where it has none. Raises ConnectionError."""
    _ask(to, "DELETE", campaign_id, None, sleep)


def _ask(
    to: Aggregator, method: str, campaign_id: str, body: bytes | None, sleep: Callable[[float], None]
) -> dict[str, Any]:
    url = f"{to.url.rstrip('/')}/v1/campaigns/{quote(campaign_id, safe='')}/statistics"
    headers = {"Authorization": f"Bearer {to.token}"} | ({} if body is None else {"Content-Type": MEDIA_TYPE})
    # Proxies are those of the environment; loopback never goes through one.
    opener = build_opener(_NoRedirects, *([ProxyHandler({})] if to.is_loopback else []))
    for attempt in range(1, ATTEMPTS + 1):
        request = Request(url, data=body, headers=headers, method=method)  # noqa: S310 - the scheme was checked
        try:
            with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return _document(answer.read(_LARGEST_ANSWER))
        except HTTPError as error:
            with error:
                problem, least = _problem(error), _retry_after(error)
                if error.code not in RETRYABLE:
                    raise ConnectionError(problem) from None
        except (URLError, http.client.HTTPException, OSError) as error:
            problem, least = f"no answer ({getattr(error, 'reason', None) or type(error).__name__})", 0.0
        if attempt < ATTEMPTS:
            window = FIRST_DELAY_SECONDS * 2 ** (attempt - 1)
            sleep(min(LONGEST_DELAY_SECONDS, max(least, random.uniform(0, window))))  # noqa: S311 - only a delay
    raise ConnectionError(f"{problem}, {ATTEMPTS} times; try again later: the same share counts once")


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _problem(error: HTTPError) -> str:
    """The aggregator's words, where it is one that answered."""
    document = _document(error.read(_LARGEST_ANSWER))
    if "code" not in document:
        return f"status {error.code}, and no problem document: is this the address of an aggregator?"
    return f"{document['code']}: {document.get('detail') or document.get('title')}"


def _retry_after(error: HTTPError) -> float:
    text = error.headers.get("Retry-After", "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0.0
