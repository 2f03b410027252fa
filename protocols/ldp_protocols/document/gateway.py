"""The gateway of a campaign: the public key to which devices seal their uploads, as a key configuration of Oblivious
HTTP (RFC 9458, section 3.1), so that whoever forwards them reads nothing.

The document carries it, and the campaign's id is the document's hash: nobody can give two devices two keys of one
campaign, by which the server would tell them apart (RFC 9458, section 7). A long campaign may name several keys, each
but the last with the time at which the next takes its place: ``KEY 2027-06-01T00:00:00Z KEY``. Whoever gets the
private key of one time opens nothing that was sealed at another.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from ldp_protocols.fields import Fields, Refusal, read_instant

X25519_HKDF_SHA256: Final = 0x0020
HKDF_SHA256: Final = 0x0001
AES_128_GCM: Final = 0x0001
CHACHA20_POLY1305: Final = 0x0003
AEADS: Final = (AES_128_GCM, CHACHA20_POLY1305)
"""Identifiers of RFC 9180, section 7."""

PUBLIC_KEY_BYTES: Final = 32

_HEAD_BYTES: Final = 1 + 2 + PUBLIC_KEY_BYTES + 2
_LONGEST: Final = 1000
"""Characters, of at least a dozen keys and their times."""

_LIKE: Final = '{"key": "..."}; ldp-aggregator key create FILE --gateway prints it'
_FIELD: Final = 2**255 - 19
_SMALL: Final = frozenset(
    {
        0,
        1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
        _FIELD - 1,
    }
)
"""Points of Curve25519 of a small order, which make no secret (RFC 7748, section 6.1)."""


KEPT_AFTER: Final = timedelta(days=30)
"""For so long a key is needed after the next one's time: relays bring what they have mixed, and clocks are behind."""


@dataclass(frozen=True)
class Gateway:
    """A key configuration. ``aeads`` are those that the gateway takes, in its order, each with HKDF-SHA256; ``later``
    are the keys that take its place, and the times from which devices seal to them, in their order.
    """

    key_id: int
    public_key: bytes
    aeads: tuple[int, ...] = AEADS
    later: tuple[tuple[datetime, Gateway], ...] = ()

    @property
    def key(self) -> str:
        """The key, or the keys and their times, as documents have them."""
        later = "".join(f" {start:%Y-%m-%dT%H:%M:%SZ} {key.key}" for start, key in self.later)
        return self._configuration() + later

    @property
    def keys(self) -> tuple[Gateway, ...]:
        """Each key by itself, in the order of their times."""
        return (replace(self, later=()), *(key for _, key in self.later))

    def at(self, seconds: float) -> Gateway:
        """The key to which a device seals, whose clock says so many seconds since 1970."""
        return self.keys[sum(start.timestamp() <= seconds for start, _ in self.later)]

    def needed(self, moment: datetime) -> tuple[Gateway, ...]:
        """The keys to which something may be sealed that comes at a moment, or later."""
        return self.keys[sum(start + KEPT_AFTER <= moment for start, _ in self.later) :]

    def _configuration(self) -> str:
        pairs = b"".join(_u16(HKDF_SHA256) + _u16(aead) for aead in self.aeads)
        encoded = bytes([self.key_id]) + _u16(X25519_HKDF_SHA256) + self.public_key + _u16(len(pairs)) + pairs
        return base64.urlsafe_b64encode(encoded).rstrip(b"=").decode()

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key}


def read_gateway(value: Any, refuse: Refusal) -> Gateway | None:
    """Read a draft's or document's gateway, None where it has none."""
    if value is None:
        return None
    fields = Fields(value, "gateway", refuse, like=_LIKE)
    gateway = read_keys(fields.text("key", longest=_LONGEST))
    if isinstance(gateway, str):
        raise fields.error("key", gateway)
    fields.finish()
    return gateway


def read_keys(text: str) -> Gateway | str:
    """Read a key, or keys and their times; or say what is wrong with them."""
    keys = [read_configuration(word) for word in text.split(" ")[::2]]
    starts = [read_instant(word) for word in text.split(" ")[1::2]]
    for key in keys:
        if isinstance(key, str):
            return key
    read = [key for key in keys if isinstance(key, Gateway)]
    times = [start for start in starts if start is not None]
    if len(times) != len(starts) or len(read) != len(times) + 1 or times != sorted(set(times)):
        return "must have between two keys the time in UTC of the second, such as 2027-06-01T00:00:00Z, in their order"
    if len({key.key_id for key in read}) != len(read):
        return "must hold keys of which each has another identifier (its first byte)"
    return replace(read[0], later=tuple(zip(times, read[1:], strict=True)))


def read_configuration(text: str) -> Gateway | str:
    """Read a key configuration in base64url; or say why it is none that devices can seal to."""
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        raw = b""
    if not raw or base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != text:
        return "must be a key configuration (RFC 9458, section 3.1) in base64url without padding"
    pairs = raw[_HEAD_BYTES:]
    if len(raw) < _HEAD_BYTES or int.from_bytes(raw[_HEAD_BYTES - 2 : _HEAD_BYTES], "big") != len(pairs):
        return f"must be one key configuration, {_HEAD_BYTES} bytes and the pairs of algorithms that it counts"
    if int.from_bytes(raw[1:3], "big") != X25519_HKDF_SHA256:
        return "must be a key of DHKEM(X25519, HKDF-SHA256), 0x0020"
    suites = {_u16(HKDF_SHA256) + _u16(aead): aead for aead in AEADS}
    aeads = [suites.get(pairs[place : place + 4], 0) for place in range(0, len(pairs), 4)]
    if not aeads or 0 in aeads or len(set(aeads)) != len(aeads):
        return "must name HKDF-SHA256 with AES-128-GCM, with ChaCha20Poly1305, or with each of the two once"
    public_key = raw[3 : 3 + PUBLIC_KEY_BYTES]
    point = int.from_bytes(public_key, "little")
    if point >= _FIELD:
        return "holds a public key that is not canonical, and nothing sealed to it could be opened; make another one"
    if point in _SMALL:
        return "holds a public key that makes no secret; make another one"
    return Gateway(raw[0], public_key, tuple(aeads))


def _u16(number: int) -> bytes:
    return number.to_bytes(2, "big")
