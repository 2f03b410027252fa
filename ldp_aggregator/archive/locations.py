"""The files of an archive, and where they lie: in a folder, or wherever fsspec opens (``s3://``, ``gs://``, ``abfs://``,
``memory://``). They are listed, read, put whole and durable, moved and removed; names use ``/`` and are relative.

One is a Parquet file of reports of one campaign: columns ``question`` (uint16), ``id`` (16 bytes), ``payload``
(binary). Rows are ordered by question, then by id; any Parquet reader reads them. The payloads of a question follow
each other, so they become an array of rows without a loop. A page has a checksum, and all rows of a file have a check.
"""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldp_aggregator.counting.payloads import refusals
from ldp_aggregator.mechanisms.analysis import Rows
from ldp_aggregator.store.contract import DAMAGED, UNAVAILABLE, StoreError
from ldp_aggregator.store.durable import make_folder, private, sync_folder
from ldp_protocols import Campaign
from ldp_protocols.framing import ID_BYTES

MOST_ROWS = 1 << 23
MOST_BYTES = 1 << 30
"""Most bytes of a file of the archive: a small one may unpack into more than any memory."""
SCHEMA = pa.schema(
    [
        pa.field("question", pa.uint16(), nullable=False),
        pa.field("id", pa.binary(ID_BYTES), nullable=False),
        pa.field("payload", pa.large_binary(), nullable=False),
    ]
)

_CHECK = "ldp-bayes.check"
"""The name of a file's check of all its rows. Its pages have their own; what says where they are has none."""


@dataclass(frozen=True)
class Reports:
    """Reports of one question: ids of shape (n, 16) and payloads of shape (n, width), row by row."""

    ids: Rows
    payloads: Rows


def encode_file(file: Mapping[int, Reports]) -> bytes:
    """The file of reports by question; the same reports in any order give the same rows."""
    questions, ids, payloads, widths = [], [], [], []
    for question, reports in sorted(file.items()):
        halves = np.ascontiguousarray(reports.ids).view(">u8").astype(np.uint64)
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        questions.append(np.full(len(order), question, dtype=np.uint16))
        ids.append(reports.ids[order])
        payloads.append(reports.payloads[order].tobytes())
        widths.append(np.full(len(order), reports.payloads.shape[1], dtype=np.int64))
    rows = int(sum(map(len, questions)))
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.concatenate([*widths, np.zeros(0, np.int64)]))])
    joined = np.concatenate(ids).tobytes() if ids else b""
    content = [
        np.concatenate([*questions, np.zeros(0, np.uint16)]).tobytes(),
        joined,
        ends.tobytes(),
        b"".join(payloads),
    ]
    columns = [
        pa.array(np.frombuffer(content[0], dtype=np.uint16)),
        pa.FixedSizeBinaryArray.from_buffers(pa.binary(ID_BYTES), rows, [None, pa.py_buffer(content[1])]),
        pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), rows, [None, pa.py_buffer(content[2]), pa.py_buffer(content[3])]
        ),
    ]
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        SCHEMA,
        compression="none",  # Ids are random and so is nearly every payload: there is nothing to compress.
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
        store_schema=False,
    ) as writer:
        writer.write_table(pa.table(columns, schema=SCHEMA))
        writer.add_key_value_metadata({_CHECK: str(_check_of(*content))})
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _check_of(*content: Any) -> int:
    """A CRC-32 of questions, ids, where the payloads end, and payloads."""
    check = 0
    for part in content:
        check = zlib.crc32(part, check)
    return check


def _strange(name: str, why: str, code: str = UNAVAILABLE) -> StoreError:
    return StoreError(f"{name} {why}", code, file=name.rpartition("/")[2])


def decode_file(data: bytes, campaign: Campaign, name: str = "the file") -> dict[int, Reports]:
    """The reports of a file by question. Raises StoreError if it is no file of this campaign."""
    try:
        # What pq.read_table does beside this for files of a few thousand rows costs fifteen times as much.
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False, page_checksum_verification=True)
        size = sum(file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups))
        if file.metadata.num_rows > MOST_ROWS or size > MOST_BYTES:
            raise _strange(name, f"has {file.metadata.num_rows} rows of {size} bytes; the archive writes fewer")
        table = file.read(use_threads=False).select(SCHEMA.names)
        if any(column.null_count for column in table.columns):
            raise _strange(name, "has empty cells; the archive writes none")
        table = table.cast(SCHEMA)
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise _strange(name, f"is no Parquet file of reports ({type(error).__name__})") from None
    question, ids, payload = (column.combine_chunks() for column in table.columns)
    numbers = np.asarray(question, dtype=np.int64)
    if (np.diff(numbers) < 0).any():
        raise _strange(name, "is not in the order of its questions; the archive writes no such file")
    joined = np.frombuffer(ids.buffers()[1] or b"", dtype=np.uint8)
    joined = joined[ids.offset * ID_BYTES : (ids.offset + len(ids)) * ID_BYTES].reshape(-1, ID_BYTES)
    ends = np.frombuffer(payload.buffers()[1], dtype=np.int64)[payload.offset : payload.offset + len(payload) + 1]
    content = np.frombuffer(payload.buffers()[2] or b"", dtype=np.uint8)
    if len(numbers) and numbers[-1] >= len(campaign.counted):
        raise _strange(name, f"names question {numbers[-1]}; the campaign has {len(campaign.counted)}")
    widths = np.array([one.mechanism.width for one in campaign.counted], dtype=np.int64)
    wrong = numbers[np.diff(ends) != widths[numbers]]
    if len(wrong):
        raise _strange(name, f"has payloads of question {wrong[0]} that are not {widths[wrong[0]]} bytes long")
    found = _check_of(numbers.astype(np.uint16), joined, ends - ends[0], content[ends[0] : ends[-1]])
    if (file.metadata.metadata or {}).get(_CHECK.encode()) != str(found).encode():
        raise _strange(name, "is damaged: its rows do not agree with its check", DAMAGED)
    starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    file = {}
    for start, stop in zip(starts, [*starts, len(numbers)][1:], strict=True):
        number = int(numbers[start])
        rows = content[ends[start] : ends[stop]].reshape(stop - start, int(widths[number]))
        file[number] = Reports(joined[start:stop], rows)
    return file


def joined(files: Iterable[Mapping[int, Reports]]) -> dict[int, Reports]:
    """All reports of the files by question."""
    found: dict[int, list[Reports]] = {}
    for file in files:
        for question, reports in file.items():
            found.setdefault(question, []).append(reports)
    return {
        question: Reports(np.concatenate([one.ids for one in parts]), np.concatenate([one.payloads for one in parts]))
        for question, parts in found.items()
    }


def without_refused(campaign: Campaign, question: int, reports: Reports) -> Reports:
    """The reports that a device can have sent."""
    wrong = list(refusals(campaign.counted[question], reports.payloads))
    return (
        Reports(np.delete(reports.ids, wrong, axis=0), np.delete(reports.payloads, wrong, axis=0)) if wrong else reports
    )


Method = TypeVar("Method", bound=Callable[..., Any])


def open_place(url: str) -> Place:
    """A path, a ``file://`` address, or an address that fsspec knows. Raises StoreError."""
    parts = urlsplit(url)
    if not url.strip():
        raise StoreError("an archive needs a folder or an address such as s3://bucket/path")
    if "://" not in url:
        return Folder(Path(url))
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise StoreError(f"{url} is on no machine that can be reached by file://; write file:///path")
        return Folder(Path(parts.path))
    return RemotePlace(url)


def _named(what: str, missing: Callable[[], Any] | None = None) -> Callable[[Method], Method]:
    """Make every failure of a method about a name a StoreError, and what is not there ``missing``."""

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def wrapped(self: Any, name: str, *values: Any) -> Any:
            try:
                return method(self, name, *values)
            except Exception as error:
                if missing is not None and isinstance(error, FileNotFoundError):
                    return missing()
                reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
                raise StoreError(
                    f"{self.url}/{name} cannot be {what}: {reason}", file=name.rpartition("/")[2]
                ) from error

        return cast("Method", wrapped)

    return decorate


class Folder:
    """A folder of this machine. Methods raise StoreError if the place does not answer."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self.url = str(self._root)
        """The text that :func:`open_place` opens again; on another machine too, unless it is a folder of this one."""

    @_named("listed", list[str])
    def names(self, folder: str) -> list[str]:
        """The files right under ``folder``, sorted; none where it does not exist."""
        files = [entry.name for entry in (self._root / folder).iterdir() if entry.is_file()]
        return sorted(f"{folder}/{name}" for name in files if not name.startswith("."))

    @_named("read")
    def read(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    @_named("written")
    def put(self, name: str, data: bytes) -> None:
        """Write a file that is whole and durable when this returns, or not there."""
        target = self._root / name
        # By lot: in a container the process that died in between had the same number.
        fresh = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        make_folder(target.parent)
        try:
            with open(fresh, "xb", opener=private) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
        sync_folder(target.parent)

    @_named("moved", bool)
    def move(self, source: str, target: str) -> bool:
        """Durably; False if there is no ``source`` (any more)."""
        end = self._root / target
        make_folder(end.parent)
        (self._root / source).replace(end)
        sync_folder(end.parent)
        return True

    @_named("removed", type(None))
    def remove(self, name: str) -> None:
        """Remove a file, where it is there."""
        (self._root / name).unlink()

    @_named("removed", type(None))
    def remove_folder(self, folder: str) -> None:
        shutil.rmtree(self._root / folder)
        sync_folder(self._root)


class RemotePlace:
    """A place that fsspec opens, with the methods of a folder. An object store puts an object whole or not at all, and
    keeps what it acknowledged.
    """

    def __init__(self, url: str) -> None:
        try:
            import fsspec  # Only this place needs it.
        except ModuleNotFoundError:
            raise StoreError(f"{url} needs fsspec: pip install 'ldp-bayes[archive]'") from None
        self.url = url.rstrip("/")
        try:
            self._system, self._root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise StoreError(f"{url} cannot be opened: {error}") from None

    @_named("listed", list[str])
    def names(self, folder: str) -> list[str]:
        entries = self._system.ls(f"{self._root}/{folder}", detail=True, refresh=True)
        return sorted(f"{folder}/{entry['name'].rsplit('/', 1)[-1]}" for entry in entries if entry["type"] == "file")

    @_named("read")
    def read(self, name: str) -> bytes:
        data: bytes = self._system.cat_file(f"{self._root}/{name}")
        return data

    @_named("written")
    def put(self, name: str, data: bytes) -> None:
        self._system.pipe_file(f"{self._root}/{name}", data)

    @_named("moved", bool)
    def move(self, source: str, target: str) -> bool:
        self._system.mv(f"{self._root}/{source}", f"{self._root}/{target}")
        return True

    @_named("removed", type(None))
    def remove(self, name: str) -> None:
        self._system.rm_file(f"{self._root}/{name}")

    @_named("removed", type(None))
    def remove_folder(self, folder: str) -> None:
        self._system.rm(f"{self._root}/{folder}", recursive=True)


Place = Folder | RemotePlace
