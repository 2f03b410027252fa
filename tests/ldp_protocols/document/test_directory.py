"""Ed25519 by RFC 8032's own vectors, and what must be refused.

What directories say, and what else must be refused, stands in the test vectors.
"""

import random
from datetime import datetime, timezone

import pytest

from ldp_aggregator.service.signing import public_key, sign
from ldp_protocols import DocumentError
from ldp_protocols.document.directory import (
    BASE,
    NEUTRAL,
    decoded,
    encoded,
    equal,
    multiple,
    read_directory,
    read_key,
    verify,
)

LARGEST_DIRECTORY = 64 << 10
L = 2**252 + 27742317777372353535851937790883648493
P = 2**255 - 19


VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe"
        "24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302a"
        "eeb00d291612bb0c00",
    ),
]
"""RFC 8032, section 7.1, tests 1 and 2: secret, public key, message, signature."""

SEED = bytes(range(32))
KEY = public_key(SEED)
IDS = ("A" * 43, "B" * 43)
UNTIL = datetime(2027, 1, 1, tzinfo=timezone.utc)
NO_TEXT = b'{"statement": "\\ud800", "signature": ""}'


@pytest.mark.parametrize(("secret", "key", "message", "signature"), VECTORS)
def test_the_vectors_of_the_standard_hold(secret, key, message, signature):
    secret, key, message, signature = (bytes.fromhex(text) for text in (secret, key, message, signature))
    assert verify(key, message, signature)
    assert sign(secret, message) == signature
    assert read_key(public_key(secret)) == key


def test_a_signature_of_anything_else_or_by_anybody_else_is_refused():
    dice = random.Random(1)
    key, message = read_key(KEY), b"a message"
    signature = sign(SEED, message)
    assert verify(key, message, signature)
    for _ in range(40):
        place, bit = dice.randrange(64), 1 << dice.randrange(8)
        flipped = bytearray(signature)
        flipped[place] ^= bit
        assert not verify(key, message, bytes(flipped))
    assert not verify(key, message + b"!", signature)
    assert not verify(read_key(public_key(bytes(32))), message, signature)
    for wrong in (b"", signature[:-1], signature + b"\0"):
        assert not verify(key, message, wrong)
    for wrong in (b"", key[:-1], key + b"\0"):
        assert not verify(wrong, message, signature)


def test_a_key_that_would_accept_everything_is_refused():
    eighth = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
    # Points of order 1, 4, 2 and 8.
    small = [encoded(NEUTRAL), bytes(32), (P - 1).to_bytes(32, "little"), bytes.fromhex(eighth)]
    for key in small:
        assert decoded(key) is not None
        assert equal(multiple(8, decoded(key)), NEUTRAL)
        for s in range(4):
            for r in (*small, encoded(multiple(s, BASE))):
                for number in range(16):
                    assert not verify(key, b"anything %d" % number, r + s.to_bytes(32, "little"))


def test_what_is_no_point_or_not_its_one_encoding_is_no_key():
    assert decoded(P.to_bytes(32, "little")) is None, "y = 0 in another way"
    assert decoded((P + 1).to_bytes(32, "little")) is None, "y = 1 in another way"
    assert decoded((1 | 1 << 255).to_bytes(32, "little")) is None, "minus zero"
    assert decoded((2).to_bytes(32, "little")) is None, "no x for this y"
    assert decoded(encoded(BASE)) is not None
    assert equal(multiple(L, BASE), NEUTRAL)


@pytest.mark.parametrize("document", [b"", b"\xff", b"[" * 5000, b" " * (LARGEST_DIRECTORY + 1), NO_TEXT])
def test_what_is_no_directory_is_refused(document, code_of):
    assert code_of(DocumentError, read_directory, document, KEY) == "malformed-directory"


@pytest.mark.parametrize("key", ["", "A" * 42, "A" * 44, KEY + "=", KEY[:-1] + "é", KEY[:-1] + "+"])
def test_what_is_no_key_is_refused(key, code_of):
    assert code_of(DocumentError, read_key, key) == "wrong-key"
