"""From what an app names as its storage to the storage itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ldp_client.storage.contract import MEMORY, Storage
from ldp_client.storage.marker import Marker
from ldp_client.storage.memory import MemoryStorage


def open_storage(storage: str | os.PathLike[str] | Storage) -> Storage:
    """A storage from what a Device takes: a file path, ``":memory:"``, or an object that is one already."""
    if not isinstance(storage, (str, os.PathLike)):
        return storage
    return MemoryStorage() if storage == MEMORY else _sqlite(storage)


def open_cache(storage: str | os.PathLike[str] | Storage) -> Storage:
    """The storage of what can be fetched again: beside a file ``NAME`` it is ``NAME.cache``, else in memory."""
    path = _beside(storage, ".cache")
    return MemoryStorage() if path is None else _sqlite(path)


def open_marker(storage: str | os.PathLike[str] | Storage) -> Marker | None:
    """The file by which a copy is recognised; None for a storage that is no file of this package's."""
    path = _beside(storage, ".here")
    return None if path is None else Marker(path)


def default_path(app: str) -> Path:
    """Return the path of an app's storage on this platform; makes the folder, for its owner only.

    A folder for the state of one machine, which neither roams nor is synchronised; the guide says how it is kept out of
    backups.
    """
    home = Path.home()
    if sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform in {"darwin", "ios"}:
        folder = home / "Library" / "Application Support"
    else:
        state = os.environ.get("XDG_STATE_HOME", "")
        # The specification: a relative path there is to be ignored.
        folder = Path(state) if state.startswith("/") else home / ".local" / "state"
    folder = folder / app
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "ldp.sqlite"


def _beside(storage: str | os.PathLike[str] | Storage, suffix: str) -> Path | None:
    if not isinstance(storage, (str, os.PathLike)) or storage == MEMORY:
        return None
    path = Path(storage).absolute()
    return path.with_name(path.name + suffix)


def _sqlite(path: str | os.PathLike[str]) -> Storage:
    # Imported here: an app that brings its own storage does not pay for SQLite.
    from ldp_client.storage.sqlite import SqliteStorage

    return SqliteStorage(path)
