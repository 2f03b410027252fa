"""Drafts of campaigns with a crowd, which need a gateway and an issuer."""

from hashlib import sha512

from drafts import draft, text

from ldp_protocols.document.gateway import Gateway
from ldp_protocols.document.issuer import Issuer

GATEWAY = Gateway(1, (9).to_bytes(32, "little")).to_json()
PROMISE = {"epsilon": 1, "delta": 1e-9, "devices": 20_000, "honest": 0.5}
COLOUR = text("colour", "red", "green", "blue")


def _modulus(seed):
    """An odd number of 2,048 bits, which is all that a reader of documents looks at."""
    whole = int.from_bytes(b"".join(sha512(bytes([seed, part])).digest() for part in range(4)), "big")
    return whole | 1 << 2047 | 1


ISSUER = Issuer("tokens.example.org", _modulus(0), 1, _modulus(1)).to_json()


def crowd_draft(*features, promise=(), most_local=4, issuer=ISSUER, gateway=GATEWAY, **changes):
    """A crowd of 20,000, of which half is honest; without an issuer the relay is said to know its people."""
    said = {**PROMISE, **dict(promise)}
    if issuer is None:
        said["without_issuer"] = "the relay knows its people"
    privacy = {"crowd": said, "most_local": most_local, **changes.pop("privacy", {})}
    privacy = {name: one for name, one in privacy.items() if one is not None}
    made = draft(*(features or (COLOUR,)), privacy=privacy, gateway=gateway, **changes)
    return made if issuer is None else {**made, "issuer": issuer}
