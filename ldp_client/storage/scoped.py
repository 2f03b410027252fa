"""A storage that many people share, a part for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ldp_client.storage.contract import SCOPES, Storage, Transaction


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
