"""What a device keeps but could fetch again: the campaign and the model."""

from __future__ import annotations

from collections.abc import Callable

from ldp_client.errors import StorageError
from ldp_client.ledger.installation import Installation, read_installation, write_installation
from ldp_client.storage.contract import Storage


class Cache:
    """A storage that fails is no reason to do without what can be fetched again; ``note`` hears the error's code."""

    __slots__ = ("_note", "_storage")

    def __init__(self, storage: Storage, note: Callable[[str], None]) -> None:
        self._storage = storage
        self._note = note

    def get(self, key: str) -> bytes | None:
        """The stored value, None where there is none to be had."""
        try:
            with self._storage.transaction(write=False) as transaction:
                return transaction.get(key)
        except StorageError as error:
            self._note(error.code)
            return None

    def put(self, key: str, value: bytes) -> None:
        """Store a value if that can be done."""
        try:
            with self._storage.transaction(write=True) as transaction:
                # The device comes first: nothing may be stored without it, see read_installation.
                write_installation(transaction, read_installation(transaction) or Installation.make())
                transaction.put(key, value)
        except StorageError as error:
            self._note(error.code)
