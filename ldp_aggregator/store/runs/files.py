"""One run: an immutable file of sorted ids with their digests, a filter, and fences.

A header of :data:`HEADER_BYTES` (magic, version, number of ids, secret and bits per id of the filter, and a CRC-32 of
each column and of itself), then five columns of little-endian 64-bit words: first halves of the ids, second halves,
digests, filter, fences.
A file that is being written has a name of its own (:func:`write_run`); it gets that of a run, whole and on disk, in the
transaction that lists it (:func:`publish_run`).
"""

from __future__ import annotations

import mmap
import os
import secrets
import shutil
import struct
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.runs.building import FilterDraft
from ldp_aggregator.store.runs.fences import Fences, fence_count, fences_of
from ldp_aggregator.store.runs.filters import Filter, Hashes, filter_words
from ldp_aggregator.store.runs.keys import Keys, Words

MAGIC: Final = b"ldprun\0\x03"
HEADER_BYTES: Final = 4096
SUFFIX: Final = ".run"
DRAFT: Final = "draft-"
FORGOTTEN_SECONDS: Final = 86_400.0
_HEADER: Final = struct.Struct("<8sQQI5I")
_COLUMNS: Final = 3
_WORD: Final = 8
_CHECK_WORDS: Final = 1 << 20


@dataclass(frozen=True)
class Run:
    """An open run."""

    path: Path
    keys: Keys
    filter: Filter
    fences: Fences
    mapped: mmap.mmap
    checks: tuple[int, ...]
    """CRC-32 of each column."""

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, wanted: Hashes) -> tuple[NDArray[np.int64], Words]:
        """Positions among those wanted of the ids that are in the run, and their digests."""
        perhaps = self.filter.may_hold(wanted)
        if not len(perhaps):
            return perhaps, np.zeros(0, dtype=np.uint64)
        asked = Keys(wanted.keys.high[perhaps], wanted.keys.low[perhaps], wanted.keys.digest[perhaps])
        positions, places = self.keys.found(asked, self.fences.places(self.keys.high, asked.high))
        digests = self.keys.digest[places].copy()
        self.release()
        return perhaps[positions], digests

    def release(self) -> None:
        """Give the pages of the file back, which count as the process's memory; reading it again brings them."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self.mapped.madvise(mmap.MADV_DONTNEED)

    def problems(self) -> list[str]:
        """What is wrong with the file: all of it is read."""
        found = []
        columns = (self.keys.high, self.keys.low, self.keys.digest, self.filter.words, self.fences.firsts)
        names = ("first", "second", "digest", "filter", "fence")
        for name, column, check in zip(names, columns, self.checks, strict=True):
            if _check_of(column) != check:
                found.append(f"{self.path.name}: the {name} column is damaged")
        for start in range(0, max(len(self) - 1, 0), _CHECK_WORDS):
            part = self.keys.slice(start, start + _CHECK_WORDS + 1)
            same = part.high[1:] == part.high[:-1]
            if ((part.high[1:] < part.high[:-1]) | (same & (part.low[1:] <= part.low[:-1]))).any():
                found.append(f"{self.path.name}: the ids are not in order")
                break
        self.release()
        return found


def write_run(folder: Path, ids: int, parts: Iterable[Keys], secret: int, bits: int) -> Path:
    """Write ``ids`` ids, which come in increasing order, part by part, with the filter's secret and bits per id.

    Returns the draft. Raises StoreError; nothing is left then.
    """
    fresh = folder / f"{DRAFT}{secrets.token_hex(8)}{SUFFIX}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with FilterDraft(folder, ids, secret, bits) as draft:
                checks = _write(handle, ids, parts, draft)
            _put(handle, _header(ids, secret, bits, checks), 0)
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise StoreError(f"{fresh} cannot be written: {error.strerror}") from error
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return fresh


def _write(handle: int, ids: int, parts: Iterable[Keys], draft: FilterDraft) -> tuple[int, ...]:
    """All columns; returns their checks."""
    fences = [np.zeros(0, dtype=np.uint64)]
    checks = [0] * _COLUMNS
    written = 0
    for part in parts:
        for column, words in enumerate((part.high, part.low, part.digest)):
            data = words.astype("<u8", copy=False).tobytes()
            _put(handle, data, HEADER_BYTES + (column * ids + written) * _WORD)
            checks[column] = zlib.crc32(data, checks[column])
        draft.add(part)
        fences.append(fences_of(part.high, written))
        written += len(part)
    if written != ids:
        raise StoreError(f"a run of {ids} ids got {written}")
    at = HEADER_BYTES + _COLUMNS * ids * _WORD
    for pieces in (draft.parts(), [np.concatenate(fences)]):
        check = 0
        for words in pieces:
            piece = words.astype("<u8", copy=False).view(np.uint8).data  # No copy: a filter is large.
            _put(handle, piece, at)
            at += len(piece)
            check = zlib.crc32(piece, check)
        checks.append(check)
    return tuple(checks)


def publish_run(draft: Path) -> str:
    """Give a draft the name of a run, durably; returns it. Raises StoreError."""
    name = draft.name.removeprefix(DRAFT)
    try:
        draft.rename(draft.with_name(name))
        sync_folder(draft.parent)
    except OSError as error:
        raise StoreError(f"{draft} cannot be renamed: {error.strerror}") from error
    return name


def copy_runs(source: Path, target: Path, names: Collection[str]) -> None:
    """Copy some runs into another folder, durably; what is there already is left. Raises FileNotFoundError."""
    if not names:
        return
    target.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        if not (target / name).exists():
            with (source / name).open("rb") as there, open(target / name, "xb", opener=_private) as here:
                shutil.copyfileobj(there, here, 1 << 20)
                here.flush()
                os.fsync(here.fileno())
    sync_folder(target)


def remove_leftovers(folder: Path, listed: Collection[str], now: float) -> None:
    """Remove the runs that nobody lists, and drafts that were forgotten a day ago.

    Whoever calls this keeps everybody else from publishing meanwhile.
    """
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        draft = file.name.startswith(DRAFT)
        if file.name not in listed and (not draft or now - file.stat().st_mtime > FORGOTTEN_SECONDS):
            file.unlink(missing_ok=True)


def open_run(path: Path) -> Run:
    """Open a run; what it holds is read when it is needed, its filter at once. Raises StoreError."""
    try:
        with path.open("rb") as file:
            head = file.read(HEADER_BYTES)
            ids, secret, bits, checks = _read_header(path, head)
            words, fences = filter_words(ids, bits), fence_count(ids)
            start = HEADER_BYTES + _COLUMNS * ids * _WORD
            if os.fstat(file.fileno()).st_size != start + (words + fences) * _WORD:
                raise StoreError(f"{path} is damaged: it has another length than its header says")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            file.seek(start)
            marks, firsts = (np.fromfile(file, dtype="<u8", count=count) for count in (words, fences))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    column = np.frombuffer(mapped, dtype="<u8", count=_COLUMNS * ids, offset=HEADER_BYTES).reshape(_COLUMNS, ids)
    return Run(path, Keys(*column), Filter(marks, secret), Fences(firsts), mapped, checks)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk; Windows has no such step."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _header(ids: int, secret: int, bits: int, checks: tuple[int, ...]) -> bytes:
    head = _HEADER.pack(MAGIC, ids, secret, bits, *checks)
    return head + struct.pack("<I", zlib.crc32(head))


def _read_header(path: Path, head: bytes) -> tuple[int, int, int, tuple[int, ...]]:
    if len(head) < HEADER_BYTES or not head.startswith(MAGIC):
        raise StoreError(f"{path} is no run of ids of this version")
    fields = head[: _HEADER.size]
    if struct.unpack_from("<I", head, _HEADER.size)[0] != zlib.crc32(fields):
        raise StoreError(f"{path} is damaged: its header does not agree with its check")
    _, ids, secret, bits, *checks = _HEADER.unpack(fields)
    return ids, secret, bits, tuple(checks)


def _put(handle: int, data: bytes | memoryview[int], offset: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(handle, view, offset)
        view, offset = view[done:], offset + done


def _check_of(column: Words) -> int:
    check = 0
    for start in range(0, len(column), _CHECK_WORDS):
        check = zlib.crc32(column[start : start + _CHECK_WORDS].tobytes(), check)
    return check
