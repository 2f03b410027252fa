"""A report in words: for people who want to see how little one of them says."""

from __future__ import annotations

from typing import Any, Final

from ldp_aggregator.estimation.cell_tables import score_names
from ldp_aggregator.mechanisms import analysis_of
from protocols import Campaign, Question
from protocols.document.questions import INDEX, LABEL, PRODUCT, RIGHT, SCORE, SIGN, signs_of
from protocols.document.schema import ContinuousFeature

_MOST_NAMED: Final = 3


def read_report(campaign: Campaign, question: Question, payload: bytes) -> str:
    """Say what a payload says, and with what probability it is true where it says something definite."""
    mechanism: Any = question.mechanism
    numbers = analysis_of(mechanism).numbers(payload)
    if numbers is not None:
        return f"{question.feature or campaign.label.name}: {numbers}, of which noise is the most"
    cells = list(mechanism.support(payload))
    named = "; ".join(cell_name(campaign, question, cell) for cell in cells[:_MOST_NAMED])
    if len(cells) == 1 and mechanism.joint_support[0] == 0:
        return f"{named} (true with probability {float(mechanism.p):.2f})"
    more = "; ..." if len(cells) > _MOST_NAMED else ""
    return (
        f"{len(cells)} of {question.domain_size} answers are marked{': ' if cells else ''}{named}{more} "
        f"(the true one is among them with probability {float(mechanism.p):.2f})"
    )


def cell_name(campaign: Campaign, question: Question, cell: int) -> str:
    """Say what a cell of a question about an index, or about a sign, stands for."""
    classes = campaign.label.classes
    if question.kind == LABEL:
        return f"{campaign.label.name} is {classes[cell]}"
    if question.encoding == SIGN:
        class_index, end = divmod(cell, signs_of(question, len(classes)))
        said = ("leans to the lower end", "leans to the upper end", "is missing")[end]
        place = f"{question.feature} ({question.kind}) {said}"
        return place if question.kind == PRODUCT else f"{place} and {campaign.label.name} is {classes[class_index]}"
    if question.encoding != INDEX:
        raise ValueError(f"question {question.index} has noisy numbers, not cells with a meaning")
    if question.kind == RIGHT:
        return f"the model is {'right' if cell else 'wrong'}"
    value, class_index = divmod(cell, len(classes))
    ending = f" and {campaign.label.name} is {classes[class_index]}"
    if question.kind == SCORE:
        return f"the model's score is {score_names(campaign)[value]}{ending}"
    return _value_name(campaign, question.feature, value) + ending


def _value_name(campaign: Campaign, name: str | None, value: int) -> str:
    feature = campaign.feature(name)
    if value == feature.size:
        return f"{feature.name} is missing"
    if not isinstance(feature, ContinuousFeature):
        return f"{feature.name} is {feature.values[value]}"
    edges = (float(feature.low), *feature.inner_edges, float(feature.high))
    return f"{feature.name} is from {edges[value]:.6g} to {edges[value + 1]:.6g}"
