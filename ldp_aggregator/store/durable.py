"""Files that are on disk, with their names, before anybody is told of them."""

from __future__ import annotations

import os
from pathlib import Path


def private(path: str, flags: int) -> int:
    """Open a file that its owner alone can read."""
    return os.open(path, flags, 0o600)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, readable by their owner only, and have their names on disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


def sync_file(path: Path) -> None:
    """Have the bytes of a file on disk, whoever wrote them."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk; Windows has no such step."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_new(path: Path, data: bytes) -> None:
    """Write a new file, readable by its owner only. Raises OSError."""
    with open(path, "xb", opener=private) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.absolute().parent)


def append(path: Path, line: bytes) -> None:
    """Append a line to a file of lines, the last of which need not be ended. Raises OSError."""
    with path.open("r+b") as file:
        begun = file.read()
        file.write(b"\n" * (begun[-1:] not in (b"", b"\n")) + line)
        file.flush()
        os.fsync(file.fileno())
