"""A trainer's coins, from the operating system or a seed for experiments that must repeat, and the noise they make.

Discrete Laplace noise comes for whole arrays, drawn exactly: Canonne, Kamath, Steinke 2020, Algorithms 1 and 2.

The law and the algorithm are those of :func:`ldp_protocols.exact.discrete_laplace`; every comparison is one of
integers, here of 64 bits and many at a time. The scale is first rounded *up* to a fraction whose numerator leaves room
in 64 bits (by less than one part in 10^11), which is a little more noise than promised, never less.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ldp_protocols.exact import SYSTEM_COINS, Coins, SystemCoins

RandomState = int | np.random.Generator | np.random.RandomState | None


class PrivacyWarning(UserWarning):
    """The result protects less than its epsilon says; the message says why."""


class SeededCoins(Coins):
    """Reproducible words; whoever knows the seed can take the noise off again."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def words(self, count: int) -> Sequence[int]:
        return struct.unpack(f"<{count}Q", self.packed(count))

    def packed(self, count: int) -> bytes:
        """The same words, little-endian."""
        return self._generator.bytes(8 * count)


def word_array(coins: Coins, count: int) -> NDArray[np.uint64]:
    """``coins.words`` as an array; without a detour over Python's integers where the coins are known."""
    if type(coins) is SystemCoins:
        return np.frombuffer(os.urandom(8 * count), dtype="<u8")
    if isinstance(coins, SeededCoins):
        return np.frombuffer(coins.packed(count), dtype="<u8")
    return np.array(coins.words(count), dtype=np.uint64)


_LEARNED: Final[WeakValueDictionary[int, object]] = WeakValueDictionary()
"""The tables and labels that this process has learned from, by their identity, as long as they live."""


def warn_of_second_fit(*given: object, accountant: object, random_state: RandomState) -> None:
    """Warn where ``given``, a table or its labels, was learned from before and no accountant adds the epsilons up.

    The objects are compared, never what they hold: a warning that followed from the rows would tell neighbouring tables
    apart. A copy is therefore another table. What a seed drew is not for release, and has warned already.
    """
    if accountant is not None or random_state is not None:
        return
    if any(_LEARNED.get(id(one)) is one for one in given if one is not None):
        warnings.warn(
            "this table was learned from before: the epsilons of all fits add up. Give them one "
            "accountant=Accountant(total), which refuses what is too much",
            PrivacyWarning,
            stacklevel=3,
        )
    for one in given:
        with suppress(TypeError):  # Lists have no weak references.
            _LEARNED[id(one)] = one


def coins_of(random_state: RandomState) -> Coins:
    """The operating system's CSPRNG for None; anything else is a seed, and warns that its output must stay inside."""
    if random_state is None:
        return SYSTEM_COINS
    warnings.warn(
        "noise from random_state can be taken off by whoever knows the seed: for experiments, never for release",
        PrivacyWarning,
        stacklevel=3,
    )
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    return SeededCoins(np.random.default_rng(random_state))


Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

_SCALE_BITS: Final = 40
_LARGEST_SCALE: Final = 1 << 50

STEPS: Final = 1 << 20
"""Grid steps to which :func:`release` divides a query's sensitivity."""


def discrete_laplace(scale: Fraction, count: int, coins: Coins) -> Integers:
    """``count`` independent draws with P(X = x) = tanh(1 / (2 t)) exp(-|x| / t), t = :func:`drawable` of ``scale``."""
    rounded = drawable(scale)
    result: Integers = np.zeros(count, dtype=np.int64)
    pending = np.arange(count)
    while pending.size:
        succeeded, magnitude = _magnitudes(rounded, pending.size, coins)
        places = pending[succeeded]
        negative = below(np.full(places.size, 2, dtype=np.uint64), coins) == 1
        settled = ~(negative & (magnitude == 0))
        result[places[settled]] = np.where(negative, -magnitude, magnitude)[settled]
        unsettled = np.ones(count, dtype=bool)
        unsettled[places[settled]] = False
        pending = pending[unsettled[pending]]
    return result


def drawable(scale: Fraction) -> Fraction:
    """The least scale, not below ``scale``, that the sampler can draw; ValueError beyond 2^50."""
    if not 0 < scale <= _LARGEST_SCALE:
        raise ValueError(f"a noise scale of {float(scale):g} grid steps is not drawn; epsilon is too small for this")
    bits = _SCALE_BITS - max(0, math.ceil(scale).bit_length())
    unit = Fraction(1, 1 << bits) if bits > 0 else Fraction(1)
    return math.ceil(scale / unit) * unit


def release(value: Fraction, sensitivity: Fraction, epsilon: Fraction, coins: Coins) -> Fraction:
    """A rational query's value with noise on a grid of ``sensitivity`` / :data:`STEPS`, whose rounding it covers."""
    if sensitivity == 0:
        return value
    step = sensitivity / STEPS
    noise = int(discrete_laplace(Fraction(STEPS + 1) / epsilon, 1, coins)[0])
    return (math.floor(value / step + Fraction(1, 2)) + noise) * step


def _magnitudes(rounded: Fraction, tries: int, coins: Coins) -> tuple[Flags, Integers]:
    """Success of each of so many tries, and the geometric draws of the successful ones (Algorithm 2 up to the sign)."""
    numerator, denominator = rounded.numerator, rounded.denominator
    offset = below(np.full(tries, numerator, dtype=np.uint64), coins)
    succeeded = _bernoulli_exp(offset, numerator, coins)
    offset = offset[succeeded]
    return succeeded, (offset.astype(np.int64) + numerator * _periods(offset.size, coins)) // denominator


def _periods(count: int, coins: Coins) -> Integers:
    """Geometric: how often Bernoulli(exp(-1)) comes out true in a row."""
    periods: Integers = np.zeros(count, dtype=np.int64)
    running = np.arange(count)
    while running.size:
        running = running[_bernoulli_exp(np.ones(running.size, dtype=np.uint64), 1, coins)]
        periods[running] += 1
    return periods


def _bernoulli_exp(numerators: Words, denominator: int, coins: Coins) -> Flags:
    """True with probability exp(-numerator / denominator), for 0 <= numerator <= denominator (Algorithm 1)."""
    trials = np.ones(numerators.size, dtype=np.int64)
    running = np.arange(numerators.size)
    while running.size:
        bounds = trials[running].astype(np.uint64) * np.uint64(denominator)
        running = running[below(bounds, coins) < numerators[running]]
        trials[running] += 1
    return np.asarray(trials % 2 == 1)


def below(bounds: Words, coins: Coins) -> Words:
    """Uniform integers in [0, bound), each by rejection of the word's low bits; bounds are at most 2^63."""
    masks = bounds - np.uint64(1)
    for shift in (1, 2, 4, 8, 16, 32):
        masks |= masks >> np.uint64(shift)
    values: Words = np.zeros(bounds.size, dtype=np.uint64)
    pending = np.arange(bounds.size)
    while pending.size:
        drawn = word_array(coins, pending.size) & masks[pending]
        right = drawn < bounds[pending]
        values[pending[right]] = drawn[right]
        pending = pending[~right]
    return values
