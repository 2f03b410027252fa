"""How large the effects of the class on a feature are: a prior's scale, learned from all features together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SCALES: Final[Array] = 10.0 ** np.arange(-4.5, 0.75, 0.5)
"""Tau: the variances that effects may have, of which a feature has one."""

_OFTEN: Final[Array] = np.exp(-0.5 * ((np.log10(SCALES) - np.log10(0.03)) / 0.7) ** 2)

USUAL: Final[Array] = _OFTEN / _OFTEN.sum()
"""The share of features that have each scale, before any report: ln tau is normal around 0.03, two of three features
within a factor of five of it.

Chosen on chess, mushroom, car and connect4. Were all scales as frequent, noise would be taken for effects that no table
has: the squares of one feature's effects add up to the number of classes less one at most.
"""

_STEPS: Final = 50
_PSEUDO_FEATURES: Final = 2.0
"""Two features of usual scales keep it off zero, where a likelihood alone would take it."""


def scale_posteriors(information: Sequence[Array], effects: Sequence[Array]) -> Array:
    """P(tau | reports) of every feature, shape (features, 11); see :data:`SCALES`.

    A feature's ``information`` S and ``effects`` y, shape (r,) both, are in coordinates in which y ~ N(S z, S) and
    z ~ N(0, tau): ln p(y | tau) = sum_i [-ln(1 + tau S_i) + tau y_i^2 / (1 + tau S_i)] / 2, up to a constant. The
    weights of the grid are shared by all features, by expectation maximisation, and start at :data:`USUAL` ones.
    """
    if not information:
        return np.zeros((0, SCALES.size))
    lengths = [len(one) for one in information]
    spread = 1 + np.outer(SCALES, np.concatenate(list(information)))
    each = (SCALES[:, None] * np.concatenate(list(effects)) ** 2 / spread - np.log(spread)) / 2
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    logarithm = np.add.reduceat(each, starts, axis=1).T
    return shared_scales(logarithm, USUAL)


def own_scales(information: Array, effects: Array) -> Array:
    """Return P(tau | reports) of one feature taken by itself, shape (samples, 11), for each sample of its ``effects``,
    shape (samples, r).
    """
    spread = 1 + SCALES[:, None] * information
    logarithm = ((SCALES[:, None] / spread) @ effects.T**2 - np.log(spread).sum(axis=1)[:, None]).T / 2
    weights = np.exp(logarithm - logarithm.max(axis=1, keepdims=True)) * USUAL
    result: Array = weights / weights.sum(axis=1, keepdims=True)
    return result


def shared_scales(logarithm: Array, usual: Array) -> Array:
    """The posterior of every feature's scale, shape (features, scales), given the ``logarithm`` of its likelihoods; the
    weights of the scales are shared by all features, two pseudo-features among them that have ``usual`` ones.
    """
    likelihood = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
    weights = usual
    for _ in range(_STEPS):
        posterior = likelihood * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = (posterior.sum(axis=0) + _PSEUDO_FEATURES * usual) / (len(logarithm) + _PSEUDO_FEATURES)
    result: Array = likelihood * weights
    result /= result.sum(axis=1, keepdims=True)
    return result
