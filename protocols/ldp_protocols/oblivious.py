"""Oblivious HTTP as both ends need it: binary HTTP messages (RFC 9292), and what an encapsulation (RFC 9458, section 4)
is made of. The cryptography is HPKE (RFC 9180) by the library ``pyhpke``, which comes with the extra ``ohttp``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from ldp_protocols.document.gateway import AES_128_GCM, HKDF_SHA256, X25519_HKDF_SHA256
from ldp_protocols.errors import DocumentError
from ldp_protocols.framing import MOST_PADDED

if TYPE_CHECKING:
    from pyhpke import AEADKeyInterface, CipherSuite, ContextInterface

REQUEST_TYPE: Final = "message/ohttp-req"
RESPONSE_TYPE: Final = "message/ohttp-res"

BATCH_TYPE: Final = "application/vnd.ldp-bayes.sealed"
LENGTH_HEADER: Final = "LDP-Sealed-Length"
"""A relay's batch is sealed requests of one length, one after another; this header says how many bytes each has."""

HEADER_BYTES: Final = 7
ENC_BYTES: Final = 32
"""Length of the encapsulated secret: Nenc of DHKEM(X25519, HKDF-SHA256)."""
TAG_BYTES: Final = 16
LEAST_SEALED: Final = HEADER_BYTES + ENC_BYTES + TAG_BYTES
BESIDE_BODY: Final = 1 << 10
"""Zeros fill what stands beside the body of a device's message up to so many bytes, or a multiple of them: its length
tells nothing of an address, a token or a platform, and a relay knows it beforehand.
"""
LONGEST_SEALED: Final = LEAST_SEALED + MOST_PADDED + 4 * BESIDE_BODY
"""A device's longest upload, with its method, path and headers, sealed."""

_NAME: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
_VALUE: Final = re.compile(r"(?:[!-~\x80-\xff](?:[ -~\t\x80-\xff]*[!-~\x80-\xff])?)?")
"""RFC 9113, section 8.2.1, and no control characters."""
_MOST_FIELDS: Final = 64
_MOST_CHUNKS: Final = 64
"""Fields of a section, chunks of a body, and informational responses before the final one: no sender of ours has nearly
as many, and work is bounded by them.
"""

_REQUEST: Final = 0
_RESPONSE: Final = 1
_INDETERMINATE: Final = 2

Headers = Iterable[tuple[str, str]]


class BinaryRequest(NamedTuple):
    """A request. Header names are in small letters; a byte of a value is a character."""

    method: str
    scheme: str
    authority: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class BinaryResponse(NamedTuple):
    """A final response."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


def sealed_bytes(upload_bytes: int) -> int:
    """Length of a device's sealed upload, whose body has so many bytes; but for headers that are longer than usual."""
    return LEAST_SEALED + upload_bytes + BESIDE_BODY


def encode_request(request: BinaryRequest, *, beside: int = 1) -> bytes:
    """The known-length form (RFC 9292, section 3.1), cut off where what follows is empty (section 3.8), and padded with
    zeros to a multiple of ``beside`` bytes and the body. Raises DocumentError for headers that HTTP does not allow.
    """
    control = b"".join(_block(text.encode("latin-1")) for text in request[:4])
    message = _number(_REQUEST) + control + _sections(request.headers, request.body)
    return _padded(message, len(request.body), beside)


def encode_response(response: BinaryResponse, *, multiple: int = 1) -> bytes:
    """The same of a response, padded with zeros to a ``multiple`` of bytes."""
    message = _number(_RESPONSE) + _number(response.status) + _sections(response.headers, response.body)
    return _padded(message, 0, multiple)


def _padded(message: bytes, body: int, multiple: int) -> bytes:
    return message.ljust(body + -(-(len(message) - body) // multiple) * multiple, b"\0")


def decode_request(message: bytes) -> BinaryRequest:
    """A request in either form. Raises DocumentError for what RFC 9292, section 4, calls invalid."""
    reader = _Reader(message)
    framing = reader.framing(_REQUEST)
    method, scheme, authority, path = (reader.block().decode("latin-1") for _ in range(4))
    return BinaryRequest(method, scheme, authority, path, *_read_sections(reader, known=framing))


def decode_response(message: bytes) -> BinaryResponse:
    """The final response in either form; informational ones before it are left out. Raises DocumentError."""
    reader = _Reader(message)
    framing = reader.framing(_RESPONSE)
    for _ in range(_MOST_CHUNKS):
        if not 100 <= (status := reader.number()) < 200:
            break
        reader.fields(known=framing)
    if not 200 <= status < 600:
        raise _invalid()
    return BinaryResponse(status, *_read_sections(reader, known=framing))


def _sections(headers: Headers, body: bytes) -> bytes:
    lines = b""
    for name, value in headers:
        if not _is_field(name, value):
            raise _invalid()
        lines += _block(name.encode("ascii")) + _block(value.encode("latin-1"))
    return _block(lines) + (_block(body) if body else b"") if lines or body else b""


def _read_sections(reader: _Reader, *, known: bool) -> tuple[tuple[tuple[str, str], ...], bytes]:
    headers, body = reader.fields(known=known), reader.content(known=known)
    reader.fields(known=known)  # trailers, which nothing here means anything by
    if reader.rest().strip(b"\0"):  # the padding
        raise _invalid()
    return headers, body


def _number(number: int) -> bytes:
    """RFC 9000, section 16."""
    size = next(size for size in (1, 2, 4, 8) if number >> 8 * size - 2 == 0)
    return (number | (size.bit_length() - 1) << 8 * size - 2).to_bytes(size, "big")


def _block(content: bytes) -> bytes:
    return _number(len(content)) + content


class _Reader:
    """Take a message apart from its beginning. What ends too early is no message."""

    __slots__ = ("_at", "_message")

    def __init__(self, message: bytes) -> None:
        self._message, self._at = message, 0

    def take(self, count: int) -> bytes:
        at = self._at
        self._at = end = at + count
        if end > len(self._message):
            raise _invalid()
        return self._message[at:end]

    def rest(self) -> bytes:
        return self._message[self._at :]

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._message)

    def number(self) -> int:
        first = self.take(1)[0]
        if first < 64:
            return first
        return int.from_bytes(bytes([first & 63]) + self.take(2 ** (first >> 6) - 1), "big")

    def block(self) -> bytes:
        return self.take(self.number())

    def framing(self, kind: int) -> bool:
        """True if lengths are known, for a message of this kind."""
        framing = self.number()
        if framing not in (kind, kind + _INDETERMINATE):
            raise _invalid()
        return framing == kind

    def content(self, *, known: bool) -> bytes:
        if self.is_done or known:
            return b"" if self.is_done else self.block()
        chunks: list[bytes] = []
        while length := self.number():
            if len(chunks) == _MOST_CHUNKS:
                raise _invalid()
            chunks.append(self.take(length))
        return b"".join(chunks)

    def fields(self, *, known: bool) -> tuple[tuple[str, str], ...]:
        """A field section; where the message ends before it, it is empty."""
        fields: list[tuple[str, str]] = []
        if self.is_done:
            return ()
        if known:
            lines = _Reader(self.block())
            while not lines.is_done:
                lines.line(lines.number(), fields)
        else:
            while length := self.number():
                self.line(length, fields)
        return tuple(fields)

    def line(self, length: int, fields: list[tuple[str, str]]) -> None:
        """Add a field whose name has this length."""
        name, value = self.take(length).decode("latin-1"), self.block().decode("latin-1")
        if not _is_field(name, value) or len(fields) == _MOST_FIELDS:
            raise _invalid()
        fields.append((name, value))


def _is_field(name: str, value: str) -> bool:
    return _NAME.fullmatch(name) is not None and _VALUE.fullmatch(value) is not None


def _invalid() -> DocumentError:
    return DocumentError("malformed-message", "not a binary HTTP message (RFC 9292)")


def seal_header(key_id: int, aead: int) -> bytes:
    """The first bytes of a sealed request: RFC 9458, section 4.1."""
    return bytes([key_id]) + b"".join(part.to_bytes(2, "big") for part in (X25519_HKDF_SHA256, HKDF_SHA256, aead))


def seal_info(header: bytes) -> bytes:
    """The ``info`` of HPKE: RFC 9458, section 4.3."""
    return b"message/bhttp request\0" + header


@lru_cache(maxsize=2)
def suite(aead: int) -> CipherSuite:
    """HPKE with X25519, HKDF-SHA256 and this AEAD. Raises ImportError where ``pyhpke`` is not installed."""
    from pyhpke import AEADId, CipherSuite, KDFId, KEMId

    return CipherSuite.new(KEMId(X25519_HKDF_SHA256), KDFId(HKDF_SHA256), AEADId(aead))


def nonce_bytes(aead: int) -> int:
    """Length of an answer's nonce, and of the secret: max(Nn, Nk) of RFC 9458, section 4.4."""
    return 16 if aead == AES_128_GCM else 32


def answer_key(aead: int, context: ContextInterface, enc: bytes, nonce: bytes) -> tuple[AEADKeyInterface, bytes]:
    """The key and the nonce of the AEAD that seal the one answer with this ``nonce``: RFC 9458, section 4.4."""
    of = suite(aead)
    secret = context.export(b"message/bhttp response", nonce_bytes(aead))
    pseudorandom = of.kdf.extract(enc + nonce, secret)
    key = of.kdf.expand(pseudorandom, b"key", of.aead.key_size)
    return of.aead.import_key(key), of.kdf.expand(pseudorandom, b"nonce", of.aead.nonce_size)
