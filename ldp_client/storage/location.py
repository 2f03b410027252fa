"""From what an app names as its storage to the storage itself, and to the mark beside it that a copy lacks."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ldp_client.storage.contract import MEMORY, MemoryStorage, Storage

if TYPE_CHECKING:
    from collections.abc import Sequence

MACHINE_IDS: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
HARDWARE_IDS: Final = ("/sys/class/dmi/id/product_uuid", "/sys/firmware/devicetree/base/serial-number")
"""A virtual machine's clone has another one, and so has the board that a copied memory card was put into. The first is
for root to read."""

MOUNTS: Final = "/proc/self/mountinfo"


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
    """An app's storage path on this platform, in a folder made for its owner: of one machine, never synchronised. Where
    it cannot be made, the storage says so when it is used.
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
    with contextlib.suppress(OSError):
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


class Marker:
    """The file by which a copied or restored ledger is recognised. Raises OSError, like any file.

    Beside the ledger ``NAME`` stands a small file ``NAME.here`` that backups should leave out. It holds the marks of
    the ledger's last state, which change with every contribution, and digests of where the file itself is: its inode,
    the machine's id, and for a file on the root file system, which is cloned with its machine, the container's own
    layer and the serial number of the hardware. A ledger whose mark is not there is an older state of this one, or a
    copy; a mark file that was itself copied does not agree about where it is. What cannot be read, then or now, says
    nothing.

    Not recognised: both files put back, byte for byte, into the same inodes of the same machine, as by a snapshot.
    Taken for a copy although it is none: a folder or system disk that was moved, and a file system without lasting
    inodes (FAT); ``Device.adopt()`` is for those.
    """

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def holds(self, mark: bytes) -> bool:
        """True if a ledger of this mark belongs here, in this state."""
        try:
            with self._path.open("rb") as file:
                place, *marks = file.read(4096).split()
                now = self._place(file.fileno())
        except (FileNotFoundError, ValueError):
            return False
        then = dict(part.split(":", 1) for part in place.decode("ascii", "replace").split(",") if ":" in part)
        same = then.get("inode") == now["inode"] and all(now.get(name, fact) == fact for name, fact in then.items())
        return same and mark.hex().encode() in marks

    def write(self, *marks: bytes) -> None:
        """Let the ledgers of these marks belong here, and no other."""
        new = self._path.with_name(self._path.name + ".new")
        descriptor = os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        try:
            place = ",".join(f"{name}:{fact}" for name, fact in self._place(descriptor).items())
            os.write(descriptor, "\n".join((place, *(mark.hex() for mark in marks))).encode("ascii"))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        new.replace(self._path)

    def delete(self) -> None:
        """Forget everything."""
        self._path.unlink(missing_ok=True)

    def _place(self, descriptor: int) -> dict[str, str]:
        """Digests of what tells where the file is, by name; only what can be read."""
        # Imported here: an app that only looks at its status does not pay for OpenSSL.
        import hashlib

        facts = {"inode": b"%d" % os.fstat(descriptor).st_ino, "machine": _first_of(MACHINE_IDS)}
        with contextlib.suppress(OSError):
            device = self._path.parent.stat().st_dev
            if device == Path("/").stat().st_dev:
                facts |= {"layer": _layer(device), "hardware": _first_of(HARDWARE_IDS)}
        # Digests: a machine's id is not for others to read.
        return {
            name: hashlib.sha256(name.encode() + b" " + fact).hexdigest()[:32] for name, fact in facts.items() if fact
        }


def _first_of(paths: Sequence[str]) -> bytes:
    for path in paths:
        with contextlib.suppress(OSError):
            return Path(path).read_bytes().strip()
    return b""


def _layer(device: int) -> bytes:
    """The folder of a container's own files, for a file system of layers: images are shared, and this is not."""
    mounts = _first_of([MOUNTS]).splitlines()
    number = f"{os.major(device)}:{os.minor(device)}".encode() if mounts else b""
    for mount in mounts:
        # proc(5): id, parent, device, root, place, options, further fields, a dash, type, source, options.
        head, _, tail = mount.partition(b" - ")
        if head.split()[2:3] == [number] and tail.startswith(b"overlay "):
            return next((one for one in tail.split()[-1].split(b",") if one.startswith(b"upperdir=")), b"")
    return b""
