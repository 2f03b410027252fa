"""An issuer's key, RSA of 2,048 bits in a PKCS #8 file that its owner alone can read; and its blind signatures, so many
for a person and no more.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import sqlite3
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import gmpy2
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from ldp_aggregator.store.durable import write_new
from ldp_protocols import LdpError
from ldp_protocols.document.issuer import EXPONENT, MODULUS_BYTES, key_bytes, key_text
from ldp_protocols.tokens import REQUEST_BYTES, TOKEN_TYPE

_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS signed (key BLOB, person BLOB, request BLOB, PRIMARY KEY (key, person, request)) "
    "WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS epochs (key BLOB PRIMARY KEY, tokens INTEGER NOT NULL)",
)
_NAMES: Final = "SELECT name FROM sqlite_schema WHERE type = 'table'"
LONGEST_NAME: Final = 256
_BUSY_SECONDS: Final = 20.0


def make_issuer_key(path: Path, beside: RSAPrivateKey | None = None) -> RSAPrivateKey:
    """A fresh key in a new file; requests to it and to the one ``beside`` can be told apart, by the last byte of their
    ids. Raises FileExistsError if there is one, and LdpError.
    """
    while True:
        key = generate_private_key(EXPONENT, 8 * MODULUS_BYTES)
        if beside is None or _key_id(key)[-1] != _key_id(beside)[-1]:
            break
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        write_new(path, text)
    except FileExistsError:
        raise
    except OSError as error:
        raise LdpError("bad-key", f"the key cannot be written to {path}: {error.strerror}") from None
    return key


def read_issuer_key(path: Path) -> RSAPrivateKey:
    """The key in a file. Raises LdpError, also if others than its owner may read it."""
    try:
        mode, text = path.stat().st_mode, path.read_bytes()
    except OSError as error:
        raise LdpError("bad-key", f"the key {path} cannot be read: {error.strerror}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise LdpError("bad-key", f"others can read the key {path}; chmod 600 it, or make a new one if it was read")
    try:
        key = load_pem_private_key(text, None)
    except (ValueError, TypeError):
        key = None
    sizes = (8 * MODULUS_BYTES, EXPONENT)
    if not isinstance(key, RSAPrivateKey) or (key.key_size, key.public_key().public_numbers().e) != sizes:
        raise LdpError(
            "bad-key", f"{path} is no RSA key of 2,048 bits with exponent 65537 in PEM; 'ldp-issuer' makes one"
        )
    return key


def public_key(key: RSAPrivateKey) -> str:
    """The text of a draft's ``issuer.key``, or ``relay_key``."""
    return key_text(key.public_key().public_numbers().n)


def _key_id(key: RSAPrivateKey) -> bytes:
    return hashlib.sha256(key_bytes(key.public_key().public_numbers().n)).digest()


def check_apart(key: RSAPrivateKey, relay_key: RSAPrivateKey) -> None:
    """Check that requests to these two keys can be told apart, as those to one key cannot. Raises LdpError."""
    if _key_id(key)[-1] == _key_id(relay_key)[-1]:
        raise LdpError("bad-key", "nobody can tell requests to these two keys apart; make another key for relays")


class TokenIssuer:
    """Signs for a person at most ``tokens`` different requests. Safe with several threads and processes on one file.

    Parameters
    ----------
    key
        See :func:`ldp_aggregator.issuer.read_issuer_key`. A key is one epoch: with a new key everybody begins anew.
    people
        A SQLite file, made where it is missing. It keeps, for each person, hashes of the requests that were signed; the
        person's name stands there under a keyed hash.
    tokens
        What the campaign's document promises in ``issuer.tokens``. The file keeps it for each key: another number is
        refused, for some have had the first one.
    relay_key
        Another key, for what is shown to relays, as many for each person; ``issuer.relay_key`` of the document.

    Raises LdpError.
    """

    def __init__(
        self, key: RSAPrivateKey, people: Path, tokens: int = 1, relay_key: RSAPrivateKey | None = None
    ) -> None:
        numbers = key.private_numbers()
        self._modulus, self._exponent = numbers.public_numbers.n, numbers.d
        self._key_id = _key_id(key)
        self._secret = hashlib.sha256(b"ldp-bayes people 1\n" + numbers.d.to_bytes(MODULUS_BYTES, "big")).digest()
        self._people, self._tokens = people, tokens
        try:
            self._make_private()
            with self._transaction() as database:
                if any(name not in ("signed", "epochs") for (name,) in database.execute(_NAMES)):
                    text = f"{people} is a database of another program; --people takes a file of its own"
                    raise LdpError("bad-people", text)
                for table in _TABLES:
                    database.execute(table)
                database.execute("INSERT OR IGNORE INTO epochs VALUES (?, ?)", (self._key_id, tokens))
                ((limit,),) = database.execute("SELECT tokens FROM epochs WHERE key = ?", (self._key_id,)).fetchall()
        except LdpError as error:
            if error.__cause__ is None:
                raise
            raise LdpError(error.code, f"{people} cannot be written: {error.__cause__}") from error
        if limit != tokens:
            text = f"{people} was begun with {limit} tokens for each person, not {tokens}; a new key begins anew"
            raise LdpError("other-tokens", text)
        self._for_relays = None if relay_key is None else TokenIssuer(relay_key, people, tokens)
        self.public_keys = tuple(public_key(one) for one in (key, relay_key) if one is not None)
        if relay_key is not None:
            check_apart(key, relay_key)

    def sign(self, person: str, request: bytes) -> bytes:
        """Answer the TokenRequest of a person who is known by this name: 256 bytes, for the app that asked. The count
        is on disk before; a request that was signed before is signed again, and counted once.

        Raises LdpError: ``malformed-person`` for a name that is none; ``malformed-request``; ``other-key`` for a
        request to another key; ``tokens-spent`` where the person had all; ``people-unavailable`` where that cannot be
        kept.
        """
        if self._for_relays is not None and request[2:3] == self._for_relays._key_id[-1:]:
            return self._for_relays.sign(person, request)
        name = canonical_name(person)
        blinded = int.from_bytes(request[3:], "big")
        if len(request) != REQUEST_BYTES or request[:2] != TOKEN_TYPE or not 0 < blinded < self._modulus:
            raise LdpError("malformed-request", f"a request is {REQUEST_BYTES} bytes of token type 2 (RFC 9578, 6.1)")
        if request[2] != self._key_id[-1]:
            raise LdpError("other-key", "the request is for another key; the campaign's document names the right one")
        self._count(hmac.digest(self._secret, name.encode(), "sha256"), hashlib.sha256(request).digest())
        # Safety: gmpy2's powmod_sec takes the same time for every exponent; Python's pow does not (RFC 9474, 8.1).
        signature = int(gmpy2.powmod_sec(blinded, self._exponent, self._modulus))
        if pow(signature, EXPONENT, self._modulus) != blinded:
            raise LdpError("internal-error", "the signature came out wrong; nothing of it leaves")
        return signature.to_bytes(MODULUS_BYTES, "big")

    def _count(self, person: bytes, request: bytes) -> None:
        with self._transaction() as database:
            signed = database.execute(
                "SELECT request FROM signed WHERE key = ? AND person = ?", (self._key_id, person)
            ).fetchall()
            if (request,) in signed:
                return
            if len(signed) >= self._tokens:
                raise LdpError("tokens-spent", f"this person has had {self._tokens} of {self._tokens} tokens")
            database.execute("INSERT INTO signed VALUES (?, ?, ?)", (self._key_id, person, request))

    def check(self) -> None:
        """Check that the count can be written. Raises LdpError."""
        with self._transaction():
            pass

    def _make_private(self) -> None:
        try:
            os.close(os.open(self._people, os.O_RDWR | os.O_CREAT, 0o600))
            self._people.chmod(0o600)
        except OSError as error:
            raise _unavailable() from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other one runs beside, on disk at its end."""
        try:
            database = sqlite3.connect(self._people, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                database.execute("PRAGMA synchronous = FULL")
                database.execute("BEGIN IMMEDIATE")
                with database:
                    yield database
            finally:
                database.close()
        except sqlite3.Error as error:
            raise _unavailable() from error


def canonical_name(person: str) -> str:
    """The one form of a name: who logs in as Dave and as DAVE is one person. Raises LdpError for what is no name."""
    name = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", person.strip()).casefold())
    if not name or len(person) > LONGEST_NAME or not name.isprintable():
        text = f"a person's name is 1 to {LONGEST_NAME} printable characters, in UTF-8"
        raise LdpError("malformed-person", text)
    return name


def _unavailable() -> LdpError:
    problem = "what was signed cannot be kept now, so nothing is; send the same request again later"
    return LdpError("people-unavailable", problem)
