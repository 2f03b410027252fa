"""P(value | class) as believed given all reports: marginal, class shares and a shrunk effect of the class.

Notation. m, shape (K,), and pi, shape (C,), are the shares of values and classes, q = m (x) pi their product, and F(m)
a factor of diag(m) - m m'. The joint table is q + F z with F = F(m) (x) F(pi): z says how far value and class are from
being independent, z = 0 that they are, and |z|^2 is about twice their mutual information. In the eigenbasis U of F' L F
with eigenvalues S, y = U' F' (h - L q) tells z coordinate by coordinate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import QuestionEstimate
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

    ``table`` is P(value | class), shape (K, C), columns add up to 1, nothing impossible. ``basis`` F U, shape (K C, r);
    ``information`` S and ``effects`` y, shape (r,); ``scales`` P(tau | reports), shape (11,). ``frequencies``, shape
    (K C,), are those that the noise was taken at.
    """

    told: Statistics
    frequencies: Array
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

    def tables_of(self, effects: Array, classes: Array) -> Array:
        """P(value | class), shape (populations, K, C), for effects z, shape (populations, r): the nearest
        probabilities, class by class, and K C pseudo-reports that do not know the class.
        """
        share, size, weight = self.marginal.value[:, None, None], self.told.linear.size, self.pseudo_reports
        deviation = (self.basis @ effects.T).reshape(len(share), classes.size, -1)
        table = (weight * norm_sub(share + deviation / classes[:, None]) + size * share) / (weight + size)
        result: Array = np.moveaxis(table / table.sum(axis=0), 2, 0)
        return result

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
) -> Posterior:
    """What is believed of features (name to number of values) given the answers to all questions of all campaigns.

    First with the noise that equal frequencies have, then with that of the frequencies found, halfway
    (:data:`_TRUST`). ``prior_questions``, among ``questions``, tell the classes.
    """
    reports = sum(one.n for one in questions)
    first = gather(questions, prior_questions, classes, sizes)
    shares = class_shares(first.classes, reports)
    frequencies = {}
    for name, told in first.features.items():
        cells = product(marginal(told, shares.value).value, shares.value)
        frequencies[name] = _TRUST * cells + (1 - _TRUST) / cells.size
    return _fit(gather(questions, prior_questions, classes, sizes, frequencies), shares)


def _fit(evidence: Evidence, shares: ClassShares) -> Posterior:
    pi = shares.value
    marginals = {name: marginal(told, pi) for name, told in evidence.features.items()}
    rotated = {name: _rotate(told, marginals[name].value, pi) for name, told in evidence.features.items()}
    scales = scale_posteriors(
        [information for _, information, _ in rotated.values()], [effects for _, _, effects in rotated.values()]
    )
    features = {}
    for (name, told), believed in zip(evidence.features.items(), scales, strict=True):
        noise_at = evidence.frequencies[name]
        untold = FeaturePosterior(told, noise_at, marginals[name], *rotated[name], believed, np.empty(0))
        features[name] = replace(untold, table=untold.tables_of(untold.mean[None], pi)[0])
    return Posterior(shares, features)


def _rotate(told: Statistics, values: Array, classes: Array) -> tuple[Array, Array, Array]:
    """F U, S and y of a feature."""
    design = kron(factor(values), factor(classes))
    information, rotation = np.linalg.eigh(design.T @ told.information @ design)
    basis = design @ rotation
    effects = basis.T @ (told.linear - told.information @ product(values, classes))
    return basis, np.maximum(information, 0.0), effects


def _gains(information: Array) -> Array:
    """Tau / (1 + tau S), shape (11, r)."""
    gains: Array = SCALES[:, None] / (1 + SCALES[:, None] * information)
    return gains
