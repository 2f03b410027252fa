"""A storage that many people share, a part for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ldp_client.errors import ConfigurationError
from ldp_client.storage.contract import SCOPES, Storage, Transaction


class ScopedStorage:
    """One person's part of a storage that many share: a backend gives every user a scope, and so a ledger, a secret
    and a consent of their own. Raises ConfigurationError for a name that could reach into another's.
    """

    __slots__ = ("_prefix", "_storage")

    def __init__(self, storage: Storage, scope: str) -> None:
        if not scope:
            raise ConfigurationError("bad-scope", "a scope has a name")
        self._storage = storage
        self._prefix = scope_prefix(scope)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """See :class:`Storage`."""
        with self._storage.transaction(write=write) as inner:
            yield ScopedTransaction(inner, self._prefix)


def scope_prefix(scope: str) -> str:
    """What the keys of a scope start with; nothing for the scope "", the storage's own. Raises ConfigurationError."""
    if not scope:
        return ""
    if not (scope.isascii() and scope.isprintable()) or "/" in scope:
        raise ConfigurationError("bad-scope", "a scope is a printable ASCII text without a slash")
    return f"{SCOPES}{scope}/"


class ScopedTransaction:
    """The part of a transaction whose keys start with a prefix."""

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
