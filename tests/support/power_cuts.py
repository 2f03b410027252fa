"""Power cuts: what a disk holds of a folder when the machine stops, at every point of what a process does there.

A killed process leaves the kernel's cache behind, a power cut does not. :class:`Disk` watches the calls that sync, name
and remove files below a folder; right before each of them the power could fail. Then the disk has for certain what was
synced: a file's bytes as of its last ``fsync``, a folder's names as of its own. Of the rest it may have any part, of
which three are tried: none of it; every name, with the bytes that were synced; every removal and nothing else. (Pillai
et al., "All File Systems Are Not Created Equal", OSDI 2014.) SQLite syncs in its own code: where ``databases`` are
trusted they are taken as of their last commit, and that a connection asks for it is what other tests look at.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

NONE, NAMES, REMOVALS = WHICH = ("none of it", "every name", "every removal")
_BESIDE = ("-wal", "-shm", "-journal")
_MAGIC = b"SQLite format 3\0"


@dataclass
class Folder:
    """A folder's names: those that are there, those that are on disk, and those on disk that were removed since."""

    live: dict[str, int] = field(default_factory=dict)
    synced: dict[str, int] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    def names(self, which: str) -> dict[str, int]:
        if which == NAMES:
            return self.live
        return {name: node for name, node in self.synced.items() if which == NONE or name not in self.removed}


@dataclass(frozen=True)
class Cut:
    """A moment at which the power fails. ``done`` is what had been promised by then."""

    before: str
    done: object
    folders: dict[int, Folder]
    contents: dict[int, bytes]
    root: int

    def states(self) -> Iterator[tuple[str, dict[str, bytes | None]]]:
        """What the disk may hold: a name of each, and its files by path (a folder is None)."""
        for which in WHICH:
            yield f"{which}, before {self.before}", dict(self._below(self.root, "", which))

    def _below(self, node: int, path: str, which: str) -> Iterator[tuple[str, bytes | None]]:
        for name, one in sorted(self.folders[node].names(which).items()):
            place = f"{path}{name}"
            if one in self.folders:
                yield place, None
                yield from self._below(one, f"{place}/", which)
            else:
                yield place, self.contents.get(one, b"")


class Disk:
    """The disk below ``root``, which exists. ``done`` tells what has been promised so far.

    ``databases`` are trusted; with ``extra`` a commit syncs the names beside the database, too, as SQLite does at the
    level of that name.
    """

    def __init__(self, root: Path, done: Callable[[], object], *, databases: bool = True, extra: bool = False) -> None:
        self.root, self._done, self._trusted, self._extra = root, done, databases, extra
        self.cuts: list[Cut] = []
        self._lock = threading.RLock()
        self._folders: dict[int, Folder] = {}
        self._contents: dict[int, bytes] = {}
        self._databases: set[int] = set()
        self._held: dict[int, int] = {}
        """Open, so that no other file gets a number while we speak of it."""
        self._real = {name: getattr(os, name) for name in ("fsync", "rename", "replace", "unlink", "rmdir", "mkdir")}
        self._look(synced=True)

    @contextmanager
    def watched(self, patch: pytest.MonkeyPatch) -> Iterator[None]:
        """While the block lasts; its end is a point, too."""
        with patch.context() as patched:
            for name, real in self._real.items():
                patched.setattr(os, name, self._before(name, real))
            patched.setattr(os, "remove", self._before("unlink", os.remove))
            try:
                yield
            finally:
                patched.undo()
        self._cut("the end")
        for handle in self._held.values():
            os.close(handle)

    def states(self) -> Iterator[tuple[str, object, dict[str, bytes | None]]]:
        """Every state that the disk could be in, once: how it came to be, what was promised, and its files by path."""
        seen = set()
        for cut in self.cuts:
            for told, files in cut.states():
                key = (repr(cut.done), tuple(files.items()))
                if key not in seen:
                    seen.add(key)
                    yield told, cut.done, files

    def _before(self, name, real):
        def call(*given, **named):
            with self._lock:
                place = self._place(given[0], named.get("dir_fd"))
                if place is None:
                    return real(*given, **named)
                self._cut(f"{name} of {place.relative_to(self.root)}")
                if name in ("unlink", "rmdir"):
                    self._note_removal(place)
                result = real(*given, **named)
                if name == "fsync":
                    self._note_sync(place)
                return result

        return call

    def _place(self, of, folder) -> Path | None:
        """The path below the root that a call is about, or None."""
        if isinstance(of, int):
            path = Path(f"/proc/self/fd/{of}").readlink()
        elif folder is not None:
            path = Path(f"/proc/self/fd/{folder}").readlink() / os.fsdecode(of)
        else:
            path = Path(os.fsdecode(of)).absolute()
        return path if path.is_relative_to(self.root) else None

    def _cut(self, before: str) -> None:
        done = self._done()  # First: what is promised while we look need not be there yet.
        self._look()
        folders = {
            node: Folder(dict(one.live), dict(one.synced), set(one.removed)) for node, one in self._folders.items()
        }
        self.cuts.append(Cut(before, done, folders, dict(self._contents), self._node(self.root)))

    def _look(self, *, synced: bool = False) -> None:
        """Take down the names that are there now, and databases as of their last commit."""
        for place in [self.root, *(one for one in sorted(self.root.rglob("*")) if one.is_dir())]:
            folder = self._folders.setdefault(self._node(place), Folder())
            folder.live, commits = {}, False
            for one in place.iterdir():
                if not one.name.endswith(_BESIDE):
                    node = folder.live[one.name] = self._node(one)
                    committed = _committed(one) if self._trusted and not one.is_dir() else None
                    if committed is not None:
                        commits |= committed != self._contents.get(node)
                        self._contents[node] = committed
                        if node not in self._databases:
                            self._databases.add(node)
                            folder.synced[one.name] = node  # With the first journal beside it.
                    elif synced and not one.is_dir():
                        self._contents[node] = one.read_bytes()
            if synced or (commits and self._extra):
                folder.synced = dict(folder.live)

    def _note_removal(self, place: Path) -> None:
        self._folders[self._node(place.parent)].removed.add(place.name)

    def _note_sync(self, place: Path) -> None:
        node = self._node(place)
        if place.is_dir():
            self._look()
            folder = self._folders[node]
            folder.synced, folder.removed = dict(folder.live), set()
        else:
            self._contents[node] = place.read_bytes()

    def _node(self, place: Path) -> int:
        found = place.stat()
        if found.st_ino not in self._held and not stat.S_ISSOCK(found.st_mode):
            self._held[found.st_ino] = os.open(place, os.O_RDONLY)
        return found.st_ino


def _committed(place: Path) -> bytes | None:
    """A database as of its last commit; None for what is none."""
    with place.open("rb") as file:
        if file.read(16) != _MAGIC:
            return None
    with (
        closing(sqlite3.connect(f"file:{place}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(":memory:")) as to,
    ):
        source.backup(to)
        return to.serialize()


def lay_out(files: dict[str, bytes | None], folder: Path) -> Path:
    """Make a folder of what a disk holds."""
    folder.mkdir()
    for name, data in files.items():
        if data is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(data)
    return folder
