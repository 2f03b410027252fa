"""Where an archive lies: a folder, or whatever fsspec opens (``s3://``, ``gs://``, ``abfs://``, ``memory://``).

Files are listed, read, put whole and durable, moved and removed. Names use ``/`` and are relative to the place.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from ldp_aggregator.archive.files import ArchiveError
from ldp_aggregator.store.runs.files import sync_folder


class Place(Protocol):
    """Methods raise ArchiveError where the place does not answer."""

    url: str
    """What :func:`open_place` opens again, on another machine too where the place is not a folder of this one."""

    def names(self, folder: str) -> list[str]:
        """The files right under ``folder``, sorted; none where it does not exist."""
        ...

    def read(self, name: str) -> bytes: ...

    def put(self, name: str, data: bytes) -> None:
        """Write a file that is whole and durable when this returns, or not there."""
        ...

    def move(self, source: str, target: str) -> bool:
        """Durably; False where there is no ``source`` (any more)."""
        ...

    def remove(self, name: str) -> None:
        """Where it is there."""
        ...


def open_place(url: str) -> Place:
    """A path, a ``file://`` address, or an address that fsspec knows. Raises ArchiveError."""
    parts = urlsplit(url)
    if not url.strip():
        raise ArchiveError("an archive needs a folder or an address such as s3://bucket/path")
    if "://" not in url:
        return Folder(Path(url))
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise ArchiveError(f"{url} is on no machine that can be reached by file://; write file:///path")
        return Folder(Path(parts.path))
    return RemotePlace(url)


class Folder:
    """A folder of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self.url = str(self._root)

    def names(self, folder: str) -> list[str]:
        at = self._root / folder
        try:
            with os.scandir(at) as entries:
                return sorted(
                    f"{folder}/{entry.name}" for entry in entries if entry.is_file() and not entry.name.startswith(".")
                )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed("listed", at, error) from error

    def read(self, name: str) -> bytes:
        try:
            return (self._root / name).read_bytes()
        except OSError as error:
            raise _failed("read", self._root / name, error) from error

    def put(self, name: str, data: bytes) -> None:
        target = self._root / name
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            self._make(target.parent)
            with open(fresh, "xb", opener=_private) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(target)
            sync_folder(target.parent)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise _failed("written", target, error) from error

    def move(self, source: str, target: str) -> bool:
        start, end = self._root / source, self._root / target
        try:
            self._make(end.parent)
            start.replace(end)
            sync_folder(end.parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed("moved", start, error) from error
        return True

    def remove(self, name: str) -> None:
        try:
            (self._root / name).unlink(missing_ok=True)
        except OSError as error:
            raise _failed("removed", self._root / name, error) from error

    def _make(self, folder: Path) -> None:
        """Make a folder, readable by its owner only, and have its name on disk."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


class RemotePlace:
    """A place that fsspec opens. An object store puts an object whole or not at all, and keeps what it acknowledged."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec  # Only this place needs it.
        except ModuleNotFoundError:
            raise ArchiveError(f"{url} needs fsspec: pip install 'ldp-bayes[archive]'") from None
        self.url = url.rstrip("/")
        try:
            self._system, self._root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise ArchiveError(f"{url} cannot be opened: {error}") from None

    def names(self, folder: str) -> list[str]:
        try:
            entries = self._system.ls(f"{self._root}/{folder}", detail=True, refresh=True)
        except FileNotFoundError:
            return []
        except Exception as error:
            raise _failed("listed", f"{self.url}/{folder}", error) from error
        return sorted(f"{folder}/{entry['name'].rsplit('/', 1)[-1]}" for entry in entries if entry["type"] == "file")

    def read(self, name: str) -> bytes:
        try:
            data: bytes = self._system.cat_file(f"{self._root}/{name}")
        except Exception as error:
            raise _failed("read", f"{self.url}/{name}", error) from error
        return data

    def put(self, name: str, data: bytes) -> None:
        try:
            self._system.pipe_file(f"{self._root}/{name}", data)
        except Exception as error:
            raise _failed("written", f"{self.url}/{name}", error) from error

    def move(self, source: str, target: str) -> bool:
        try:
            self._system.mv(f"{self._root}/{source}", f"{self._root}/{target}")
        except FileNotFoundError:
            return False
        except Exception as error:
            raise _failed("moved", f"{self.url}/{source}", error) from error
        return True

    def remove(self, name: str) -> None:
        try:
            self._system.rm_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return
        except Exception as error:
            raise _failed("removed", f"{self.url}/{name}", error) from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _failed(what: str, name: Any, error: Exception) -> ArchiveError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return ArchiveError(f"{name} cannot be {what}: {reason}")
