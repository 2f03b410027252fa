"""Access tokens, and the log of administrative acts, each written down before it is done.

A token is 32 random bytes, shown once, kept and looked up as their SHA-256: there is nothing to guess that a slow hash
would protect.
"""

from __future__ import annotations

import getpass
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Final

from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import DONE, FAILED, LOG, SCOPES, Act, StoredToken, kind_of

TOKEN_BYTES: Final = 32
PREFIX: Final = "ldp_"
"""Lets secret scanners find a token that leaked into a repository."""
ON_USE: Final[ContextVar[Callable[[], None]]] = ContextVar("on_use")
"""Called where a request shows a token in use: its connection is no stranger's from then on."""


def make_token(
    name: str, scope: str, now: datetime, *, expires: datetime | None = None, campaigns: Sequence[str] | None = None
) -> tuple[str, StoredToken]:
    """A fresh token for ``campaigns`` (ids): its text, to be shown once, and the record to keep. Raises ValueError."""
    if scope not in SCOPES:
        raise ValueError(f"scope must be one of {', '.join(SCOPES)}, not {scope!r}")
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise ValueError("a token needs a name of 1 to 100 printable characters")
    if expires is not None and expires <= now:
        raise ValueError("a token has to expire in the future")
    if campaigns is not None and not campaigns:
        raise ValueError("a token that is limited to campaigns needs one of them at least")
    text = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    limit = None if campaigns is None else tuple(sorted(set(campaigns)))
    return text, StoredToken(name, scope, token_digest(text), now, expires=expires, campaigns=limit)


def token_digest(text: str) -> bytes:
    """SHA-256 of the token's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


async def find_token(text: str, store: Store, now: datetime) -> StoredToken | None:
    """The token in use with this text. Safety: timing may tell something of digests, and these nothing of secrets."""
    token = await store.token(token_digest(text))
    if token is None or not token.is_in_use(now):
        return None
    note_use()
    return token


def note_use() -> None:
    """Say that the current request has shown a token in use."""
    ON_USE.get(lambda: None)()


BACKED_UP: Final = "back up store"
"""The act after which a backup is there."""
SERVER: Final = "server"
"""The actor of what a server does by itself, as it was configured to."""


def actor_of(token: StoredToken) -> str:
    return f"token {token.name}"


def local_actor() -> str:
    """Name who acts on the command line: a user of this machine, as far as it says."""
    try:
        return f"command line ({getpass.getuser()})"
    except (ImportError, KeyError, OSError):  # A container's user need not have a name.
        return "command line"


def uploads_act(scope: str | None) -> str:
    return f"let uploads need a token of scope {scope}" if scope else "let uploads need no token"


@asynccontextmanager
async def recorded(
    store: Store, actor: str, act: str, campaign_id: str | None = None, detail: str = ""
) -> AsyncIterator[None]:
    """Do in the block what is asked for. Nothing is done where it cannot be written down first."""
    number = await store.begin_act(Act(actor, act, campaign_id, detail))
    try:
        yield
    except BaseException:
        await _end(store, number, FAILED)
        raise
    await _end(store, number, DONE)


async def _end(store: Store, number: int, outcome: str) -> None:
    """Write down the end of what was done, if that can be; else the entry then stays "asked"."""
    try:
        await store.end_act(number, outcome)
    except Exception as error:
        LOG.error("the end of an act was not written down", extra={"reason": kind_of(error)})
