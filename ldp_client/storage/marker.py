"""How a copied or restored storage file is recognised.

Beside the ledger ``NAME`` stands a small file ``NAME.here`` that backups should leave out. It holds the marks of the
ledger's last state, which change with every contribution, and a digest of where the file itself is: its inode and the
machine's id. A ledger whose mark is not there is an older state of this one, or a copy; a mark file that was itself
copied does not agree about where it is.

Not recognised: both files put back in place, byte for byte into the same inodes of the same machine, as a snapshot of a
virtual machine does. Taken for a copy although it is none: a folder that was moved to another disk, and a file system
without lasting inodes (FAT); ``Device.adopt()`` is for those.
"""

from __future__ import annotations

import contextlib
import os

from protocols.light import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Final

MARK_BYTES: Final = 16
_MACHINE_IDS: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def new_mark() -> bytes:
    """A mark that no earlier state of any ledger had."""
    return os.urandom(MARK_BYTES)


class Marker:
    """The file beside a ledger. Raises OSError, like any file."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def holds(self, mark: bytes) -> bool:
        """Whether a ledger of this mark belongs here, in this state."""
        try:
            with self._path.open("rb") as file:
                place, *marks = file.read(4096).split()
                return place == _place(file.fileno()) and mark.hex().encode() in marks
        except (FileNotFoundError, ValueError):
            return False

    def write(self, *marks: bytes, durable: bool = True) -> None:
        """Let the ledgers of these marks belong here, and no other."""
        new = self._path.with_name(self._path.name + ".new")
        descriptor = os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, b"\n".join((_place(descriptor), *(mark.hex().encode() for mark in marks))))
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        new.replace(self._path)

    def delete(self) -> None:
        """Forget everything."""
        self._path.unlink(missing_ok=True)


def _place(descriptor: int) -> bytes:
    # Imported here: an app that only looks at its status does not pay for OpenSSL.
    import hashlib

    inode = os.fstat(descriptor).st_ino
    return hashlib.sha256(b"%d %s" % (inode, _machine())).hexdigest().encode()


def _machine() -> bytes:
    from pathlib import Path

    for path in _MACHINE_IDS:
        with contextlib.suppress(OSError):
            return Path(path).read_bytes().strip()
    return b""
