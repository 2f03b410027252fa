"""The joint table P(value, class) of a discrete feature, however a campaign asked for it.

A ``pair`` question estimates its cells. Of two values and two classes a campaign may ask bits instead, ``xor`` and
``marginal``, and the class alone: each is a sign a over the four cells, of which

    theta_a = E[a] = (S_a / n_a) / t,   Var = (1 / t^2 - theta_a^2) / n_a,

S_a being the sum of the n_a reported signs and t = p - q the gain of direct encoding on two cells (tanh(epsilon / 2),
as the document's integers have it). With v and c the indices of value and class

    P(v, c) = (1 + (-1)^v theta_x + (-1)^c theta_y + (-1)^(v + c) theta_xy) / 4,

whose variance is the sum of the three over 16, because different devices answered. theta_y is that of P(class) as every
question tells it. At large epsilon a ``triple`` question has two features of two values in its cells, whose sums are
the tables of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import Cells, QuestionEstimate, sums_of_cells, uninformed
from ldp_aggregator.estimation.poisoning.reports import class_range
from ldp_aggregator.estimation.pooling import cell_variance, class_variance, weighted
from protocols.document.questions import MARGINAL, XOR
from protocols.mechanisms import PureMechanism

Array = NDArray[np.float64]

_SIGNS: Final = {XOR: np.array([1.0, -1.0, -1.0, 1.0]), MARGINAL: np.array([1.0, 1.0, -1.0, -1.0])}
"""Of the cells ``2 * value + class``."""

_CLASS: Final = np.array([1.0, -1.0, 1.0, -1.0])


@dataclass(frozen=True)
class Sign:
    """A sign over the cells of a table, shape (values * k,), that ``n`` devices told by one randomised bit each.

    ``total`` is the sum of the reported signs, ``gain`` the share of it that the noise leaves.
    """

    signs: Array
    n: int
    total: float
    gain: float

    @property
    def theta(self) -> float:
        """Its unbiased mean; 0 where nobody told it."""
        return self.total / (self.n * self.gain) if self.n else 0.0

    @property
    def variance(self) -> float:
        """Of :attr:`theta`; kept above 0 by half a report, infinite where nobody told it."""
        return max(1 / self.gain**2 - self.theta**2, 0.5 / self.n) / self.n if self.n else np.inf

    @property
    def per_liar(self) -> float:
        """The most that one made-up report moves :attr:`theta`."""
        return 2 / (self.gain * self.n) if self.n else np.inf


@dataclass(frozen=True)
class JointTable:
    """P(value, class), shape (values * k,), index ``value * k + class``, as one campaign tells it.

    ``n`` are the reports about the feature, ``precision`` the inverse of a cell's predicted variance at equal
    frequencies, 0 where the table is not told; ``per_liar`` is the most that one lying device moves a cell.
    """

    cells: Cells
    n: int
    precision: float
    per_liar: Array


def sign_of(estimate: QuestionEstimate) -> Sign:
    """What the reports to an ``xor`` or ``marginal`` question add up to."""
    mechanism = estimate.question.mechanism
    if not isinstance(mechanism, PureMechanism):
        raise TypeError(f"a {estimate.question.kind} question is asked by a pure mechanism, not by {mechanism.name}")
    gain = float(mechanism.p - mechanism.q)
    theta = float(estimate.cells.value[0] - estimate.cells.value[1])
    return Sign(_SIGNS[estimate.question.kind], estimate.n, theta * gain * estimate.n, gain)


def table_of_pair(estimate: QuestionEstimate, per_liar: Array) -> JointTable:
    """The table that a ``pair`` question asks for."""
    precision = estimate.n / cell_variance(estimate) if estimate.n else 0.0
    return JointTable(estimate.cells, estimate.n, precision, per_liar)


def marginal_of(estimate: QuestionEstimate, feature: str) -> Cells:
    """P(value, class) of one feature of a ``triple`` question, shape (2 k,)."""
    values = estimate.cells.value.reshape(2, 2, -1)
    told = values.sum(axis=0 if feature == estimate.question.other else 1).ravel()
    if estimate.n == 0:
        return uninformed(told.size, frequencies=True)
    return sums_of_cells(estimate.question, estimate.n, told, 2)


def marginal_per_liar(estimate: QuestionEstimate) -> Array:
    """The most that one made-up report to a ``triple`` question moves a cell of a feature's table, shape (2 k,)."""
    cells = estimate.question.domain_size // 2
    return np.full(cells, class_range(estimate.question, cells) / estimate.n if estimate.n else np.inf)


def table_of_triple(estimate: QuestionEstimate, feature: str) -> JointTable:
    """The table of one of the two features that a ``triple`` question asks for."""
    cells = marginal_of(estimate, feature)
    precision = estimate.n / class_variance(estimate, cells.value.size) if estimate.n else 0.0
    return JointTable(cells, estimate.n, precision, marginal_per_liar(estimate))


def table_of_signs(signs: Sequence[Sign], classes: Cells, share_per_liar: float) -> JointTable:
    """The table of two signs and P(class), shape (2,), of which one liar moves a share by ``share_per_liar``."""
    share = float(classes.value[0] - classes.value[1])
    told = bool(np.isfinite(classes.variance).all())
    # As if the two shares always moved against one another, which is the worst and nearly always so.
    of_share = float(np.sqrt(classes.variance).sum() ** 2) if told else np.inf
    value = (1 + _CLASS * (share if told else 0.0) + sum(sign.signs * sign.theta for sign in signs)) / 4
    variance = (sum(sign.variance for sign in signs) + of_share) / 16
    # At equal frequencies every theta is 0.
    noise = sum(1 / (sign.gain**2 * sign.n) if sign.n else np.inf for sign in signs)
    moved = max([2 * share_per_liar, *(sign.per_liar for sign in signs)]) / 4
    everywhere = np.full_like(value, variance)
    cells = (
        Cells.normal(value, everywhere)
        if np.isfinite(variance)
        else Cells(value, everywhere, np.zeros_like(value), np.ones_like(value))
    )
    return JointTable(cells, sum(sign.n for sign in signs), 16 / (noise + of_share), np.full_like(value, moved))


def pool_tables(tables: Sequence[JointTable]) -> Cells:
    """The tables of one feature in several campaigns, as one."""
    told = [table for table in tables if table.precision > 0]
    if len(told) < 2:
        return (told or tables)[0].cells
    return weighted([table.cells for table in told], table_shares(told))


def table_shares(tables: Sequence[JointTable]) -> Array:
    """The share that each campaign's table has in the pooled one."""
    weights = np.array([table.precision for table in tables])
    shares: Array = weights / weights.sum()
    return shares
