"""The figures that an evaluation round tells of its model, and how precise they will be.

A device answers one of two questions about one model: whether it is right (one bit, by direct encoding on two cells:
with e = exp(epsilon), n Var = e / (e - 1)^2 + a (1 - a) for an accuracy a), or where its score lies, with the class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from scipy.special import expit

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.estimators import answers
from ldp_aggregator.estimation.evidence import covariance_of_cells
from ldp_aggregator.evaluation.accuracy import RECORDS, UNTOLD, Accuracy, Figure, figures_by_class
from ldp_aggregator.evaluation.score_table import ScoreTable, class_cells, right_cells, saying_cells
from ldp_aggregator.learning.expected_accuracy import draw_scores
from ldp_protocols import Campaign
from ldp_protocols.document.authored import SCORE as SCORES
from ldp_protocols.document.authored import Evaluation
from ldp_protocols.document.questions import RIGHT, SCORE

_FEWEST: Final = 100
"""Answers to a question below which nothing is told of it."""


@dataclass(frozen=True)
class Evaluated:
    """The figures that an evaluation round tells of its model; shares of all people where nothing else is said.

    ``accuracy`` is that of the model as it is published, with ``threshold`` of the log odds instead of 0 where that is
    clearly better; ``reason`` says which and why, ``as_trained`` what the model's own threshold reaches. Log odds are
    multiplied by ``slope``, which is not 1 where the model is clearly too sure, or too unsure. Of the model as it is
    published: ``confusion`` has the class said first, then the record's; ``recall`` and ``precision`` are by class.
    With two classes ``roc`` has, for every threshold of the model as it was trained, how often the second class is said
    of who is of the first and of the second, ``area`` the area under it, and ``calibration``, for every bin of the
    score, what it claims of the second class and how frequent that is.
    """

    campaign: str
    epsilon: float
    devices: int
    accuracy: Figure
    threshold: float
    slope: float
    reason: str
    as_trained: Figure
    classes: Mapping[str, Figure]
    confusion: Sequence[Sequence[Figure]]
    recall: Mapping[str, Figure]
    precision: Mapping[str, Figure]
    area: Figure | None
    roc: Sequence[Mapping[str, Any]]
    calibration: Sequence[Mapping[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """As a model carries it under ``evaluated``."""
        return asdict(self)


def evaluate(campaign: Campaign, tally: Tally) -> Evaluated:
    """The figures of an evaluation round. Raises ValueError for any other campaign."""
    evaluation, names = evaluation_of(campaign), campaign.label.classes
    answered = {one.question.kind: one for one in estimate(campaign, tally).questions if one.n >= _FEWEST}
    table = ScoreTable.of(answered[SCORE], evaluation) if SCORE in answered else None
    accuracy = Accuracy.of(evaluation, answered.get(RIGHT), answered.get(SCORE), table)
    as_trained = accuracy.as_trained() if answered else UNTOLD
    published, threshold, reason = as_trained, 0.0, f"fewer than {_FEWEST} answers tell nothing"
    if table is not None and evaluation.edges is None:
        reason = "with more than two classes no threshold is moved"
    elif table is not None:
        published, threshold, reason = accuracy.published(evaluation)
    about = campaign.id, campaign.privacy.epsilon, int(tally.n.sum())
    untold = dict.fromkeys(names, UNTOLD)
    found = Evaluated(*about, published, threshold, 1.0, reason, as_trained, untold, [], untold, untold, None, (), ())
    if table is None:
        return found
    said, classes, slope = (
        saying_cells(evaluation, threshold),
        class_cells(evaluation),
        accuracy.slope(evaluation, threshold),
    )
    found = replace(found, slope=slope)
    if evaluation.edges is not None:
        roc, calibration = _roc(table, evaluation), _calibration(table, evaluation, threshold, slope)
        found = replace(found, area=Figure.of(table.area()), roc=roc, calibration=calibration)
    return replace(
        found,
        classes=figures_by_class(names, table.share(classes)),
        confusion=[list(figures_by_class(names, table.share(one & classes)).values()) for one in said],
        recall=figures_by_class(names, table.ratio(said & classes, classes)),
        precision=figures_by_class(names, table.ratio(said & classes, said)),
    )


@dataclass(frozen=True)
class Foreseen:
    """Expected standard errors, by the model's tables, of accuracy, recall by class and ROC area; None if not told."""

    devices: int
    accuracy: float
    recall: Mapping[str, float | None]
    area: float | None


def foresee(campaign: Campaign, devices: int) -> Foreseen:
    """The precision of an evaluation round's figures with so many devices."""
    evaluation = evaluation_of(campaign)
    scores, of = draw_scores(evaluation.model, RECORDS, np.random.default_rng(0))
    places = scores.argmax(axis=1)
    if evaluation.edges is not None:
        places = np.searchsorted(np.array(evaluation.edges), scores[:, 1] - scores[:, 0], side="left")
    classes = len(evaluation.model.classes)
    law = np.bincount(places * classes + of, minlength=evaluation.places * classes).astype(np.float64) / RECORDS
    n = {one.kind: number for one, number in zip(campaign.questions, answers(campaign, devices), strict=True)}
    by_kind = {one.kind: one for one in campaign.questions}
    right = float(law[right_cells(evaluation).ravel()].sum())
    variances = []
    if RIGHT in by_kind:
        bit = covariance_of_cells(by_kind[RIGHT], np.array([1 - right, right]))[1, 1]
        variances.append(float(bit) / n[RIGHT])
    recall: dict[str, float | None] = dict.fromkeys(evaluation.model.classes)
    area = None
    if SCORE in by_kind:
        covariance = covariance_of_cells(by_kind[SCORE], law) / n[SCORE]
        table = ScoreTable(law.reshape(evaluation.places, classes), covariance, by_kind[SCORE], n[SCORE])
        variances.append(float(table.share(right_cells(evaluation)).variance[0]))
        recalls = table.ratio(saying_cells(evaluation) & class_cells(evaluation), class_cells(evaluation)).variance
        recall = {name: _finite_root(one) for name, one in zip(evaluation.model.classes, recalls, strict=True)}
        area = _finite_root(table.area().variance[0]) if evaluation.edges is not None else None
    return Foreseen(devices, sum(1 / one for one in variances) ** -0.5, recall, area)


def _roc(table: ScoreTable, evaluation: Evaluation) -> list[dict[str, Any]]:
    found = []
    for edge in evaluation.edges or ():
        second = saying_cells(evaluation, edge)[1]
        rates = table.ratio(second[None] & class_cells(evaluation), class_cells(evaluation))
        found.append({"threshold": edge, "false_positive": Figure.of(rates, 0), "true_positive": Figure.of(rates, 1)})
    return found


def _calibration(table: ScoreTable, evaluation: Evaluation, threshold: float, slope: float) -> list[dict[str, Any]]:
    edges = (-math.inf, *(slope * (edge - threshold) for edge in evaluation.edges or ()), math.inf)
    bins = np.broadcast_to(np.eye(evaluation.places, dtype=bool)[:, :, None], (evaluation.places, evaluation.places, 2))
    shares, measured = table.share(bins), table.ratio(bins & class_cells(evaluation)[1], bins)
    return [
        {
            "claims": [float(expit(low)), float(expit(high))],
            "share": Figure.of(shares, place),
            "measured": Figure.of(measured, place),
        }
        for place, (low, high) in enumerate(pairwise(edges))
    ]


def _finite_root(variance: float) -> float | None:
    return math.sqrt(variance) if math.isfinite(variance) else None


def evaluation_of(campaign: Campaign) -> Evaluation:
    if campaign.evaluation is None:
        raise ValueError(f'campaign {campaign.id} has "asks": "{campaign.asks}"; an evaluation round has "{SCORES}"')
    return campaign.evaluation
