"""From a record to the item that a question's mechanism perturbs.

Called after the question was drawn; reads the record at the asked feature (or at a projection's inputs) and nowhere
else. A missing or undeclared value never changes which question is answered: it has a cell of its own, or, where the
author calls the feature complete (``"missing": false``), is replaced by a uniformly random one (by ``missing`` where
that is one of the values).
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
    PRODUCT,
    SQUARE,
    VALUE,
    Question,
    signs_of,
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
        return _index(campaign, feature, record, coins) * classes + class_index
    quantity = _quantity(campaign, question, record, coins)
    cell = 0 if question.kind == PRODUCT else class_index
    fixed = 0 if quantity is None else int(quantity * _ONE)
    if question.encoding == MOMENT:
        return Moment(cell, fixed)
    return signs_of(question, classes) * cell + (2 if quantity is None else _bit(fixed, coins))


def _quantity(campaign: Campaign, question: Question, record: Mapping[str, object], coins: Coins) -> float | None:
    """What a question about moments asks for, in [-1, 1]; None where it is missing and may be."""
    t = _scaled(campaign, campaign.feature(question.feature), record, coins)
    if question.kind == VALUE:
        return t
    if question.kind == SQUARE or question.other == question.feature:
        return None if t is None else centred_square(t)
    other = _scaled(campaign, campaign.feature(question.other), record, coins)
    return None if t is None or other is None else t * other


def centred_square(t: float) -> float:
    """2 t^2 - 1: the square of a value in [-1, 1], over the whole of [-1, 1] again."""
    return 2 * (t * t) - 1


def _bit(fixed: int, coins: Coins) -> bool:
    """1 with probability (1 + v) / 2, v being a quantity in units of 2**-52."""
    return coins.bernoulli((fixed + _ONE) << (WORD_BITS - VALUE_BITS - 1))


def _index(campaign: Campaign, feature: Feature, record: Mapping[str, object], coins: Coins) -> int:
    """The index of a discrete feature's value; where it is missing that after the last, or uniformly random if the
    feature is called complete.
    """
    index = feature.index_of(_value(campaign, feature, record, coins))
    if index is not None:
        return index
    return feature.size if feature.missing else coins.below(feature.size)


def _scaled(campaign: Campaign, feature: Feature, record: Mapping[str, object], coins: Coins) -> float | None:
    """T = 2 (x - low) / (high - low) - 1 after clipping, in double arithmetic. Where x is missing None, or uniformly
    random if the feature is called complete.
    """
    if not isinstance(feature, ContinuousFeature):
        raise AssertionError("read_question gives moment questions to continuous features only")
    number = number_of(_value(campaign, feature, record, coins))
    if number is not None:
        return feature.scaled(number)
    return None if feature.missing else _random_t(coins)


def _value(campaign: Campaign, feature: Feature, record: Mapping[str, object], coins: Coins) -> object:
    """The record's value of an asked feature. A projection's output is computed: a missing input stands at its mean, as
    when a record is classified, or is random if it is called complete; without any input there is none.
    """
    projection = campaign.projection
    if projection is None or feature.name not in projection.output_positions:
        return held(record, feature.name)
    values = projection.values(record, lambda position: _absent_input(projection, position, coins))
    return None if values is None else projection.output(projection.output_positions[feature.name], values)


def _absent_input(projection: Projection, position: int, coins: Coins) -> float:
    feature = projection.inputs[position]
    if feature.missing:
        return projection.mean[position]
    return feature.low + (_random_t(coins) + 1) * ((feature.high - feature.low) / 2)


def _random_t(coins: Coins) -> float:
    """A uniformly random multiple of 2**-52 in [-1, 1]."""
    return (coins.below(2 * _ONE + 1) - _ONE) / _ONE
