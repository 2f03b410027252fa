"""How a value is kept in the storage: msgpack behind a checksum.

A database does not notice a flipped bit inside a value; a ledger must.
"""

from __future__ import annotations

from ldp_client.errors import StorageError
from protocols.light import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Final

_CHECK_BYTES: Final = 8


def pack(key: str, value: Any) -> bytes:
    """The stored form of ``value`` (numbers, texts, bytes, lists and maps of them) under ``key``."""
    import msgpack

    body: bytes = msgpack.packb(value, use_bin_type=True)
    return _check(key, body) + body


def unpack(key: str, stored: bytes) -> Any:
    """The inverse of :func:`pack`. Raises StorageError for anything else."""
    body = stored[_CHECK_BYTES:]
    if stored[:_CHECK_BYTES] != _check(key, body):
        raise StorageError("storage-corrupt")
    import msgpack

    return msgpack.unpackb(body, raw=False, strict_map_key=True)


def _check(key: str, body: bytes) -> bytes:
    """Over the key too: a report's id is in its key."""
    # Imported here: an app pays for OpenSSL when it reads its ledger, not when it starts.
    import hashlib

    return hashlib.sha256(key.encode() + b"\0" + body).digest()[:_CHECK_BYTES]
