"""One person once: the tokens that a relay is shown, and those that it was shown before.

An issuer signs, for each person, as many as the campaign's document says (:mod:`ldp_protocols.tokens`). So no batch is
one device and the uploads that somebody made up around its own. In the clear the token of the answer is looked at;
beside a sealed upload the one for relays, by a key that the issuer uses for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ldp_client.storage.contract import Transaction, pack
from ldp_protocols import Campaign, DocumentError
from ldp_protocols.document.issuer import EXPONENT, MODULUS_BYTES, Issuer
from ldp_protocols.tokens import (
    HASH_BYTES,
    RELAY_HEADER,
    SALT_BYTES,
    issuer_of,
    mask,
    padded,
    read_credentials,
    relay_input,
    token_input,
)

_ADMITTED: Final = "admitted/"
"""Prefix of the keys of used tokens: the nonce alone, without the upload or a time."""
_NONCE: Final = slice(2, 34)


class NotAdmittedError(DocumentError):
    """An upload shows no token that the campaign's issuer signed."""


def admitted_sealed(campaign: Campaign, authorization: str | None) -> str | None:
    """The key under which the token beside a sealed upload is remembered, None if the issuer signs nothing for
    relays. Raises NotAdmittedError.
    """
    issuer = None if campaign.issuer is None else campaign.issuer.for_relays
    if issuer is None:
        return None
    token = read_credentials(authorization or "")
    if token is None:
        raise NotAdmittedError("missing-relay-token", f"a sealed upload shows this relay a token in {RELAY_HEADER}")
    if not _is_signed(issuer, relay_input(campaign, token[_NONCE]), token):
        raise NotAdmittedError("wrong-relay-token", "the campaign's issuer has not signed it for its relays")
    return _ADMITTED + token[_NONCE].hex()


def admitted_answer(campaign: Campaign, authorization: str | None, ids: Iterable[bytes]) -> tuple[str, bytes]:
    """The key under which the token of an answer in the clear is remembered, and the token. Raises NotAdmittedError."""
    token = read_credentials(authorization or "")
    if token is None:
        raise NotAdmittedError("missing-answer-token", "an answer to this campaign shows a token of its issuer")
    if not _is_signed(issuer_of(campaign), token_input(campaign, ids), token):
        raise NotAdmittedError("wrong-answer-token", "the issuer has not signed it, or of another answer")
    return _ADMITTED + token[_NONCE].hex(), token


def was_admitted(transaction: Transaction, key: str) -> bool:
    """True if this token was shown before, with whatever upload."""
    return transaction.get(key) is not None


def admit(transaction: Transaction, key: str) -> None:
    """Remember a token, for good."""
    transaction.put(key, pack(key, 1))


def _is_signed(issuer: Issuer, message: bytes, token: bytes) -> bool:
    """Verify RSASSA-PSS (RFC 8017, 8.1.2 and 9.1.2) with SHA-384 and 48 bytes of salt: encoding the message with the
    salt of the signature has to give what was signed.
    """
    number = int.from_bytes(token[len(message) :], "big")
    if not token.startswith(message) or number >= issuer.modulus:
        return False
    encoded = pow(number, EXPONENT, issuer.modulus)
    digest = (encoded >> 8).to_bytes(MODULUS_BYTES, "big")[-HASH_BYTES:]
    hidden = encoded >> 8 * (HASH_BYTES + 1)
    salt = (hidden ^ mask(digest, MODULUS_BYTES - HASH_BYTES - 1)) & ((1 << 8 * SALT_BYTES) - 1)
    return padded(message, salt.to_bytes(SALT_BYTES, "big"), issuer.modulus.bit_length()) == encoded
