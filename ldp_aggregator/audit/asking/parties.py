"""The relay, the gateway and the issuer of the audit's own: with them it sees the client's whole traffic.

A campaign with a gateway or an issuer is asked under a document that names these instead. The gateway opens what was
sealed (HPKE, RFC 9180, base mode; Oblivious HTTP, RFC 9458, section 4.3; binary HTTP, RFC 9292), the issuer signs
blindly (RFC 9474), and because both are one here, the factor that blinded a request comes out: the ratio of the two
signatures. It is written from the standards and shares no code with the device.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from ldp_aggregator.audit.asking.black_box import Answer, Client, Person, Refusal

EXPONENT: Final = 65537
MODULUS_BYTES: Final = 256
SEALED_TYPE: Final = "message/ohttp-req"

_KEY_ID_BYTES: Final = 3
_PUBLIC: Final = slice(_KEY_ID_BYTES, _KEY_ID_BYTES + 32)
"""A gateway's key in its configuration: RFC 9458, section 3.1."""
_MODULUS: Final = slice(-5 - MODULUS_BYTES, -5)
"""An issuer's modulus in its key: before the exponent, RFC 9578, section 6.5."""
_HEAD: Final = 7
_ENC: Final = slice(_HEAD, _HEAD + 32)
_KEM: Final = b"\x00\x20"
_CIPHERS: Final[Mapping[bytes, tuple[int, Any]]] = {b"\x00\x01": (16, AESGCM), b"\x00\x03": (32, ChaCha20Poly1305)}
"""Length of the key, and the cipher."""
_HASH_BYTES: Final = 48
_SALT_BYTES: Final = 48
_NONCE: Final = b"ldp-bayes answer 1\n"


class ForeignError(Exception):
    """A client has sent something else than what the standard says."""


@dataclass(frozen=True)
class Opened:
    """A request that was sealed: the first bytes outside, the ephemeral key, and what is inside, with ``padding``."""

    header: bytes
    enc: bytes
    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    padding: bytes


class Gateway:
    """Opens what is sealed to its key."""

    def __init__(self) -> None:
        self._key = X25519PrivateKey.generate()
        self._public = self._key.public_key().public_bytes_raw()

    def configuration(self, other: str) -> str:
        """Another gateway's configuration, with this one's key."""
        return _replaced(other, _PUBLIC, self._public)

    def open(self, sealed: bytes) -> Opened:
        """Raises ForeignError."""
        header, enc = sealed[:_HEAD], sealed[_ENC]
        algorithms = _CIPHERS.get(header[5:7])
        if algorithms is None or header[1:5] != _KEM + b"\x00\x01" or len(enc) != 32:
            raise ForeignError("begins with no algorithms that the document names")
        width, cipher = algorithms
        suite = b"HPKE" + header[1:]
        secret = self._secret(enc)
        hashes = [_extract(b"", suite, b"psk_id_hash", b""), _extract(b"", suite, b"info_hash", _info(header))]
        context, shared = b"\0" + b"".join(hashes), _extract(secret, suite, b"secret", b"")
        key, nonce = (_expand(shared, suite, of, context, long) for of, long in ((b"key", width), (b"base_nonce", 12)))
        try:
            message = cipher(key).decrypt(nonce, sealed[_ENC.stop :], b"")
        except InvalidTag:
            raise ForeignError("the gateway cannot open") from None
        return Opened(header, enc, *_read_message(message))

    def _secret(self, enc: bytes) -> bytes:
        """DHKEM(X25519, HKDF-SHA256): RFC 9180, section 4.1."""
        try:
            shared = self._key.exchange(X25519PublicKey.from_public_bytes(enc))
        except ValueError:
            raise ForeignError("has an ephemeral key that makes no secret") from None
        suite = b"KEM" + _KEM
        return _expand(_extract(b"", suite, b"eae_prk", shared), suite, b"shared_secret", enc + self._public, 32)


def _info(header: bytes) -> bytes:
    return b"message/bhttp request\0" + header


def _extract(salt: bytes, suite: bytes, label: bytes, key: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + key, "sha256")


def _expand(key: bytes, suite: bytes, label: bytes, info: bytes, length: int) -> bytes:
    """One block is enough."""
    labelled = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.digest(key, labelled + b"\1", "sha256")[:length]


def _read_message(message: bytes) -> tuple[str, str, tuple[tuple[str, str], ...], bytes, bytes]:
    """Method, address, headers, body and padding of a request in known lengths: RFC 9292, section 3.1."""
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        at += count
        if at > len(message):
            raise ForeignError("holds no HTTP message")
        return message[at - count : at]

    def number() -> int:
        first = take(1)[0]
        return int.from_bytes(bytes([first & 63]) + take((1 << (first >> 6)) - 1), "big")

    if number() != 0:
        raise ForeignError("holds no HTTP request of known lengths")
    method, scheme, authority, path = (take(number()).decode("latin-1") for _ in range(4))
    end, headers = number(), []
    end += at
    while at < end:
        name = take(number()).decode("latin-1")
        headers.append((name, take(number()).decode("latin-1")))
    body = take(number()) if at < len(message) else b""
    return method, f"{scheme}://{authority}{path}", tuple(headers), body, message[at:]


@dataclass(frozen=True)
class Token:
    """A token that was shown: what is signed, less the nonce; the salt of the signature; the factor that blinded it."""

    ends: bytes
    nonce: bytes
    salt: bytes
    signature: int


class Issuer:
    """Signs whatever it is sent, quickly: its modulus has four factors, which no client sees."""

    def __init__(self) -> None:
        while True:
            pairs = [generate_private_key(EXPONENT, 4 * MODULUS_BYTES).private_numbers() for _ in range(2)]
            self._primes = [prime for pair in pairs for prime in (pair.p, pair.q)]
            self.modulus = math.prod(self._primes)
            if self.modulus.bit_length() == 8 * MODULUS_BYTES and len(set(self._primes)) == 4:
                break

    def key(self, other: str) -> str:
        """Another issuer's key, with this one's modulus."""
        return _replaced(other, _MODULUS, self.modulus.to_bytes(MODULUS_BYTES, "big"))

    def sign(self, request: bytes) -> int:
        """The blind signature of a request's last bytes, whatever they are."""
        blinded, found = int.from_bytes(request[-MODULUS_BYTES:], "big") % self.modulus, 0
        for prime in self._primes:
            rest = self.modulus // prime
            power = pow(blinded, pow(EXPONENT, -1, prime - 1), prime)
            found += power * rest * pow(rest, -1, prime)
        return found % self.modulus

    def factor(self, blind: int, token: Token) -> bytes:
        """The factor by which a device had blinded what this token shows."""
        return (blind * pow(token.signature, -1, self.modulus) % self.modulus).to_bytes(MODULUS_BYTES, "big")

    def read(self, credentials: str) -> Token:
        """The token in a header ``Authorization``. Raises ForeignError unless this issuer's key signed it."""
        scheme, _, credential = credentials.partition(" ")
        text = credential.strip().removeprefix("token=").strip('"')
        try:
            raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except ValueError:
            raw = b""
        if scheme != "PrivateToken" or len(raw) != 2 + 3 * 32 + MODULUS_BYTES:
            raise ForeignError("shows no token")
        signed, signature = raw[:-MODULUS_BYTES], int.from_bytes(raw[-MODULUS_BYTES:], "big")
        encoded = pow(signature, EXPONENT, self.modulus).to_bytes(MODULUS_BYTES, "big")
        salt = _salt(encoded, signed)
        if salt is None or math.gcd(signature, self.modulus) != 1:
            raise ForeignError("shows a token that the issuer has not signed")
        return Token(signed[:2] + signed[34:], signed[2:34], salt, signature)


def _salt(encoded: bytes, message: bytes) -> bytes | None:
    """The salt in an encoded message (EMSA-PSS with SHA-384, RFC 8017, section 9.1.2), None where it is none."""
    masked, digest = encoded[: -_HASH_BYTES - 1], encoded[-_HASH_BYTES - 1 : -1]
    blocks = -(-len(masked) // _HASH_BYTES)
    mask = b"".join(hashlib.sha384(digest + count.to_bytes(4, "big")).digest() for count in range(blocks))
    block = bytes(one ^ other for one, other in zip(masked, mask, strict=False))
    block = bytes([block[0] & 0x7F]) + block[1:]
    salt = block[-_SALT_BYTES:]
    right = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    filled = block[:-_SALT_BYTES] == bytes(len(block) - _SALT_BYTES - 1) + b"\1"
    return salt if filled and encoded[-1:] == b"\xbc" and digest == right else None


def nonce_of(ids: Sequence[bytes]) -> bytes:
    """The nonce of a token that is of one answer, from the ids of its reports."""
    return hashlib.sha256(_NONCE + b"".join(sorted(ids))).digest()


def _replaced(text: str, place: slice, own: bytes) -> str:
    raw = bytearray(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    raw[place] = own
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


class Parties:
    """The audit's own gateway and issuers in a campaign that has either, and its ``document`` with their keys, and
    without days on which it opens and closes: an audit asks it at any time. Of the ``issuers``, by the order in which a
    device asks them, the first signs tokens of answers, the second those that are shown to the relay of sealed ones.
    """

    def __init__(self, document: str) -> None:
        given: dict[str, Any] = json.loads(document)
        value = given | {name: None for name in ("opens", "closes") if name in given}
        self.gateway = Gateway() if value.get("gateway") else None
        self.issuers: list[Issuer] = []
        if self.gateway is not None:
            value["gateway"] = {**value["gateway"], "key": self.gateway.configuration(value["gateway"]["key"])}
        for name in ("key", "relay_key"):
            if (value.get("issuer") or {}).get(name):
                issuer = Issuer()
                value["issuer"] = {**value["issuer"], name: issuer.key(value["issuer"][name])}
                if name == "key" or self.gateway is not None:
                    self.issuers.append(issuer)
        self.document = document if value == given else _written(value)

    @property
    def timeless(self) -> str:
        """The document without windows."""
        value: dict[str, Any] = json.loads(self.document)
        return _written(_without(value, "windows")) if value.get("windows") else self.document

    def client(self, client: Client) -> Client:
        """The client as one that needs nobody: devices of a storage get their tokens, and what they seal is
        opened. Without a storage, devices of a series are asked by a campaign that is the same but for gateway and
        issuer: they are too many to sign and open for.
        """
        if self.gateway is None and not self.issuers:
            return client

        def ask(document: str, people: Sequence[Person], storage: Path | None = None, /) -> list[Answer]:
            if storage is None:
                of_devices = bool(people) and people[0].device is not None
                return client(_alone(document) if of_devices else document, people, None)
            if self.issuers:
                people = self._with_tokens(document, client, people, storage)
            named = urlsafe_b64encode(hashlib.sha256(document.encode()).digest()).rstrip(b"=").decode()
            return [self._opened(answer, named) for answer in client(document, people, storage)]

        return ask

    def _with_tokens(self, document: str, client: Client, people: Sequence[Person], storage: Path) -> list[Person]:
        first = {person.device: person for person in reversed(people)}
        tokens: dict[str | None, str | None] = dict.fromkeys(first, "")
        for number in range(len(self.issuers)):
            lines = [replace(person, token=tokens[device] or "") for device, person in first.items()]
            for device, answer in zip(first, client(document, lines, storage), strict=True):
                tokens[device] = self.signed(number, tokens[device], answer)
        return [replace(person, token=tokens[person.device]) for person in people]

    def signed(self, number: int, before: str | None, request: Answer) -> str | None:
        """The answers of the first issuers to a device, in hexadecimal, with that of one more; None where there was no
        request.
        """
        if before is None or not request:
            return None
        signature = self.issuers[number].sign(request[0]).to_bytes(MODULUS_BYTES, "big").hex()
        return f"{before} {signature}".strip()

    def _opened(self, answer: Answer, campaign_id: str) -> Answer:
        """The sealed uploads, less what waits in the same storage for another campaign."""
        if self.gateway is None or isinstance(answer, Refusal):
            return answer
        found = []
        for upload in answer:
            try:
                opened = self.gateway.open(upload)
            except ForeignError:
                return Refusal.of("what came was not sealed to the gateway")
            if campaign_id in opened.url:
                found.append(opened.body)
        return tuple(found)


def _alone(document: str) -> str:
    return _written(_without(json.loads(document), "gateway", "issuer"))


def _without(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: of for name, of in value.items() if name not in names}


def _written(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
