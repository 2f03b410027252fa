"""The directory that an app's publisher signs: which campaigns are open for it, and which model goes with each.

A document is ``{"statement": TEXT, "signature": TEXT}``: the JSON of the statement as a text, and the Ed25519 signature
of its bytes behind :data:`PREFIX`, in base64url without padding. A server stores and serves it, and cannot make one.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from protocols.document.ed25519 import verify
from protocols.errors import DocumentError, ProtocolError
from protocols.fields import Fields, parse_json

PREFIX: Final = b"ldp-bayes directory 1\n"
"""In front of what is signed, so that a signature of anything else by the same key is none of a directory."""
LARGEST_DIRECTORY: Final = 1 << 16
MOST_CAMPAIGNS: Final = 256


@dataclass(frozen=True)
class Directory:
    """A statement. ``campaigns`` maps the ids of those that are open to the SHA-256 (hex) of their model, None where
    there is none yet.
    """

    version: int
    expires: datetime
    campaigns: Mapping[str, str | None]


def read_key(key: str) -> bytes:
    """The 32 bytes of a public key. Raises DocumentError."""
    raw = _bytes_of(key)
    if len(raw) != 32:
        raise DocumentError("wrong-key", "a publisher's key is 32 bytes in base64url: 43 characters")
    return raw


def read_directory(document: bytes, key: str, *, known: bool = False) -> Directory:
    """The statement of a document that the holder of ``key`` signed. ``known`` are bytes that were checked before.

    Raises DocumentError; what it holds is not looked at before the signature is.
    """
    if len(document) > LARGEST_DIRECTORY:
        raise _refuse("document", f"a directory has at most {LARGEST_DIRECTORY} bytes")
    fields = Fields(parse_json(document, _refuse), "", _refuse)
    texts = [fields.raw(name) for name in ("statement", "signature")]
    fields.finish()
    if not all(isinstance(text, str) for text in texts):
        raise _refuse("document", "statement and signature must be texts")
    try:
        statement = texts[0].encode()
    except UnicodeEncodeError:
        raise _refuse("statement", "is no text") from None
    if not known and not verify(read_key(key), PREFIX + statement, _bytes_of(texts[1])):
        raise DocumentError("wrong-signature", "the directory is not signed by the publisher's key")
    return _read_statement(parse_json(statement, _refuse))


def _read_statement(value: Any) -> Directory:
    fields = Fields(value, "", _refuse)
    version = fields.integer("version", least=1, most=2**53 - 1)
    expires = fields.instant("expires")
    campaigns = {}
    for place, entry in enumerate(fields.sequence("campaigns", least=0, most=MOST_CAMPAIGNS)):
        inner = Fields(entry, f"campaigns[{place}]", _refuse)
        campaigns[inner.text("id")] = inner.optional_text("model")
        inner.finish()
    fields.finish()
    if expires is None:
        raise _refuse("expires", "must say until when it holds")
    return Directory(version, expires, campaigns)


def _refuse(field: str, problem: str) -> ProtocolError:
    return DocumentError("malformed-directory", f"{field}: {problem}")


def _bytes_of(text: str) -> bytes:
    """The bytes of base64url without padding; none where it is not their one encoding."""
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return b""
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == text else b""
