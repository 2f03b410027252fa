"""The places of archives: a folder, or whatever fsspec opens (``s3://``, ``gs://``, ``abfs://``, ``memory://``).

Files are listed, read, put whole and durable, moved and removed. Names use ``/`` and are relative to the place.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from ldp_aggregator.archive.parquet_files import ArchiveError
from ldp_aggregator.store.runs.run_files import private, sync_folder

Method = TypeVar("Method", bound=Callable[..., Any])


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


def _told(what: str, missing: Callable[[], Any] | None = None) -> Callable[[Method], Method]:
    """Make every failure of a method about a name an ArchiveError, and what is not there ``missing``."""

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def told(self: Any, name: str, *values: Any) -> Any:
            try:
                return method(self, name, *values)
            except Exception as error:
                if missing is not None and isinstance(error, FileNotFoundError):
                    return missing()
                reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
                raise ArchiveError(f"{self.url}/{name} cannot be {what}: {reason}") from error

        return cast("Method", told)

    return decorate


class Folder:
    """A folder of this machine. Methods raise ArchiveError where the place does not answer."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self.url = str(self._root)
        """The text that :func:`open_place` opens again; on another machine too, unless it is a folder of this one."""

    @_told("listed", list[str])
    def names(self, folder: str) -> list[str]:
        """The files right under ``folder``, sorted; none where it does not exist."""
        files = [entry.name for entry in (self._root / folder).iterdir() if entry.is_file()]
        return sorted(f"{folder}/{name}" for name in files if not name.startswith("."))

    @_told("read")
    def read(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    @_told("written")
    def put(self, name: str, data: bytes) -> None:
        """Write a file that is whole and durable when this returns, or not there."""
        target = self._root / name
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        self._make(target.parent)
        try:
            with open(fresh, "xb", opener=private) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
        sync_folder(target.parent)

    @_told("moved", bool)
    def move(self, source: str, target: str) -> bool:
        """Durably; False where there is no ``source`` (any more)."""
        end = self._root / target
        self._make(end.parent)
        (self._root / source).replace(end)
        sync_folder(end.parent)
        return True

    @_told("removed", type(None))
    def remove(self, name: str) -> None:
        """Remove a file, where it is there."""
        (self._root / name).unlink()

    @_told("removed", type(None))
    def remove_folder(self, folder: str) -> None:
        shutil.rmtree(self._root / folder)
        sync_folder(self._root)

    def _make(self, folder: Path) -> None:
        """Make a folder, readable by its owner only, and have its name on disk."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


class RemotePlace:
    """A place that fsspec opens, with the methods of a folder. An object store puts an object whole or not at all, and
    keeps what it acknowledged.
    """

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

    @_told("listed", list[str])
    def names(self, folder: str) -> list[str]:
        entries = self._system.ls(f"{self._root}/{folder}", detail=True, refresh=True)
        return sorted(f"{folder}/{entry['name'].rsplit('/', 1)[-1]}" for entry in entries if entry["type"] == "file")

    @_told("read")
    def read(self, name: str) -> bytes:
        data: bytes = self._system.cat_file(f"{self._root}/{name}")
        return data

    @_told("written")
    def put(self, name: str, data: bytes) -> None:
        self._system.pipe_file(f"{self._root}/{name}", data)

    @_told("moved", bool)
    def move(self, source: str, target: str) -> bool:
        self._system.mv(f"{self._root}/{source}", f"{self._root}/{target}")
        return True

    @_told("removed", type(None))
    def remove(self, name: str) -> None:
        self._system.rm_file(f"{self._root}/{name}")

    @_told("removed", type(None))
    def remove_folder(self, folder: str) -> None:
        self._system.rm(f"{self._root}/{folder}", recursive=True)


Place = Folder | RemotePlace
