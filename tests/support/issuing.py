"""The key of the test vectors of RFC 9578, and an issuer that signs with it as fast as a test likes."""

import json
from base64 import urlsafe_b64encode
from pathlib import Path

PUBLISHED = json.loads(Path(__file__).with_name("rfc9578.json").read_text(encoding="utf-8"))
"""A vector of the issuance protocol of token type 2; ``n`` and ``d`` are those of its secret key."""
MODULUS, SECRET = int(PUBLISHED["n"], 16), int(PUBLISHED["d"], 16)


def issuer(**changes):
    """As a draft names it."""
    key = urlsafe_b64encode(bytes.fromhex(PUBLISHED["pkS"])).rstrip(b"=").decode()
    return {"name": "issuer.example", "key": key, **changes}


def sign(request):
    """Answer a TokenRequest, for anybody."""
    return pow(int.from_bytes(request[3:], "big"), SECRET, MODULUS).to_bytes(256, "big")
