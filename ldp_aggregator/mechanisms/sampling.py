"""Randomness for whole arrays, for simulations: the laws of the device's coins, by the same integers.

A probability is an integer P and means P / 2**64. The generator is numpy's: whoever knows the seed can undo every
perturbation, so a device never draws here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.mechanisms.analysis import Flags, Integers, Rows
from ldp_protocols.exact import ONE

_BYTE_BITS: Final = 8
_REST_BITS: Final = 56
_WORD_BITS: Final = 64
_ROUNDS_TOGETHER: Final = 7
"""After so many bits a word of 64 comparisons is decided all over with probability 0.6; before, hardly any is."""


def index_rows(indices: Integers, width: int) -> Rows:
    """Indices as little-endian integers of ``width`` bytes, shape (n, width)."""
    return indices.astype(f"<u{width}").view(np.uint8).reshape(-1, width)


def bernoulli(probability: int, shape: int | tuple[int, ...], rng: np.random.Generator) -> Flags:
    """Independent flags, each True with probability exactly ``probability / 2**64``.

    A 64-bit word is drawn lazily: its first byte decides but for one case in 256, and only there its other 56 bits
    are drawn and compared. The law is that of comparing whole words, at an eighth of the random bytes.
    """
    if not 0 < probability < ONE:
        return np.full(shape, probability > 0)
    first, rest = divmod(probability, 1 << _REST_BITS)
    size = int(np.prod(shape))
    lanes = rng.integers(0, ONE, size=-(-size // _BYTE_BITS), dtype=np.uint64).view(np.uint8)[:size]
    flags = lanes < first
    tied = np.flatnonzero(lanes == first)
    flags[tied] = rng.integers(0, 1 << _REST_BITS, size=tied.size, dtype=np.uint64) < rest
    return flags.reshape(shape)


def bernoulli_bits(probability: int, size: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """``size`` bytes whose bits are independent, each set with probability exactly ``probability / 2**64``.

    64 comparisons of a random word with P go on at once, from the highest bit down: where the bits differ, the smaller
    number is known; where they agree, the next bit must tell. Half of what is left is decided each time, and words
    that are decided all over are put aside.
    """
    result = np.zeros(-(-size // _BYTE_BITS), dtype=np.uint64)
    undecided = np.full_like(result, ONE - 1)
    places: NDArray[np.intp] | None = None
    for position in range(_WORD_BITS - 1, -1, -1):
        ones = rng.integers(0, ONE, size=len(undecided), dtype=np.uint64)
        ones &= undecided
        undecided ^= ones  # what is undecided and drew a 0
        if probability >> position & 1:
            if places is None:
                result |= undecided
            else:
                result[places] |= undecided
            undecided = ones
        if position <= _WORD_BITS - _ROUNDS_TOGETHER:
            remaining = np.flatnonzero(undecided)
            if not remaining.size:
                break
            places = remaining if places is None else places[remaining]
            undecided = undecided[remaining]
    return result.view(np.uint8)[:size]


def bernoulli_each(probabilities: NDArray[np.uint64], rng: np.random.Generator) -> Flags:
    """One flag per entry, True with probability exactly ``probabilities[i] / 2**64``."""
    return rng.integers(0, ONE, size=probabilities.shape, dtype=np.uint64) < probabilities


def discrete_laplace(scale: Fraction, shape: int | tuple[int, ...], rng: np.random.Generator) -> Integers:
    """Noise with P(X = x) = tanh(1 / (2 t)) exp(-|x| / t): the difference of two geometric variables.

    floor(t E) of a standard exponential E is geometric: it is at least k with probability exp(-k / t).
    """
    t = float(scale)
    first = (rng.standard_exponential(shape) * t).astype(np.int64)
    return first - (rng.standard_exponential(shape) * t).astype(np.int64)
