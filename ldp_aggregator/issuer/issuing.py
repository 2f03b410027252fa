"""Blind signatures, so many for a person and no more."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import gmpy2
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from ldp_protocols import LdpError
from ldp_protocols.document.issuer import EXPONENT, MODULUS_BYTES, key_bytes
from ldp_protocols.tokens import REQUEST_BYTES, TOKEN_TYPE

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS signed (
    key BLOB, person BLOB, request BLOB, PRIMARY KEY (key, person, request)
) WITHOUT ROWID
"""
_BUSY_SECONDS: Final = 20.0


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
        What the campaign's document promises in ``issuer.tokens``.
    """

    def __init__(self, key: RSAPrivateKey, people: Path, tokens: int = 1) -> None:
        numbers = key.private_numbers()
        self._modulus, self._exponent = numbers.public_numbers.n, numbers.d
        self._key_id = hashlib.sha256(key_bytes(self._modulus)).digest()
        self._secret = hashlib.sha256(b"ldp-bayes people 1\n" + numbers.d.to_bytes(MODULUS_BYTES, "big")).digest()
        self._people, self._tokens = people, tokens
        with self._transaction() as database:
            database.execute(_TABLE)

    def sign(self, person: str, request: bytes) -> bytes:
        """Answer the TokenRequest of a person who is known by this name: 256 bytes, for the app that asked. The count
        is on disk before; a request that was signed before is signed again, and counted once.

        Raises LdpError: ``malformed-request``; ``other-key`` for a request to another key; ``tokens-spent`` where the
        person had all; ``people-unavailable`` where that cannot be kept.
        """
        blinded = int.from_bytes(request[3:], "big")
        if len(request) != REQUEST_BYTES or request[:2] != TOKEN_TYPE or not 0 < blinded < self._modulus:
            raise LdpError("malformed-request", f"a request is {REQUEST_BYTES} bytes of token type 2 (RFC 9578, 6.1)")
        if request[2] != self._key_id[-1]:
            raise LdpError("other-key", "the request is for another key; the campaign's document names the right one")
        self._count(hmac.digest(self._secret, person.encode(), "sha256"), hashlib.sha256(request).digest())
        # Safety: gmpy2's powmod_sec takes the same time for every exponent; Python's pow does not (RFC 9474, 8.1).
        signature = int(gmpy2.powmod_sec(blinded, self._exponent, self._modulus))
        if pow(signature, EXPONENT, self._modulus) != blinded:
            raise LdpError("internal-error", "the signature came out wrong; nothing of it leaves")
        return signature.to_bytes(MODULUS_BYTES, "big")

    def _count(self, person: bytes, request: bytes) -> None:
        with self._transaction() as database:
            known = database.execute(
                "SELECT request FROM signed WHERE key = ? AND person = ?", (self._key_id, person)
            ).fetchall()
            if (request,) in known:
                return
            if len(known) >= self._tokens:
                raise LdpError("tokens-spent", f"this person has had {self._tokens} of {self._tokens} tokens")
            database.execute("INSERT INTO signed VALUES (?, ?, ?)", (self._key_id, person, request))

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
            raise LdpError("people-unavailable", f"what was signed cannot be kept in {self._people}: {error}") from None
