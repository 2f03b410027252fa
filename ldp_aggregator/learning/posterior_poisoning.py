"""How far lying devices can move what the shrinking estimator believes.

Its steps are linear in the reports, but for ``norm_sub`` and for the gains, which say how much of what is reported to
believe. The gains are taken as given: that is the noise at the fitted frequencies, how large effects are
(P(tau | reports)), and the shares of values and classes where they shape the prior. A cell that lies can empty or fill
may become anything, whatever the gains. Everything else is followed step by step
(:mod:`ldp_aggregator.estimation.posterior.tables` has the notation): reports to class shares, those and reports to
who holds no value, all of them to the marginal, to the effects, and these to the table.
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
from ldp_aggregator.estimation.poisoning.intervals import Interval, norm_sub_reach
from ldp_aggregator.estimation.poisoning.reports import class_range
from ldp_aggregator.estimation.posterior.absence import MOST
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
            name: _moves_of(feature, list(_lies(self.estimates, name, feature.frequencies)))
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
    """How far one liar moves ``gain @ h`` of the marginal, shape (K,), of the effects, shape (K C,), and of who holds
    no value, shape (C,), and how far what is subtracted from h moves the first two, a matrix for each: P(value, class,
    present), and the frequencies of missing cells. ``told`` is whether there are reports.
    """

    feature: FeaturePosterior
    told: bool
    marginal: Array
    effects: Array
    absent: Array
    of_marginal: tuple[Array, Array]
    of_effects: tuple[Array, Array]

    def table_reach(self, classes: ClassShares, class_reach: Array, liars: int) -> Array:
        """Of the table of values asked for, where lies move P(class) by ``class_reach``."""
        feature, first = self.feature, self.feature.marginal
        here, m, size = feature.classes, first.value, first.value.size
        if not self.told:
            return np.ones((size, here.size))
        absent_reach, least = self._absent_reach(class_reach, liars), 1 / (classes.reports + here.size)
        here_reach = class_reach + absent_reach
        if feature.absence is not None:
            least *= 1 - MOST  # A pseudo-report a class, and of each class some that hold a value.
        moved = liars * self.marginal + self.of_marginal[1] @ absent_reach
        of_classes = self.of_marginal[0] @ product(np.full(size, 1 / size), here_reach)
        share = norm_sub_reach(first.raw, moved + of_classes)
        values = (share * first.effective + PSEUDO_REPORTS / size) / (first.effective + PSEUDO_REPORTS)
        value_reach = values.reach(m)
        together = product(m, here_reach) + product(value_reach, here) + product(value_reach, here_reach)
        deviation = (feature.basis @ feature.mean).reshape(size, -1)
        moved = liars * self.effects + self.of_effects[1] @ absent_reach
        deviation_reach = (moved + self.of_effects[0] @ together).reshape(size, -1)
        of_class = Interval(np.maximum(here - here_reach, least), here + here_reach)
        of_value = Interval(values.low[:, None], values.high[:, None])
        raw = Interval.around(deviation, deviation_reach) / of_class + of_value
        centre = m[:, None] + deviation / here
        nearest = norm_sub_reach(centre, raw.reach(centre))
        cells = feature.here.linear.size
        table = (nearest * feature.pseudo_reports + of_value * cells) / (feature.pseudo_reports + cells)
        # What pseudo-reports leave in a cell that can be emptied, or beside one that can be filled, is all gains.
        low, high = np.where(nearest.low > 0, table.low, 0.0), np.where(nearest.high < 1, table.high, 1.0)
        return Interval(low, high).reach(feature.table)

    def _absent_reach(self, class_reach: Array, liars: int) -> Array:
        """Of P(missing, class)."""
        absence = self.feature.absence
        if absence is None:
            return np.zeros(class_reach.size)
        moved: Array = liars * self.absent + np.abs(absence.pull) @ class_reach
        return moved


def _moves_of(feature: FeaturePosterior, lies: Sequence[tuple[Array, Array]]) -> _Moves:
    first, classes, here = feature.marginal, feature.classes.size, feature.here.linear.size
    gain = (feature.basis * feature.kept) @ feature.basis.T
    missing = feature.told.information[:here, here:]
    if feature.absence is None:
        missing = np.zeros((here, classes))

    def moved(its_gain: Array) -> Array:
        total = np.zeros(len(its_gain))
        for matrix, reach in lies:
            total += np.abs(its_gain @ matrix[: its_gain.shape[1]]) @ reach
        return total

    def subtracted(its_gain: Array) -> tuple[Array, Array]:
        return np.abs(its_gain @ feature.here.information), np.abs(its_gain @ missing)

    absent = np.zeros(classes) if feature.absence is None else moved(feature.absence.gain)
    return _Moves(feature, bool(lies), moved(first.gain), moved(gain), absent, subtracted(first.gain), subtracted(gain))


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
