"""The directory that an app's publisher signs: which campaigns are open for it, and which model goes with each.

A document is ``{"statement": TEXT, "signature": TEXT}``: the JSON of the statement as a text, and the Ed25519 signature
of its bytes behind :data:`PREFIX`, in base64url without padding. A server stores and serves it, and cannot make one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ldp_protocols.errors import DocumentError
from ldp_protocols.fields import Fields, parse_json

PREFIX: Final = b"ldp-bayes directory 1\n"
"""In front of what is signed, so that a signature of anything else by the same key is none of a directory."""
LARGEST_DIRECTORY: Final = 1 << 16
MOST_CAMPAIGNS: Final = 256

P: Final = 2**255 - 19
L: Final = 2**252 + 27742317777372353535851937790883648493
"""The order of the base point."""
D: Final = -121665 * pow(121666, -1, P) % P
_ROOT: Final = pow(2, (P - 1) // 4, P)
"""A square root of -1."""

Point = tuple[int, int, int, int]
"""(X, Y, Z, T) with x = X / Z, y = Y / Z and x y = T / Z."""
NEUTRAL: Final[Point] = (0, 1, 1, 0)


@dataclass(frozen=True)
class Directory:
    """A statement: ``campaigns`` maps ids of open ones to the SHA-256 (hex) of their model, None without one."""

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
    """Statement of a document, read after its signature by ``key`` (``known``: already). Raises DocumentError."""
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


def _refuse(field: str, problem: str) -> DocumentError:
    return DocumentError("malformed-directory", f"{field}: {problem}")


def _bytes_of(text: str) -> bytes:
    """The bytes of base64url without padding; none where it is not their one encoding."""
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return b""
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == text else b""


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """True if ``signature`` (64 bytes) is one of ``message`` by the holder of ``key`` (32 bytes).

    Ed25519 with integers alone: RFC 8032, section 5.1.7, without the cofactor. Everything here is public (key, message,
    signature), so how long it takes tells nothing. A signature has one encoding that is accepted, and so has a key.
    """
    point = decoded(key)
    if point is None or len(signature) != 64 or equal(multiple(8, point), NEUTRAL):
        return False  # A key of small order would accept anything.
    s = int.from_bytes(signature[32:], "little")
    if s >= L:
        return False
    h = challenge(signature[:32], key, message)
    x, y, z, t = multiple(h, point)
    return encoded(add(multiple(s, BASE), (P - x, y, z, P - t))) == signature[:32]


def challenge(r: bytes, key: bytes, message: bytes) -> int:
    """The number that ties a signature to its key and message."""
    return int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % L


def add(p: Point, q: Point) -> Point:
    """The sum of two points, equal ones too (section 5.1.4)."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiple(number: int, point: Point) -> Point:
    """``number`` times a point."""
    total = NEUTRAL
    while number:
        if number & 1:
            total = add(total, point)
        point = add(point, point)
        number >>= 1
    return total


def equal(p: Point, q: Point) -> bool:
    """True if two points are one."""
    return (p[0] * q[2] - q[0] * p[2]) % P == (p[1] * q[2] - q[1] * p[2]) % P == 0


def encoded(point: Point) -> bytes:
    """32 bytes: y, and the lowest bit of x on top."""
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decoded(text: bytes) -> Point | None:
    """The point of 32 bytes, None where they are none, or not its one encoding (section 5.1.3)."""
    number = int.from_bytes(text, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if len(text) != 32 or y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * _ROOT % P
    if (x * x - square) % P or (sign and not x):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE: Final[Point] = decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little")) or NEUTRAL
"""y = 4/5, and x even."""
