"""Issuers and gateways of documents, token requests and tokens: JavaScript reads and writes what Python does."""

import base64
import hashlib
import json
import random
import subprocess
from itertools import product
from pathlib import Path

import pytest
from drafts import draft, text
from issuing import PUBLISHED, issuer, sign

from ldp_client.tokens import finished_token, token_request
from ldp_protocols import Campaign, LdpError
from ldp_protocols.document.gateway import _SMALL

_FIELD = 2**255 - 19


PROGRAM = Path(__file__).resolve().parents[2] / "javascript" / "test" / "differential_tokens.mjs"
COLOUR, AGE = text("colour", "red", "green"), text("age", "young", "old")
SECRETS = [hashlib.sha256(bytes([n])).digest() for n in range(20)]
PUBLISHED_MODULUS = int(PUBLISHED["n"], 16)
KEY = bytes.fromhex("31e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e798155")


@pytest.fixture(scope="module")
def ask(node):
    def told(lines):
        written = "".join(json.dumps(line) + "\n" for line in lines)
        done = subprocess.run([node, PROGRAM], input=written, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return told


def compiled(**changes):
    return Campaign.compile(draft(COLOUR, AGE, **changes))


def with_key(modulus, **changes):
    raw = bytes.fromhex(PUBLISHED["pkS"])
    key = raw[:81] + modulus.to_bytes(256, "big") + raw[-5:]
    return {**issuer(**changes), "key": base64.urlsafe_b64encode(key).rstrip(b"=").decode()}


def test_the_same_secret_asks_the_same_bytes_and_has_the_same_token(ask):
    for answers, for_relay in product(("one", "all"), (False, True)):
        # With the two the other way round: the tests' issuer can sign with one key.
        own, other = issuer()["key"], with_key(PUBLISHED_MODULUS - 2)["key"]
        named = issuer(key=other, relay_key=own) if for_relay else issuer(relay_key=other)
        campaign = compiled(issuer=named, privacy={"epsilon": 2.0, "answers": answers})
        lines, wanted = [], []
        for secret in SECRETS:
            line = {"document": campaign.document.decode(), "secret": secret.hex(), "forRelay": for_relay}
            request = token_request(campaign, secret, for_relay=for_relay)
            response = sign(request)
            lines += [line, {**line, "response": response.hex()}, {**line, "response": (response[:-1] + b"x").hex()}]
            token = finished_token(campaign, secret, response, for_relay=for_relay)
            wanted += [request.hex(), base64.urlsafe_b64encode(token).decode(), ""]
        assert ask(lines) == wanted


def test_other_keys_and_those_with_small_factors_mean_the_same(ask):
    randomly = random.Random(9578)
    lines, wanted, refused = [], [], 0
    for small in (1, 1, 1, 3 * 5 * 7 * 11 * 13 * 17 * 19, 3 * 5):
        modulus = ((randomly.getrandbits(2048) | 3 << 2046) // small | 1) * small
        campaign = compiled(issuer=with_key(modulus))
        for secret in SECRETS:
            lines.append({"document": campaign.document.decode(), "secret": secret.hex()})
            try:
                wanted.append(token_request(campaign, secret).hex())
            except LdpError:
                refused += 1
                wanted.append("")
    assert ask(lines) == wanted
    assert 20 < refused < 60


def changed_keys():
    right = issuer()["key"]
    raw = bytearray(bytes.fromhex(PUBLISHED["pkS"]))
    for place in [*range(0, 81, 7), 81, 336, *range(337, 342)]:
        for bit in (1, 128):
            key = bytearray(raw)
            key[place] ^= bit
            yield base64.urlsafe_b64encode(key).decode()
    yield from (right, right + "=", right + "==", right + "===", right[:-1], right[:-4], "", " " + right, right + "\n")
    yield from (right.replace("-", "+"), right.replace("_", "/"), right + "AAAA", None, 1, [right], {"key": right})
    short = bytearray(raw)
    short[81] = 0
    yield base64.urlsafe_b64encode(short).decode()


NAMES = ["a", "a.b", "a-b.c", "1.2", "", ".", "a.", ".a", "-a", "a-", "a..b", "A", "a_b", "ä", "a\n", " a", "a "]
NAMES += ["a" * 253, "a" * 254, "https://a", None, 1, ["a"]]
TOKENS = [None, 1, 1.0, 1024, 1025, 0, -1, 1.5, "1", True, [1]]


def gateways():
    right = base64.urlsafe_b64encode

    def of(key=KEY, kem=b"\0\x20", pairs=(b"\0\1\0\1",), length=None, key_id=7):
        joined = b"".join(pairs)
        size = len(joined) if length is None else length
        return right(bytes([key_id]) + kem + key + size.to_bytes(2, "big") + joined).rstrip(b"=").decode()

    aes, chacha = b"\0\1\0\1", b"\0\1\0\3"
    for pairs in ([aes], [chacha], [aes, chacha], [chacha, aes], [aes, aes], [chacha, chacha], [], [b"\0\1\0\2"]):
        for key_id in (0, 63, 64, 128, 255):
            yield of(pairs=pairs, key_id=key_id)
    yield from (of(pairs=pairs) for pairs in ([aes, chacha, aes], [aes, b"\0\1"], [b"\0\3\0\1"]))
    yield from (of(length=length) for length in (8, 0))
    yield from (of(kem=b"\0\x10"), of(kem=b"\1\x20"), of(key=KEY[:-1]), of(key=KEY + b"\0"))
    yield from (of() + "=", of() + "A", of()[:-1] + "R", of()[:-1], "", "é", " " + of(), of() + "\n", None, 1, [of()])
    yield from (of().replace("-", "+"), base64.b64encode(bytes([255]) * 41).decode())
    yield from (of(key=number.to_bytes(32, "little")) for number in points() if not makes_no_secret(number))
    randomly = random.Random(7748)
    for _ in range(20):
        yield of(key=randomly.randbytes(31) + b"\0")


def points():
    """Numbers at and beside the points of a small order, as public keys may be written."""
    for point in sorted(_SMALL):
        yield from (n for n in (point, point + _FIELD, point + 2**255, point + 1, point + 2) if n < 2**256)


def makes_no_secret(number):
    """In JavaScript what seals refuses these (javascript/test/sealing.test.mjs), and a document is read without it."""
    return number >= _FIELD or number in _SMALL


def documents():
    plain = json.loads(compiled().document)
    for key in changed_keys():
        yield {**plain, "issuer": {**issuer(), "key": key}}
    for name in NAMES:
        yield {**plain, "issuer": issuer(name=name)}
    for tokens in TOKENS:
        yield {**plain, "issuer": issuer(tokens=tokens)}
    for other in (None, {}, [], "", 1, issuer(epoch="P7D"), {"name": "a"}):
        yield {**plain, "issuer": other}
    for key in gateways():
        yield {**plain, "gateway": {"key": key}}
    for other in (None, {}, [], "", 1, {"key": next(gateways()), "url": "x"}):
        yield {**plain, "gateway": other}


def read(document):
    try:
        return Campaign.parse(document.encode()).id
    except LdpError as error:
        return f"!{error.code}"


def test_documents_with_issuers_and_gateways_are_accepted_and_refused_alike(ask):
    made = [json.dumps(one) for one in documents()]
    wanted = [read(document) for document in made]
    told = ask([{"document": document} for document in made])
    differ = [(a, b, document[-700:]) for a, b, document in zip(told, wanted, made, strict=True) if a != b]
    assert not differ
    assert 50 < sum(one.startswith("!") for one in wanted) < len(wanted) - 50
