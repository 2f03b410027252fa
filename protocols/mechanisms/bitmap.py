"""Sets of domain indices as fixed-width bitmaps: least significant bit first, padding bits zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from protocols.errors import PayloadError


def width(domain_size: int) -> int:
    """Bytes that hold ``domain_size`` bits."""
    return -(-domain_size // 8)


def pack_flags(flags: Iterable[bool], domain_size: int) -> bytes:
    """One flag per index, in order, to a bitmap."""
    digits = bytes([49 if flag else 48 for flag in flags])
    return int(digits[::-1], 2).to_bytes(width(domain_size), "little")


def pack_indices(indices: Iterable[int], domain_size: int) -> bytes:
    """A set of indices to a bitmap."""
    bits = 0
    for index in indices:
        bits |= 1 << index
    return bits.to_bytes(width(domain_size), "little")


def unpack_indices(payload: bytes, domain_size: int) -> Iterator[int]:
    """The indices whose bit is set, ascending; refuses set padding bits."""
    bits = int.from_bytes(payload, "little")
    if bits >> domain_size:
        raise PayloadError("padding-bits-set")
    return (index for index in range(domain_size) if bits >> index & 1)
