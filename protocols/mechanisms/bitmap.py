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
    bitmap = bytearray(width(domain_size))
    for index in indices:
        bitmap[index >> 3] |= 1 << (index & 7)
    return bytes(bitmap)


def count_indices(payload: bytes, domain_size: int) -> int:
    """Count the bits that are set; refuses set padding bits."""
    bits = int.from_bytes(payload, "little")
    if bits >> domain_size:
        raise PayloadError("padding-bits-set")
    return bits.bit_count()


def unpack_indices(payload: bytes, domain_size: int) -> Iterator[int]:
    """The indices whose bit is set, ascending; refuses set padding bits."""
    count_indices(payload, domain_size)
    return (8 * place + bit for place, byte in enumerate(payload) if byte for bit in range(8) if byte >> bit & 1)
