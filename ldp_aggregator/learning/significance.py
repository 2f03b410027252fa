"""Test whether the features tell anything of the class, against features that tell nothing.

A model and what it is judged by must not share their noise: tables that are made of noise look as if they told the
class, and a posterior of the same reports agrees. So the reports themselves are tested. Of a discrete feature whose
reports have the information L and the linear part h (:mod:`ldp_aggregator.estimation.posterior.evidence`), taken at the
frequencies q = m (x) pi that it has if it tells nothing, the score u = h - L q has mean 0 and covariance L. With D the
directions in which value and class depend on each other, F(m) (x) F(pi), and A those in which q itself was estimated
(the shares of values and of classes, and who holds no value), the efficient score (Cox and Hinkley 1974, section 9.3)

    u_D - S_DA S_AA^-1 u_A,   covariance S_DD - S_DA S_AA^-1 S_AD,   S = (D, A)' L (D, A),

does not depend on how well q is known. Its squared length in that covariance is chi-squared with (K - 1)(C - 1) degrees
of freedom. Of a Gaussian feature the sums of value and of square in every class are compared with the class's share:
C - 1 degrees each. Devices that answer different questions are different ones, so that all of it adds up; where one
device answers everything, their noise is independent still.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import Cells
from ldp_aggregator.estimation.moments import present_shares
from ldp_aggregator.estimation.pooling import pool
from ldp_aggregator.estimation.posterior.evidence import Statistics, factor, kron, product, times
from ldp_aggregator.estimation.posterior.tables import FeaturePosterior, Posterior, rows
from protocols.document.questions import SQUARE, VALUE

Array = NDArray[np.float64]

FALSE_ALARMS: Final = 0.015
"""The p-value below which features are said to tell something. Where they tell nothing they are said to in so many
campaigns, and in no more than 3 % of any 300 (binomial, 98 of 100 times).
"""


def p_value(estimates: Sequence[Estimates], posterior: Posterior, gaussian: Sequence[str], shares: Cells) -> float:
    """Return how likely it is that features which tell nothing of the class look as if they told so much.

    ``posterior`` has the shares of values and classes that the reports to all campaigns, ``estimates``, are tested at;
    ``shares`` is P(class), unbiased, from all of them. 1 where there is no report.
    """
    squares, freedom = 0.0, 0
    for group, its in posterior.groups:
        told = group.told(its.cells())
        answered = np.flatnonzero(told.information.any(axis=(-2, -1))).tolist()
        if answered:
            found, degrees = _score(rows(its, answered), rows(told, answered))
            squares, freedom = squares + found, freedom + degrees
    for name in gaussian:
        asked = [[one.asking(name, kind) for one in estimates] for kind in (VALUE, SQUARE)]
        present = present_shares(shares, [one for of_kind in asked for one in of_kind]).of_class
        for of_kind in asked:
            sums = pool(of_kind)
            if np.isfinite(sums.variance).all() and np.isfinite(present.variance).all():
                squares += _of_sums(sums, present)
                freedom += len(present.value) - 1
    return float(chi2.sf(squares, freedom)) if freedom else 1.0


def _score(group: FeaturePosterior, told: Statistics) -> tuple[float, int]:
    """Return the squared length of the efficient scores of features of one shape, and its degrees of freedom."""
    m, pi = group.marginal, group.classes
    dependent = kron(factor(m), factor(pi))
    nuisance = np.concatenate([kron(factor(m), pi[..., None]), kron(m[..., None], factor(pi))], axis=-1)
    if group.absence is not None:
        classes = pi.shape[-1]
        gone = np.concatenate(
            [
                np.repeat(-product(m, pi)[..., None], classes, axis=-1),
                np.broadcast_to(np.eye(classes), (len(m), classes, classes)),
            ],
            axis=-2,
        )
        below = ((0, 0), (0, classes), (0, 0))
        dependent = np.pad(dependent, below)
        nuisance = np.concatenate([np.pad(nuisance, below), gone], axis=-1)
    information = told.information
    score = told.linear - times(information, group.cells())
    across = nuisance.mT @ information @ dependent
    explained = np.linalg.solve(nuisance.mT @ information @ nuisance, across)
    left = times(dependent.mT, score) - times(explained.mT, times(nuisance.mT, score))
    covariance = dependent.mT @ information @ dependent - across.mT @ explained
    solved = np.linalg.solve(covariance, left[..., None])[..., 0]
    return float((left * solved).sum()), left.size


def _of_sums(sums: Cells, shares: Cells) -> float:
    """Compare a quantity's sums over the classes, P(class) E[v | class], with the shares of these: where the mean is
    mu in every class, sums - mu shares is noise. mu is estimated by weighted least squares.
    """
    mean = sums.value.sum() / shares.value.sum()
    weights = 1 / (sums.variance + mean**2 * shares.variance)
    mean = (weights * shares.value) @ sums.value / ((weights * shares.value) @ shares.value)
    left = sums.value - mean * shares.value
    return float(weights @ left**2)
