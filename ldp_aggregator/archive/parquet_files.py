"""One Parquet file of reports of one campaign: columns ``question`` (uint16), ``id`` (16 bytes), ``payload`` (binary).

Rows are ordered by question, then by id; any Parquet reader reads them. The payloads of a question follow each other,
so they become an array of rows without a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldp_aggregator.mechanisms.analysis import Rows
from ldp_aggregator.store.contract import StoreError
from protocols import Campaign
from protocols.wire import ID_BYTES

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


class ArchiveError(StoreError):
    """The archive cannot be read or written; ``str`` says which file and what is wrong with it."""


@dataclass(frozen=True)
class Kept:
    """Reports of one question: ids of shape (n, 16) and payloads of shape (n, width), row by row."""

    ids: Rows
    payloads: Rows


def encode_file(kept: Mapping[int, Kept]) -> bytes:
    """The file of reports by question; the same reports in any order give the same rows."""
    questions, ids, payloads, widths = [], [], [], []
    for question, reports in sorted(kept.items()):
        order = _by_id(reports.ids)
        questions.append(np.full(len(order), question, dtype=np.uint16))
        ids.append(reports.ids[order])
        payloads.append(reports.payloads[order].tobytes())
        widths.append(np.full(len(order), reports.payloads.shape[1], dtype=np.int64))
    rows = int(sum(map(len, questions)))
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.concatenate([*widths, np.zeros(0, np.int64)]))])
    joined = np.concatenate(ids).tobytes() if ids else b""
    columns = [
        pa.array(np.concatenate([*questions, np.zeros(0, np.uint16)])),
        pa.FixedSizeBinaryArray.from_buffers(pa.binary(ID_BYTES), rows, [None, pa.py_buffer(joined)]),
        pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), rows, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(payloads))]
        ),
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table(columns, schema=SCHEMA),
        sink,
        compression="none",  # Ids are random and so is nearly every payload: there is nothing to compress.
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode_file(data: bytes, campaign: Campaign, name: str = "the file") -> dict[int, Kept]:
    """The reports of a file by question. Raises ArchiveError where it is no file of this campaign."""
    try:
        # What pq.read_table does beside this for files of a few thousand rows costs fifteen times as much.
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
        size = sum(file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups))
        if file.metadata.num_rows > MOST_ROWS or size > MOST_BYTES:
            raise ArchiveError(f"{name} has {file.metadata.num_rows} rows of {size} bytes; the archive writes fewer")
        table = file.read(use_threads=False)
        table = table.select(SCHEMA.names)
        if any(column.null_count for column in table.columns):
            raise ArchiveError(f"{name} has empty cells; the archive writes none")
        table = table.cast(SCHEMA)
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise ArchiveError(f"{name} is no Parquet file of reports ({type(error).__name__})") from None
    question, ids, payload = (column.combine_chunks() for column in table.columns)
    numbers = np.asarray(question, dtype=np.int64)
    if (np.diff(numbers) < 0).any():
        raise ArchiveError(f"{name} is not in the order of its questions; the archive writes no such file")
    joined = np.frombuffer(ids.buffers()[1] or b"", dtype=np.uint8)
    joined = joined[ids.offset * ID_BYTES : (ids.offset + len(ids)) * ID_BYTES].reshape(-1, ID_BYTES)
    ends = np.frombuffer(payload.buffers()[1], dtype=np.int64)[payload.offset : payload.offset + len(payload) + 1]
    content = np.frombuffer(payload.buffers()[2] or b"", dtype=np.uint8)
    if len(numbers) and numbers[-1] >= len(campaign.questions):
        raise ArchiveError(f"{name} names question {numbers[-1]}; the campaign has {len(campaign.questions)}")
    widths = np.array([one.mechanism.width for one in campaign.questions], dtype=np.int64)
    wrong = numbers[np.diff(ends) != widths[numbers]]
    if len(wrong):
        raise ArchiveError(f"{name} has payloads of question {wrong[0]} that are not {widths[wrong[0]]} bytes long")
    starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    kept = {}
    for start, stop in zip(starts, [*starts, len(numbers)][1:], strict=True):
        number = int(numbers[start])
        rows = content[ends[start] : ends[stop]].reshape(stop - start, int(widths[number]))
        kept[number] = Kept(joined[start:stop], rows)
    return kept


def _by_id(ids: Rows) -> NDArray[np.intp]:
    halves = np.ascontiguousarray(ids).view(">u8").astype(np.uint64)
    return np.lexsort((halves[:, 1], halves[:, 0]))
