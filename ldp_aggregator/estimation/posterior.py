"""P(value | class) as believed given all reports: marginal, class shares and a shrunk effect of the class.

Notation. m, shape (K,), and pi, shape (C,), are the shares of values and classes, q = m (x) pi their product, and F(m)
a factor of diag(m) - m m'. The joint table is q + F z with F = F(m) (x) F(pi): z says how far value and class are from
being independent, z = 0 that they are, and |z|^2 is about twice their mutual information. In the eigenbasis U of F' L F
with eigenvalues S, y = U' F' (h - L q) tells z coordinate by coordinate. Of a feature that may be missing all of this
is among the records that hold a value, and their share a stands before q and F
(:mod:`ldp_aggregator.estimation.evidence`). Where values have an order F(m) R stands for F(m), and R z for z
(:mod:`ldp_aggregator.estimation.effects`). Before the reports every class is believed to be like the marginal, however
rare it is.

Features of one shape, with as many values and all or none of which may be missing or have an order, are computed at
once: formulas are those of one feature, and arrays have an axis for the features before those of values and classes.

**Many values.** All of this takes time to the cube of a feature's cells. Of a feature with more of them than
:data:`MOST_CELLS` values are taken together first: an order in its order, and of others those that look frequent stay
apart. A priori the sums of groups are as the cells of a feature with fewer values, and what a value v of the group G
has of its own, apart from its part w = m_v / m_G of the sum, is independent of them: about N(0, tau m_v (1 - w)) in
every direction U of F(pi), and a tenth of that where values have an order. It is told by E_v - w E_G with the noise of
equal frequencies, direction by direction, and has a scale as if it were a feature. So time grows with the cells, and
many reports tell every value, as they do where there are few.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.cells import Array
from ldp_aggregator.estimation.effects import OWN, SCALES, USUAL, gains, ordered_factor, scale_logarithms
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.evidence import (
    PSEUDO_REPORTS,
    ClassShares,
    FeatureGroup,
    Statistics,
    absences,
    believed_classes,
    factor,
    kron,
    marginal,
    product,
    shared_scales,
    times,
    told_of_classes,
    unit_variance,
)
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_protocols.document.questions import PAIR
from ldp_protocols.features import Feature

Stack = TypeVar("Stack", Statistics, "FeaturePosterior")

MOST_NUMBERS: Final = 1 << 16
"""In an array of matrices that is computed at once: what is large gains nothing by it, and takes its memory."""

MOST_CELLS: Final = 512
"""Of a feature that is computed as a whole; values are taken together beyond."""

_TOGETHER: Final = 256
"""Cells that are left of a feature beyond that, where it has few classes: two groups of values at least."""

MOST_PAIRS: Final = 1 << 24
"""Of cells of one feature, of all features in all: a gibibyte, and two minutes."""

_TRUST: Final = 0.5
"""The weight of the fitted frequencies in those that the noise depends on; the rest is taken to be even.

Chosen on chess, mushroom, car and connect4: at large epsilon the noise of rare cells is far below that of frequent
ones, and equal noise lets Connect-4 believe what it does not know.
"""

_REPORTS: Final = 25.0
"""Reports without noise that a table is taken to be made of, for each unit of mean information."""


@dataclass(frozen=True)
class FeatureEvidence:
    """Evidence on features of one shape among the records that hold a value, a row of every array each.

    ``statistics`` are of the cells of values; ``present`` the frequency of records that hold one, shape (..., 1),
    ``classes`` P(class | present), shape (..., C); ``absence`` P(missing, class), None of complete features;
    ``marginal`` is P(value), shape (..., K), known as from ``effective`` reports without noise, shape (...).
    """

    statistics: Statistics
    present: Array
    classes: Array
    absence: Array | None
    marginal: Array
    effective: Array

    @property
    def joint(self) -> Array:
        """P(class, present), shape (..., C)."""
        return self.present * self.classes

    def cells(self) -> Array:
        """All cells, shape (..., cells), if values told nothing of the class."""
        return self.and_missing(self.present * product(self.marginal, self.classes))

    def nearly_even_cells(self, even: Array | None) -> Array:
        """The same, halfway (:data:`_TRUST`) to equal ones; ``even`` as in :func:`marginal`."""
        independent = product(self.marginal, self.classes)
        shares = (
            1 / independent.shape[-1]
            if even is None
            else np.repeat(even, self.classes.shape[-1]) / self.classes.shape[-1]
        )
        return self.and_missing(_TRUST * self.present * independent + (1 - _TRUST) * (self.present * shares))

    def and_missing(self, cells: Array) -> Array:
        """The cells of values, and behind them those of who holds none."""
        return cells if self.absence is None else np.concatenate([cells, self.absence], axis=-1)


@dataclass(frozen=True)
class FeaturePosterior(FeatureEvidence):
    """Beliefs on features of one shape; on one feature (:func:`rows`) without the axis that is (...) here.

    ``basis`` is a F U, shape (..., K C, r); ``rotation`` U, shape (..., r, r); ``information`` S and ``effects`` y,
    shape (..., r); ``scales`` P(tau | reports), shape (..., 11). Where values are taken together K is the number of
    groups, ``together`` the group of each value and ``part`` P(value | group), shape (..., values), and ``parts``
    P(value | group, class), shape (..., values, C); None elsewhere.
    """

    basis: Array
    rotation: Array
    information: Array
    effects: Array
    scales: Array
    together: NDArray[np.int64] | None = None
    part: Array | None = None
    parts: Array | None = None

    @property
    def values(self) -> Array:
        """P(value | present), shape (..., values)."""
        if self.together is None or self.part is None:
            return self.marginal
        return np.asarray(np.take_along_axis(self.marginal, self.together, axis=-1) * self.part)

    @cached_property
    def mean(self) -> Array:
        """The posterior mean of z."""
        return times(gains(self.information).mT, self.scales) * self.effects

    @cached_property
    def table(self) -> Array:
        """P(value | class, present), shape (..., values, C): columns add up to 1, nothing is impossible."""
        return self._values_of(self.groups[..., None, :, :])[..., 0, :, :]

    @cached_property
    def groups(self) -> Array:
        """P(group of values | class, present), shape (..., K, C): :attr:`table` where no values are together."""
        return self._groups_of(self.mean[..., None, :])[..., 0, :, :]

    def _values_of(self, groups: Array) -> Array:
        if self.together is None or self.parts is None:
            return groups
        of_value = np.take_along_axis(groups, self.together[..., None, :, None], axis=-2)
        return np.asarray(of_value * self.parts[..., None, :, :])

    def _groups_of(self, effects: Array) -> Array:
        """P(group | class, present), shape (..., populations, K, C), for effects z, shape (..., populations, r):
        the nearest probabilities, class by class, and K C pseudo-reports that do not know the class.
        """
        marginal, classes = self.marginal[..., None, :, None], self.joint[..., None, None, :]
        weight = _REPORTS * self.information.mean(axis=-1)[..., None, None, None]
        cells = self.basis.shape[-2]
        deviation = (effects @ self.basis.mT).reshape(*effects.shape[:-1], -1, classes.shape[-1])
        table = (weight * norm_sub(marginal + deviation / classes, axis=-2) + cells * marginal) / (weight + cells)
        return np.asarray(table / table.sum(axis=-2, keepdims=True))

    def cells_of(self, effects: Array) -> Array:
        """P(cell | class), shape (..., populations, cells, C), for effects z, shape (..., populations, r), with missing
        values where they may be; what values that are together have of their own is taken as believed.
        """
        tables = self._values_of(self._groups_of(effects))
        if self.absence is None:
            return tables
        missing = (self.absence / (self.joint + self.absence))[..., None, None, :]
        missing = np.broadcast_to(missing, (*tables.shape[:-2], 1, tables.shape[-1]))
        return np.concatenate([tables * (1 - missing), missing], axis=-2)

    def draw(self, populations: int, rng: np.random.Generator) -> Array:
        """Effects z of one feature, drawn from the posterior, shape (populations, r).

        Noise is drawn before it is turned into the directions of the basis, which are anybody's choice where they are
        told equally well: so a seed draws the same tables on every machine.
        """
        scales = rng.choice(SCALES, p=self.scales, size=(populations, 1))
        its_gains = scales / (1 + scales * self.information)
        noise = rng.standard_normal((populations, self.information.size)) @ self.rotation
        return np.asarray(its_gains * self.effects + np.sqrt(its_gains) * noise)


@dataclass(frozen=True)
class Posterior:
    """Beliefs on the classes and on every discrete feature: those of one shape together, and by name."""

    classes: ClassShares
    groups: Sequence[tuple[FeatureGroup, FeaturePosterior]]

    @cached_property
    def tables(self) -> Mapping[str, Array]:
        """P(value | class, present) of every feature, shape (K, C)."""
        return {name: table for group, its in self.groups for name, table in zip(group.names, its.table, strict=True)}

    @cached_property
    def features(self) -> Mapping[str, FeaturePosterior]:
        return {name: rows(its, place) for group, its in self.groups for place, name in enumerate(group.names)}


def rows(stack: Stack, places: int | Sequence[int]) -> Stack:
    """The features at some places; the one at a place, without the axis."""

    def taken(part: Any) -> Any:
        if part is None:
            return None
        return part[places] if isinstance(part, np.ndarray) else rows(part, places)

    return type(stack)(*(taken(getattr(stack, one.name)) for one in fields(stack)))


def posterior_of(
    features: Sequence[Feature],
    classes: int,
    questions: Sequence[QuestionEstimate],
    telling: Sequence[QuestionEstimate],
) -> Posterior:
    """Beliefs on discrete features given the answers of all campaigns, of which those to ``telling`` tell the classes.
    First with the noise of equal frequencies, then with that of the frequencies found, halfway (:data:`_TRUST`).
    Raises ValueError for too many features beside too many classes (:data:`MOST_PAIRS`).
    """
    of_classes = told_of_classes(telling, classes)
    shares = believed_classes(
        of_classes.information.sum(axis=0), of_classes.linear.sum(axis=0), sum(one.n for one in questions)
    )
    groups = _groups(features, classes, questions)
    if sum(len(one.names) * one.cells**2 for one in groups) + len(telling) * classes**2 > MOST_PAIRS:
        raise ValueError(
            f"{len(features)} features beside {classes} classes are more than can be believed together: leave out "
            "features that tell nothing, or merge classes"
        )
    first = _evidence(groups, shares.value, [None for _ in groups])
    evidence = _evidence(
        groups, shares.value, [one.nearly_even_cells(group.even) for group, one in zip(groups, first, strict=True)]
    )
    return Posterior(shares, list(zip(groups, _fit(groups, evidence), strict=True)))


def _groups(features: Sequence[Feature], classes: int, questions: Sequence[QuestionEstimate]) -> list[FeatureGroup]:
    """The features of each shape together, not more of them than :data:`MOST_NUMBERS` allows."""
    answered: dict[str | None, list[QuestionEstimate]] = {}
    for one in questions:
        if one.n > 0 and one.question.kind == PAIR:
            answered.setdefault(one.question.feature, []).append(one)
    shapes: dict[tuple[int, bool, bool], list[str]] = {}
    most = math.isqrt(MOST_PAIRS // max(1, len(features)))
    for feature in features:
        shapes.setdefault((feature.size, feature.missing, feature.ordered), []).append(feature.name)
    groups = []
    for (size, missing, ordered), names in shapes.items():
        cells = (size + missing) * classes
        if cells > min(MOST_CELLS, most):
            groups += [
                _taken_together(name, size, classes, most, answered.get(name, []), missing, ordered) for name in names
            ]
            continue
        count = max(1, MOST_NUMBERS // cells**2)
        some = (names[start : start + count] for start in range(0, len(names), count))
        groups += [FeatureGroup(its, [answered.get(name, []) for name in its], cells, missing, ordered) for its in some]
    return groups


def _taken_together(
    name: str, size: int, classes: int, most: int, answered: Sequence[QuestionEstimate], missing: bool, ordered: bool
) -> FeatureGroup:
    """A feature whose values are together: in their order; or those that look frequent are half of the groups,
    alone, and the others, frequent ones first, are as many in each group of the other half.
    """
    count = max(2, min(_TOGETHER, most) // classes - missing)
    if ordered:
        together = np.arange(size) * count // size
    else:
        shares = _evenly_told(answered, size, classes)[1].sum(axis=1)
        together, alone = np.empty(size, dtype=np.int64), count // 2
        places = np.arange(size - alone) * (count - alone) // (size - alone)
        together[np.argsort(-shares, kind="stable")] = np.concatenate([np.arange(alone), alone + places])
    return FeatureGroup([name], [answered], (count + missing) * classes, missing, ordered, together)


def _evenly_told(answered: Sequence[QuestionEstimate], size: int, classes: int) -> tuple[float, Array]:
    """The information on a cell of one feature at equal frequencies, and its estimated P(value, class)."""
    precisions = np.array([one.n / unit_variance(one.question.mechanism) for one in answered])
    cells = np.zeros((size, classes))
    for one, precision in zip(answered, precisions, strict=True):
        cells += precision / precisions.sum() * one.cells.value[: size * classes].reshape(size, classes)
    return float(precisions.sum()), cells


def _evidence(groups: Sequence[FeatureGroup], shares: Array, noisy_at: Sequence[Array | None]) -> list[FeatureEvidence]:
    """Believe who holds no value, and return what is told of the others, with the noise at these frequencies."""
    evidence = [group.evidence(frequencies) for group, frequencies in zip(groups, noisy_at, strict=True)]
    absent = iter(absences([its for group, its in zip(groups, evidence, strict=True) if group.missing], shares))
    found = []
    for group, its in zip(groups, evidence, strict=True):
        absence, present = None, np.ones((len(group.names), 1))
        classes = present * shares
        if group.missing:
            absence, here = next(absent), group.cells - shares.size
            linear = its.linear[:, :here] - times(its.information[:, :here, here:], absence)
            its, present = Statistics(its.information[:, :here, :here], linear), 1 - absence.sum(axis=1, keepdims=True)
            classes = (shares - absence) / present
        found.append(FeatureEvidence(its, present, classes, absence, *marginal(its, present, classes, group.even)))
    return found


def _fit(groups: Sequence[FeatureGroup], evidence: Sequence[FeatureEvidence]) -> list[FeaturePosterior]:
    """Believe in effects, whose scales all features share."""
    found = []
    for group, one in zip(groups, evidence, strict=True):
        of_values = ordered_factor(one.marginal, one.effective) if group.ordered else factor(one.marginal)
        design = one.present[..., None] * kron(of_values, factor(one.classes))
        information, rotation = np.linalg.eigh(design.mT @ one.statistics.information @ design)
        basis = design @ rotation
        left = one.statistics.linear - times(
            one.statistics.information, one.present * product(one.marginal, one.classes)
        )
        found.append((basis, rotation, np.maximum(information, 0.0), times(basis.mT, left)))
    own = [None if group.together is None else _own(group, one) for group, one in zip(groups, evidence, strict=True)]
    likelihoods = [(information, effects) for *_, information, effects in found]
    likelihoods += [(one.information[None], one.effects[None]) for one in own if one is not None]
    scales = shared_scales([scale_logarithms(*one) for one in likelihoods], USUAL)
    posteriors = [
        FeaturePosterior(**vars(one), basis=basis, rotation=rotation, information=information, effects=y, scales=its)
        for one, (basis, rotation, information, y), its in zip(evidence, found, scales[: len(found)], strict=True)
    ]
    of_own = iter(scales[len(found) :])
    return [
        one if its is None else its.with_parts(one, next(of_own)[0]) for one, its in zip(posteriors, own, strict=True)
    ]


@dataclass(frozen=True)
class _Own:
    """Evidence on what values that are ``together``, shape (values,), have of their own: deviations ``scale`` z
    ``basis``' of P(value, class) from their part ``shares`` w of the sum, of which y and S tell z.
    """

    together: NDArray[np.int64]
    shares: Array
    scale: Array
    basis: Array
    information: Array
    effects: Array

    def with_parts(self, believed: FeaturePosterior, scales: Array) -> FeaturePosterior:
        """The beliefs on the groups with those on the values, whose effects have these scales."""
        mean = (scales @ gains(self.information) * self.effects).reshape(self.together.size, -1)
        found = np.repeat(self.shares[:, None], self.basis.shape[0], axis=1)
        likely = found + self.scale[:, None] * (mean @ self.basis.T) / (
            believed.joint[0] * believed.groups[0, self.together]
        )
        pseudo, weight = found.size, _REPORTS * self.information.mean()
        for group in np.flatnonzero(np.bincount(self.together) > 1):
            here = self.together == group
            found[here] = (weight * norm_sub(likely[here]) + pseudo * found[here]) / (weight + pseudo)
        return replace(believed, together=self.together[None], part=self.shares[None], parts=found[None])


def _own(group: FeatureGroup, evidence: FeatureEvidence) -> _Own:
    """Evidence on each value of a feature whose values are together, by the noise of equal frequencies."""
    together = np.asarray(group.together)
    size, classes, present = together.size, evidence.classes.shape[-1], evidence.present[0]
    precision, cells = _evenly_told(group.questions[0], size, classes)
    of_class = evidence.classes[0]
    shares = norm_sub(cells.sum(axis=1) / present)
    effective = precision / classes * ((shares * (1 - shares)).sum() + 1 / size) / size
    shares = (effective * shares + PSEUDO_REPORTS / size) / (effective + PSEUDO_REPORTS)
    part = shares / np.bincount(together, shares)[together]
    sums = np.zeros((together.max() + 1, classes))
    np.add.at(sums, together, cells)
    # The noise of E_v - w E_G is that of E_v so many times; a value that is alone has nothing of its own.
    times_noise = np.maximum(1 - 2 * part + np.bincount(together)[together] * part**2, np.finfo(float).eps)
    own = OWN if group.ordered else 1.0
    scale, of_classes = present * np.sqrt(own * shares * (1 - part)), factor(of_class)
    variances, directions = np.linalg.eigh(of_classes.T @ of_classes)
    basis, precisions = of_classes @ directions, precision / times_noise
    information = (precisions * scale**2)[:, None] * variances
    effects = (precisions * scale)[:, None] * ((cells - part[:, None] * sums[together]) @ basis)
    return _Own(together, part, scale, basis, information.ravel(), effects.ravel())
