"""What left a device, in words: the question, what the randomised answer says, when it left, and to whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from protocols.document.questions import LABEL, PRODUCT, RIGHT, SCORE, SQUARE, VALUE, signs_of

if TYPE_CHECKING:
    from protocols import Campaign, Question

_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class SentReport:
    """One report whose upload began. ``asked`` and ``said`` are for people; ``said`` is noise as well as truth, and
    nobody can tell which. Where the campaign's document is no longer at hand, ``said`` is the payload in hexadecimal.

    ``at`` is when it left for the first time. ``reply`` is what the server says: ``arrived``, or the code with which it
    refused the report, which it may have counted all the same; None where no answer has come.
    """

    campaign_id: str
    title: str
    url: str
    at: float
    asked: str
    said: str
    payload: bytes
    reply: str | None


@dataclass(frozen=True)
class QuarantinedReport:
    """One report that a server would not take, with its code."""

    campaign_id: str
    question: int
    code: str
    payload: bytes


def asked(campaign: Campaign, question: Question) -> str:
    """What a question is about."""
    label = campaign.label.name
    if question.kind == RIGHT:
        return f"whether the model is right about {label}"
    if question.kind == SCORE:
        return f"what the model says of {label}, and {label}"
    if question.kind == LABEL:
        return label
    if question.kind in (VALUE, SQUARE):
        return f"{question.feature} ({question.kind}) and {label}"
    return f"{question.feature} and {question.other or label}"


def said(campaign: Campaign, question: Question, payload: bytes) -> str:
    """What a payload claims."""
    mechanism: Any = question.mechanism
    if not hasattr(mechanism, "support"):
        return f"{len(payload)} bytes of numbers, of which noise is the most"
    cells = sorted(mechanism.support(payload))
    named = "; ".join(_cell(campaign, question, cell) for cell in cells[:_MOST_NAMED])
    chance = f"true with probability {float(mechanism.p):.2f}"
    if len(cells) == 1 and len(payload) <= 4 and mechanism.name == "de":
        return f"{named} ({chance})"
    more = "; ..." if len(cells) > _MOST_NAMED else ""
    return f"{len(cells)} of {question.domain_size} answers are marked: {named}{more} (the true one is: {chance})"


def _cell(campaign: Campaign, question: Question, cell: int) -> str:
    classes = campaign.label.classes
    if question.kind == LABEL:
        return classes[cell]
    if question.kind == RIGHT:
        return ("wrong", "right")[cell]
    value, class_index = divmod(cell, len(classes))
    if question.kind == SCORE:
        return f"{_place(campaign, value)}, {classes[class_index]}"
    feature: Any = campaign.feature(question.feature)
    if question.encoding == "sign":
        class_index, end = divmod(cell, signs_of(question, len(classes)))
        named = ("the lower end", "the upper end", "missing")[end]
        return named if question.kind == PRODUCT else f"{named}, {classes[class_index]}"
    return f"{_value(feature, value)}, {classes[class_index]}"


def _place(campaign: Campaign, place: int) -> str:
    """Return a class that the model says, or a bin of its log odds."""
    edges = campaign.evaluation.edges if campaign.evaluation else None
    if edges is None:
        return f"the model says {campaign.label.classes[place]}"
    ends = ("-infinity", *(f"{edge:g}" for edge in edges), "infinity")
    return f"log odds from {ends[place]} to {ends[place + 1]}"


def _value(feature: Any, value: int) -> str:
    if hasattr(feature, "values") and value < len(feature.values):
        return str(feature.values[value])
    edges = (float(feature.low), *feature.inner_edges, float(feature.high)) if hasattr(feature, "inner_edges") else ()
    return f"{edges[value]:.6g} to {edges[value + 1]:.6g}" if value + 1 < len(edges) else "missing"
