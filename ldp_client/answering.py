"""From a record to perturbed reports: the one place where a person's data meets the coins.

Order matters and is part of the guarantee: the label is looked up and the record's type checked (either is refused
before anything is drawn), the question is drawn, and only then is the record read, and only at the feature asked about
(in an evaluation round, at those of its model).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ldp_client.draw import draw_questions, draw_window
from ldp_protocols import SYSTEM_COINS, Campaign, Coins, Question, RecordError, Report
from ldp_protocols.document.questions import INDEX, JOINT, LABEL, MOMENT, PRODUCT, RIGHT, SCORE, SQUARE, VALUE, signs_of
from ldp_protocols.document.schema import Projection, value_of
from ldp_protocols.exact import WORD_BITS
from ldp_protocols.features import Feature
from ldp_protocols.mechanisms import VALUE_BITS, Moment
from ldp_protocols.values import number_of
from ldp_protocols.wire import check_secret, make_secret, report_id

_ONE: Final = 1 << VALUE_BITS


def perturb(
    campaign: Campaign,
    record: Mapping[str, object],
    label: object = None,
    *,
    secret: bytes | None = None,
    coins: Coins = SYSTEM_COINS,
) -> tuple[Report, ...]:
    """Draw the question(s), answer from ``record`` and perturb; the reports together satisfy the campaign's
    epsilon-LDP.

    Parameters
    ----------
    campaign
        A parsed campaign; parsing has verified its loss.
    record
        Feature name to value, see ``ldp_protocols.values``. What cannot be used is answered as missing, never refused;
        ``ldp_client.problems`` finds it.
    label
        The record's class; None in a campaign without a label.
    secret
        The device secret, 32 bytes, that the question and the report ids derive from; None draws a fresh one, as of a
        new device.
    coins
        The source of randomness, the operating system's; anything else is for tests and simulations.

    Returns
    -------
    One report with ``answers: "one"``, one per group of questions with ``"all"``.

    Raises
    ------
    RecordError
        For a label that the campaign does not declare (any, where it has none), and for a record that is no mapping.
    LdpError
        For a secret of another length. In all three cases nothing was drawn and nothing of the record was read.
    """
    class_index = campaign.label.index_of(label)
    if class_index is None:
        raise RecordError(f"label {campaign.label.name!r} must be {campaign.label.wanted}")
    if not isinstance(record, Mapping):
        raise RecordError(
            f"a record is a mapping of feature names to values, not {type(record).__name__}", "not-a-record"
        )
    secret = make_secret(coins) if secret is None else check_secret(secret)
    first = draw_window(campaign, secret) * len(campaign.questions)
    reports = []
    for question in draw_questions(campaign, secret):
        payload = question.perturb(item_of(campaign, question, record, class_index, coins), coins)
        reports.append(Report(first + question.index, report_id(secret, campaign, question), payload))
    return tuple(reports)


def item_of(
    campaign: Campaign, question: Question, record: Mapping[str, object], class_index: int, coins: Coins
) -> int | Moment:
    """The record's answer before it is perturbed; in an evaluation round a missing value takes no part, as
    whenever the model is used.

    Safety: neither way of reading raises anything, whatever a record does when it is read; it is then taken for one
    that holds nothing. Whether a report comes must not depend on the record: a device that fell silent where one
    question was asked of one kind of record would tell which kind it has.
    """
    if question.kind in (RIGHT, SCORE):
        return _of_the_model(campaign, question, record, class_index)
    return encode(campaign, question, record, class_index, coins)


def _of_the_model(campaign: Campaign, question: Question, record: Mapping[str, object], class_index: int) -> int:
    """True if the evaluation's model says the record's class; or where its score lies, with the class."""
    evaluation = campaign.evaluation
    if evaluation is None:
        raise AssertionError("read_question gives such questions to evaluation rounds only")
    scores = evaluation.model.scores(record)
    if question.kind == RIGHT:
        return int(scores.index(max(scores)) == class_index)
    return evaluation.place_of(scores) * len(campaign.label.classes) + class_index


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
        if question.kind != JOINT:
            return index * classes + class_index
        other = campaign.feature(question.other)
        return index * other.cells + _index(campaign, other, record, coins)
    quantity = quantity_of(campaign, question, record, coins)
    cell = 0 if question.kind == PRODUCT else class_index
    fixed = 0 if quantity is None else int(quantity * _ONE)
    if question.encoding == MOMENT:
        return Moment(cell, fixed)
    return signs_of(question, classes) * cell + (2 if quantity is None else _bit(fixed, coins))


def quantity_of(campaign: Campaign, question: Question, record: Mapping[str, object], coins: Coins) -> float | None:
    """The quantity that a question about moments asks for, in [-1, 1]; None where it is missing and may be."""
    t = _scaled(campaign, campaign.feature(question.feature), record, coins)
    if question.kind == VALUE:
        return t
    if question.kind == SQUARE or question.other == question.feature:
        # The square of a value in [-1, 1], over the whole of [-1, 1] again.
        return None if t is None else 2 * (t * t) - 1
    other = _scaled(campaign, campaign.feature(question.other), record, coins)
    return None if t is None or other is None else t * other


def _bit(fixed: int, coins: Coins) -> bool:
    """1 with probability (1 + v) / 2, v being a quantity in units of 2**-52."""
    return coins.bernoulli((fixed + _ONE) << (WORD_BITS - VALUE_BITS - 1))


def _index(campaign: Campaign, feature: Feature, record: Mapping[str, object], coins: Coins) -> int:
    """The index of a feature's value; of a missing one that after the last, or random if it is called complete."""
    index = feature.index_of(value_in(campaign, feature, record, coins))
    if index is not None:
        return index
    return feature.size if feature.missing else coins.below(feature.size)


def _scaled(campaign: Campaign, feature: Feature, record: Mapping[str, object], coins: Coins) -> float | None:
    """`t = 2 (x - low) / (high - low) - 1` in doubles, x clipped; missing: None, or random if it is called complete."""
    if feature.number is None:
        raise AssertionError("read_question gives questions about moments to numbers only")
    number = number_of(value_in(campaign, feature, record, coins))
    if number is not None:
        return feature.number.scaled(number)
    return None if feature.missing else _random_t(coins)


def value_in(campaign: Campaign, feature: Feature, record: Mapping[str, object], coins: Coins) -> object:
    """The record's value of an asked feature; a projection's missing input is at its mean, or random if complete."""

    def missing(projection: Projection, position: int) -> float:
        one = projection.inputs[position]
        if one.missing:
            return projection.mean[position]
        return one.low + (_random_t(coins) + 1) * ((one.high - one.low) / 2)

    return value_of(record, feature.name, campaign.projection, missing)


def _random_t(coins: Coins) -> float:
    """A uniformly random multiple of 2**-52 in [-1, 1]."""
    return (coins.below(2 * _ONE + 1) - _ONE) / _ONE
