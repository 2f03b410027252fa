"""The issuer of a campaign: who knows people, and signs at most so many tokens for each without seeing what they are
of.

Its public key stands in the document, so that nobody can show one person a key of their own. A key is one epoch:
whoever begins anew makes another key, and another campaign.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ldp_protocols.fields import Fields, Refusal

MODULUS_BYTES: Final = 256
EXPONENT: Final = 65537
MOST_TOKENS: Final = 1 << 10

_BEFORE: Final = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b0609608648"
    "016503040202a2030201300382010f003082010a0282010100"
)
_AFTER: Final = bytes.fromhex("0203010001")
"""Around the modulus in the one encoding of a key (RFC 9578, 6.5): a SubjectPublicKeyInfo of RSASSA-PSS with SHA-384,
MGF1 with SHA-384 and a salt of 48 bytes, for 2,048 bits and the exponent 65537.
"""
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]{456}={0,2}")
"""Letters of base64url; :func:`base64.urlsafe_b64decode` passes over any other."""
_LIKE: Final = '{"name": "tokens.example.org", "key": "MIIBUjA9...", "tokens": 1}'


@dataclass(frozen=True)
class Issuer:
    """``name`` is the host that issues; ``modulus`` that of its RSA key; ``tokens`` are signed for a person at most.

    ``relay_modulus`` is that of the key for tokens that a relay is shown, as many: another key, since a blind signature
    is of whatever the holder says. None where relays are shown none.
    """

    name: str
    modulus: int
    tokens: int = 1
    relay_modulus: int | None = None

    @cached_property
    def key(self) -> bytes:
        """The public key as RFC 9578 writes it."""
        return key_bytes(self.modulus)

    @cached_property
    def key_id(self) -> bytes:
        """The SHA-256 of the key, which a token names it by."""
        return hashlib.sha256(self.key).digest()

    @cached_property
    def for_relays(self) -> Issuer | None:
        """The same with its other key, where it has one."""
        return None if self.relay_modulus is None else Issuer(self.name, self.relay_modulus, self.tokens)

    def to_json(self) -> dict[str, Any]:
        values = {"name": self.name, "key": key_text(self.modulus), "tokens": self.tokens}
        return values if self.relay_modulus is None else values | {"relay_key": key_text(self.relay_modulus)}


def key_text(modulus: int) -> str:
    """A key as documents have it: base64url without padding."""
    return urlsafe_b64encode(key_bytes(modulus)).rstrip(b"=").decode()


def key_bytes(modulus: int) -> bytes:
    """The one encoding of a public key of 2,048 bits."""
    return _BEFORE + modulus.to_bytes(MODULUS_BYTES, "big") + _AFTER


def read_issuer(value: Any, refuse: Refusal) -> Issuer | None:
    """Read a draft's or document's issuer, None where it has none."""
    if value is None:
        return None
    fields = Fields(value, "issuer", refuse, like=_LIKE)
    name = fields.text("name", longest=253)
    if not _NAME.fullmatch(name):
        raise fields.error("name", "must be the name of a host in small letters, like tokens.example.org")
    modulus, relay_modulus = (_modulus(fields, one) for one in ("key", "relay_key"))
    tokens = fields.integer("tokens", least=1, most=MOST_TOKENS) if fields.has("tokens") else 1
    fields.finish()
    return Issuer(name, modulus or 0, tokens, relay_modulus)


def _modulus(fields: Fields, name: str) -> int | None:
    """The modulus of a key in base64url, with padding or without; ``relay_key`` may be missing."""
    if name == "relay_key" and not fields.has(name):
        return None
    text = fields.text(name, longest=1000)
    if _BASE64URL.fullmatch(text):
        key = urlsafe_b64decode(text[: len(text) // 4 * 4])
        modulus = int.from_bytes(key[len(_BEFORE) : len(_BEFORE) + MODULUS_BYTES], "big")
        if modulus >> 8 * MODULUS_BYTES - 1 and modulus % 2 and key == key_bytes(modulus):
            return modulus
    raise fields.error(name, "must be what 'ldp-issuer' prints: an RSA key of 2,048 bits (RFC 9578, 6.5)")
