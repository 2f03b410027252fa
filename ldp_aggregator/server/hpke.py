"""HPKE (RFC 9180) as a gateway needs it: base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, one message and (RFC 9458)
one answer to it.

X25519 and the ciphers are those of ``cryptography``; what is derived in between are a dozen HMACs, which a general
library spends most of an upload's time around.
"""

from __future__ import annotations

from functools import lru_cache
from hmac import digest
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from ldp_protocols.document.gateway import AES_128_GCM, CHACHA20_POLY1305, HKDF_SHA256, X25519_HKDF_SHA256
from ldp_protocols.oblivious import nonce_bytes

_KEY_BYTES: Final = {AES_128_GCM: 16, CHACHA20_POLY1305: 32}
_NONCE_BYTES: Final = 12
_SECRET_BYTES: Final = 32
_KEM: Final = b"KEM" + X25519_HKDF_SHA256.to_bytes(2, "big")


class Secrets(NamedTuple):
    """The end of the key schedule (RFC 9180, section 5.1): ``key`` and ``nonce`` are of the one message."""

    aead: int
    enc: bytes
    key: bytes
    nonce: bytes
    exporter: bytes

    @property
    def _cipher(self) -> AESGCM | ChaCha20Poly1305:
        return AESGCM(self.key) if self.aead == AES_128_GCM else ChaCha20Poly1305(self.key)

    def seal(self, message: bytes) -> bytes:
        return self._cipher.encrypt(self.nonce, message, None)

    def open(self, sealed: bytes) -> bytes:
        """The opened message. Raises cryptography's InvalidTag."""
        return self._cipher.decrypt(self.nonce, sealed, None)

    def export(self, context: bytes, length: int) -> bytes:
        """RFC 9180, section 5.3; at most 32 bytes."""
        return _expand(self.exporter, _suite(self.aead), b"sec", context, length)

    def answering(self, nonce: bytes) -> Secrets:
        """The secrets of the one answer with this nonce (RFC 9458, section 4.4)."""
        secret = self.export(b"message/bhttp response", nonce_bytes(self.aead))
        pseudorandom = digest(self.enc + nonce, secret, "sha256")
        key = digest(pseudorandom, b"key\1", "sha256")[: len(self.key)]
        return self._replace(key=key, nonce=digest(pseudorandom, b"nonce\1", "sha256")[:_NONCE_BYTES])


def receive(private: X25519PrivateKey, public: bytes, enc: bytes, aead: int, info: bytes) -> Secrets:
    """Decap and the key schedule, by the key whose public half is ``public``. Raises ValueError for a point of a small
    order, which makes no secret.
    """
    shared = private.exchange(X25519PublicKey.from_public_bytes(enc))
    pseudorandom = _extract(b"", _KEM, b"eae_prk", shared)
    shared = _expand(pseudorandom, _KEM, b"shared_secret", enc + public, _SECRET_BYTES)
    suite, context = _suite(aead), _context(aead, info)
    secret = _extract(shared, suite, b"secret", b"")
    key = _expand(secret, suite, b"key", context, _KEY_BYTES[aead])
    nonce = _expand(secret, suite, b"base_nonce", context, _NONCE_BYTES)
    return Secrets(aead, enc, key, nonce, _expand(secret, suite, b"exp", context, _SECRET_BYTES))


@lru_cache(maxsize=64)
def _context(aead: int, info: bytes) -> bytes:
    """The key_schedule_context, the same for all who seal to a key."""
    suite = _suite(aead)
    return b"\0" + _extract(b"", suite, b"psk_id_hash", b"") + _extract(b"", suite, b"info_hash", info)


@lru_cache(maxsize=2)
def _suite(aead: int) -> bytes:
    return b"HPKE" + b"".join(part.to_bytes(2, "big") for part in (X25519_HKDF_SHA256, HKDF_SHA256, aead))


def _extract(salt: bytes, suite: bytes, label: bytes, material: bytes) -> bytes:
    """LabeledExtract of RFC 9180, section 4."""
    return digest(salt, b"HPKE-v1" + suite + label + material, "sha256")


def _expand(secret: bytes, suite: bytes, label: bytes, info: bytes, length: int) -> bytes:
    """LabeledExpand, of which one block is enough."""
    return digest(secret, length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info + b"\1", "sha256")[:length]
