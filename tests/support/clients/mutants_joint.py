"""Flaws around a question that asks two things at once, for :mod:`mutants_around`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ldp_aggregator.audit import Answer, Person
from protocols import Campaign, Report, encode_upload
from protocols.encoding import encode

if TYPE_CHECKING:
    from mutants_around import Around


def _answered(campaign: Campaign, person: Person, client: Around, kind: str) -> tuple[Report, int | None]:
    """A sound report, and what was perturbed; None where another kind of question was asked."""
    (report,) = client.reports(campaign, person)
    asked = campaign.questions[report.question]
    if asked.kind != kind:
        return report, None
    item = encode(campaign, asked, person.record, campaign.label.classes.index(person.label), client.coins)
    assert isinstance(item, int)
    return report, item


def _sent(report: Report, told: int | None) -> Answer:
    """The report, with another index told."""
    payload = report.payload if told is None else bytes([told])
    return (encode_upload([Report(report.question, report.id, payload)]),)


def _parts_for_themselves(campaign: Campaign, person: Person, client: Around) -> Answer:
    """A triple is answered as three bits, each of them with the whole of epsilon."""
    report, item = _answered(campaign, person, client, "triple")
    if item is None:
        return _sent(report, None)
    keep = 1 / (1 + math.exp(-campaign.questions[report.question].epsilon))
    return _sent(report, sum((item >> bit & 1 ^ (client.random.random() >= keep)) << bit for bit in range(3)))


def _no_answer_in_the_clear(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Of a triple, the first cell is taken for "no answer" and not perturbed."""
    report, item = _answered(campaign, person, client, "triple")
    return _sent(report, 0 if item == 0 else None)


def _class_of_signs_in_the_clear(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Of signs, the bits of value and square are perturbed, and the class is sent as it is."""
    report, item = _answered(campaign, person, client, "signs")
    return _sent(report, None if item is None else report.payload[0] & 3 | item & ~3)


def _missing_cell_in_the_clear(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Of signs, the cell of who holds no value is taken for "no answer" and not perturbed."""
    report, item = _answered(campaign, person, client, "signs")
    return _sent(report, item if item is not None and item % 5 == 4 else None)


def _missing_told_twice(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Of signs, whether there is a value is told once more, by a bit that has the whole of epsilon for itself."""
    report, item = _answered(campaign, person, client, "signs")
    if item is None:
        return _sent(report, None)
    told = report.payload[0]
    missing = told - told % 5 + 4
    flipped = client.random.random() < 1 / (1 + math.exp(campaign.questions[report.question].epsilon))
    if (item % 5 == 4) != flipped:
        return _sent(report, missing)
    return _sent(report, missing - client.random.randint(1, 4) if told == missing else told)


def _alone_where_it_is_rare(campaign: Campaign, person: Person, client: Around) -> Answer:
    """A device draws again, once, where it would tell two features at once of one class, "because that is rare"."""
    reports = client.reports(campaign, person)
    if campaign.questions[reports[0].question].kind == "triple" and person.label == campaign.label.classes[0]:
        reports = client.reports(campaign, person)
    return (encode_upload(reports),)


JOINT_FLAWS = {
    "the parts of a triple for themselves": _parts_for_themselves,
    "the first cell of a triple in the clear": _no_answer_in_the_clear,
    "the class of signs in the clear": _class_of_signs_in_the_clear,
    "the missing cell of signs in the clear": _missing_cell_in_the_clear,
    "the missing share of signs told twice": _missing_told_twice,
    "a triple drawn by the class": _alone_where_it_is_rare,
}
