"""The device's part of a blind signature (RFC 9474, RSABSSA-SHA384-PSS-Deterministic): blind, and finish.

Everything is a function of the device's secret and the campaign, as its ids are. Nothing is stored between the request
and the answer; a request that is sent again is the same bytes, and the issuer counts it once.
"""

from __future__ import annotations

import hmac
import math
from typing import Final

from ldp_client.draw import draw_questions
from ldp_protocols import Campaign, LdpError
from ldp_protocols.document.issuer import EXPONENT, MODULUS_BYTES
from ldp_protocols.tokens import SALT_BYTES, TOKEN_TYPE, issuer_of, padded, token_input
from ldp_protocols.wire import report_id

_BLIND: Final = b"token"
_DIGESTS: Final = 11
"""352 bytes: the salt, and 48 more than the modulus has, so that their remainder is uniform but for 2**-384."""


def token_request(campaign: Campaign, secret: bytes) -> bytes:
    """The TokenRequest (RFC 9578, 6.1) for the issuer: 259 bytes that tell nothing of the device. Raises LdpError."""
    issuer, (_, encoded, factor) = issuer_of(campaign), _prepared(campaign, secret)
    blinded = encoded * pow(factor, EXPONENT, issuer.modulus) % issuer.modulus
    return TOKEN_TYPE + issuer.key_id[-1:] + blinded.to_bytes(MODULUS_BYTES, "big")


def finished_token(campaign: Campaign, secret: bytes, response: bytes) -> bytes:
    """The token of this device, finished from the issuer's answer. Raises LdpError unless the document's key signed."""
    issuer, (signed, encoded, factor) = issuer_of(campaign), _prepared(campaign, secret)
    blind = int.from_bytes(response, "big")
    signature = blind * pow(factor, -1, issuer.modulus) % issuer.modulus
    if len(response) != MODULUS_BYTES or blind >= issuer.modulus or pow(signature, EXPONENT, issuer.modulus) != encoded:
        raise LdpError("wrong-token", "the issuer's answer is no signature by the key in the campaign's document")
    return signed + signature.to_bytes(MODULUS_BYTES, "big")


def _prepared(campaign: Campaign, secret: bytes) -> tuple[bytes, int, int]:
    """The message to sign, its encoding as a number, and the factor that blinds it."""
    modulus = issuer_of(campaign).modulus
    signed = token_input(campaign, [report_id(secret, campaign, one) for one in draw_questions(campaign, secret)])
    message = _BLIND + campaign.id.encode("ascii")
    drawn = b"".join(hmac.digest(secret, message + n.to_bytes(4, "little"), "sha256") for n in range(_DIGESTS))
    encoded, factor = (
        padded(signed, drawn[:SALT_BYTES], modulus.bit_length()),
        int.from_bytes(drawn[SALT_BYTES:], "big"),
    )
    factor %= modulus
    if math.gcd(encoded, modulus) != 1 or math.gcd(factor, modulus) != 1:
        raise LdpError("wrong-token", "the key in the campaign's document is none: it has a small factor")
    return signed, encoded, factor
