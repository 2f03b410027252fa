"""The cache of what could be fetched again: campaigns and models, in a storage of their own."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager

from ldp_client.errors import StorageError
from ldp_client.policy import STORAGE_WAIT
from ldp_client.runtime import seconds_left, within
from ldp_client.storage.contract import Storage, pack, unpack


class Cache:
    """A map that may forget anything at any time, shared by whoever names its keys alike.

    Its storage is not the ledger's: it may be large, be lost, be deleted, and nothing in it is about a person. One that
    fails is no reason to do without what can be fetched again. It is waited for no
    longer than half of what the call has left.
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
