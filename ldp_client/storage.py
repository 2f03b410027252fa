"""Where a device keeps what it must not forget: a small transactional map from text keys to bytes.

An app that has a store of its own implements :class:`Storage` and :class:`Transaction`; what is asked of it is little
(four operations, atomic commits), and everything that matters is written above it, once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from ldp_client.locks import ForkSafeLock

MEMORY: Final = ":memory:"
SCOPES: Final = "scope/"
"""The keys of every scope start with this."""


class Transaction(Protocol):
    """What may be done inside one transaction."""

    def get(self, key: str) -> bytes | None:
        """The value, None where there is none."""

    def put(self, key: str, value: bytes) -> None:
        """Set the value."""

    def delete(self, key: str) -> None:
        """Remove the key; a missing one is no error."""

    def items(self, prefix: str, limit: int | None = None) -> list[tuple[str, bytes]]:
        """The first ``limit`` entries whose key starts with ``prefix``, by ascending key. Keys are ASCII."""


class Storage(Protocol):
    """A store of transactions."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """A transaction, committed when the block ends and rolled back when it raises.

        With ``write`` it is alone: no other transaction, in this or another process, runs between its first read and
        its commit. When the block has ended without an exception, the changes survive a loss of power. Failures are
        raised as StorageError.
        """


class MemoryStorage:
    """A dictionary: for tests, simulations, and apps that keep nothing. Forgets its ledger with the process."""

    __slots__ = ("_entries", "_lock")

    def __init__(self) -> None:
        self._entries: Mapping[str, bytes] = {}
        self._lock = ForkSafeLock()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """See :class:`Storage`."""
        if not write:
            yield DictTransaction(dict(self._entries))
            return
        with self._lock:
            entries = dict(self._entries)
            yield DictTransaction(entries)
            # One assignment: a fork or another thread sees all of a transaction or nothing.
            self._entries = entries


class DictTransaction:
    """A transaction on a dictionary of its own."""

    __slots__ = ("_entries",)

    def __init__(self, entries: dict[str, bytes]) -> None:
        self._entries = entries

    def get(self, key: str) -> bytes | None:
        return self._entries.get(key)

    def put(self, key: str, value: bytes) -> None:
        self._entries[key] = value

    def delete(self, key: str) -> None:
        self._entries.pop(key, None)

    def items(self, prefix: str, limit: int | None = None) -> list[tuple[str, bytes]]:
        keys = [key for key in self._entries if key.startswith(prefix)]
        chosen = sorted(keys) if limit is None else heapq.nsmallest(limit, keys)
        return [(key, self._entries[key]) for key in chosen]


class ScopedStorage:
    """One person's part of a storage that many share: a backend gives every user a scope, and so a ledger, a secret
    and a consent of their own.
    """

    __slots__ = ("_prefix", "_storage")

    def __init__(self, storage: Storage, scope: str) -> None:
        if not scope.isascii() or "/" in scope or not scope:
            raise ValueError("a scope is a non-empty ASCII text without a slash")
        self._storage = storage
        self._prefix = f"{SCOPES}{scope}/"

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """See :class:`Storage`."""
        with self._storage.transaction(write=write) as inner:
            yield _ScopedTransaction(inner, self._prefix)


class _ScopedTransaction:
    __slots__ = ("_inner", "_prefix")

    def __init__(self, inner: Transaction, prefix: str) -> None:
        self._inner = inner
        self._prefix = prefix

    def get(self, key: str) -> bytes | None:
        return self._inner.get(self._prefix + key)

    def put(self, key: str, value: bytes) -> None:
        self._inner.put(self._prefix + key, value)

    def delete(self, key: str) -> None:
        self._inner.delete(self._prefix + key)

    def items(self, prefix: str, limit: int | None = None) -> list[tuple[str, bytes]]:
        skipped = len(self._prefix)
        return [(key[skipped:], value) for key, value in self._inner.items(self._prefix + prefix, limit)]
