"""From a record to the item that a question's mechanism perturbs.

Called after the question was drawn; reads the record at the asked feature (or at a projection's inputs) and nowhere
else. A missing or undeclared value is replaced by a uniformly random one (or by ``missing`` where the feature declares
it): it never changes which question is answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from protocols.document.campaign import Campaign
from protocols.document.projection import Projection
from protocols.document.questions import (
    INDEX,
    LABEL,
    MOMENT,
    PAIR,
    PRODUCT,
    SIGNS,
    SQUARE,
    TRIPLE,
    VALUE,
    XOR,
    Question,
)
from protocols.document.schema import ContinuousFeature, Feature
from protocols.exact.coins import WORD_BITS, Coins
from protocols.mechanisms import VALUE_BITS, Moment
from protocols.values import held, number_of

_ONE: Final = 1 << VALUE_BITS


def encode(
    campaign: Campaign, question: Question, record: Mapping[str, object], class_index: int, coins: Coins
) -> int | Moment:
    """The item that answers ``question`` for a record of class ``class_index``."""
    if question.kind == LABEL:
        return class_index
    classes = len(campaign.label.classes)
    feature = campaign.feature(question.feature)
    if question.encoding == INDEX:
        index = _index(campaign, feature, record, coins)
        if question.kind == TRIPLE:
            index = 2 * index + _index(campaign, campaign.feature(question.other), record, coins)
        if question.kind in (PAIR, TRIPLE):
            return index * classes + class_index
        return index ^ class_index if question.kind == XOR else index
    t = _scaled(campaign, feature, record, coins)
    if question.kind == SIGNS:
        return 4 * class_index + 2 * _bit(int(t * _ONE), coins) + _bit(int(centred_square(t) * _ONE), coins)
    if question.kind == VALUE:
        quantity = t
    elif question.kind == SQUARE or question.other == question.feature:
        quantity = centred_square(t)
    else:
        quantity = t * _scaled(campaign, campaign.feature(question.other), record, coins)
    cell = 0 if question.kind == PRODUCT else class_index
    fixed = int(quantity * _ONE)
    if question.encoding == MOMENT:
        return Moment(cell, fixed)
    return 2 * cell + _bit(fixed, coins)


def centred_square(t: float) -> float:
    """2 t^2 - 1: the square of a value in [-1, 1], over the whole of [-1, 1] again."""
    return 2 * (t * t) - 1


def _bit(fixed: int, coins: Coins) -> bool:
    """1 with probability (1 + v) / 2, v being a quantity in units of 2**-52."""
    return coins.bernoulli((fixed + _ONE) << (WORD_BITS - VALUE_BITS - 1))


def _index(campaign: Campaign, feature: Feature, record: Mapping[str, object], coins: Coins) -> int:
    """The index of a discrete feature's value, uniformly random where it is missing."""
    index = feature.index_of(_value(campaign, feature, record, coins))
    return coins.below(feature.size) if index is None else index


def _scaled(campaign: Campaign, feature: Feature, record: Mapping[str, object], coins: Coins) -> float:
    """T = 2 (x - low) / (high - low) - 1 after clipping, in double arithmetic; uniformly random where x is missing."""
    if not isinstance(feature, ContinuousFeature):
        raise AssertionError("read_question gives moment questions to continuous features only")
    number = number_of(_value(campaign, feature, record, coins))
    return _random_t(coins) if number is None else feature.scaled(number)


def _value(campaign: Campaign, feature: Feature, record: Mapping[str, object], coins: Coins) -> object:
    """The record's value of an asked feature; a projection's output is computed, missing inputs being random."""
    projection = campaign.projection
    if projection is None or feature.name not in projection.output_positions:
        return held(record, feature.name)
    values = projection.values(record, lambda position: _random_input(projection, position, coins))
    return projection.output(projection.output_positions[feature.name], values)


def _random_input(projection: Projection, position: int, coins: Coins) -> float:
    feature = projection.inputs[position]
    return feature.low + (_random_t(coins) + 1) * ((feature.high - feature.low) / 2)


def _random_t(coins: Coins) -> float:
    """A uniformly random multiple of 2**-52 in [-1, 1]."""
    return (coins.below(2 * _ONE + 1) - _ONE) / _ONE
