"""Keys in files: the publisher's, made and kept offline, with the directories that it signs; and the gateway's, to
which devices seal their uploads.

Ed25519 (RFC 8032) and X25519 (RFC 7748) by the library ``cryptography``. What is signed is checked by the devices' own
code before it is handed out.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ldp_aggregator.store.durable import append, write_new
from ldp_protocols import DocumentError
from ldp_protocols.document.directory import PREFIX, Directory, read_directory
from ldp_protocols.document.gateway import Gateway

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_HEAD: Final = "ldp-bayes signing key 1: "
_GATEWAY_HEAD: Final = "ldp-bayes gateway key 1: "
SEED_BYTES: Final = 32
MOST_GATEWAY_KEYS: Final = 200
"""In one file, of 256 identifiers: one that is free is drawn soon."""


def make_key(path: Path) -> str:
    """Public key of a fresh key in a new file for its owner alone. Raises FileExistsError and DocumentError."""
    return public_key(_make(path, _HEAD))


def make_gateway_key(path: Path) -> Gateway:
    """The same for a gateway; returns what stands in the drafts of campaigns."""
    return gateway_of(_make(path, _GATEWAY_HEAD))


def append_gateway_key(path: Path) -> Gateway:
    """A fresh key behind those in a file, with an identifier that none of them has. Raises DocumentError."""
    seed = _draw_beside({gateway_of(one).key_id for one in read_gateway_seeds(path)})
    try:
        append(path, _line(_GATEWAY_HEAD, seed))
    except OSError as error:
        raise _bad_key(f"the key cannot be appended to {path}: {error.strerror}") from None
    return gateway_of(seed)


def _draw_beside(taken: Collection[int]) -> bytes:
    if len(taken) >= MOST_GATEWAY_KEYS:
        raise _bad_key("every identifier of a gateway's key is taken; begin a new file for another gateway")
    while True:
        seed = secrets.token_bytes(SEED_BYTES)
        if gateway_of(seed).key_id not in taken:
            return seed


def held_gateways(path: Path | None) -> tuple[Gateway, ...]:
    """The public sides of what a file of a gateway's keys holds, the newest last. Raises DocumentError."""
    return () if path is None else tuple(map(gateway_of, read_gateway_seeds(path)))


def read_seed(path: Path) -> bytes:
    """The secret in a key file. Raises DocumentError, also where others than its owner may read it."""
    seeds = _read(path, _HEAD)
    if len(seeds) != 1:
        raise _bad_key(f"the key {path} is damaged")
    return seeds[0]


def read_gateway_seeds(path: Path) -> tuple[bytes, ...]:
    """The secrets of a gateway, one a line, the newest last; older campaigns name older ones. Raises DocumentError."""
    seeds = _read(path, _GATEWAY_HEAD)
    if len({gateway_of(seed).key_id for seed in seeds}) != len(seeds):
        raise _bad_key(f"two keys in {path} have one identifier; make another in place of the newer one")
    return seeds


def gateway_of(seed: bytes) -> Gateway:
    """The public side of a gateway's secret. Its identifier is the first byte of the key's SHA-256."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    public = X25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    return Gateway(hashlib.sha256(public).digest()[0], public)


def _make(path: Path, head: str) -> bytes:
    seed = secrets.token_bytes(SEED_BYTES)
    try:
        write_new(path, _line(head, seed))
    except FileExistsError:
        raise
    except OSError as error:
        raise _bad_key(f"the key cannot be written to {path}: {error.strerror}") from None
    return seed


def _line(head: str, seed: bytes) -> bytes:
    return f"{head}{_text_of(seed)}\n".encode("ascii")


def _read(path: Path, head: str) -> tuple[bytes, ...]:
    """The secrets in a file of lines. Raises DocumentError."""
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no key"
        raise _bad_key(f"the key {path} cannot be read: {reason}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise _bad_key(f"others can read the key {path}; chmod 600 it, and make another if anybody may have")
    lines = text.splitlines()
    if not lines or not all(line.startswith(head) for line in lines):
        made = f"'ldp-aggregator key create FILE{' --gateway' * (head == _GATEWAY_HEAD)}' makes one"
        raise _bad_key(f"{path} is no key of this kind; {made}")
    try:
        seeds = tuple(base64.urlsafe_b64decode(line.removeprefix(head).strip() + "=") for line in lines)
    except ValueError:
        seeds = (b"",)
    if any(len(seed) != SEED_BYTES for seed in seeds):
        raise _bad_key(f"the key {path} is damaged")
    return seeds


def public_key(seed: bytes) -> str:
    """The public key that an app is shipped with: 43 characters of base64url."""
    return _text_of(_private_key(seed).public_key().public_bytes_raw())


def sign(seed: bytes, message: bytes) -> bytes:
    """64 bytes; the same for the same key and message."""
    return _private_key(seed).sign(message)


def sign_directory(seed: bytes, version: int, expires: datetime, campaigns: Mapping[str, str | None]) -> bytes:
    """The document to publish. Raises DocumentError where a device would not take it."""
    entries = [{"id": campaign_id, "model": model} for campaign_id, model in campaigns.items()]
    until = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
    statement = json.dumps({"version": version, "expires": until, "campaigns": entries}, separators=(",", ":"))
    signature = _text_of(sign(seed, PREFIX + statement.encode()))
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


def _bad_key(problem: str) -> DocumentError:
    return DocumentError("bad-key", problem)
