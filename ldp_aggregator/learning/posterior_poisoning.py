"""How far lying devices can move what the shrinking estimator believes.

Its steps are linear in the reports, but for ``norm_sub`` and for the gains, which say how much of what is reported to
believe. The gains are taken as given: that is the noise at the fitted frequencies, how large effects are
(P(tau | reports)), and the shares of values and classes where they shape the prior. A cell that lies can empty or fill
may become anything, whatever the gains. Everything else is followed step by step
(:mod:`ldp_aggregator.estimation.posterior.tables` has the notation): reports to class shares, those and reports to
who holds no value, all of them to the marginal, to the effects, and these to the table. Features of one shape are
followed at once, along the first axis of every array.
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
from ldp_aggregator.estimation.posterior.evidence import asked_alike, information_of_cells, information_of_classes
from ldp_aggregator.estimation.posterior.factors import product, times
from ldp_aggregator.estimation.posterior.shares import PSEUDO_REPORTS, ClassShares
from ldp_aggregator.estimation.posterior.tables import FeaturePosterior, Names, Posterior
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
        tables: dict[str, Array] = {}
        for names, moves in self._moves.items():
            tables.update(zip(names, moves.table_reach(self.posterior.classes, classes, liars), strict=True))
        return PosteriorReach(classes, {name: tables[name] for name in self.posterior.features})

    @cached_property
    def _moves(self) -> Mapping[Names, _Moves]:
        return {
            names: _moves_of(group, list(_lies(self.estimates, names, group.frequencies)))
            for names, group in self.posterior.groups.items()
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
    """How far one liar moves ``gain @ h`` of the marginals of features of one shape, shape (features, K), of their
    effects, shape (features, K C), and of who holds no value, shape (features, C), and how far what is subtracted from
    h moves the first two, a matrix for each: P(value, class, present), and the frequencies of missing cells. ``told``,
    shape (features,), is whether there are reports.
    """

    features: FeaturePosterior
    told: NDArray[np.bool_]
    marginal: Array
    effects: Array
    absent: Array
    of_marginal: tuple[Array, Array]
    of_effects: tuple[Array, Array]

    def table_reach(self, classes: ClassShares, class_reach: Array, liars: int) -> Array:
        """Of the tables of values asked for, shape (features, K, C), where lies move P(class) by ``class_reach``."""
        features, first = self.features, self.features.marginal
        here, m, size = features.classes, first.value, first.value.shape[-1]
        absent_reach, least = self._absent_reach(class_reach, liars), 1 / (classes.reports + class_reach.size)
        here_reach = class_reach + absent_reach
        if features.absence is not None:
            least *= 1 - MOST  # A pseudo-report a class, and of each class some that hold a value.
        moved = liars * self.marginal + times(self.of_marginal[1], absent_reach)
        of_classes = times(self.of_marginal[0], product(np.full(size, 1 / size), here_reach))
        share = norm_sub_reach(first.raw, moved + of_classes, axis=-1)
        effective = first.effective[:, None]
        values = (share * effective + PSEUDO_REPORTS / size) / (effective + PSEUDO_REPORTS)
        value_reach = values.reach(m)
        together = product(m, here_reach) + product(value_reach, here) + product(value_reach, here_reach)
        moved = liars * self.effects + times(self.of_effects[1], absent_reach) + times(self.of_effects[0], together)
        shape = features.table.shape
        deviation, deviation_reach = times(features.basis, features.mean).reshape(shape), moved.reshape(shape)
        of_class = Interval(np.maximum(here - here_reach, least)[:, None], (here + here_reach)[:, None])
        of_value = Interval(values.low[..., None], values.high[..., None])
        raw = Interval.around(deviation, deviation_reach) / of_class + of_value
        centre = m[..., None] + deviation / here[:, None]
        nearest = norm_sub_reach(centre, raw.reach(centre), axis=-2)
        reports, cells = features.pseudo_reports[:, None, None], features.here.linear.shape[-1]
        table = (nearest * reports + of_value * cells) / (reports + cells)
        # What pseudo-reports leave in a cell that can be emptied, or beside one that can be filled, is all gains.
        low, high = np.where(nearest.low > 0, table.low, 0.0), np.where(nearest.high < 1, table.high, 1.0)
        return np.where(self.told[:, None, None], Interval(low, high).reach(features.table), 1.0)

    def _absent_reach(self, class_reach: Array, liars: int) -> Array:
        """Of P(missing, class), shape (features, C)."""
        absence = self.features.absence
        if absence is None:
            return np.zeros_like(self.absent)
        moved: Array = liars * self.absent + times(np.abs(absence.pull), class_reach)
        return moved


Lie = tuple[list[int], Array, Array]
"""Which features, a matrix M for each, shape (d, j), and a reach r, shape (j,): one lie moves h by M x for some
|x| <= r.
"""


def _moves_of(features: FeaturePosterior, lies: Sequence[Lie]) -> _Moves:
    first, here = features.marginal, features.here.linear.shape[-1]
    gain = (features.basis * features.kept[:, None]) @ features.basis.mT
    missing = features.told.information[:, :here, here:]
    if features.absence is None:
        missing = np.zeros((*features.here.linear.shape, features.classes.shape[-1]))

    def moved(its_gain: Array) -> Array:
        total = np.zeros(its_gain.shape[:-1])
        for places, matrix, reach in lies:
            np.add.at(total, places, times(np.abs(its_gain[places] @ matrix[:, : its_gain.shape[-1]]), reach))
        return total

    def subtracted(its_gain: Array) -> tuple[Array, Array]:
        return np.abs(its_gain @ features.here.information), np.abs(its_gain @ missing)

    told = np.isin(np.arange(len(features.table)), [place for places, _, _ in lies for place in places])
    absent = np.zeros_like(features.classes) if features.absence is None else moved(features.absence.gain)
    marginal, effects = subtracted(first.gain), subtracted(gain)
    return _Moves(features, told, moved(first.gain), moved(gain), absent, marginal, effects)


def _lies(estimates: Sequence[Estimates], names: Names, frequencies: Array) -> Iterator[Lie]:
    """To all answered questions about cells of these features, those asked alike together. Of cells M is their
    information; of a sign it is the sign itself, and a lie moves the sum of the reported ones by 2.
    """
    place = {name: number for number, name in enumerate(names)}
    for one in estimates:
        for alike in asked_alike(one.questions):
            asked = [(of, name) for of in alike for name in (of.question.feature, of.question.other) if name in place]
            kind, places = alike[0].question.kind, [place[str(name)] for _, name in asked]
            if not asked:
                continue
            if kind in (PAIR, TRIPLE):
                reports = np.array([of.n for of, _ in asked])
                told = information_of_cells(alike[0].question, reports, frequencies[places])
                each = [marginal_per_liar(of) if kind == TRIPLE else one.per_liar[of.question.index] for of, _ in asked]
                yield places, told, np.stack(each)
            elif kind in (XOR, MARGINAL):
                signs = [sign_of(of) for of, _ in asked]
                matrices = np.stack([sign.signs[:, None] for sign in signs])
                yield places, matrices, np.array([[2 * sign.gain] for sign in signs])
