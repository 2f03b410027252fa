"""Blankets: what the shuffle bound has to know of a randomiser, four numbers.

Write mu_x for the law of a report of item x. lo(y) <= min_x mu_x(y) is the *blanket*: with probability g = sum_y lo(y)
a report is drawn from lo / g whatever the item is (Balle, Bell, Gascon, Nissim, CRYPTO 2019, arXiv 1903.02837). For two
items x and x' what counts of a report y is the pair a = mu_x(y) / lo(y), b = mu_x'(y) / lo(y), both in [1, e0]. The
bound is the expectation of a convex function of a sum of independent a - E b, so it only rises where a pair is replaced
by random pairs of the same mean. A :class:`~ldp_aggregator.mechanisms.facts.Blanket` is what is left when all pairs are
moved to the corners of that square:

    m10 = m01 = P(blanket, (e0, 1)),   m11 = P(blanket, (e0, e0)),   m00 = P(blanket, (1, 1)) = g - 2 m10 - m11.

For direct encoding, subset selection and unary bits the pairs are corners already, and nothing is lost. The share of a
pair that goes to a = e0 is (a - 1) / (e0 - 1), of mean (1 / g - 1) / (e0 - 1) for every item, as mu_x adds up to 1:
that is why m10 = m01. Moving mass from (11 and 00) to (10 and 01) spreads further, so that a pair of items that are
further apart covers those that are nearer, and records that differ in every question cover all others.

An item that is random given the record (a stochastic bit, a missing value) needs no numbers of its own: the divergence
of two mixtures is at most the largest of their members'. All numbers are those of the integers in the document,
rational but for the two noisy vectors, whose exponentials are taken from the side that reveals more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache

from ldp_aggregator.mechanisms import facts_of
from ldp_aggregator.mechanisms.facts import Blanket
from protocols import Campaign, Question
from protocols.mechanisms import AnyMechanism


def campaign_blankets(campaign: Campaign) -> tuple[Blanket, ...]:
    """The blanket of what a device answers with ``answers: "one"``; with ``"all"`` one for each group."""
    return tuple(drawn_blanket(pool) for pool in campaign.pools)


def drawn_blanket(questions: Sequence[Question]) -> Blanket:
    """The blanket of a device that draws one of ``questions`` by their weights and sends it along in clear."""
    weights: dict[AnyMechanism, int] = {}
    for question in questions:
        weights[question.mechanism] = weights.get(question.mechanism, 0) + question.weight
    total = sum(weights.values())
    return mixed((Fraction(weight, total), blanket_of(mechanism)) for mechanism, weight in weights.items())


def mixed(parts: Iterable[tuple[Fraction, Blanket]]) -> Blanket:
    """The blanket of one of several randomisers by lot, which one being told: ``parts`` are probabilities and
    blankets.
    """
    drawn = list(parts)
    ratio = max(blanket.ratio for _, blanket in drawn)
    parts = [(share, blanket.at_ratio(ratio)) for share, blanket in drawn]
    mass = sum((share * blanket.mass for share, blanket in parts), Fraction(0))
    told = sum((share * blanket.told for share, blanket in parts), Fraction(0))
    both = sum((share * blanket.both for share, blanket in parts), Fraction(0))
    return Blanket(ratio, mass, told, both)


@lru_cache(maxsize=1024)
def blanket_of(mechanism: AnyMechanism) -> Blanket:
    """The blanket of a mechanism, once: many questions of a campaign have one mechanism between them."""
    return facts_of(mechanism).blanket()
