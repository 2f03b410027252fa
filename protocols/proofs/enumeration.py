"""The largest likelihood ratio of a mechanism by enumeration: every item, every output, from the definitions.

It shares neither a formula with the mechanisms' own ``loss`` nor one with the closed forms, and must agree with both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import singledispatch
from itertools import combinations, product
from typing import Final

from protocols.document.campaign import Campaign
from protocols.document.verification import Verification, WorstCase, closed_form, verify
from protocols.exact.coins import ONE
from protocols.mechanisms import AnyMechanism, DirectEncoding, OneBit, SubsetSelection, UnaryEncoding

ENUMERATION: Final = "enumeration"

MOST_ENUMERATED: Final = 1 << 12
"""Probabilities (items times reports) up to which a mechanism is enumerated."""

Laws = Iterable[Sequence[Fraction]]
"""Output by output, the probability that each item has of it."""


def verify_thoroughly(campaign: Campaign) -> Verification:
    """Check every question of a campaign, by enumeration where that is possible."""
    return verify(campaign, worst_case)


def worst_case(mechanism: AnyMechanism) -> WorstCase:
    """The largest likelihood ratio: enumerated where there are few outputs, else the closed form."""
    if 0 < probabilities(mechanism) <= MOST_ENUMERATED:
        return WorstCase(max(max(law) / min(law) for law in laws(mechanism)), Fraction(0), ENUMERATION)
    return closed_form(mechanism)


def probabilities(mechanism: AnyMechanism) -> int:
    """How many probabilities :func:`laws` gives; 0 where there is no end of them."""
    d = mechanism.domain_size
    if isinstance(mechanism, DirectEncoding):
        return d * d
    if isinstance(mechanism, UnaryEncoding):
        # A number of outputs that has no end in practice is not worked out.
        return d << d if d < MOST_ENUMERATED.bit_length() else 0
    if isinstance(mechanism, SubsetSelection):
        return d * math.comb(d, mechanism.subset_size)
    if isinstance(mechanism, OneBit):
        return 6 * d * d
    return 0


@singledispatch
def laws(mechanism: object) -> Laws:
    """The law of every output, by the mechanism's definition."""
    raise TypeError(f"no definition of mechanism {type(mechanism).__name__} to enumerate")


@laws.register(DirectEncoding)
def _direct_laws(mechanism: DirectEncoding) -> Laws:
    d, p, q = mechanism.domain_size, mechanism.p, mechanism.q
    return ([p if item == output else q for item in range(d)] for output in range(d))


@laws.register(UnaryEncoding)
def _unary_laws(mechanism: UnaryEncoding) -> Laws:
    d, p, q = mechanism.domain_size, mechanism.p, mechanism.q
    for bits in product((False, True), repeat=d):
        told = [q if bit else 1 - q for bit in bits]
        yield [math.prod(told[:item]) * (p if bits[item] else 1 - p) * math.prod(told[item + 1 :]) for item in range(d)]


@laws.register(SubsetSelection)
def _subset_laws(mechanism: SubsetSelection) -> Laws:
    d, w, p = mechanism.domain_size, mechanism.subset_size, mechanism.p
    inside, outside = p / math.comb(d - 1, w - 1), (1 - p) / math.comb(d - 1, w)
    for members in combinations(range(d), w):
        yield [inside if item in members else outside for item in range(d)]


@laws.register(OneBit)
def _one_bit_laws(mechanism: OneBit) -> Laws:
    """Items (class, v) with v at its ends, and 0 as every other class has it; the closed form has what lies between."""
    k, highest = mechanism.domain_size, mechanism.highest
    lowest = ONE - highest
    middle = lowest + (highest - lowest) // 2
    for cell, bit in product(range(k), (True, False)):
        ones = [threshold if item == cell else middle for item in range(k) for threshold in (lowest, middle, highest)]
        yield [Fraction(one if bit else ONE - one, ONE * k) for one in ones]
