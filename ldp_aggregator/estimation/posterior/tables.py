"""P(value | class) as believed given all reports: marginal, class shares and a shrunk effect of the class.

Notation. m, shape (K,), and pi, shape (C,), are the shares of values and classes, q = m (x) pi their product, and F(m)
a factor of diag(m) - m m'. The joint table is q + F z with F = F(m) (x) F(pi): z says how far value and class are from
being independent, z = 0 that they are, and |z|^2 is about twice their mutual information. In the eigenbasis U of F' L F
with eigenvalues S, y = U' F' (h - L q) tells z coordinate by coordinate. Of a feature that may be missing all of
this is among the records that hold a value, and their share a stands before q and F
(:mod:`ldp_aggregator.estimation.posterior.absence`). Where values have an order F(m) R stands for F(m), and R z for z
(:mod:`ldp_aggregator.estimation.posterior.order`). Where a class is rare, a centre q' stands for q, in which it is not
taken to be like the others (:mod:`ldp_aggregator.estimation.posterior.rarity`).

Features of one shape, with as many values and all or none of which may be missing, are computed at once: formulas are
those of one feature, and arrays have an axis for the features before those of values and classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.posterior.absence import Absence, absences, given_presence
from ldp_aggregator.estimation.posterior.evidence import Evidence, Statistics, gather
from ldp_aggregator.estimation.posterior.factors import factor, kron, product, times
from ldp_aggregator.estimation.posterior.groups import alike, parts, rows
from ldp_aggregator.estimation.posterior.order import ordered_factor
from ldp_aggregator.estimation.posterior.rarity import ALIKE, centre, likeness, rarity
from ldp_aggregator.estimation.posterior.scale import SCALES, scale_posteriors
from ldp_aggregator.estimation.posterior.shares import ClassShares, Marginal, class_shares, marginal
from ldp_aggregator.estimation.simplex import norm_sub

Array = NDArray[np.float64]

Names = tuple[str, ...]
"""Of features of one shape."""

_TRUST: Final = 0.5
"""How far the fitted frequencies are taken for those that the noise depends on; the rest is taken to be even.

Chosen on chess, mushroom, car and connect4: at large epsilon the noise of rare cells is far below that of frequent
ones, and equal noise lets Connect-4 believe what it does not know.
"""

_REPORTS: Final = 25.0
"""Reports without noise that a table is taken to be made of, for each unit of mean information."""


@dataclass(frozen=True)
class FeaturePosterior:
    """What is believed of features of one shape, a row of every array each; of one feature (:func:`rows`) without that
    axis, which is (...) here.

    ``centre`` is P(value | class, present) before any effect of the class, ``table`` after: shape (..., K, C), columns
    add up to 1, nothing impossible. ``basis`` a F U, shape (..., K C, r); ``information`` S and ``effects`` y, shape
    (..., r); ``scales`` P(tau | reports), shape (..., 11). ``told`` is of all cells, ``here`` of those of its values;
    ``frequencies``, of all cells, are those the noise was taken at. ``classes`` are P(class, present), shape (..., C);
    ``absence`` says who holds no value, None of complete features.
    """

    told: Statistics
    here: Statistics
    frequencies: Array
    classes: Array
    absence: Absence | None
    marginal: Marginal
    centre: Array
    basis: Array
    information: Array
    effects: Array
    scales: Array
    table: Array

    @cached_property
    def mean(self) -> Array:
        """The posterior mean of z."""
        result: Array = times(_gains(self.information).mT, self.scales) * self.effects
        return result

    @property
    def pseudo_reports(self) -> Array:
        """How many reports without noise stand behind the table, shape (...)."""
        reports: Array = _REPORTS * self.information.mean(axis=-1)
        return reports

    @property
    def present(self) -> Array:
        """The share of records that hold a value, shape (...)."""
        share: Array = self.classes.sum(axis=-1)
        return share

    def tables_of(self, effects: Array) -> Array:
        """P(value | class, present), shape (..., populations, K, C), for effects z, shape (..., populations, r): the
        nearest probabilities, class by class, and K C pseudo-reports that do not know the class.
        """
        centre, classes = self.centre[..., None, :, :], self.classes[..., None, None, :]
        weight, cells = self.pseudo_reports[..., None, None, None], self.here.linear.shape[-1]
        deviation = (effects @ self.basis.mT).reshape(*effects.shape[:-1], *centre.shape[-2:])
        table = (weight * norm_sub(centre + deviation / classes, axis=-2) + cells * centre) / (weight + cells)
        result: Array = table / table.sum(axis=-2, keepdims=True)
        return result

    def cells_of(self, effects: Array, classes: Array) -> Array:
        """P(cell | class), shape (..., populations, cells, C): :meth:`tables_of` and, where features may be missing,
        that they are; ``classes`` are P(class).
        """
        tables = self.tables_of(effects)
        if self.absence is None:
            return tables
        missing = (self.absence.value / classes)[..., None, None, :]
        missing = np.broadcast_to(missing, (*tables.shape[:-2], 1, classes.size))
        return np.concatenate([tables * (1 - missing), missing], axis=-2)

    def draw(self, populations: int, rng: np.random.Generator) -> Array:
        """Effects z of one feature, drawn from the posterior, shape (populations, r).

        Noise is drawn in the cells and turned into the directions of the basis, which are anybody's choice where they
        are told equally well: so a seed draws the same tables on every machine.
        """
        scales = rng.choice(SCALES, p=self.scales, size=(populations, 1))
        gains = scales / (1 + scales * self.information)
        left, _, right = np.linalg.svd(self.basis, full_matrices=False)
        noise = rng.standard_normal((populations, len(self.basis))) @ (left @ right)
        result: Array = gains * self.effects + np.sqrt(gains) * noise
        return result


@dataclass(frozen=True)
class Posterior:
    """What is believed of the classes and of every discrete feature: by the names of those of one shape, and by name.

    ``missing`` has the shares of records without a value of the Gaussian ones, ``gaussian`` their names.
    """

    classes: ClassShares
    groups: Mapping[Names, FeaturePosterior]
    features: Mapping[str, FeaturePosterior]
    missing: Mapping[str, float] = field(default_factory=dict)
    gaussian: Sequence[str] = ()

    def cells_of(self, effects: Mapping[str, Array]) -> dict[str, Array]:
        """P(cell | class), shape (populations, cells, C), by name of every feature that ``effects`` z are given of,
        shape (populations, r); see :meth:`FeaturePosterior.cells_of`.
        """
        found: dict[str, Array] = {}
        for names, group in self.groups.items():
            places = [place for place, name in enumerate(names) if name in effects]
            if places:
                its = [names[place] for place in places]
                cells = rows(group, places).cells_of(np.stack([effects[name] for name in its]), self.classes.value)
                found.update(zip(its, cells, strict=True))
        return found


def posterior_of(
    questions: Sequence[QuestionEstimate],
    prior_questions: Sequence[QuestionEstimate],
    classes: int,
    sizes: Mapping[str, int],
    open_ones: Set[str] = frozenset(),
    ordered: Set[str] = frozenset(),
) -> Posterior:
    """What is believed of features (name to number of values) given the answers to all questions of all campaigns.

    First with the noise that equal frequencies have, then with that of the frequencies found, halfway
    (:data:`_TRUST`). ``prior_questions``, among ``questions``, tell the classes; ``open_ones`` are the features that
    may be missing, whose questions have a value more; the values of ``ordered`` ones stand in their order.
    """
    held = {name: size + (name in open_ones) for name, size in sizes.items()}
    shapes = alike({name: (size, name in open_ones, name in ordered) for name, size in sizes.items()})
    groups = [tuple(names) for every in shapes for names in parts(every, held[every[0]] * classes)]
    first = gather(questions, prior_questions, classes, held)
    shares = class_shares(first.classes, sum(one.n for one in questions))
    noise_at = {names: own.frequencies for names, own in _owns(first, groups, shares, open_ones).items()}
    by_name = {name: its for names, stack in noise_at.items() for name, its in zip(names, stack, strict=True)}
    evidence = gather(questions, (), classes, held, by_name)  # What is told of the classes is known.
    believed = _fit(_owns(evidence, groups, shares, open_ones), noise_at, ordered)
    features = {name: rows(stack, place) for names, stack in believed.items() for place, name in enumerate(names)}
    return Posterior(shares, believed, {name: features[name] for name in sizes})


def _owns(evidence: Evidence, groups: Sequence[Names], shares: ClassShares, open_ones: Set[str]) -> dict[Names, _Own]:
    told = {names: Statistics.stacked([evidence.features[name] for name in names]) for names in groups}
    absent = absences({names: one for names, one in told.items() if not open_ones.isdisjoint(names)}, shares.value)
    return {names: _Own.of(one, shares, absent.get(names)) for names, one in told.items()}


def _fit(
    owns: Mapping[Names, _Own], noise_at: Mapping[Names, Array], ordered: Set[str]
) -> dict[Names, FeaturePosterior]:
    rotated = [own.rotate(not ordered.isdisjoint(names)) for names, own in owns.items()]
    told = [its for _, information in rotated for its in information]

    def effects_from(alike: float) -> list[Array]:
        return [own.effects(basis, alike) for own, (basis, _) in zip(owns.values(), rotated, strict=True)]

    alike = 1.0
    if any(rarity(own.classes).any() for own in owns.values()):
        alike = likeness(told, [[its for one in effects_from(float(a)) for its in one] for a in ALIKE])
    every = effects_from(alike)
    scales = scale_posteriors(told, [its for one in every for its in one])
    found = {}
    for (names, own), (basis, information), effects in zip(owns.items(), rotated, every, strict=True):
        believed, scales = scales[: len(names)], scales[len(names) :]
        untold = FeaturePosterior(
            own.told, own.here, noise_at[names], own.share[..., None] * own.classes, own.absence, own.marginal,
            centre(own.marginal.value, own.classes, alike), basis, information, effects, believed, np.empty(0),
        )  # fmt: skip
        found[names] = replace(untold, table=untold.tables_of(untold.mean[..., None, :])[..., 0, :, :])
    return found


@dataclass(frozen=True)
class _Own:
    """Features of one shape among the records that hold a value of each: what is told, their share a, shape
    (features,), P(class | present), shape (features, C).
    """

    told: Statistics
    here: Statistics
    share: Array
    classes: Array
    absence: Absence | None
    marginal: Marginal

    @classmethod
    def of(cls, told: Statistics, shares: ClassShares, absence: Absence | None) -> _Own:
        if absence is None:
            everybody = np.ones(len(told.linear))
            classes = everybody[:, None] * shares.value
            return cls(told, told, everybody, classes, None, marginal(told, classes, everybody))
        here, share = given_presence(told, absence), 1 - absence.share
        classes = (shares.value - absence.value) / share[:, None]
        return cls(told, here, share, classes, absence, marginal(here, classes, share))

    @property
    def independent(self) -> Array:
        """A q: the cells of values where they tell nothing of the class, shape (features, K C)."""
        return self.share[:, None] * product(self.marginal.value, self.classes)

    @property
    def frequencies(self) -> Array:
        """Of all cells, those of values halfway to even ones (:data:`_TRUST`), shape (features, cells)."""
        even = self.share[:, None] / self.here.linear.shape[-1]
        values = _TRUST * self.independent + (1 - _TRUST) * even
        return values if self.absence is None else np.concatenate([values, self.absence.value], axis=1)

    def rotate(self, ordered: bool) -> tuple[Array, Array]:
        """Return a F U, shape (features, K C, r), and S, shape (features, r), of values in an order or without one."""
        told, first = self.here, self.marginal
        of_values = ordered_factor(first.value, first.effective) if ordered else factor(first.value)
        design = self.share[:, None, None] * kron(of_values, factor(self.classes))
        information, rotation = np.linalg.eigh(design.mT @ told.information @ design)
        return design @ rotation, np.maximum(information, 0.0)

    def effects(self, basis: Array, alike: float) -> Array:
        """Return y, shape (features, r), told from the centre that classes have which are so far alike."""
        expected = centre(self.marginal.value, self.classes, alike) * self.classes[:, None, :]
        cells = self.share[:, None] * expected.reshape(len(expected), -1)
        return times(basis.mT, self.here.linear - times(self.here.information, cells))


def _gains(information: Array) -> Array:
    """Tau / (1 + tau S), shape (..., 11, r)."""
    gains: Array = SCALES[:, None] / (1 + SCALES[:, None] * information[..., None, :])
    return gains
