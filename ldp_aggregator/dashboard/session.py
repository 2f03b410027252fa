"""Sessions of the dashboard: a cookie that names an admin token by its digest, sealed, for some hours.

The cookie never holds the token. It is sealed with a key that this process has drawn and that is on no
disk, so that who reads the store makes no session, and a restart ends them all. At every request the token is looked
up anew: revoking it ends its sessions at once.

Safety: a session is not kept anywhere, so that signing out forgets the cookie and ends nothing where it was copied;
its time does, and revoking the token.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Final

from aiohttp import web

COOKIE: Final = "ldp_session"
LIFETIME: Final = timedelta(hours=12)

_NONCE_BYTES: Final = 16
_PARTS: Final = 4


@cache
def server_key() -> bytes:
    """32 bytes, drawn once by each process."""
    return secrets.token_bytes(32)


@dataclass(frozen=True)
class Session:
    """A session: whose token it is, until when, and the cookie that says so."""

    digest: bytes
    expires: datetime
    cookie: str

    def form_token(self, key: bytes) -> str:
        """Return the token that a form of this session must carry: another site can send one, and cannot read this."""
        return hmac.new(key, b"form|" + self.cookie.encode(), hashlib.sha256).hexdigest()

    def sent_by(self, form_token: str, key: bytes) -> bool:
        """Tell whether a form was one of this session's pages."""
        return hmac.compare_digest(self.form_token(key).encode(), form_token.encode("utf-8", "replace"))


def open_session(digest: bytes, now: datetime, key: bytes) -> Session:
    """A session of the token with this digest, from now on."""
    expires = (now + LIFETIME).replace(microsecond=0)
    body = f"{digest.hex()}.{int(expires.timestamp())}.{secrets.token_hex(_NONCE_BYTES)}"
    return Session(digest, expires, f"{body}.{_seal(body, key)}")


def read_session(cookie: str | None, now: datetime, key: bytes) -> Session | None:
    """The session a cookie stands for; None where there is none, it was not sealed here, or its time is over."""
    parts = (cookie or "").split(".")
    if cookie is None or len(parts) != _PARTS or not cookie.isascii():
        return None
    body, _, seal = cookie.rpartition(".")
    if not hmac.compare_digest(_seal(body, key), seal):
        return None
    # What was sealed here is well formed.
    expires = datetime.fromtimestamp(int(parts[1]), timezone.utc)
    return Session(bytes.fromhex(parts[0]), expires, cookie) if now < expires else None


def _seal(body: str, key: bytes) -> str:
    return hmac.new(key, body.encode("ascii"), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Visit:
    """Passed to every page's handler. ``session`` is None where a page needs none; ``form`` is that of a session, and
    ``actor`` who the log of acts says that it was.
    """

    request: web.Request
    session: Session | None = None
    form: Mapping[str, str] = field(default_factory=dict)
    actor: str = ""

    @property
    def campaign_id(self) -> str:
        """The id in the path."""
        return self.request.match_info["id"]

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    def common(self) -> dict[str, object]:
        """Return what every page of a session shows: its form token, and where it is."""
        token = "" if self.session is None else self.session.form_token(server_key())
        return {"session": self.session, "form_token": token, "path": self.request.path}
