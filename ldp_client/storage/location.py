"""From what an app names as its storage to the storage itself."""

from __future__ import annotations

import os

from ldp_client.storage.contract import MEMORY, Storage
from ldp_client.storage.memory import MemoryStorage


def open_storage(storage: str | os.PathLike[str] | Storage) -> Storage:
    """A storage from what a Client takes: a file path, ``":memory:"``, or an object that is one already."""
    if isinstance(storage, (str, os.PathLike)):
        if storage == MEMORY:
            return MemoryStorage()
        # Imported here: an app that brings its own storage does not pay for SQLite.
        from ldp_client.storage.sqlite import SqliteStorage

        return SqliteStorage(storage)
    return storage


def open_cache(storage: str | os.PathLike[str] | Storage) -> Storage:
    """Where to keep what can be fetched again: a file beside the storage's own, or memory."""
    if isinstance(storage, (str, os.PathLike)) and storage != MEMORY:
        return open_storage(os.fspath(storage) + ".cache")
    return MemoryStorage()
