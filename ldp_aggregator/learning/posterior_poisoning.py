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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.joint import marginal_per_liar, sign_of
from ldp_aggregator.estimation.poisoning.intervals import Interval, column_shares, norm_sub_reach
from ldp_aggregator.estimation.poisoning.reports import class_range
from ldp_aggregator.estimation.posterior.evidence import information_of_cells, information_of_classes
from ldp_aggregator.estimation.posterior.factors import product
from ldp_aggregator.estimation.posterior.shares import PSEUDO_REPORTS, ClassShares
from ldp_aggregator.estimation.posterior.tables import FeaturePosterior, Posterior
from protocols.document.questions import MARGINAL, PAIR, TRIPLE, XOR

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PosteriorReach:
    """The most that lies move P(class), shape (C,), and every P(value | class, present), shape (values, C)."""

    classes: Array
    tables: Mapping[str, Array]


@dataclass(frozen=True)
class PosteriorLies:
    """What lies move of what is believed from ``estimates``, one for each campaign; a liar lies in all of them."""

    posterior: Posterior
    estimates: Sequence[Estimates]
    prior_questions: Sequence[QuestionEstimate]

    def reach(self, liars: int) -> PosteriorReach:
        """Of so many liars."""
        classes = self._class_reach(liars)
        told = self.posterior.classes
        return PosteriorReach(
            classes, {name: moves.table_reach(told, classes, liars) for name, moves in self._moves.items()}
        )

    @cached_property
    def _moves(self) -> Mapping[str, _Moves]:
        return {
            name: _moves_of(
                feature,
                self.estimates[0].campaign.feature(name).size,
                list(_lies(self.estimates, name, feature.frequencies)),
            )
            for name, feature in self.posterior.features.items()
        }

    def _class_reach(self, liars: int) -> Array:
        told, moved = self.posterior.classes, self._classes_moved
        if moved is None:
            return np.ones(told.value.size)
        share = norm_sub_reach(told.raw, liars * moved)
        value = (share * told.reports + 1.0) / (told.reports + told.value.size)
        return value.reach(told.value)

    @cached_property
    def _classes_moved(self) -> Array | None:
        """How far one liar moves the class shares before ``norm_sub``; None where nothing tells them."""
        told = self.posterior.classes
        count = told.value.size
        telling = {id(one) for one in self.prior_questions if one.n > 0 and one.classes is not None}
        moved, known = np.zeros(count), False
        for one in self.estimates:
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
        return moved if known else None


@dataclass(frozen=True)
class _Moves:
    """How far one liar moves ``gain @ h`` of the marginal, shape (K,), and of the effects, shape (K C,), and how far
    what is subtracted from h moves them, a matrix for each. ``told`` is whether there are reports; only the first
    ``asked`` values are ones that a record may have which is not without any.
    """

    feature: FeaturePosterior
    asked: int
    told: bool
    marginal: Array
    effects: Array
    of_marginal: Array
    of_effects: Array

    def table_reach(self, classes: ClassShares, class_reach: Array, liars: int) -> Array:
        """Of the table of values asked for, where lies move P(class) by ``class_reach``."""
        feature, first = self.feature, self.feature.marginal
        pi, m, size = classes.value, first.value, first.value.size
        if not self.told:
            return np.ones((self.asked, pi.size))
        of_classes = self.of_marginal @ product(np.full(size, 1 / size), class_reach)
        share = norm_sub_reach(first.raw, liars * self.marginal + of_classes)
        values = (share * first.effective + PSEUDO_REPORTS / size) / (first.effective + PSEUDO_REPORTS)
        value_reach = values.reach(m)
        together = product(m, class_reach) + product(value_reach, pi) + product(value_reach, class_reach)
        deviation = (feature.basis @ feature.mean).reshape(size, -1)
        deviation_reach = (liars * self.effects + self.of_effects @ together).reshape(size, -1)
        least = 1 / (classes.reports + pi.size)  # A pseudo-report a class: no share is ever below.
        of_class = Interval(np.maximum(pi - class_reach, least), pi + class_reach)
        of_value = Interval(values.low[:, None], values.high[:, None])
        raw = Interval.around(deviation, deviation_reach) / of_class + of_value
        centre = m[:, None] + deviation / pi
        nearest = norm_sub_reach(centre, raw.reach(centre))
        cells = feature.told.linear.size
        table = (nearest * feature.pseudo_reports + of_value * cells) / (feature.pseudo_reports + cells)
        if self.asked == size:
            return table.reach(feature.table)
        present = column_shares(Interval(table.low[: self.asked], table.high[: self.asked]))
        return present.reach(feature.table[: self.asked] / feature.table[: self.asked].sum(axis=0))


def _moves_of(feature: FeaturePosterior, asked: int, lies: Sequence[tuple[Array, Array]]) -> _Moves:
    information, first = feature.told.information, feature.marginal
    gain = (feature.basis * feature.kept) @ feature.basis.T

    def moved(its_gain: Array) -> Array:
        total = np.zeros(len(its_gain))
        for matrix, reach in lies:
            total += np.abs(its_gain @ matrix) @ reach
        return total

    of_marginal, of_effects = np.abs(first.gain @ information), np.abs(gain @ information)
    return _Moves(feature, asked, bool(lies), moved(first.gain), moved(gain), of_marginal, of_effects)


def _lies(estimates: Sequence[Estimates], feature: str, frequencies: Array) -> Iterator[tuple[Array, Array]]:
    """Of each answered question about a feature's cells a matrix M, shape (d, j), and a reach r, shape (j,): one lie
    moves h by M x for some |x| <= r. Of cells M is their information; of a sign it is the sign itself, and a lie moves
    the sum of the reported ones by 2.
    """
    for one in estimates:
        for question in one.questions:
            if feature not in (question.question.feature, question.question.other) or question.n == 0:
                continue
            if question.question.kind in (PAIR, TRIPLE):
                told = information_of_cells(question.question, question.n, frequencies)
                joint = question.question.kind == TRIPLE
                yield told, marginal_per_liar(question) if joint else one.per_liar[question.question.index]
            elif question.question.kind in (XOR, MARGINAL):
                sign = sign_of(question)
                yield sign.signs[:, None], np.array([2 * sign.gain])
