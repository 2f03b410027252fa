"""Rare classes: the values that one of which little is known is believed to have.

The marginal m of a feature is hardly a rare class's own: it says how the frequent ones are. A rare class believed to be
like m would look ordinary, its records would be ranked below those that are like no class, and few reports tell better.
So the centre of P(value | class), which the effects of the class are told from, lies for a rare class between m and
even values,

    centre(v, c) = m_v + r_c (1 - a) (1 / K - m_v),

where r_c says how rare the class is, and a how far classes are alike; the frequent classes give up what the rare ones
take, so that the marginal stays m. a is the same for all features and learned from all of them: the posterior mean over
five values that are equally likely before any report. With many reports the centre no longer matters.

Chosen on made populations (classes of 1, 2, 5 and 10 %, features drawn independently or repeating each other), with car
and connect4 in view; docs/accuracy.md has what it wins there, and what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.posterior.scale import SCALES, USUAL

Array = NDArray[np.float64]

ALIKE: Final[Array] = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""How far classes may be alike."""

_RARE: Final = 0.15
_FREQUENT: Final = 0.3
"""Of the share that classes would have if as many were even, 1 / (effective number of classes): a class below the first
is rare in full, one above the second not at all.
"""

_LEAST: Final = 0.01
"""Of the marginal: what a centre leaves of a value at least."""


def rarity(classes: Array) -> Array:
    """Return how rare each class is, from 0 to 1, for shares of shape (..., C). Even classes are not, however many."""
    return np.clip((_FREQUENT - _relative(classes)) / (_FREQUENT - _RARE), 0.0, 1.0)


def centre(marginal: Array, classes: Array, alike: float) -> Array:
    """Return P(value | class), shape (..., K, C), as it is believed to be before any effect of the class, for P(value),
    shape (..., K), and P(class), shape (..., C).
    """
    pull = (1 - alike) * rarity(classes)
    frequent = 1 - rarity(classes)
    given = (pull * classes).sum(axis=-1, keepdims=True) / (frequent * classes).sum(axis=-1, keepdims=True)
    pull = pull - given * frequent
    away = 1 / marginal.shape[-1] - marginal
    moved = marginal[..., :, None] + pull[..., None, :] * away[..., :, None]
    inside = np.maximum(moved, _LEAST * marginal[..., :, None])
    result: Array = inside / inside.sum(axis=-2, keepdims=True)
    return result


def likeness(information: Sequence[Array], effects: Sequence[Sequence[Array]]) -> float:
    """Return how far classes are alike, from 0 to 1: the posterior mean of a.

    ``information`` S has a row for every feature; ``effects`` y, for every value of :data:`ALIKE`, too. Given a and the
    scale tau of a feature y ~ N(0, S + tau S^2), coordinate by coordinate; scales are :data:`USUAL`.
    """
    starts = np.concatenate([[0], np.cumsum([len(one) for one in information])[:-1]])
    told = np.concatenate(list(information))
    spread = 1 + np.outer(SCALES, told)
    known = told > np.finfo(float).eps * told.max(initial=0.0)
    found = []
    for of_features in effects:
        squares = np.where(known, np.concatenate(list(of_features)) ** 2 / np.where(known, told, 1.0), 0.0)
        logarithms = np.add.reduceat(-(squares / spread + np.log(spread)) / 2, starts, axis=1)
        largest = logarithms.max(axis=0)
        found.append(float((largest + np.log(USUAL @ np.exp(logarithms - largest))).sum()))
    weights = np.exp(np.array(found) - max(found))
    return float(weights @ ALIKE / weights.sum())


def _relative(classes: Array) -> Array:
    relative: Array = classes / (classes**2).sum(axis=-1, keepdims=True)
    return relative
