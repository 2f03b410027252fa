"""Rows: what the shuffle bound has to know of a randomiser, four numbers.

Write mu_x for the law of a report of item x. lo(y) <= min_x mu_x(y) is the *blanket*: with probability g = sum_y lo(y)
a report is drawn from lo / g whatever the item is (Balle, Bell, Gascon, Nissim, CRYPTO 2019, arXiv 1903.02837). For two
items x and x' what counts of a report y is the pair a = mu_x(y) / lo(y), b = mu_x'(y) / lo(y), both in [1, e0]. The
bound is the expectation of a convex function of a sum of independent a - E b, so it only rises where a pair is replaced
by random pairs of the same mean. A row is what is left when all pairs are moved to the corners of that square:

    m10 = m01 = P(blanket, (e0, 1)),   m11 = P(blanket, (e0, e0)),   m00 = P(blanket, (1, 1)) = g - 2 m10 - m11.

For direct encoding, subset selection and unary bits the pairs are corners already, and nothing is lost. The share of a
pair that goes to a = e0 is (a - 1) / (e0 - 1), of mean (1 / g - 1) / (e0 - 1) for every item, as mu_x adds up to 1:
that is why m10 = m01. Moving mass from (11 and 00) to (10 and 01) spreads further, so that a pair of items that are
further apart covers those that are nearer, and records that differ in every question cover all others.

An item that is random given the record (a stochastic bit, a missing value) needs no row of its own: the divergence of
two mixtures is at most the largest of their members'. All numbers are those of the integers in the document, rational
but for the two noisy vectors, whose exponentials are taken from the side that reveals more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import Final

from protocols import Campaign, Question
from protocols.exact.rationals import exp_bounds
from protocols.mechanisms import (
    AnyMechanism,
    DirectEncoding,
    LaplaceVector,
    OneBit,
    SubsetSelection,
    SummingHistogramEncoding,
    UnaryEncoding,
)

MOST_EXPONENT: Final = 64


@dataclass(frozen=True)
class Row:
    """``ratio`` is e0, above 1; ``blanket`` is g; ``told`` is m10 = m01; ``both`` is m11."""

    ratio: Fraction
    blanket: Fraction
    told: Fraction
    both: Fraction

    @property
    def neither(self) -> Fraction:
        """m00."""
        return self.blanket - 2 * self.told - self.both

    def at_ratio(self, ratio: Fraction) -> Row:
        """The same randomiser with its pairs moved to the corners of a larger square, [1, ratio]^2."""
        share = (self.ratio - 1) / (ratio - 1)
        return Row(ratio, self.blanket, self.told * share, self.both * share)


def campaign_rows(campaign: Campaign) -> tuple[Row, ...]:
    """One row for what a device answers with ``answers: "one"``; with ``"all"`` one for each group."""
    pools = campaign.groups if campaign.privacy.answers == "all" else (campaign.questions,)
    return tuple(question_row(pool) for pool in pools)


def question_row(questions: Sequence[Question]) -> Row:
    """The row of a device that draws one of ``questions`` by their weights and sends it along in clear."""
    weights: dict[AnyMechanism, int] = {}
    for question in questions:
        weights[question.mechanism] = weights.get(question.mechanism, 0) + question.weight
    total = sum(weights.values())
    return mixed((Fraction(weight, total), _row_once(mechanism)) for mechanism, weight in weights.items())


def mixed(parts: Iterable[tuple[Fraction, Row]]) -> Row:
    """The row of one of several randomisers by lot, which one being told: ``parts`` are probabilities and rows."""
    drawn = list(parts)
    ratio = max(row.ratio for _, row in drawn)
    rows = [(share, row.at_ratio(ratio)) for share, row in drawn]
    blanket = sum((share * row.blanket for share, row in rows), Fraction(0))
    told = sum((share * row.told for share, row in rows), Fraction(0))
    both = sum((share * row.both for share, row in rows), Fraction(0))
    return Row(ratio, blanket, told, both)


@singledispatch
def row_of(mechanism: object) -> Row:
    """The row of a mechanism. Raises TypeError for one that nothing here is proved about."""
    raise TypeError(f"no row for mechanism {type(mechanism).__name__}")


@lru_cache(maxsize=1024)
def _row_once(mechanism: AnyMechanism) -> Row:
    """Many questions of a campaign have one mechanism between them."""
    return row_of(mechanism)


@row_of.register(DirectEncoding)
def _direct(mechanism: DirectEncoding) -> Row:
    """Lo is q for each of the d outputs; of one of them the ratio under x is e0, of another that under x'."""
    d, p, q = mechanism.domain_size, mechanism.p, mechanism.q
    return Row(p / q, d * q, q, Fraction(0))


@row_of.register(SubsetSelection)
def _subset(mechanism: SubsetSelection) -> Row:
    """Lo is (1 - p) / C(d - 1, w) for each of the C(d, w) subsets: their sum is (1 - p) d / (d - w). Of all subsets
    w (d - w) / (d (d - 1)) hold x and not x', w (w - 1) / (d (d - 1)) both.
    """
    d, w, p = mechanism.domain_size, mechanism.subset_size, mechanism.p
    blanket = (1 - p) * d / (d - w)
    pairs = d * (d - 1)
    ratio = p * (d - w) / ((1 - p) * w)
    return Row(ratio, blanket, blanket * Fraction(w * (d - w), pairs), blanket * Fraction(w * (w - 1), pairs))


@row_of.register(UnaryEncoding)
def _unary(mechanism: UnaryEncoding) -> Row:
    """With every bit set with probability q the law is Q, and mu_x(y) = Q(y) p / q where bit x is set,
    Q(y) (1 - p) / (1 - q) where not. So lo = Q (1 - p) / (1 - q), and bits x and x' are independent under Q.
    """
    return _bits(mechanism.p, mechanism.q)


def _bits(p: Fraction, q: Fraction) -> Row:
    blanket = (1 - p) / (1 - q)
    return Row(p * (1 - q) / (q * (1 - p)), blanket, blanket * q * (1 - q), blanket * q * q)


@row_of.register(SummingHistogramEncoding)
def _histogram(mechanism: SummingHistogramEncoding) -> Row:
    """The noise P(z) ~ a^|z|, a = exp(-1 / t), lives on whole counts, so P(z - 1) / P(z) is 1 / a from z = 1 on and a
    below: all that a cell z tells is whether it is 1 or more. Those bits are symmetric unary encoding with
    q = P(Z >= 1) = a / (1 + a) and p = P(Z >= 0) = 1 / (1 + a). A smaller a gives bits of which those of a are noisier
    copies, so a is rounded down. Clamping looks at the noisy cell alone.
    """
    a, _ = exp_bounds(-_exponent(1 / mechanism.scale))
    return _bits(1 / (1 + a), a / (1 + a))


@row_of.register(LaplaceVector)
def _laplace(mechanism: LaplaceVector) -> Row:
    """With Q the law of noise alone and G = 2^grid steps, mu of (class c, s steps) is
    Q(y) exp((|y_c| - |y_c - s|) / t), which is least, Q(y) exp(-G / t), at s = -G where y_c >= 0 and at s = G
    elsewhere: in every cell, whatever y is. So g = 1 / h, h = exp(G / t), and e0 = h^2.

    That is all that is used, as for any randomiser with a blanket: a pair (a, b) goes to (e0, 1) and (1, e0) with
    (a - b)+ and (b - a)+ over e0 - 1, so that m10 is the total variation of mu_x and mu_x' over e0 - 1; and no two laws
    above one blanket are further apart than 1 - g. m10 = (1 - g) / (e0 - 1) = 1 / (h (h + 1)) and m11 = 0: the row of
    direct encoding on h + 1 cells. h is rounded up: a part of a blanket is one, and a larger square holds the pairs.
    """
    _, h = exp_bounds(_exponent((1 << mechanism.grid) / mechanism.scale))
    return Row(h * h, 1 / h, 1 / (h * (h + 1)), Fraction(0))


def _exponent(exponent: Fraction) -> Fraction:
    """Beyond it ``exp_bounds`` bounds from one side only."""
    if exponent > MOST_EXPONENT:
        raise ValueError(f"a noisy vector's row needs an epsilon of at most {2 * MOST_EXPONENT}")
    return exponent


@row_of.register(OneBit)
def _one_bit(mechanism: OneBit) -> Row:
    """One of k cells by lot, told; the bit's probability u there lies in [1 - p, p], 1/2 in every cell but the class.
    The law of any value is a mixture of those of -1 and 1, so only these are compared. lo is (1 - p) / k for each of
    the 2 k outputs, e0 = p / (1 - p), and 1/2 stands for the ratio m = (e0 + 1) / 2, in the middle between 1 and e0.

    One class, values 1 and -1: (e0, 1) and (1, e0) in the cell, (m, m) in the k - 1 others. Two classes: (e0, m) or
    (1, m) in the cell of one, (m, e0) or (m, 1) in that of the other, (m, m) elsewhere. Each m halved between e0 and 1,
    together in (m, m): both come to m10 = g / (2 k) and m11 = m00 = g (k - 1) / (2 k).
    """
    k, p = mechanism.domain_size, mechanism.p
    blanket = 2 * (1 - p)
    return Row(p / (1 - p), blanket, blanket / (2 * k), blanket * (k - 1) / (2 * k))
