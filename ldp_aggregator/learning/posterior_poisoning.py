"""How far lying devices can move what the shrinking estimator believes.

Its steps are linear in the reports, but for ``norm_sub`` and for the gains, which say how much of what is reported to
believe. The gains are taken as given: that is the noise at the fitted frequencies, how large effects are
(P(tau | reports)), and the shares of values and classes where they shape the prior. Everything else is followed step by
step (:mod:`ldp_aggregator.estimation.posterior.tables` has the notation): reports to class shares, those and reports to
the marginal, all of them to the effects, and these to the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.joint import sign_of
from ldp_aggregator.estimation.poisoning.intervals import Interval, column_shares, norm_sub_reach
from ldp_aggregator.estimation.poisoning.reports import class_range
from ldp_aggregator.estimation.posterior.evidence import information_of_cells, information_of_classes
from ldp_aggregator.estimation.posterior.factors import product
from ldp_aggregator.estimation.posterior.shares import PSEUDO_REPORTS
from ldp_aggregator.estimation.posterior.tables import FeaturePosterior, Posterior
from protocols.document.questions import MARGINAL, PAIR, XOR

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PosteriorReach:
    """The most that lies move P(class), shape (C,), and every P(value | class, present), shape (values, C)."""

    classes: Array
    tables: Mapping[str, Array]


def posterior_reach(
    posterior: Posterior, estimates: Sequence[Estimates], prior_questions: Sequence[QuestionEstimate], liars: int
) -> PosteriorReach:
    """Of what is believed from ``estimates``, one for each campaign; a liar lies in all of them."""
    classes = _class_reach(posterior, estimates, prior_questions, liars)
    return PosteriorReach(
        classes,
        {
            name: _table_reach(
                posterior,
                feature,
                classes,
                list(_lies(estimates, name, feature.frequencies)),
                liars,
                size=estimates[0].campaign.feature(name).size,
            )
            for name, feature in posterior.features.items()
        },
    )


def _class_reach(
    posterior: Posterior, estimates: Sequence[Estimates], prior_questions: Sequence[QuestionEstimate], liars: int
) -> Array:
    told = posterior.classes
    count = told.value.size
    telling = {id(one) for one in prior_questions if one.n > 0 and one.classes is not None}
    moved, known = np.zeros(count), False
    for one in estimates:
        steps = [
            np.abs(told.gain @ information_of_classes(question, count)).sum(axis=1)
            * class_range(question.question, count)
            / question.n
            for question in one.questions
            if id(question) in telling
        ]
        if steps:
            known = True
            moved += np.sum(steps, axis=0) if one.campaign.privacy.answers == "all" else np.max(steps, axis=0)
    if not known:
        return np.ones(count)
    share = norm_sub_reach(told.raw, liars * moved)
    value = (share * told.reports + 1.0) / (told.reports + count)
    return value.reach(told.value)


def _lies(estimates: Sequence[Estimates], feature: str, frequencies: Array) -> Iterator[tuple[Array, Array]]:
    """Of each answered question about a feature's cells a matrix M, shape (d, j), and a reach r, shape (j,): one lie
    moves h by M x for some |x| <= r. Of cells M is their information; of a sign it is the sign itself, and a lie moves
    the sum of the reported ones by 2.
    """
    for one in estimates:
        for question in one.questions:
            if question.question.feature != feature or question.n == 0:
                continue
            if question.question.kind == PAIR:
                told = information_of_cells(question.question, question.n, frequencies)
                yield told, one.per_liar[question.question.index]
            elif question.question.kind in (XOR, MARGINAL):
                sign = sign_of(question)
                yield sign.signs[:, None], np.array([2 * sign.gain])


def _table_reach(
    posterior: Posterior,
    feature: FeaturePosterior,
    class_reach: Array,
    lies: Sequence[tuple[Array, Array]],
    liars: int,
    *,
    size: int,
) -> Array:
    """Of the first ``size`` values, which a record that is not without one may have."""
    asked, pi, m, size = size, posterior.classes.value, feature.marginal.value, feature.marginal.value.size
    if not lies:
        return np.ones((asked, pi.size))

    def moved(gain: Array) -> Array:
        """How far the lies move ``gain @ h``."""
        steps = [np.abs(gain @ matrix) @ reach for matrix, reach in lies]
        total: Array = liars * np.sum(steps, axis=0)
        return total

    told, first = feature.told.information, feature.marginal
    of_classes = np.abs(first.gain @ told) @ product(np.full(size, 1 / size), class_reach)
    share = norm_sub_reach(first.raw, moved(first.gain) + of_classes)
    values = (share * first.effective + PSEUDO_REPORTS / size) / (first.effective + PSEUDO_REPORTS)
    value_reach = values.reach(m)
    together = product(m, class_reach) + product(value_reach, pi) + product(value_reach, class_reach)
    gain = (feature.basis * feature.kept) @ feature.basis.T
    deviation = (feature.basis @ feature.mean).reshape(size, -1)
    deviation_reach = (moved(gain) + np.abs(gain @ told) @ together).reshape(size, -1)
    least = 1 / (posterior.classes.reports + pi.size)  # A pseudo-report a class: no share is ever below.
    of_class = Interval(np.maximum(pi - class_reach, least), pi + class_reach)
    of_value = Interval(values.low[:, None], values.high[:, None])
    raw = Interval.around(deviation, deviation_reach) / of_class + of_value
    centre = m[:, None] + deviation / pi
    nearest = norm_sub_reach(centre, raw.reach(centre))
    cells = feature.told.linear.size
    table = (nearest * feature.pseudo_reports + of_value * cells) / (feature.pseudo_reports + cells)
    if asked == size:
        return table.reach(feature.table)
    present = column_shares(Interval(table.low[:asked], table.high[:asked]))
    return present.reach(feature.table[:asked] / feature.table[:asked].sum(axis=0))
