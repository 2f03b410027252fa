"""P(value | class) as believed given all reports: marginal, class shares and a shrunk effect of the class.

Notation. m, shape (K,), and pi, shape (C,), are the shares of values and classes, q = m (x) pi their product, and F(m)
a factor of diag(m) - m m'. The joint table is q + F z with F = F(m) (x) F(pi): z says how far value and class are from
being independent, z = 0 that they are, and |z|^2 is about twice their mutual information. In the eigenbasis U of F' L F
with eigenvalues S, y = U' F' (h - L q) tells z coordinate by coordinate. Of a feature that may be missing all of
this is among the records that hold a value, and their share a stands before q and F
(:mod:`ldp_aggregator.estimation.posterior.absence`).
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
from ldp_aggregator.estimation.posterior.factors import factor, kron, product
from ldp_aggregator.estimation.posterior.scale import SCALES, scale_posteriors
from ldp_aggregator.estimation.posterior.shares import ClassShares, Marginal, class_shares, marginal
from ldp_aggregator.estimation.simplex import norm_sub

Array = NDArray[np.float64]

_TRUST: Final = 0.5
"""How far the fitted frequencies are taken for those that the noise depends on; the rest is taken to be even.

Chosen on chess, mushroom, car and connect4: at large epsilon the noise of rare cells is far below that of frequent
ones, and equal noise lets Connect-4 believe what it does not know.
"""

_REPORTS: Final = 25.0
"""Reports without noise that a table is taken to be made of, for each unit of mean information."""


@dataclass(frozen=True)
class FeaturePosterior:
    """What is believed of one feature.

    ``table`` is P(value | class, present), shape (K, C), columns add up to 1, nothing impossible. ``basis`` a F U,
    shape (K C, r); ``information`` S and ``effects`` y, shape (r,); ``scales`` P(tau | reports), shape (11,). ``told``
    is of all cells, ``here`` of those of its values; ``frequencies``, of all cells, are those the noise was taken at.
    ``classes`` are P(class, present), shape (C,); ``absence`` says who holds no value, None of a complete feature.
    """

    told: Statistics
    here: Statistics
    frequencies: Array
    classes: Array
    absence: Absence | None
    marginal: Marginal
    basis: Array
    information: Array
    effects: Array
    scales: Array
    table: Array

    @cached_property
    def kept(self) -> Array:
        """The share of tau / (1 + tau S), averaged over tau: z = kept * y."""
        result: Array = self.scales @ _gains(self.information)
        return result

    @cached_property
    def mean(self) -> Array:
        """The posterior mean of z."""
        result: Array = self.kept * self.effects
        return result

    @property
    def squared_effect(self) -> float:
        """I2 = E[|z|^2]: what a second round asks in proportion to the root of."""
        gains = _gains(self.information)
        return float((self.scales @ (gains + (gains * self.effects) ** 2)).sum())

    @property
    def pseudo_reports(self) -> float:
        """How many reports without noise stand behind the table."""
        return _REPORTS * float(self.information.mean())

    @property
    def present(self) -> float:
        """The share of records that hold a value."""
        return 1.0 if self.absence is None else float(self.classes.sum())

    def tables_of(self, effects: Array) -> Array:
        """P(value | class, present), shape (populations, K, C), for effects z, shape (populations, r): the nearest
        probabilities, class by class, and K C pseudo-reports that do not know the class.
        """
        share, size, weight = self.marginal.value[:, None, None], self.here.linear.size, self.pseudo_reports
        deviation = (self.basis @ effects.T).reshape(len(share), self.classes.size, -1)
        table = (weight * norm_sub(share + deviation / self.classes[:, None]) + size * share) / (weight + size)
        result: Array = np.moveaxis(table / table.sum(axis=0), 2, 0)
        return result

    def cells_of(self, effects: Array, classes: Array) -> Array:
        """P(cell | class), shape (populations, cells, C): :meth:`tables_of` and, where the feature may be missing,
        that it is; ``classes`` are P(class).
        """
        tables = self.tables_of(effects)
        if self.absence is None:
            return tables
        missing = np.broadcast_to(self.absence.value / classes, (len(tables), 1, classes.size))
        return np.concatenate([tables * (1 - missing), missing], axis=1)

    def draw(self, populations: int, rng: np.random.Generator) -> Array:
        """Effects z drawn from the posterior, shape (populations, r)."""
        scales = rng.choice(SCALES, p=self.scales, size=(populations, 1))
        gains = scales / (1 + scales * self.information)
        result: Array = gains * self.effects + np.sqrt(gains) * rng.standard_normal(gains.shape)
        return result


@dataclass(frozen=True)
class Posterior:
    """What is believed of the classes and, by name, of every discrete feature; ``missing`` has the shares of records
    without a value of a Gaussian one.
    """

    classes: ClassShares
    features: Mapping[str, FeaturePosterior]
    missing: Mapping[str, float] = field(default_factory=dict)

    @property
    def explained(self) -> float:
        """|E z|^2 over E |z|^2, over all features: 0 where nothing is known, 1 without noise."""
        believed = sum(one.squared_effect for one in self.features.values())
        return sum(float(one.mean @ one.mean) for one in self.features.values()) / believed if believed else 0.0


def posterior_of(
    questions: Sequence[QuestionEstimate],
    prior_questions: Sequence[QuestionEstimate],
    classes: int,
    sizes: Mapping[str, int],
    open_ones: Set[str] = frozenset(),
) -> Posterior:
    """What is believed of features (name to number of values) given the answers to all questions of all campaigns.

    First with the noise that equal frequencies have, then with that of the frequencies found, halfway
    (:data:`_TRUST`). ``prior_questions``, among ``questions``, tell the classes; ``open_ones`` are the features that
    may be missing, whose questions have a value more.
    """
    reports = sum(one.n for one in questions)
    held = {name: size + (name in open_ones) for name, size in sizes.items()}
    first = gather(questions, prior_questions, classes, held)
    shares = class_shares(first.classes, reports)
    absent = _absent(first, shares, open_ones)
    frequencies = {}
    for name, told in first.features.items():
        own = _Own.of(told, shares, absent.get(name))
        cells = own.share * product(own.marginal.value, own.classes)
        noise_at = _TRUST * cells + (1 - _TRUST) * own.share / cells.size
        frequencies[name] = noise_at if own.absence is None else np.append(noise_at, own.absence.value)
    evidence = gather(questions, prior_questions, classes, held, frequencies)
    return _fit(evidence, shares, _absent(evidence, shares, open_ones))


def _absent(evidence: Evidence, shares: ClassShares, open_ones: Set[str]) -> Mapping[str, Absence]:
    return absences({name: told for name, told in evidence.features.items() if name in open_ones}, shares.value)


def _fit(evidence: Evidence, shares: ClassShares, absent: Mapping[str, Absence]) -> Posterior:
    owns = {name: _Own.of(told, shares, absent.get(name)) for name, told in evidence.features.items()}
    rotated = {name: own.rotate() for name, own in owns.items()}
    scales = scale_posteriors(
        [information for _, information, _ in rotated.values()], [effects for _, _, effects in rotated.values()]
    )
    features = {}
    for (name, own), believed in zip(owns.items(), scales, strict=True):
        noise_at, joint = evidence.frequencies[name], own.share * own.classes
        untold = FeaturePosterior(
            evidence.features[name], own.here, noise_at, joint, own.absence, own.marginal, *rotated[name], believed,
            np.empty(0),
        )  # fmt: skip
        features[name] = replace(untold, table=untold.tables_of(untold.mean[None])[0])
    return Posterior(shares, features)


@dataclass(frozen=True)
class _Own:
    """A feature among the records that hold a value of it: what is told, their share a, P(class | present)."""

    here: Statistics
    share: float
    classes: Array
    absence: Absence | None
    marginal: Marginal

    @classmethod
    def of(cls, told: Statistics, shares: ClassShares, absence: Absence | None) -> _Own:
        if absence is None:
            return cls(told, 1.0, shares.value, None, marginal(told, shares.value))
        here, share = given_presence(told, absence), 1 - absence.share
        classes = (shares.value - absence.value) / share
        return cls(here, share, classes, absence, marginal(here, classes, share))

    def rotate(self) -> tuple[Array, Array, Array]:
        """A F U, S and y."""
        values, told = self.marginal.value, self.here
        design = self.share * kron(factor(values), factor(self.classes))
        information, rotation = np.linalg.eigh(design.T @ told.information @ design)
        basis = design @ rotation
        effects = basis.T @ (told.linear - told.information @ (self.share * product(values, self.classes)))
        return basis, np.maximum(information, 0.0), effects


def _gains(information: Array) -> Array:
    """Tau / (1 + tau S), shape (11, r)."""
    gains: Array = SCALES[:, None] / (1 + SCALES[:, None] * information)
    return gains
