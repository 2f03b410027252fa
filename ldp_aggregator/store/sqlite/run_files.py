"""One run: an immutable file of sorted ids with their digests, in pages, each with a check of its own.

A header of :data:`HEADER_BYTES`: magic, whose run it is (its campaign and its own name), the number of ids, the
filter's secret and its words, a CRC-32 of filter and index, and one of itself. Then pages of :data:`PAGE` ids (the last
one is filled up): first halves, second halves, digests, all little-endian 64-bit words. Then the filter
(:mod:`ldp_aggregator.store.sqlite.keys`), and the index: of each page its first half and its CRC-32.

Nothing is used that was not checked: filter and index where a run is opened, a page wherever it is read. Reading is
``preadv``: a file that was cut short, or a disk that fails, is an error and no signal.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import sys
import weakref
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.store.contract import DAMAGED, StoreError
from ldp_aggregator.store.durable import make_folder, private, sync_folder
from ldp_aggregator.store.sqlite.keys import Filter, Hashes, Keys, Words, joined, merged

if sys.platform != "win32":
    import fcntl

MAGIC: Final = b"ldprun\0\x04"
HEADER_BYTES: Final = 4096
PAGE: Final = 128
"""Ids whose bytes are read, and checked, together."""
SUFFIX: Final = ".run"
DRAFT: Final = "draft-"
_HEADER: Final = struct.Struct("<8s64s32sQQQI")
_COLUMNS: Final = 3
_WORD: Final = 8
_PAGE_BYTES: Final = PAGE * _COLUMNS * _WORD
_INDEX: Final = np.dtype([("first", "<u8"), ("check", "<u4")])
_BLOCK_PAGES: Final = 24
_ASKED: Final = 2048
"""Ids that are looked up at once: a page each, and sometimes two, are in memory."""


class Run:
    """An open run. Methods that read raise StoreError if the file is damaged."""

    def __init__(self, path: Path, handle: int, ids: int, filter_: Filter, index: NDArray[np.void]) -> None:
        self.path = path
        self.filter = filter_
        self._ids = ids
        self._handle = handle
        self._firsts: Words = index["first"].astype(np.uint64)
        self._checks: NDArray[np.uint32] = index["check"].astype(np.uint32)
        weakref.finalize(self, os.close, handle)

    def __len__(self) -> int:
        return self._ids

    def find(self, wanted: Hashes) -> tuple[NDArray[np.int64], Words]:
        """Positions among those wanted, which are in order, of the ids that are in the run, and their digests."""
        perhaps = self.filter.may_hold(wanted)
        found = [self._look_up(wanted.keys, perhaps[at : at + _ASKED]) for at in range(0, len(perhaps), _ASKED)]
        if not found:
            return perhaps, np.zeros(0, dtype=np.uint64)
        return np.concatenate([positions for positions, _ in found]), np.concatenate([digests for _, digests in found])

    def blocks(self) -> Iterator[Keys]:
        """All ids in increasing order, a few pages at a time."""
        for start in range(0, len(self._checks), _BLOCK_PAGES):
            yield self._pages(range(start, min(start + _BLOCK_PAGES, len(self._checks))))

    def sound_blocks(self) -> Iterator[Keys]:
        """The pages that are sound, where others are not."""
        for page in range(len(self._checks)):
            with contextlib.suppress(StoreError):
                yield self._pages([page])

    def verify(self) -> None:
        """Read everything. Raises StoreError if something is damaged, or not in order."""
        last: Keys | None = None
        for block in self.blocks():
            ids = block if last is None else joined([last, block])
            same = ids.high[1:] == ids.high[:-1]
            if ((ids.high[1:] < ids.high[:-1]) | (same & (ids.low[1:] <= ids.low[:-1]))).any():
                raise _damaged(self.path, "its ids are not in order")
            last = block.slice(len(block) - 1, len(block))

    def _look_up(self, wanted: Keys, perhaps: NDArray[np.int64]) -> tuple[NDArray[np.int64], Words]:
        candidates = Keys(wanted.high[perhaps], wanted.low[perhaps], wanted.digest[perhaps])
        # An id is in the last page that begins before its first half, or in one that begins with it.
        start = np.maximum(np.searchsorted(self._firsts, candidates.high) - 1, 0)
        stop = np.maximum(np.searchsorted(self._firsts, candidates.high, side="right"), 1)
        several = np.flatnonzero(stop - start > 1)
        pages = np.unique(np.concatenate([start, *(np.arange(start[one], stop[one]) for one in several)]))
        here = self._pages(pages.tolist())
        positions, places = here.find(candidates)
        return perhaps[positions], here.digest[places]

    def _pages(self, pages: Sequence[int]) -> Keys:
        """The ids of some pages, checked."""
        data = bytearray(len(pages) * _PAGE_BYTES)
        view = memoryview(data)
        if pages[-1] - pages[0] == len(pages) - 1:  # They follow each other.
            _read_into(self.path, self._handle, HEADER_BYTES + pages[0] * _PAGE_BYTES, view)
        else:
            for place, page in enumerate(pages):
                here = view[place * _PAGE_BYTES : (place + 1) * _PAGE_BYTES]
                _read_into(self.path, self._handle, HEADER_BYTES + page * _PAGE_BYTES, here)
        checks = self._checks[np.asarray(pages)].tolist()
        for place, (page, check) in enumerate(zip(pages, checks, strict=True)):
            if zlib.crc32(view[place * _PAGE_BYTES : (place + 1) * _PAGE_BYTES]) != check:
                raise _damaged(self.path, f"page {page} does not agree with its check")
        columns = np.frombuffer(data, dtype="<u8").reshape(len(pages), _COLUMNS, PAGE).transpose(1, 0, 2)
        # The last page is filled up with what is no id.
        ids = len(pages) * PAGE - (-self._ids % PAGE if pages[-1] == len(self._checks) - 1 else 0)
        return Keys(*columns.reshape(_COLUMNS, -1)[:, :ids])


class RunFile:
    """A run in the making. It is locked, so that nobody takes it for what a dead process has left."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{DRAFT}{secrets.token_hex(8)}{SUFFIX}"
        self.ids = 0
        make_folder(folder)
        self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _lock(self.handle)

    @property
    def name(self) -> str:
        """The name that it will have as a run."""
        return self.path.name.removeprefix(DRAFT)

    def publish(self) -> str:
        """Rename it to a run, durably; returns the name. Raises StoreError."""
        try:
            self.path.rename(self.path.with_name(self.name))
            sync_folder(self.path.parent)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be renamed: {error.strerror}", file=self.path.name) from error
        finally:
            self._close()
        return self.name

    def discard(self) -> None:
        """Remove it, if it is there."""
        self._close()
        self.path.unlink(missing_ok=True)

    def _close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


def write_run(folder: Path, campaign: str, most: int, parts: Iterable[Keys], secret: int) -> RunFile:
    """Write ids of a campaign, ``most`` at most, which come in increasing order, part by part.

    Raises StoreError, or what ``parts`` raises; nothing is left then.
    """
    run_file = None
    try:
        run_file = RunFile(folder)
        _write(run_file, campaign, Filter.for_ids(most, secret), parts)
        os.fsync(run_file.handle)
    except BaseException as error:
        if run_file is not None:
            run_file.discard()
        if isinstance(error, OSError):
            raise StoreError(f"a run of ids cannot be written in {folder}: {error.strerror}") from error
        raise
    return run_file


def _write(run_file: RunFile, campaign: str, filter_: Filter, parts: Iterable[Keys]) -> None:
    index: list[tuple[int, int]] = []
    at = HEADER_BYTES
    rest: list[Keys] = []
    for part in parts:
        filter_.add(part)
        run_file.ids += len(part)
        rest.append(part)
        if sum(map(len, rest)) >= PAGE * _BLOCK_PAGES:
            waiting = joined(rest)
            whole = len(waiting) // PAGE * PAGE
            at += _put_pages(run_file.handle, waiting.slice(0, whole), at, index)
            rest = [waiting.slice(whole, len(waiting))]
    if run_file.ids:
        at += _put_pages(run_file.handle, joined(rest), at, index)
    words = filter_.words.astype("<u8", copy=False).view(np.uint8).data
    entries = np.array(index, dtype=_INDEX).tobytes()
    _put(run_file.handle, words, at)
    _put(run_file.handle, entries, at + len(words))
    check = zlib.crc32(entries, zlib.crc32(words))
    name = run_file.name.encode()
    head = _HEADER.pack(MAGIC, campaign.encode(), name, run_file.ids, filter_.secret, len(filter_.words), check)
    _put(run_file.handle, head + struct.pack("<I", zlib.crc32(head)), 0)


def _put_pages(handle: int, keys: Keys, at: int, index: list[tuple[int, int]]) -> int:
    """Write ids as pages, the last one filled up; returns how many bytes."""
    pages = -(-len(keys) // PAGE)
    columns = np.zeros((_COLUMNS, pages * PAGE), dtype="<u8")
    for column, words in zip(columns, (keys.high, keys.low, keys.digest), strict=True):
        column[: len(keys)] = words
    data = memoryview(columns.reshape(_COLUMNS, pages, PAGE).transpose(1, 0, 2).tobytes())
    checks = [zlib.crc32(data[start : start + _PAGE_BYTES]) for start in range(0, len(data), _PAGE_BYTES)]
    index += zip(keys.high[::PAGE].tolist(), checks, strict=True)
    _put(handle, data, at)
    return len(data)


def open_run(path: Path, campaign: str) -> Run:
    """Open a run of a campaign; its filter and its index are read at once. Raises StoreError."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", file=path.name) from error
    try:
        head = bytearray(_HEADER.size + 4)
        _read_into(path, handle, 0, memoryview(head))
        if not head.startswith(MAGIC):
            raise StoreError(f"{path} is no run of ids of this version", file=path.name)
        if struct.unpack_from("<I", head, _HEADER.size)[0] != zlib.crc32(head[: _HEADER.size]):
            raise _damaged(path, "its header does not agree with its check")
        _, owner, name, ids, secret, words, check = _HEADER.unpack_from(head)
        if owner.rstrip(b"\0").decode() != campaign or name.rstrip(b"\0").decode() != path.name:
            raise _damaged(path, "another run is in its place")
        pages = -(-ids // PAGE)
        # Apart, so that neither keeps the other in memory; into their arrays, so that nothing is there twice.
        marks, index = np.empty(words, dtype="<u8"), np.empty(pages, dtype=_INDEX)
        at, found = HEADER_BYTES + pages * _PAGE_BYTES, 0
        for view in (marks.view(np.uint8).data, index.view(np.uint8).data):
            _read_into(path, handle, at, view)
            at, found = at + len(view), zlib.crc32(view, found)
        if found != check:
            raise _damaged(path, "its filter or its index does not agree with its check")
        return Run(path, handle, ids, Filter(marks, secret), index)
    except BaseException:
        os.close(handle)
        raise


def copy_runs(source: Path, target: Path, names: Mapping[str, str]) -> None:
    """Copy some runs (name to campaign) into another folder, durably, and check what was copied.

    Raises FileNotFoundError, and StoreError if a run is damaged.
    """
    if not names:
        return
    make_folder(target)
    for name, campaign in names.items():
        if (target / name).exists():
            continue
        with (source / name).open("rb") as there, open(target / name, "xb", opener=private) as here:
            while piece := there.read(1 << 20):
                here.write(piece)
            here.flush()
            os.fsync(here.fileno())
        open_run(target / name, campaign).verify()
    sync_folder(target)


def remove_leftovers(folder: Path, listed: Collection[str]) -> None:
    """Remove the runs that nobody lists, and the run files that nobody writes.

    Whoever calls this keeps everybody else from publishing meanwhile.
    """
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        if file.name not in listed and not (file.name.startswith(DRAFT) and _is_locked(file)):
            with contextlib.suppress(PermissionError):  # Windows keeps what somebody has open.
                file.unlink(missing_ok=True)


def _lock(handle: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_locked(file: Path) -> bool:
    try:
        handle = os.open(file, os.O_RDONLY)
    except OSError:
        return False
    try:
        _lock(handle)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _damaged(path: Path, why: str) -> StoreError:
    text = f"{path} is damaged: {why}; 'ldp-aggregator fsck --take-out-damaged' takes it out"
    return StoreError(text, DAMAGED, file=path.name)


def _put(handle: int, data: bytes | memoryview[int], offset: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(handle, view, offset)
        view, offset = view[done:], offset + done


def _read_into(path: Path, handle: int, offset: int, view: memoryview[int]) -> None:
    try:
        while view and (done := os.preadv(handle, [view], offset)):
            view, offset = view[done:], offset + done
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", file=path.name) from error
    if view:
        raise _damaged(path, "it ends early")


LEAST_RUN: Final = 1 << 14
LARGEST_FLUSH: Final = 1 << 20
FLUSH_SCALE: Final = 1 << 30
"""Recent ids become a run once there are as many as the square of what is in runs already, over this number, and
within the two bounds above: a store of a few millions takes little memory, one of tens of millions gets few runs."""
BACKLOG: Final = 2 * LARGEST_FLUSH
"""Recent ids with which a commit waits for the run that is being written."""
FAN_IN: Final = 8
"""Runs of about one size that become one. An id is written once for each power of it."""


def crowded(sizes: Mapping[str, int]) -> list[str]:
    """Names of the runs to merge next, given every run's number of ids; none while every size has room."""
    tiers: dict[int, list[str]] = {}
    for name, size in sizes.items():
        tiers.setdefault(_tier(size), []).append(name)
    return next((sorted(names) for _, names in sorted(tiers.items()) if len(names) >= FAN_IN), [])


def merge_runs(folder: Path, campaign: str, runs: Sequence[Run], pause: Callable[[], None]) -> RunFile:
    """Write the union of runs of a campaign that share no id as one; returns the run file.

    ``pause`` is called every few thousand ids, and may raise. Raises StoreError if a run is damaged: the runs stay.
    """
    parts = merged_blocks([run.blocks() for run in runs], pause)
    return write_run(folder, campaign, sum(map(len, runs)), parts, runs[0].filter.secret)


def _tier(size: int) -> int:
    tier = 0
    while size > LEAST_RUN * FAN_IN // 2:
        size //= FAN_IN
        tier += 1
    return tier


def merged_blocks(sources: Sequence[Iterator[Keys]], pause: Callable[[], None]) -> Iterator[Keys]:
    """The union of sorted sources that share no id, in increasing order; little more than a block of each is in memory.

    ``pause`` is called between blocks.
    """
    going = dict(enumerate(sources))
    pending: dict[int, Keys] = {}
    bound = None
    while True:
        pause()
        for place in [place for place in going if place not in pending or pending[place].high[-1] == bound]:
            more = next(going[place], None)
            if more is None:
                del going[place]
            else:
                pending[place] = joined([pending[place], more]) if place in pending else more
        if not going:
            break
        # Nothing that is to come begins with less than this; with this itself some may.
        bound = min(pending[place].high[-1] for place in going)
        parts = []
        for place, keys in list(pending.items()):
            cut = int(np.searchsorted(keys.high, bound))
            if cut:
                parts.append(keys.slice(0, cut))
            if cut < len(keys):
                pending[place] = keys.slice(cut, len(keys))
            else:
                del pending[place]
        if parts:
            yield merged(parts)
    if pending:
        yield merged(list(pending.values()))
