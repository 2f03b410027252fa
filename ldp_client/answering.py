"""From a record to perturbed reports: the one place where a person's data meets the coins.

Order matters and is part of the guarantee: the label is looked up (an undeclared one is refused before anything is
drawn), the question is drawn, and only then is the record read, and only at the feature asked about.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from protocols import SYSTEM_COINS, Campaign, Coins, Question, RecordError, Report
from protocols.encoding import encode
from protocols.wire.reports import SECRET_BYTES, report_id


def perturb(
    campaign: Campaign,
    record: Mapping[str, object],
    label: object,
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
        Feature name to value; what a value means is in ``docs/values.md`` and ``protocols.values``. Missing and
        undeclared values are answered as the campaign says, never refused; ``ldp_client.problems`` finds them.
    label
        The record's class. Raises RecordError, before anything is drawn, unless the campaign declares it.
    secret
        The device secret that the report ids derive from; None takes a fresh one from the operating system.
    coins
        The source of randomness; anything but the default is for tests and simulations.

    Returns
    -------
    One report with ``answers: "one"``, one per group of questions with ``"all"``.
    """
    classes = campaign.label.classes
    class_index = campaign.label.index_of(label)
    if class_index is None:
        raise RecordError(f"label {campaign.label.name!r} must be one of {', '.join(classes)}")
    if secret is None:
        secret = os.urandom(SECRET_BYTES)
    reports = []
    for question in draw_questions(campaign, coins):
        item = encode(campaign, question, record, class_index, coins)
        payload = question.perturb(item, coins)
        reports.append(Report(question.index, report_id(secret, campaign, question), payload))
    return tuple(reports)


def draw_questions(campaign: Campaign, coins: Coins) -> tuple[Question, ...]:
    """The questions a device answers, drawn by their weights without looking at any record."""
    if campaign.privacy.answers == "all":
        return tuple(_draw(group, coins) for group in campaign.groups)
    return (_draw(campaign.questions, coins),)


def _draw(questions: Sequence[Question], coins: Coins) -> Question:
    """One question, with probability proportional to its weight; a single question takes no coin."""
    ticket = coins.below(sum(question.weight for question in questions))
    for question in questions:
        ticket -= question.weight
        if ticket < 0:
            return question
    raise AssertionError("a ticket is below the sum of the weights")
