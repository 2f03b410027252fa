"""HPKE (RFC 9180) as a gateway needs it: base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, one message and (RFC 9458)
one answer to it.

X25519 and the ciphers are those of ``cryptography``; what is derived in between are ten HMACs, which a general library
spends most of an upload's time around. What they hash beside secrets is put together once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hmac import digest
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from ldp_protocols.document.gateway import AES_128_GCM, CHACHA20_POLY1305, HKDF_SHA256, X25519_HKDF_SHA256
from ldp_protocols.oblivious import nonce_bytes

Cipher = type[AESGCM] | type[ChaCha20Poly1305]

_CIPHERS: Final[Mapping[int, tuple[Cipher, int]]] = {
    AES_128_GCM: (AESGCM, 16),
    CHACHA20_POLY1305: (ChaCha20Poly1305, 32),
}
"""Each with the bytes of its key."""
_NONCE_BYTES: Final = 12
_SECRET_BYTES: Final = 32


class Schedule(NamedTuple):
    """What the key schedule hashes besides the shared secret: the same for all who seal to a key with a cipher."""

    cipher: Cipher
    suite: bytes
    secret: bytes
    key: bytes
    key_bytes: int
    nonce: bytes
    exporter: bytes
    answer: bytes
    """Asks for the secret of the answer (RFC 9458, section 4.4), which is as long as the answer's nonce."""
    nonce_bytes: int


class Secrets(NamedTuple):
    """The end of the key schedule (RFC 9180, section 5.1): ``key`` and ``nonce`` are of the one message."""

    schedule: Schedule
    enc: bytes
    key: bytes
    nonce: bytes
    exporter: bytes

    def open(self, sealed: bytes) -> bytes:
        """The opened message. Raises cryptography's InvalidTag."""
        return self.schedule.cipher(self.key).decrypt(self.nonce, sealed, None)

    def export(self, context: bytes, length: int) -> bytes:
        """RFC 9180, section 5.3; at most 32 bytes."""
        return digest(self.exporter, _expanding(self.schedule.suite, b"sec", context, length), "sha256")[:length]

    def seal_answer(self, nonce: bytes, answer: bytes) -> bytes:
        """The one answer, sealed with this nonce, which is not in front of it (RFC 9458, section 4.4)."""
        secret = digest(self.exporter, self.schedule.answer, "sha256")[: self.schedule.nonce_bytes]
        pseudorandom = digest(self.enc + nonce, secret, "sha256")
        key = digest(pseudorandom, b"key\1", "sha256")[: self.schedule.key_bytes]
        cipher = self.schedule.cipher(key)
        return cipher.encrypt(digest(pseudorandom, b"nonce\1", "sha256")[:_NONCE_BYTES], answer, None)


def receive(private: X25519PrivateKey, public: bytes, enc: bytes, aead: int, info: bytes) -> Secrets:
    """Decap and the key schedule, by the key whose public half is ``public``. Raises ValueError for a point of a small
    order, which makes no secret.
    """
    schedule = _schedule(aead, info)
    exchanged = private.exchange(X25519PublicKey.from_public_bytes(enc))
    pseudorandom = digest(b"", _EXCHANGED + exchanged, "sha256")
    shared = digest(pseudorandom, b"".join((_SHARED, enc, public, b"\1")), "sha256")
    secret = digest(shared, schedule.secret, "sha256")
    key = digest(secret, schedule.key, "sha256")[: schedule.key_bytes]
    nonce = digest(secret, schedule.nonce, "sha256")[:_NONCE_BYTES]
    return Secrets(schedule, enc, key, nonce, digest(secret, schedule.exporter, "sha256"))


@lru_cache(maxsize=64)
def _schedule(aead: int, info: bytes) -> Schedule:
    suite = b"HPKE" + b"".join(part.to_bytes(2, "big") for part in (X25519_HKDF_SHA256, HKDF_SHA256, aead))
    context = b"\0" + b"".join(
        digest(b"", _extracting(suite, label, material), "sha256")
        for label, material in ((b"psk_id_hash", b""), (b"info_hash", info))
    )
    cipher, key_bytes = _CIPHERS[aead]
    return Schedule(
        cipher=cipher,
        suite=suite,
        secret=_extracting(suite, b"secret", b""),
        key=_expanding(suite, b"key", context, key_bytes),
        key_bytes=key_bytes,
        nonce=_expanding(suite, b"base_nonce", context, _NONCE_BYTES),
        exporter=_expanding(suite, b"exp", context, _SECRET_BYTES),
        answer=_expanding(suite, b"sec", b"message/bhttp response", nonce_bytes(aead)),
        nonce_bytes=nonce_bytes(aead),
    )


def _extracting(suite: bytes, label: bytes, material: bytes) -> bytes:
    """What LabeledExtract of RFC 9180, section 4, hashes under its salt."""
    return b"HPKE-v1" + suite + label + material


def _expanding(suite: bytes, label: bytes, info: bytes, length: int) -> bytes:
    """What LabeledExpand hashes under its secret, for a length of which one block is enough."""
    return length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info + b"\1"


_KEM: Final = b"KEM" + X25519_HKDF_SHA256.to_bytes(2, "big")
_EXCHANGED: Final = _extracting(_KEM, b"eae_prk", b"")
_SHARED: Final = _expanding(_KEM, b"shared_secret", b"", _SECRET_BYTES)[:-1]
