"""From a tally to unbiased estimates with variances and intervals, question by question.

Two estimates are kept for every discrete question: the unbiased one, and one post-processed for use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimators import Cells, QuestionEstimate, estimate_question
from ldp_aggregator.estimation.moments import Moments, add_record_spread, finite, present_shares, rebuild_moments
from ldp_aggregator.estimation.poisoning.quotients import mean_reach
from ldp_aggregator.estimation.poisoning.reports import class_prior_per_liar, per_liar
from ldp_aggregator.estimation.pooling import pool_classes
from ldp_aggregator.estimation.presence import Part, among_present, missing_shares
from ldp_aggregator.estimation.rows import cell_names, cells_to_json, finite_only, rows_of, value_names
from ldp_aggregator.estimation.simplex import NORM_SUB
from protocols import Campaign, Question
from protocols.document.questions import PAIR, PRODUCT, RIGHT, SQUARE, VALUE
from protocols.document.schema import ContinuousFeature

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Estimates:
    """The estimates of all questions of a campaign.

    ``class_prior`` is P(class), unbiased, pooled over every question that carries the class. ``per_liar`` has, for
    every question's cells, the most that one made-up report moves them; see
    ``ldp_aggregator.estimation.poisoning.reports``.
    """

    campaign: Campaign
    questions: tuple[QuestionEstimate, ...]
    class_prior: Cells
    post: str
    per_liar: tuple[NDArray[np.float64], ...]

    def __getitem__(self, question: int) -> QuestionEstimate:
        return self.questions[question]

    def to_frame(self) -> pd.DataFrame:
        """One row per cell: question, kind, feature, mechanism, value, class, n, estimate, variance, low, high,
        per_liar, processed.
        """
        import pandas as pd  # Here: a server gives estimates as JSON, and has no need of it.

        return pd.DataFrame.from_records(list(self._rows()))

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready document; an infinite variance (no reports) is null."""
        return {
            "campaign": self.campaign.id,
            "epsilon": self.campaign.privacy.epsilon,
            "post": self.post,
            "classes": list(self.campaign.label.classes),
            "class_prior": [
                finite_only({**row, "per_liar": self.class_prior_per_liar}) for row in cells_to_json(self.class_prior)
            ],
            "moments": {
                name: {**moments.to_json(), "mean_per_liar": finite(self.mean_reach(name, 1))}
                for name, moments in self.moments.items()
            },
            "questions": [
                {
                    "question": estimate.question.index,
                    "kind": estimate.question.kind,
                    "feature": estimate.question.feature,
                    **({"other": estimate.question.other} if estimate.question.other else {}),
                    "mechanism": estimate.question.mechanism.name,
                    "epsilon": estimate.question.epsilon,
                    "n": estimate.n,
                    "cells": [finite_only(row) for row in self.cell_rows(estimate)],
                }
                for estimate in self.questions
            ],
            "missing": {name: finite_only(self._missing_row(name)) for name in self.missing},
            "present": {name: [finite_only(row) for row in self.present_rows(name)] for name in self.present},
        }

    @cached_property
    def moments(self) -> Mapping[str, Moments]:
        """Mean and variance per class of every Gaussian feature, in its own units."""
        return {name: self._moments_of(feature) for name, feature in self._gaussian.items()}

    def _moments_of(self, feature: ContinuousFeature) -> Moments:
        value, square = (self.asking(feature.name, kind) for kind in (VALUE, SQUARE))
        return rebuild_moments(feature, value.cells, square.cells, present_shares(self.class_prior, (value, square)))

    @cached_property
    def missing(self) -> Mapping[str, Part]:
        """P(missing), shape (1,), of every asked feature that may be missing."""
        return missing_shares(self.campaign, self.questions)

    @cached_property
    def present(self) -> Mapping[str, Part]:
        """P(value, class | present), shape (values * k,), of every discrete feature that may be missing."""
        pairs = [e for e in self.questions if e.question.kind == PAIR and e.missing is not None]
        classes = len(self.campaign.label.classes)
        return {str(e.question.feature): among_present(e, self.per_liar[e.question.index], classes) for e in pairs}

    @cached_property
    def _gaussian(self) -> Mapping[str, ContinuousFeature]:
        squared = {e.question.feature for e in self.questions if e.question.kind == SQUARE}
        return {f.name: f for f in self.campaign.asked if isinstance(f, ContinuousFeature) and f.name in squared}

    @cached_property
    def class_prior_per_liar(self) -> float:
        """The most that one lying device moves a class's share."""
        classes, answers = len(self.campaign.label.classes), self.campaign.privacy.answers
        return class_prior_per_liar(self.questions, classes, answers_all=answers == "all")

    def mean_reach(self, feature: str, liars: int) -> NDArray[np.float64]:
        """Return the most that so many lying devices move a Gaussian feature's mean in every class, shape (k,)."""
        return mean_reach(self, self._gaussian[feature], liars)

    def asking(self, feature: str, kind: str) -> QuestionEstimate:
        """Return the estimate of the one question of a kind about a feature."""
        return self._asking[kind, feature]

    @cached_property
    def _asking(self) -> Mapping[tuple[str, str | None], QuestionEstimate]:
        return {(one.question.kind, one.question.feature): one for one in self.questions}

    def _rows(self) -> Iterable[dict[str, Any]]:
        for estimate in self.questions:
            question = estimate.question
            for row in self.cell_rows(estimate):
                yield {
                    "question": question.index,
                    "kind": question.kind,
                    "feature": question.feature,
                    "mechanism": question.mechanism.name,
                    "n": estimate.n,
                    **row,
                }
        for name in self.missing:
            about = [e for e in self.questions if e.question.feature == name]
            told = {"question": about[0].question.index, "feature": name, "mechanism": about[0].question.mechanism.name}
            told["n"] = sum(e.n for e in about)
            yield {
                **told,
                "kind": "missing",
                "value": None,
                "class": None,
                **self._missing_row(name),
                "processed": None,
            }
            for row in self.present_rows(name):
                yield {**told, "kind": "present", **row}

    def cell_rows(self, estimate: QuestionEstimate) -> Iterable[dict[str, Any]]:
        """The cells of a question by the names of value and class."""
        question, classes = estimate.question, self.campaign.label.classes
        names: Sequence[str | None] = cell_names(self.campaign, question) or [None]
        of_classes = (None,) if question.kind in (PRODUCT, RIGHT) else classes
        places = [(name, of_class) for name in names for of_class in of_classes]
        return rows_of(places, estimate.cells, self.per_liar[question.index], estimate.processed)

    def _missing_row(self, feature: str) -> dict[str, Any]:
        (row,) = rows_of([(None, None)], self.missing[feature].cells, self.missing[feature].per_liar, None)
        return {key: row[key] for key in ("estimate", "variance", "low", "high", "per_liar")}

    def present_rows(self, feature: str) -> Iterable[dict[str, Any]]:
        """The cells of a discrete feature among those who hold a value of it; processed is what a model is made of."""
        if feature not in self.present:
            return ()
        part, pair = self.present[feature], self.asking(feature, PAIR)
        classes = self.campaign.label.classes
        names = value_names(self.campaign.feature(feature))[:-1]
        processed = None if pair.processed is None else pair.processed[: -len(classes)]
        if processed is not None:
            processed = processed / (processed.sum() or 1.0)
        return rows_of([(name, c) for name in names for c in classes], part.cells, part.per_liar, processed)


def estimate(campaign: Campaign, tally: Tally, *, post: str = NORM_SUB) -> Estimates:
    """Estimate every question of ``campaign`` from ``tally``; ``post`` is ``norm_sub``, ``floor`` or ``none``."""
    if tally.campaign.id != campaign.id:
        raise ValueError(f"the tally is of campaign {tally.campaign.id}, not of {campaign.id}")
    classes = len(campaign.label.classes)
    found = [
        estimate_question(question, n, counts, classes, post, missing=_may_be_missing(campaign, question))
        for question, n, counts in zip(campaign.questions, tally.n.tolist(), tally.counts, strict=True)
    ]
    prior = pool_classes(found, classes, shared_records=campaign.privacy.answers == "all")
    liars = tuple(
        per_liar(one.question, one.n, counts, one.cells.value.size)
        for one, counts in zip(found, tally.counts, strict=True)
    )
    return Estimates(campaign, add_record_spread(found, prior), prior, post, liars)


def _may_be_missing(campaign: Campaign, question: Question) -> bool:
    return any(campaign.feature(name).missing for name in (question.feature, question.other) if name is not None)
