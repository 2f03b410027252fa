"""The key of the test vectors of RFC 9578, and an issuer that signs with it as fast as a test likes."""

import json
from base64 import urlsafe_b64encode
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.hashes import SHA384

from ldp_protocols.tokens import credentials, token_input

PUBLISHED = json.loads(Path(__file__).with_name("rfc9578.json").read_text(encoding="utf-8"))
"""A vector of the issuance protocol of token type 2; ``n`` and ``d`` are those of its secret key."""
MODULUS, SECRET = int(PUBLISHED["n"], 16), int(PUBLISHED["d"], 16)

_NUMBERS = rsa.RSAPublicNumbers(65537, MODULUS)
_P, _Q = rsa.rsa_recover_prime_factors(MODULUS, 65537, SECRET)
SIGNER = rsa.RSAPrivateNumbers(
    _P, _Q, SECRET, rsa.rsa_crt_dmp1(SECRET, _P), rsa.rsa_crt_dmq1(SECRET, _Q), rsa.rsa_crt_iqmp(_P, _Q), _NUMBERS
).private_key()


def issuer(**changes):
    """As a draft names it."""
    key = urlsafe_b64encode(bytes.fromhex(PUBLISHED["pkS"])).rstrip(b"=").decode()
    return {"name": "issuer.example", "key": key, **changes}


def shown_for(campaign, report):
    """The header with the token of a report, as this issuer signs it."""
    signed = token_input(campaign, [report.id])
    return credentials(signed + SIGNER.sign(signed, PSS(MGF1(SHA384()), 48), SHA384()))


def sign(request):
    """Answer a TokenRequest, for anybody."""
    return pow(int.from_bytes(request[3:], "big"), SECRET, MODULUS).to_bytes(256, "big")
