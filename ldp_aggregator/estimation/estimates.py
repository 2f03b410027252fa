"""From a tally to unbiased estimates with variances and intervals, question by question.

Two estimates are kept for every discrete question: the unbiased one, and one post-processed for use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.cells import (
    Z_95,
    Array,
    Cells,
    axes_or_new,
    cell_places,
    cell_rows,
    finite_rows,
    named_rows,
    places_of,
    plot_intervals,
)
from ldp_aggregator.estimation.estimators import CampaignEstimates, QuestionEstimate, estimate_question, pool_classes
from ldp_aggregator.estimation.moments import Moments, add_record_spread, finite, present_shares, rebuild_moments
from ldp_aggregator.estimation.poisoning import class_prior_per_liar, mean_reach, per_liar
from ldp_aggregator.estimation.quantiles import ORDERS, quantile
from ldp_aggregator.estimation.ratios import (
    ShareEstimates,
    among_present,
    conditional_reach,
    conditional_table,
    missing_shares,
)
from ldp_aggregator.estimation.simplex import NORM_SUB
from ldp_protocols import Campaign
from ldp_protocols.document.questions import JOINT, PAIR, SQUARE, VALUE
from ldp_protocols.features import NumericFeature

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Estimates(CampaignEstimates):
    """The estimates of all questions of a campaign: moments and missing values too, and what liars do to these.

    Examples
    --------
    >>> import numpy as np
    >>> campaign = Campaign.compile(
    ...     {
    ...         "version": 1,
    ...         "title": "Illness",
    ...         "label": {"name": "ill", "classes": ["no", "yes"]},
    ...         "features": [{"name": "smokes", "kind": "categorical", "values": ["no", "yes"], "missing": False}],
    ...         "privacy": {"epsilon": 1, "discrete": "de"},
    ...     }
    ... )
    >>> tally = Tally(campaign)
    >>> tally.add(0, 1000, np.array([600, 400]))
    >>> found = estimate(campaign, tally)
    >>> found[0].cells.value.round(3).tolist()  # P(no) and P(yes)
    [0.716, 0.284]
    """

    def to_frame(self) -> pd.DataFrame:
        """One row per cell: question, kind, feature, mechanism, n, value, class, estimate, variance, low, high,
        per_liar, processed. Without a label no class, and the rows of :meth:`summaries`.
        """
        import pandas as pd  # Here: a server gives estimates as JSON, and has no need of it.

        records = [_about(one) | row for one in self.questions for row in self._rows(one)]
        for name, part in self.missing.items():
            about = [one for one in self.questions if one.question.feature == name]
            head = _about(about[0]) | {"feature": name, "n": sum(one.n for one in about)}
            missing = named_rows(places_of([None], [None]), cell_rows(part.cells, part.per_liar), None)
            records += [head | {"kind": "missing"} | row for row in missing]
            records += [head | {"kind": "present"} | row for row in self._present_rows(name)]
        frame = pd.DataFrame.from_records(records + self.summaries())
        if self.campaign.label:
            return frame
        return frame.drop(columns="class").astype({"question": "Int64", "n": "Int64"})

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(max_rows=60, border=0, index=False, float_format="{:.4g}".format)

    def plot(self, feature: str, axes: Axes | None = None) -> Axes:
        """Draw what is known of a feature, with 95 % intervals: P(value | class), or the mean of each class.
        Raises KeyError for a feature that the campaign does not ask about, LdpError without matplotlib.
        """
        declared, classes = self.campaign.feature(feature), self.campaign.label.classes
        axes, shape = axes_or_new(axes), (-1, len(classes))
        if declared.moments is not None:
            moments = self.moments[feature]
            reach = Z_95 * np.sqrt(moments.mean_variance)
            value, low, high = (
                ends.reshape(shape) for ends in (moments.mean, moments.mean - reach, moments.mean + reach)
            )
            plot_intervals(axes, ["mean"], classes, value, low, high)
            axes.set(xlabel=feature, xlim=(declared.moments.low, declared.moments.high))
        else:
            cells = conditional_table(self, feature).cells
            value, low, high = (ends.reshape(shape) for ends in (cells.value, cells.low, cells.high))
            value = np.where(np.isfinite(cells.variance).reshape(shape), value, np.nan)
            plot_intervals(axes, declared.cell_names, classes, value, low, high)
            axes.set(xlabel="share of the class" if self.campaign.label else "share of devices", ylabel=feature)
        if self.campaign.label:
            axes.legend(title=self.campaign.label.name)
        return axes

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready document; an infinite variance (no reports) is null."""
        return {
            "campaign": self.campaign.id,
            "epsilon": self.campaign.privacy.epsilon,
            "post": self.post,
            **(self._of_classes() if self.campaign.label else {"summaries": finite_rows(self.summaries())}),
            "moments": {
                name: {**moments.to_json(), "mean_per_liar": finite(self.mean_reach(name, 1))}
                for name, moments in self.moments.items()
            },
            "questions": [
                {
                    "question": one.question.index,
                    "kind": one.question.kind,
                    "feature": one.question.feature,
                    **({"other": one.question.other} if one.question.other else {}),
                    "mechanism": one.question.mechanism.name,
                    "epsilon": one.question.epsilon,
                    "n": one.n,
                    "cells": finite_rows(self._rows(one)),
                }
                for one in self.questions
            ],
            "missing": {
                name: finite_rows(cell_rows(part.cells, part.per_liar))[0] for name, part in self.missing.items()
            },
            "present": {name: finite_rows(self._present_rows(name)) for name in self.present},
        }

    def _of_classes(self) -> dict[str, Any]:
        prior = finite_rows(cell_rows(self.class_prior, self.class_prior_per_liar))
        return {"classes": list(self.campaign.label.classes), "class_prior": prior}

    @cached_property
    def moments(self) -> Mapping[str, Moments]:
        """Mean and variance per class of every Gaussian feature, in its own units."""
        found = {}
        for name, feature in self._gaussian.items():
            value, square = (self.asking(name, kind) for kind in (VALUE, SQUARE))
            present = present_shares(self.class_prior, (value, square))
            found[name] = rebuild_moments(feature, value.cells, square.cells, present)
        return found

    @cached_property
    def missing(self) -> Mapping[str, ShareEstimates]:
        """P(missing), shape (1,), of every asked feature that may be missing."""
        return missing_shares(self.campaign, self.questions)

    @cached_property
    def present(self) -> Mapping[str, ShareEstimates]:
        """P(value, class | present), shape (values * k,), of every discrete feature that may be missing."""
        pairs = [e for e in self.questions if e.question.kind == PAIR and e.missing is not None]
        reach = self.per_liar
        return {str(e.question.feature): among_present(e, reach[e.question.index], self.campaign) for e in pairs}

    @cached_property
    def _gaussian(self) -> Mapping[str, NumericFeature]:
        return {f.name: f.moments for f in self.campaign.asked if f.moments and (SQUARE, f.name) in self._asking}

    def mean_reach(self, feature: str, liars: int) -> Array:
        """The most that so many liars move a Gaussian feature's mean in every class, shape (k,)."""
        return mean_reach(self, self._gaussian[feature], liars)

    def moved_by(self, liars: int) -> dict[str, Any]:
        """The most that so many liars move: a class's share, and of every feature a P(value | class), or a mean of a
        class in the feature's own units. These are ratios, of which many liars move more than as many times what one
        does. None stands for no bound.
        """
        features: dict[str, float | None] = {}
        for feature in self.campaign.asked:
            if feature.moments is None:
                table = conditional_table(self, feature.name)
                reach = conditional_reach(self, table, liars)
            elif feature.name in self._gaussian:
                reach = self.mean_reach(feature.name, liars)
            else:
                continue
            [features[feature.name]] = finite(reach.max(keepdims=True))
        classes = {"classes": min(1.0, liars * self.class_prior_per_liar)} if self.campaign.label else {}
        return {"liars": liars, **classes, "features": features}

    def _rows(self, one: QuestionEstimate) -> list[dict[str, Any]]:
        """The cells of a question by the names of value and class."""
        rows = cell_rows(one.cells, self.per_liar[one.question.index])
        return named_rows(cell_places(self.campaign, one.question), rows, one.processed)

    def _present_rows(self, feature: str) -> list[dict[str, Any]]:
        """The cells of a discrete feature among those who hold a value of it; processed is what a model is made of."""
        if feature not in self.present:
            return []
        part, processed = self.present[feature], self.asking(feature, PAIR).processed
        if processed is not None:
            processed = processed[: part.cells.value.size]
            processed = processed / (processed.sum() or 1.0)
        places = places_of(self.campaign.feature(feature).names, self.campaign.label.names)
        return named_rows(places, cell_rows(part.cells, part.per_liar), processed)

    def quantile(self, feature: str, order: float = 0.5) -> tuple[float, float, float]:
        """The quantile of ``order`` (the median) of a number with bins among those who hold one, in a campaign without
        a label, and its 95 % interval; see :mod:`ldp_aggregator.estimation.quantiles`.
        """
        number = self.campaign.feature(feature).number
        if self.campaign.label or number is None or number.moments or not 0 < order < 1:
            raise ValueError(
                f"{feature} has no quantile {order}; numbers with bins have, in a campaign without a label"
            )
        return quantile(self.asking(feature, PAIR), number, order)

    def summaries(self) -> list[dict[str, Any]]:
        """The statistics of a campaign without a label but shares, a row each: ``mean``, ``deviation`` of numbers, a
        ``quantile`` of those with bins (``value`` is its order), and of features that are asked together the
        probability ``p_value`` that independent ones look so dependent. None with a label, where a model is the sum.
        """
        rows: list[dict[str, Any]] = []
        for feature in self.campaign.asked if not self.campaign.label else ():
            if feature.moments is not None:
                found = self.moments[feature.name]
                parts = {"mean": Cells.normal(found.mean, found.mean_variance), "deviation": found.deviation}
                for kind, cells in parts.items():
                    [row] = cell_rows(cells, self.mean_reach(feature.name, 1) if kind == "mean" else np.nan)
                    rows.append({"kind": kind, "feature": feature.name, **row})
            elif feature.number is not None:
                for order in ORDERS:
                    ends = zip(("estimate", "low", "high"), self.quantile(feature.name, order), strict=True)
                    rows.append({"kind": "quantile", "feature": feature.name, "value": f"{order:g}", **dict(ends)})
        for one in self.questions:
            if one.question.kind == JOINT:
                from ldp_aggregator.estimation.independence import joint_p_value  # Here: few need it, nor SciPy.

                named = {"question": one.question.index, "feature": one.question.feature, "other": one.question.other}
                rows.append({"kind": "independence", **named, "p_value": joint_p_value(self, one)})
        return rows


def _about(one: QuestionEstimate) -> dict[str, Any]:
    question = one.question
    other = {"other": question.other} if question.kind == JOINT else {}
    about = {"question": question.index, "kind": question.kind, "feature": question.feature, **other}
    return about | {"mechanism": question.mechanism.name, "n": one.n}


def estimate(campaign: Campaign, tally: Tally, *, post: str = NORM_SUB) -> Estimates:
    """Estimate every question of a tally, windows added up; ``post`` is ``norm_sub``, ``floor`` or ``none``."""
    if tally.campaign.id != campaign.id:
        raise ValueError(f"the tally is of campaign {tally.campaign.id}, not of {campaign.id}")
    tally = tally.pooled()
    classes = len(campaign.label.classes)
    open_ones = {feature.name for feature in campaign.asked if feature.missing}
    found = [
        estimate_question(one, n, counts, classes, post, missing=not open_ones.isdisjoint((one.feature, one.other)))
        for one, n, counts in zip(campaign.questions, tally.n.tolist(), tally.counts, strict=True)
    ]
    prior = pool_classes(found, classes, shared_records=campaign.privacy.answers == "all")
    answers = campaign.answers_of_a_person
    liars = tuple(
        answers * per_liar(one.question, one.n, tally.counts[one.question.index], one.cells.value.size) for one in found
    )
    questions = add_record_spread(found, prior)
    moved = answers * class_prior_per_liar(questions, classes, answers_all=campaign.privacy.answers == "all")
    return Estimates(campaign, questions, prior, post, liars, moved)
