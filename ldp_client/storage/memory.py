"""A storage in memory: for tests, simulations, and apps that keep nothing."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ldp_client.errors import StorageError
from ldp_client.policy import STORAGE_WAIT
from ldp_client.runtime import ForkSafeLock, seconds_left, tell_after_fork
from ldp_client.storage.contract import Transaction


class MemoryStorage:
    """A dictionary, forgotten with the process; a forked child is refused: it would answer as the same device."""

    __slots__ = ("__weakref__", "_entries", "_forked", "_lock")

    def __init__(self) -> None:
        self._entries: Mapping[str, bytes] = {}
        self._forked = False
        self._lock = ForkSafeLock()
        tell_after_fork(self)

    def after_fork(self) -> None:
        """Refuse everything from now on: a forked child must not answer beside its parent."""
        self._forked = True

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """See :class:`~ldp_client.storage.contract.Storage`."""
        if self._forked:
            raise StorageError("storage-forked")
        if not write:
            yield DictTransaction(dict(self._entries))
            return
        if not self._lock.acquire(min(STORAGE_WAIT, seconds_left(STORAGE_WAIT))):
            raise StorageError("storage-busy")
        try:
            entries = dict(self._entries)
            yield DictTransaction(entries)
            # One assignment: another thread sees all of a transaction or nothing.
            self._entries = entries
        finally:
            self._lock.release()


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
