"""Tokens of people whom nobody names: Privacy Pass (RFC 9576 to 9578), token type 2, blind RSA (RFC 9474).

An issuer that knows people signs, blindly, for each at most as many tokens as the campaign's document says; an upload
shows one. The signature tells that somebody was entitled, and not who.

The 32 bytes that RFC 9578 calls nonce are here the SHA-256 of the ids of the upload's reports, which only the device's
secret gives. So a token is of one answer, and is spent with it: the aggregator counts an id once, in one commit, and
needs no other memory of tokens; whoever steals a token cannot send another answer with it. The issuer sees no id.

Where the issuer has a key for relays, a device has a token of that one, too, shown outside what is sealed; its nonce is
the device's own, so that nobody can tell which two tokens are one person's.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ldp_protocols.campaign import Campaign
from ldp_protocols.document.issuer import MODULUS_BYTES, Issuer
from ldp_protocols.errors import LdpError

TOKEN_TYPE: Final = (2).to_bytes(2, "big")
HASH: Final = "sha384"
HASH_BYTES: Final = 48
SALT_BYTES: Final = 48
REQUEST_TYPE: Final = "application/private-token-request"
RESPONSE_TYPE: Final = "application/private-token-response"
REQUEST_BYTES: Final = 3 + MODULUS_BYTES
SCHEME: Final = "PrivateToken"
ANSWERS_TYPE: Final = "application/vnd.ldp-bayes.answers"
"""A relay's batch of answers in the clear, one after another: the token of each, and its upload."""
RELAY_HEADER: Final = "LDP-Relay-Token"
"""The header in which a relay is shown its own token."""

_NONCE: Final = b"ldp-bayes answer 1\n"
_RELAY: Final = b"ldp-bayes relay 1\n"
_INPUT_BYTES: Final = 2 + 3 * 32
TOKEN_BYTES: Final = _INPUT_BYTES + MODULUS_BYTES
_CREDENTIALS: Final = re.compile(rf'(?i:{SCHEME}) +token="?([A-Za-z0-9_-]{{{TOKEN_BYTES * 4 // 3}}})"?')


def issuer_of(campaign: Campaign) -> Issuer:
    """The campaign's issuer. Raises LdpError where it has none."""
    if campaign.issuer is None:
        raise LdpError("no-issuer", f"campaign {campaign.id} takes answers without a token")
    return campaign.issuer


def challenge(campaign: Campaign) -> bytes:
    """The TokenChallenge (RFC 9577, 2.1.1) that every token of the campaign answers: type, issuer, the campaign's id as
    redemption context, and no origin, since the token is of one campaign wherever that stands.
    """
    return _challenge(campaign.id, issuer_of(campaign))


@lru_cache(maxsize=64)
def _challenge(campaign_id: str, issuer: Issuer, *, for_relay: bool = False) -> bytes:
    name, context = issuer.name.encode("ascii"), urlsafe_b64decode(campaign_id + "=")
    if for_relay:
        context = hashlib.sha256(_RELAY + context).digest()
    return TOKEN_TYPE + len(name).to_bytes(2, "big") + name + bytes([len(context)]) + context + bytes(2)


@lru_cache(maxsize=64)
def _ends(campaign_id: str, issuer: Issuer, *, for_relay: bool = False) -> bytes:
    """The digest of the challenge and the id of the key."""
    return hashlib.sha256(_challenge(campaign_id, issuer, for_relay=for_relay)).digest() + issuer.key_id


def token_input(campaign: Campaign, ids: Iterable[bytes]) -> bytes:
    """The message to sign (RFC 9578, 6.1): type, nonce, challenge digest, key id; ``ids`` of all reports, any order."""
    nonce = hashlib.sha256(_NONCE + b"".join(sorted(ids))).digest()
    return TOKEN_TYPE + nonce + _ends(campaign.id, issuer_of(campaign))


def relay_input(campaign: Campaign, nonce: bytes) -> bytes:
    """The message to sign of a token for relays: 32 bytes of the device's own, and the campaign's id hashed once more
    as redemption context. Raises LdpError where the issuer has no key for it.
    """
    issuer = issuer_of(campaign).for_relays
    if issuer is None:
        raise LdpError("no-issuer", f"the issuer of campaign {campaign.id} signs nothing for relays")
    return TOKEN_TYPE + nonce + _ends(campaign.id, issuer, for_relay=True)


def credentials(token: bytes) -> str:
    """The value of the header ``Authorization`` that shows a token (RFC 9577, 2.2.1)."""
    return f'{SCHEME} token="{urlsafe_b64encode(token).decode()}"'


def read_credentials(value: str) -> bytes | None:
    """The token that a header ``Authorization`` shows, None where it shows none."""
    found = _CREDENTIALS.fullmatch(value.strip())
    return None if found is None else urlsafe_b64decode(found[1])


def padded(message: bytes, salt: bytes, bits: int) -> int:
    """EMSA-PSS-ENCODE (RFC 8017, 9.1.1) with SHA-384 and MGF1 for a modulus of so many bits, as a number."""
    length = (bits + 6) // 8
    digest = hashlib.new(HASH, bytes(8) + hashlib.new(HASH, message).digest() + salt).digest()
    hidden = int.from_bytes(b"\1" + salt, "big") ^ mask(digest, length - HASH_BYTES - 1)
    # The first bits of what is encoded are 0, so that it is below the modulus.
    hidden &= (1 << (bits - 1 - 8 * (HASH_BYTES + 1))) - 1
    return (hidden << 8 * (HASH_BYTES + 1)) | int.from_bytes(digest + b"\xbc", "big")


def mask(digest: bytes, length: int) -> int:
    """MGF1 (RFC 8017, B.2.1) of so many bytes, as a number."""
    counters = range(-(-length // HASH_BYTES))
    blocks = b"".join(hashlib.new(HASH, digest + counter.to_bytes(4, "big")).digest() for counter in counters)
    return int.from_bytes(blocks[:length], "big")
