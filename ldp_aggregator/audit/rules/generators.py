"""The usual generators of random bytes, each as a function of a seed: what a client may use by mistake, and anybody
else then computes.

A stream is 64 bytes, the beginning of what a generator gives; a row of a table for every seed.
"""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.asking.observations import Bytes

WIDTH: Final = 64
_COUNTED: Final = 3
"""Values of a counter, so that the first words are there whether it begins with 0 or with 1."""

Words = NDArray[Any]

_COUNTERS: Final[dict[str, Callable[[int], bytes]]] = {
    "8 bytes, little-endian": lambda n: n.to_bytes(8, "little"),
    "8 bytes, big-endian": lambda n: n.to_bytes(8, "big"),
    "4 bytes, little-endian": lambda n: n.to_bytes(4, "little"),
    "4 bytes, big-endian": lambda n: n.to_bytes(4, "big"),
    "1 byte": lambda n: bytes([n]),
}

_DIGESTS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "SHA-256": lambda seed: hashlib.sha256(seed).digest(),
    "SHA-256 twice": lambda seed: hashlib.sha256(hashlib.sha256(seed).digest()).digest(),
    "SHA-512": lambda seed: hashlib.sha512(seed).digest(),
    "BLAKE2b": lambda seed: hashlib.blake2b(seed).digest(),
    "SHAKE128": lambda seed: hashlib.shake_128(seed).digest(WIDTH),
    "SHAKE256": lambda seed: hashlib.shake_256(seed).digest(WIDTH),
    "MD5": lambda seed: hashlib.md5(seed, usedforsecurity=False).digest(),
    "SHA-1": lambda seed: hashlib.sha1(seed, usedforsecurity=False).digest(),
}

_COUNTING: Final[dict[str, Callable[[bytes, bytes], bytes]]] = {
    "SHA-256 of it and a counter": lambda seed, count: hashlib.sha256(seed + count).digest(),
    "SHA-256 of a counter and it": lambda seed, count: hashlib.sha256(count + seed).digest(),
    "HMAC-SHA256 under it of a counter": lambda seed, count: hmac.digest(seed, count, "sha256"),
}


def from_bytes(seeds: Sequence[bytes], public: bytes) -> Iterator[tuple[str, Bytes]]:
    """The streams of generators that take any bytes; ``public`` is a key that everybody knows."""
    for name, digest in _DIGESTS.items():
        yield name, _rows([digest(seed) for seed in seeds])
    yield "HMAC-SHA256 under the campaign's id", _rows([hmac.digest(public, seed, "sha256") for seed in seeds])
    for name, digest_of in _COUNTING.items():
        for width, counter in _COUNTERS.items():
            counts = [counter(number) for number in range(_COUNTED)]
            blocks = [[digest_of(seed, count) for count in counts] for seed in seeds]
            # The first word of every block, which is all that many take, and the rest of the first.
            yield f"{name} ({width})", _rows([b"".join(of[:8] for of in row) + row[0][8:] for row in blocks])
    yield "Python's random", _rows([_twister(seed) for seed in seeds])


def from_integers(seeds: Sequence[int], bits: int) -> Iterator[tuple[str, Bytes]]:
    """The streams of generators that take an integer, of so many bits."""
    yield "Python's random", _rows([_twister(seed) for seed in seeds])
    yield "numpy's default_rng", _rows([np.random.default_rng(seed).bytes(WIDTH) for seed in seeds])
    if bits <= 32:
        yield "numpy's random.seed", _rows(list(_legacy(seeds)))
        yield "mulberry32", _mulberry(np.array(seeds, dtype=np.uint32))
    if bits <= 64:
        yield "splitmix64", _splitmix(np.array(seeds, dtype=np.uint64))
        yield "java.util.Random", _java(np.array(seeds, dtype=np.uint64))


def _rows(streams: Sequence[bytes]) -> Bytes:
    width = len(streams[0])
    return np.frombuffer(b"".join(streams), dtype=np.uint8).reshape(len(streams), width)


def _twister(seed: int | bytes) -> bytes:
    # Safety: this is the generator that a client must not use; nothing here is drawn by it.
    return random.Random(seed).randbytes(WIDTH)  # noqa: S311


def _legacy(seeds: Sequence[int]) -> Iterator[bytes]:
    state = np.random.RandomState()  # To seed one anew is twenty times as quick as to make another.
    for seed in seeds:
        state.seed(seed)
        yield state.bytes(WIDTH)


def _splitmix(state: Words) -> Bytes:
    """Steele, Lea, Flood 2014."""
    found = []
    for _ in range(WIDTH // 8):
        state = state + np.uint64(0x9E3779B97F4A7C15)
        word = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found.append(word ^ (word >> np.uint64(31)))
    return _as_bytes(found, "<u8")


def _mulberry(state: Words) -> Bytes:
    """The 32-bit generator that scripts for browsers use."""
    found = []
    for _ in range(WIDTH // 4):
        state = state + np.uint32(0x6D2B79F5)
        word = (state ^ (state >> np.uint32(15))) * (state | np.uint32(1))
        word ^= word + (word ^ (word >> np.uint32(7))) * (word | np.uint32(61))
        found.append(word ^ (word >> np.uint32(14)))
    return _as_bytes(found, "<u4")


def _java(seeds: Words) -> Bytes:
    """The 48-bit congruences of its documentation."""
    mask = np.uint64((1 << 48) - 1)
    state, found = (seeds ^ np.uint64(0x5DEECE66D)) & mask, []
    for _ in range(WIDTH // 4):
        state = (state * np.uint64(0x5DEECE66D) + np.uint64(0xB)) & mask
        found.append(state >> np.uint64(16))
    return _as_bytes(found, "<u4")


def _as_bytes(words: Sequence[Words], kind: str) -> Bytes:
    return np.stack(words, axis=1).astype(kind).view(np.uint8)
