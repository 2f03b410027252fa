"""Power cuts of a program in any language: what its system calls had synced, named and removed below a folder.

``strace`` writes down the calls; replayed on a model of the disk they give the same cuts as :class:`power_cuts.Disk`,
and one right before each upload.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from power_cuts import Cut, Folder

_NAMING = "openat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir"
_WRITING = "write,pwrite64,ftruncate,fsync,fdatasync,sendto"
_CALL = re.compile(r"(?P<at>\d+\.\d+) (?P<name>\w+)\((?P<given>.*)\) += (?P<result>-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_OPEN = re.compile(r"(?:\d+|AT_FDCWD)<([^>]*)>")
_UPLOAD = b"POST /v1/"


@dataclass(frozen=True)
class Call:
    """A system call that succeeded: its name, the texts among its arguments, the paths of its descriptors, the rest."""

    name: str
    texts: list[bytes]
    open: list[str]
    given: str
    result: int


def traced(command: Sequence[str], log: Path) -> list[Call]:
    """The calls of a program that ends well, in their order. Skips where there is no strace."""
    if shutil.which("strace") is None:
        pytest.skip("strace is missing")
    if subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace")
    chosen = f"trace={_NAMING},{_WRITING}"
    strace = ["strace", "-ff", "-ttt", "-y", "-xx", "-s", "1000000", "-e", chosen, "-o", str(log)]
    done = subprocess.run([*strace, *command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for part in log.parent.glob(f"{log.name}.*") for line in part.read_text("latin-1").splitlines()]
    calls = sorted(filter(None, map(_CALL.match, lines)), key=lambda call: float(call["at"]))
    return [_call(one) for one in calls if int(one["result"]) >= 0]


def _call(found: re.Match[str]) -> Call:
    given = found["given"]
    return Call(
        found["name"],
        [_unescaped(text) for text in _TEXT.findall(given)],
        [os.fsdecode(_unescaped(path)) if path.startswith("\\x") else path for path in _OPEN.findall(given)],
        given,
        int(found["result"]),
    )


def _unescaped(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


class TracedDisk:
    """The disk below ``root``, which is empty, through the calls of a program."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: dict[int, Folder] = {0: Folder()}
        self._live: dict[int, bytes] = {}
        self._synced: dict[int, bytes] = {}
        self._uploads = 0
        self._nodes = 0

    def cuts(self, calls: Sequence[Call]) -> Iterator[Cut]:
        """Before each call that syncs, names or removes, each upload, and the end. ``done`` counts uploads."""
        for call in calls:
            if call.name in {"write", "sendto"} and any(text.startswith(_UPLOAD) for text in call.texts):
                yield self._cut("an upload")
                self._uploads += 1
            elif (place := self._place(call)) is not None:
                if call.name not in {"write", "pwrite64", "ftruncate"}:
                    yield self._cut(f"{call.name} of {place}")
                self._apply(call, place)
        yield self._cut("the end")

    def _place(self, call: Call) -> Path | None:
        """The path below the root that a call is about first, or None."""
        if call.name in _WRITING.split(","):
            path = Path(call.open[0])
        else:
            path = Path(*call.open[:1]) / os.fsdecode(call.texts[0])
        return path.relative_to(self._root) if path.is_relative_to(self._root) else None

    def _apply(self, call: Call, place: Path) -> None:
        name = call.name
        if place == Path():
            if name in {"fsync", "fdatasync"}:
                self._sync(0)
            return
        folder = self._folders[self._node(place.parent)]
        if name == "openat":
            if "O_CREAT" in call.given and place.name not in folder.live:
                folder.live[place.name] = self._new()
            if "O_TRUNC" in call.given:
                self._live[folder.live[place.name]] = b""
        elif name.startswith("mkdir"):
            folder.live[place.name] = node = self._new()
            self._folders[node] = Folder()
        elif name.startswith("rename"):
            target = (Path(*call.open[-1:]) / os.fsdecode(call.texts[1])).relative_to(self._root)
            self._folders[self._node(target.parent)].live[target.name] = folder.live.pop(place.name)
        elif name.startswith(("unlink", "rmdir")):
            folder.removed.add(place.name)
            folder.live.pop(place.name)
        elif name in {"fsync", "fdatasync"}:
            self._sync(folder.live[place.name])
        else:
            self._change(call, folder.live[place.name])

    def _change(self, call: Call, node: int) -> None:
        data = self._live.get(node, b"")
        if call.name == "ftruncate":
            length = int(call.given.rpartition(",")[2])
            self._live[node] = data[:length].ljust(length, b"\0")
        else:
            at = int(call.given.rpartition(",")[2]) if call.name == "pwrite64" else len(data)
            written = call.texts[0][: call.result]
            self._live[node] = data[:at].ljust(at, b"\0") + written + data[at + len(written) :]

    def _sync(self, node: int) -> None:
        if node in self._folders:
            folder = self._folders[node]
            folder.synced, folder.removed = dict(folder.live), set()
        else:
            self._synced[node] = self._live.get(node, b"")

    def _new(self) -> int:
        self._nodes += 1
        return self._nodes

    def _node(self, place: Path) -> int:
        node = 0
        for part in place.parts:
            node = self._folders[node].live[part]
        return node

    def _cut(self, before: str) -> Cut:
        folders = {
            node: Folder(dict(one.live), dict(one.synced), set(one.removed)) for node, one in self._folders.items()
        }
        return Cut(before, self._uploads, folders, dict(self._synced), 0)
