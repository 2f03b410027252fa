"""Access tokens, the log of administrative acts, each written down before it is done, and the keys of publishers.

A token is 32 random bytes, shown once, kept and looked up as their SHA-256: there is nothing to guess that a slow hash
would protect. A publisher's key is made and kept offline; directories are signed with it. Ed25519 (RFC 8032) by the
library ``cryptography``: what it signs is checked by the devices' own code before it is handed out.
"""

from __future__ import annotations

import base64
import getpass
import hashlib
import json
import os
import secrets
import stat
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ldp_aggregator.service.settings import SettingsError
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import DONE, FAILED, LOG, SCOPES, Act, StoredToken, kind_of
from protocols.document.directory import PREFIX as SIGNED_PREFIX
from protocols.document.directory import Directory, read_directory

TOKEN_BYTES: Final = 32
PREFIX: Final = "ldp_"
"""Lets secret scanners find a token that leaked into a repository."""
ON_USE: Final[ContextVar[Callable[[], None]]] = ContextVar("on_use")
"""Called where a request shows a token in use: its connection is no stranger's from then on."""


def make_token(
    name: str, scope: str, now: datetime, *, expires: datetime | None = None, campaigns: Sequence[str] | None = None
) -> tuple[str, StoredToken]:
    """A fresh token: its text, to be shown once, and what is kept of it. Raises ValueError.

    ``campaigns`` are the ids that it is limited to.
    """
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
    """The token in use that has this text; the store looks its digest up.

    Safety: how long that takes may tell something of stored digests, and a digest tells nothing of its secret.
    """
    token = await store.token(token_digest(text))
    if token is None or not token.is_in_use(now):
        return None
    note_use()
    return token


def note_use() -> None:
    """Say that the current request has shown a token in use."""
    ON_USE.get(lambda: None)()


SERVER: Final = "server"
"""Who acts where a server does by itself what it was configured to."""


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


if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_HEAD: Final = "ldp-bayes signing key 1: "
SEED_BYTES: Final = 32


def make_key(path: Path) -> str:
    """A fresh key in a new file that its owner alone can read; returns the public key. Raises FileExistsError where
    there is one, and SettingsError.
    """
    seed = secrets.token_bytes(SEED_BYTES)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(_HEAD + _text_of(seed) + "\n")
    except FileExistsError:
        raise
    except OSError as error:
        raise SettingsError(f"the key cannot be written to {path}: {error.strerror}") from None
    return public_key(seed)


def read_seed(path: Path) -> bytes:
    """The secret in a key file. Raises SettingsError, also where others than its owner may read it."""
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is no key"
        raise SettingsError(f"the key {path} cannot be read: {told}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise SettingsError(f"others can read the key {path}; chmod 600 it, and make another if anybody may have")
    if not text.startswith(_HEAD):
        raise SettingsError(f"{path} is no key; 'ldp-aggregator key create' makes one")
    try:
        seed = base64.urlsafe_b64decode(text.removeprefix(_HEAD).strip() + "=")
    except ValueError:
        seed = b""
    if len(seed) != SEED_BYTES:
        raise SettingsError(f"the key {path} is damaged")
    return seed


def public_key(seed: bytes) -> str:
    """Return what an app is shipped with: 43 characters of base64url."""
    return _text_of(_private_key(seed).public_key().public_bytes_raw())


def sign(seed: bytes, message: bytes) -> bytes:
    """64 bytes; the same for the same key and message."""
    return _private_key(seed).sign(message)


def sign_directory(seed: bytes, version: int, expires: datetime, campaigns: Mapping[str, str | None]) -> bytes:
    """The document to publish. Raises DocumentError where a device would not take it."""
    entries = [{"id": campaign_id, "model": model} for campaign_id, model in campaigns.items()]
    until = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
    statement = json.dumps({"version": version, "expires": until, "campaigns": entries}, separators=(",", ":"))
    signature = _text_of(sign(seed, SIGNED_PREFIX + statement.encode()))
    document = json.dumps({"statement": statement, "signature": signature}).encode()
    read_directory(document, public_key(seed))
    return document


def described(directory: Directory) -> str:
    """A directory in a line, for logs and people."""
    named = ", ".join(directory.campaigns) or "no campaign"
    return f"version {directory.version} until {directory.expires:%Y-%m-%dT%H:%M:%SZ}: {named}"


def _private_key(seed: bytes) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # A server need not load it.

    return Ed25519PrivateKey.from_private_bytes(seed)


def _text_of(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
