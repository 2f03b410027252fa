"""Sessions: a page is for people with a session of an admin token that is in use; signing in and out.

A session is a cookie that names an admin token by its digest, sealed, for some hours. The cookie never holds the token.
It is sealed with a key that this process has drawn and that is on no disk, so that who reads the store makes no
session, and a restart ends them all. At every request the token is looked up anew: revoking it ends its sessions at
once.

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
from urllib.parse import quote, urlsplit

from aiohttp import web

from ldp_aggregator.dashboard.page_sources import Sources
from ldp_aggregator.dashboard.pages import PageError, page
from ldp_aggregator.service.rights import actor_of, find_token, note_use
from ldp_aggregator.store.contract import StoredToken

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
        """The token that a form of this session must carry: another site can send one, and cannot read this."""
        return hmac.new(key, b"form|" + self.cookie.encode(), hashlib.sha256).hexdigest()

    def sent_by(self, form_token: str, key: bytes) -> bool:
        """True where a form was one of this session's pages."""
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
    """A page's request: its ``session`` (None where none is needed) and ``form``; the log of acts names ``actor``."""

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
        """Values of every page of a session: its form token, and its address."""
        token = "" if self.session is None else self.session.form_token(server_key())
        return {"session": self.session, "form_token": token, "path": self.request.path}


FORM: Final = "application/x-www-form-urlencoded"
FORM_BYTES: Final = 1 << 12
"""The longest form but those that hold a draft. Whoever has no session yet can make a server hold no more."""
FORM_TOKEN: Final = "form_token"  # noqa: S105 - the name of a field
SCOPE: Final = "admin"


async def get_login(visit: Visit, sources: Sources) -> web.Response:
    """The form that asks for an admin token."""
    onward = _next(visit.query.get("next"))
    return _login_page(onward) if await _entered(visit.request, sources) is None else see(onward)


async def post_login(visit: Visit, sources: Sources) -> web.Response:
    """Open a session for an admin token. Nothing is said about why another one does not open it, but its scope."""
    request = visit.request
    check_origin(request)
    form = await read_form(request, FORM_BYTES)
    token = await find_token(form.get("token", "").strip(), sources.store, sources.clock())
    onward = _next(form.get("next"))
    if token is None:
        return _login_page(onward, "No admin token in use has this text. A token is shown once, when it is made.")
    if token.scope != SCOPE:
        return _login_page(onward, f"This token has the scope {token.scope}; the dashboard needs one of scope admin.")
    if token.campaigns is not None:
        return _login_page(onward, "This token is limited to campaigns; the dashboard shows all of them.")
    session = open_session(token.digest, sources.clock(), server_key())
    answer = see(onward)
    answer.set_cookie(
        COOKIE,
        session.cookie,
        max_age=int(LIFETIME.total_seconds()),
        path="/",
        httponly=True,
        samesite="Strict",
        secure=request.secure or sources.behind_tls,
    )
    return answer


async def post_logout(_visit: Visit, _sources: Sources) -> web.Response:
    """Forget the cookie."""
    answer = see("/login")
    answer.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict")
    return answer


async def enter(request: web.Request, sources: Sources, longest: int) -> Visit | web.Response:
    """The visit of a session, or where a request without one is sent. Refuses forms that are not its session's, or
    longer than so many bytes.
    """
    entered = await _entered(request, sources)
    if entered is None:
        if request.method not in ("GET", "HEAD") or request.path.endswith("/live"):
            raise PageError(401, "Please sign in", "The session is over. Sign in again; nothing was changed.")
        return see(f"/login?next={quote(request.path_qs, safe='')}")
    session, token = entered
    if request.method in ("GET", "HEAD"):
        return Visit(request, session)
    check_origin(request)
    form = await read_form(request, min(longest, sources.body_bytes))
    if not session.sent_by(form.get(FORM_TOKEN, ""), server_key()):
        raise PageError(403, "This form is not from here", "Go back, load the page again and send it once more.")
    return Visit(request, session, form, actor_of(token))


async def _entered(request: web.Request, sources: Sources) -> tuple[Session, StoredToken] | None:
    """The session whose cookie a request shows, as long as its token is in use and an unlimited admin's."""
    session = read_session(request.cookies.get(COOKIE), sources.clock(), server_key())
    if session is None:
        return None
    token = await sources.store.token(session.digest)
    if token is None or not token.is_in_use(sources.clock()) or token.scope != SCOPE or token.campaigns is not None:
        return None
    note_use()
    return session, token


async def read_form(request: web.Request, longest: int) -> dict[str, str]:
    """The fields of a form, each once; refuses other bodies, and by their head those that are too long."""
    if request.content_type != FORM:
        raise PageError(415, "Not a form", f"Send {FORM}.")
    if request.content_length is None or request.content_length > longest:
        raise PageError(413, "Too long", "The form is longer than this server accepts.")
    try:
        fields = await request.post()
    except ConnectionError:
        raise PageError(400, "Not all of it came", "The connection ended within the form.") from None
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def check_origin(request: web.Request) -> None:
    """Refuse what a page of another site makes a browser send, where the browser tells."""
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    # Where a browser says how it sees it, a proxy that changed the Host does not matter.
    foreign = origin is not None and urlsplit(origin).netloc != request.host
    if foreign if site is None else site not in ("same-origin", "none"):
        raise PageError(403, "This form is not from here", "Open the dashboard itself and send the form from there.")


def see(location: str) -> web.Response:
    """After a form: another page, which a reload does not send again."""
    return web.Response(status=303, headers={"Location": location})


def _login_page(onward: str, problem: str = "") -> web.Response:
    return page("login.html", 401 if problem else 200, onward=onward, problem=problem, session=None)


def _next(path: str | None) -> str:
    """The page to go on with after signing in: a page of this dashboard, and nowhere else."""
    if not path or not path.startswith("/") or path.startswith(("//", "/\\", "/login", "/logout")):
        return "/"
    return path if path.isascii() and path.isprintable() and "\\" not in path and ".." not in path else "/"
