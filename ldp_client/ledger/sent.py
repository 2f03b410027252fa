"""What left a device, in words: the question, what the randomised answer says, when it left, and to whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from protocols.document.questions import signs_of

if TYPE_CHECKING:
    from protocols import Campaign, Question

_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class SentReport:
    """One report that arrived. ``asked`` and ``said`` are for people; ``said`` is noise as well as truth, and nobody
    can tell which. Where the campaign's document is no longer at hand, ``said`` is the payload in hexadecimal.
    """

    campaign_id: str
    title: str
    url: str
    at: float
    asked: str
    said: str
    payload: bytes


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
    if question.kind == "score":
        return f"whether {campaign.candidates[question.group].name} is right about {label}"
    if question.kind == "marginal" or question.feature is None:
        return question.feature or label
    if question.kind == "triple":
        return f"{question.feature}, {question.other} and {label}"
    if question.kind in {"value", "square", "signs"}:
        kind = "value and square" if question.kind == "signs" else question.kind
        return f"{question.feature} ({kind}) and {label}"
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
    if question.kind == "label":
        return classes[cell]
    if question.kind == "score":
        return ("wrong", "right")[cell]
    feature: Any = campaign.feature(question.feature)
    if question.encoding == "sign":
        class_index, end = divmod(cell, signs_of(question, len(classes)))
        if question.kind == "signs" and end < 4:
            at, square_at = (("lower", "upper")[end] for end in divmod(end, 2))
            return f"the {at} end, its square at the {square_at} end, {classes[class_index]}"
        return f"{('the lower end', 'the upper end', 'missing')[min(end, 2)]}, {classes[class_index]}"
    if question.kind == "xor":
        return " or ".join(f"{_value(feature, v)}, {classes[v ^ cell]}" for v in (0, 1))
    if question.kind == "marginal":
        return _value(feature, cell)
    value, class_index = divmod(cell, len(classes))
    if question.kind == "triple":
        first, value = divmod(value, 2)
        return f"{_value(feature, first)}, {_value(campaign.feature(question.other), value)}, {classes[class_index]}"
    return f"{_value(feature, value)}, {classes[class_index]}"


def _value(feature: Any, value: int) -> str:
    if hasattr(feature, "values") and value < len(feature.values):
        return str(feature.values[value])
    edges = (float(feature.low), *feature.inner_edges, float(feature.high)) if hasattr(feature, "inner_edges") else ()
    return f"{edges[value]:.6g} to {edges[value + 1]:.6g}" if value + 1 < len(edges) else "missing"
