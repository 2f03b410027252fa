"""The frame of an upload: canonical msgpack of its blocks, and zeros after it. :mod:`ldp_protocols.wire` reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgpack

WIRE_VERSION: Final = 2
ID_BYTES: Final = 16
MOST_PADDED: Final = 1 << 19
"""Bytes to which zeros follow at most. A single report is shorter; a device that answers more questions than so many
bytes hold sends them in several uploads.
"""

PlainBlock = tuple[int, bytes, bytes]
"""Question, ids, payloads."""


def packed(blocks: Sequence[PlainBlock], length: int = 0) -> bytes:
    """The one encoding of blocks, filled up with zeros to a ``length`` in bytes."""
    data: bytes = msgpack.packb([WIRE_VERSION, blocks], use_bin_type=True)
    return data.ljust(length, b"\0")


def longest(pools: Iterable[Iterable[tuple[int, int]]]) -> int:
    """Bytes of the longest upload with one report to each pool; a question is its number and the payload's width."""
    blocks: list[list[PlainBlock]] = [
        [(number, bytes(ID_BYTES), bytes(width)) for number, width in one] for one in pools
    ]
    return len(packed([max(pool, key=lambda block: len(msgpack.packb(block))) for pool in blocks]))
