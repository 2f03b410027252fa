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
from ldp_protocols.document.issuer import EXPONENT, MODULUS_BYTES, Issuer
from ldp_protocols.tokens import SALT_BYTES, TOKEN_TYPE, issuer_of, padded, relay_input, token_input
from ldp_protocols.wire import report_id

_DIGESTS: Final = 11
"""352 bytes: the salt, and 48 more than the modulus has, so that their remainder is uniform but for 2**-384."""


def token_request(campaign: Campaign, secret: bytes, *, for_relay: bool = False) -> bytes:
    """The TokenRequest (RFC 9578, 6.1) for the issuer: 259 bytes that tell nothing of the device. Raises LdpError."""
    issuer, (_, encoded, factor) = _issuer(campaign, for_relay), _prepared(campaign, secret, for_relay)
    blinded = encoded * pow(factor, EXPONENT, issuer.modulus) % issuer.modulus
    return TOKEN_TYPE + issuer.key_id[-1:] + blinded.to_bytes(MODULUS_BYTES, "big")


def finished_token(campaign: Campaign, secret: bytes, response: bytes, *, for_relay: bool = False) -> bytes:
    """The token of this device, finished from the issuer's answer. Raises LdpError unless the document's key signed."""
    issuer, (signed, encoded, factor) = _issuer(campaign, for_relay), _prepared(campaign, secret, for_relay)
    blind = int.from_bytes(response, "big")
    signature = blind * pow(factor, -1, issuer.modulus) % issuer.modulus
    if len(response) != MODULUS_BYTES or blind >= issuer.modulus or pow(signature, EXPONENT, issuer.modulus) != encoded:
        raise LdpError("wrong-token", "the issuer's answer is no signature by the key in the campaign's document")
    return signed + signature.to_bytes(MODULUS_BYTES, "big")


def _issuer(campaign: Campaign, for_relay: bool) -> Issuer:
    issuer = issuer_of(campaign)
    return (issuer.for_relays if for_relay else None) or issuer


def _prepared(campaign: Campaign, secret: bytes, for_relay: bool) -> tuple[bytes, int, int]:
    """The message to sign, its encoding as a number, and the factor that blinds it."""
    modulus = _issuer(campaign, for_relay).modulus
    message = (b"relay" if for_relay else b"token") + campaign.id.encode("ascii")
    drawn = [hmac.digest(secret, message + n.to_bytes(4, "little"), "sha256") for n in range(_DIGESTS + for_relay)]
    if for_relay:
        signed = relay_input(campaign, drawn.pop())
    else:
        signed = token_input(campaign, [report_id(secret, campaign, one) for one in draw_questions(campaign, secret)])
    words = b"".join(drawn)
    encoded = padded(signed, words[:SALT_BYTES], modulus.bit_length())
    factor = int.from_bytes(words[SALT_BYTES:], "big") % modulus
    if math.gcd(encoded, modulus) != 1 or math.gcd(factor, modulus) != 1:
        raise LdpError("wrong-token", "the key in the campaign's document is none: it has a small factor")
    return signed, encoded, factor
