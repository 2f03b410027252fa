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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np

from ldp_aggregator.estimation.cells import Array
from ldp_aggregator.estimation.effects import (
    SCALES,
    USUAL,
    gains,
    ordered_factor,
    scale_logarithms,
)
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.evidence import (
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
)
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_protocols.document.questions import PAIR
from ldp_protocols.features import Feature

Stack = TypeVar("Stack", Statistics, "FeaturePosterior")

MOST_NUMBERS: Final = 1 << 16
"""In an array of matrices that is computed at once: what is large gains nothing by it, and takes its memory."""

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

    ``told`` is of the cells of values; ``present`` the share of records that hold one, shape (..., 1), ``classes``
    P(class | present), shape (..., C); ``absence`` P(missing, class), None of complete features; ``marginal`` is
    P(value), shape (..., K), known as from ``effective`` reports without noise, shape (...).
    """

    told: Statistics
    present: Array
    classes: Array
    absence: Array | None
    marginal: Array
    effective: Array

    @property
    def joint(self) -> Array:
        """P(class, present), shape (..., C)."""
        return self.present * self.classes

    def cells(self, evenly: float = 0.0) -> Array:
        """Return all cells, shape (..., cells), if values told nothing of the class, those of values so far even."""
        independent = self.present * product(self.marginal, self.classes)
        return self.and_missing((1 - evenly) * independent + evenly * (self.present / independent.shape[-1]))

    def and_missing(self, cells: Array) -> Array:
        """Return the cells of values, and behind them those of who holds none."""
        return cells if self.absence is None else np.concatenate([cells, self.absence], axis=-1)


@dataclass(frozen=True)
class FeaturePosterior(FeatureEvidence):
    """Beliefs on features of one shape; on one feature (:func:`rows`) without the axis that is (...) here.

    ``basis`` is a F U, shape (..., K C, r); ``information`` S and ``effects`` y, shape (..., r); ``scales`` P(tau |
    reports), shape (..., 11).
    """

    basis: Array
    information: Array
    effects: Array
    scales: Array

    @cached_property
    def mean(self) -> Array:
        """The posterior mean of z."""
        return times(gains(self.information).mT, self.scales) * self.effects

    @cached_property
    def table(self) -> Array:
        """P(value | class, present), shape (..., K, C): columns add up to 1, nothing is impossible."""
        return self.tables_of(self.mean[..., None, :])[..., 0, :, :]

    def tables_of(self, effects: Array) -> Array:
        """Return P(value | class, present), shape (..., populations, K, C), for effects z, shape (..., populations, r):
        the nearest probabilities, class by class, and K C pseudo-reports that do not know the class.
        """
        marginal, classes = self.marginal[..., None, :, None], self.joint[..., None, None, :]
        weight = _REPORTS * self.information.mean(axis=-1)[..., None, None, None]
        cells = self.basis.shape[-2]
        deviation = (effects @ self.basis.mT).reshape(*effects.shape[:-1], -1, classes.shape[-1])
        table = (weight * norm_sub(marginal + deviation / classes, axis=-2) + cells * marginal) / (weight + cells)
        return np.asarray(table / table.sum(axis=-2, keepdims=True))

    def cells_of(self, effects: Array) -> Array:
        """P(cell | class), (..., populations, cells, C): :meth:`tables_of`, with missing values where they may be."""
        tables = self.tables_of(effects)
        if self.absence is None:
            return tables
        missing = (self.absence / (self.joint + self.absence))[..., None, None, :]
        missing = np.broadcast_to(missing, (*tables.shape[:-2], 1, tables.shape[-1]))
        return np.concatenate([tables * (1 - missing), missing], axis=-2)

    def draw(self, populations: int, rng: np.random.Generator) -> Array:
        """Return effects z of one feature, drawn from the posterior, shape (populations, r).

        Noise is drawn in the cells and turned into the directions of the basis, which are anybody's choice where they
        are told equally well: so a seed draws the same tables on every machine.
        """
        scales = rng.choice(SCALES, p=self.scales, size=(populations, 1))
        its_gains = scales / (1 + scales * self.information)
        left, _, right = np.linalg.svd(self.basis, full_matrices=False)
        noise = rng.standard_normal((populations, len(self.basis))) @ (left @ right)
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
    """Return the features at some places; the one at a place, without the axis."""

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
    """
    of_classes = told_of_classes(telling, classes)
    shares = believed_classes(
        of_classes.information.sum(axis=0), of_classes.linear.sum(axis=0), sum(one.n for one in questions)
    )
    groups = _groups(features, classes, questions)
    first = _evidence(groups, shares.value, [None for _ in groups])
    evidence = _evidence(groups, shares.value, [one.cells(1 - _TRUST) for one in first])
    return Posterior(shares, list(zip(groups, _fit(groups, evidence), strict=True)))


def _groups(features: Sequence[Feature], classes: int, questions: Sequence[QuestionEstimate]) -> list[FeatureGroup]:
    """Return the features of each shape together, not more of them than :data:`MOST_NUMBERS` allows."""
    asked: dict[str | None, list[QuestionEstimate]] = {}
    for one in questions:
        if one.n > 0 and one.question.kind == PAIR:
            asked.setdefault(one.question.feature, []).append(one)
    shapes: dict[tuple[int, bool, bool], list[str]] = {}
    for feature in features:
        shapes.setdefault((feature.size, feature.missing, feature.ordered), []).append(feature.name)
    groups = []
    for (size, missing, ordered), names in shapes.items():
        cells = (size + missing) * classes
        count = max(1, MOST_NUMBERS // cells**2)
        some = (names[start : start + count] for start in range(0, len(names), count))
        groups += [FeatureGroup(its, [asked.get(name, []) for name in its], cells, missing, ordered) for its in some]
    return groups


def _evidence(groups: Sequence[FeatureGroup], shares: Array, noisy_at: Sequence[Array | None]) -> list[FeatureEvidence]:
    """Believe who holds no value, and return what is told of the others, with the noise at these frequencies."""
    told = [group.told(frequencies) for group, frequencies in zip(groups, noisy_at, strict=True)]
    absent = iter(absences([its for group, its in zip(groups, told, strict=True) if group.missing], shares))
    found = []
    for group, its in zip(groups, told, strict=True):
        absence, present = None, np.ones((len(group.names), 1))
        classes = present * shares
        if group.missing:
            absence, here = next(absent), group.cells - shares.size
            linear = its.linear[:, :here] - times(its.information[:, :here, here:], absence)
            its, present = Statistics(its.information[:, :here, :here], linear), 1 - absence.sum(axis=1, keepdims=True)
            classes = (shares - absence) / present
        found.append(FeatureEvidence(its, present, classes, absence, *marginal(its, present, classes)))
    return found


def _fit(groups: Sequence[FeatureGroup], evidence: Sequence[FeatureEvidence]) -> list[FeaturePosterior]:
    """Believe in effects, whose scales all features share."""
    told = []
    for group, one in zip(groups, evidence, strict=True):
        of_values = ordered_factor(one.marginal, one.effective) if group.ordered else factor(one.marginal)
        design = one.present[..., None] * kron(of_values, factor(one.classes))
        information, rotation = np.linalg.eigh(design.mT @ one.told.information @ design)
        basis = design @ rotation
        left = one.told.linear - times(one.told.information, one.present * product(one.marginal, one.classes))
        told.append((basis, np.maximum(information, 0.0), times(basis.mT, left)))
    scales = shared_scales([scale_logarithms(information, effects) for _, information, effects in told], USUAL)
    return [
        FeaturePosterior(**vars(one), basis=basis, information=information, effects=effects, scales=its_scales)
        for one, (basis, information, effects), its_scales in zip(evidence, told, scales, strict=True)
    ]
