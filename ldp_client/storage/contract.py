"""The storage of what a device must not forget: a small transactional map from text keys to bytes; and one in memory,
for tests, simulations, and apps that keep nothing.

An app that has a store of its own implements :class:`Storage` and :class:`Transaction`; what is asked of it is little
(four operations, atomic commits), and everything that matters is written above it, once.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Protocol

from ldp_client.errors import StorageError
from ldp_client.policy import STORAGE_WAIT
from ldp_client.runtime import ForkSafeLock, seconds_left, tell_after_fork, within
from ldp_protocols.errors import LdpError

MEMORY: Final = ":memory:"
SCOPES: Final = "scope/"
"""The keys of every scope start with this."""
QUEUES: Final = "waiting/"
"""The keys of the index of queues, which is one for all scopes."""
MARK: Final = "mark"
"""The key of the mark by which a copy is recognised, one for all scopes."""

PUBLISHERS: Final = "publisher/"
"""The keys of what publishers have signed start with this; one for all scopes."""

_CHECK_BYTES: Final = 8
_DISK_PROBLEMS: Final = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "storage-full"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "storage-read-only"),
}


class Transaction(Protocol):
    """The operations inside one transaction."""

    def get(self, key: str) -> bytes | None:
        """The value, None where there is none."""

    def put(self, key: str, value: bytes) -> None:
        """Set the value."""

    def delete(self, key: str) -> None:
        """Remove the key; a missing one is no error."""

    def items(self, prefix: str, limit: int | None = None) -> list[tuple[str, bytes]]:
        """The first ``limit`` entries whose key starts with ``prefix``, by ascending key. Keys are ASCII."""


class Storage(Protocol):
    """A store of transactions.

    It may have two methods more. ``check_room()`` raises StorageError where nothing could be kept now, and leaves
    nothing behind: nobody is asked whom the disk could not remember. ``discard()`` deletes what no transaction can
    read or change any more.
    """

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """A transaction, committed when the block ends and rolled back when it raises.

        With ``write`` it is alone: no other transaction, in this or another process, runs between its first read and
        its commit. When the block has ended without an exception, the changes survive a loss of power. Failures are
        raised as StorageError; so is the end of the seconds that the call has left
        (:func:`ldp_client.runtime.seconds_left`), where others have the storage.
        """


def problem_of(error: OSError) -> str:
    """The code of a failure of the disk."""
    return _DISK_PROBLEMS.get(error.errno or 0, "storage-unavailable")


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
        """See :class:`Storage`."""
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


def scope_prefix(scope: str) -> str:
    """Prefix of a scope's keys; nothing for the scope "", the storage's own. Raises LdpError."""
    if not scope:
        return ""
    if not (scope.isascii() and scope.isprintable()) or "/" in scope:
        raise LdpError("bad-scope", "a scope is a printable ASCII text without a slash")
    return f"{SCOPES}{scope}/"


def pack(key: str, value: Any) -> bytes:
    """``value`` (numbers, texts, bytes, lists, maps) as msgpack under ``key``, with a checksum against flipped bits."""
    import msgpack

    body: bytes = msgpack.packb(value, use_bin_type=True)
    return _check(key, body) + body


def unpack(key: str, stored: bytes) -> Any:
    """The inverse of :func:`pack`. Raises StorageError for anything else."""
    body = stored[_CHECK_BYTES:]
    if stored[:_CHECK_BYTES] != _check(key, body):
        raise StorageError("storage-corrupt")
    import msgpack

    return msgpack.unpackb(body, raw=False, strict_map_key=True)


def _check(key: str, body: bytes) -> bytes:
    """Over the key too: a report's id is in its key."""
    # Imported here: an app pays for OpenSSL when it reads its ledger, not when it starts.
    import hashlib

    return hashlib.sha256(key.encode() + b"\0" + body).digest()[:_CHECK_BYTES]


class Cache:
    """A map that may forget anything at any time, shared by whoever names its keys alike.

    Its storage is not the ledger's: it may be large, be lost, be deleted, and nothing in it is about a person. One that
    fails is no reason to do without what can be fetched again. It is waited for no longer than half of what the call
    has left.
    """

    __slots__ = ("_storage",)

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def get(self, key: str) -> bytes | None:
        """The stored value; None where there is none to be had, or not the one that was stored."""
        try:
            with _half(), self._storage.transaction(write=False) as transaction:
                stored = transaction.get(key)
            value = None if stored is None else unpack(key, stored)
        except StorageError:
            return None
        return value if isinstance(value, bytes) else None

    def put(self, key: str, value: bytes) -> None:
        """Store a value if that can be done."""
        with contextlib.suppress(StorageError), _half(), self._storage.transaction(write=True) as transaction:
            transaction.put(key, pack(key, value))


def _half() -> AbstractContextManager[None]:
    return within(seconds_left(STORAGE_WAIT) / 2)
