"""Effects of the class on a feature, before its reports are seen: how large, how smooth, and from which centre.

**Scale.** Effects z are N(0, tau): a grid of tau whose weights are learned from all features together.

**Order.** Where values are bins of a number, or are listed in their order, an effect on one value is one, less and
less, on those beside it. With D = F z, how far the joint table is from independence
(:mod:`ldp_aggregator.estimation.posterior`), phi(v, c) = D(v, c) / (m_v pi_c) is a priori a Gaussian process
over the values with correlation

    k(v, w) = exp(-((v - w) / l)^2 / 2),   l = max(1, K / 16),

a sixteenth of the range and a value at least (Rasmussen and Williams 2006, equation 4.9). For z that is

    z ~ N(0, tau R R'),   R R' = w F(m)' k F(m) / s + (1 - w) I,   w = .9 ne / (ne + K / 2),

a tenth being left to what one value has alone. Which values there are at all has to be known first: ne are the reports
without noise that would tell the marginal m as well, and with a few of them hardly any order is believed. The scale s,
the root of the largest eigenvalue of F' k F times the mean one, makes a feature with an order about as strong as one
without, and stronger in the directions that are smooth.

Chosen on iris, wine and breast cancer (scikit-learn) and accelerometer, which no figure shows, and car, whose values
are listed in their order; that an order waits for the marginal was chosen with seeds in view, too.

**Centre.** The marginal m of a feature is hardly a rare class's own: it says how the frequent ones are. A rare class
believed to be like m would look ordinary, its records would be ranked below those that are like no class, and few
reports tell better. So the centre of P(value | class), which effects are told from, lies for a rare class between m and
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

from ldp_aggregator.estimation.cells import Array
from ldp_aggregator.estimation.evidence import factor

SCALES: Final[Array] = 10.0 ** np.arange(-4.5, 0.75, 0.5)
"""`tau`: the variances that effects may have, of which a feature has one."""

_OFTEN: Final[Array] = np.exp(-0.5 * ((np.log10(SCALES) - np.log10(0.03)) / 0.7) ** 2)

USUAL: Final[Array] = _OFTEN / _OFTEN.sum()
"""The share of features that have each scale, before any report: ln tau is normal around 0.03, two of three features
within a factor of five of it.

Chosen on chess, mushroom, car and connect4. Were all scales as frequent, noise would be taken for effects that no table
has: the squares of one feature's effects add up to the number of classes less one at most.
"""

_OWN: Final = 0.1
"""The part of the prior variance that a value does not share with those beside it."""

_REACH: Final = 16.0
"""Parts of the range, within one of which effects are alike."""

_KNOWN: Final = 0.5
"""Reports without noise, for each value, with which half of the order is believed."""

ALIKE: Final[Array] = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""The likenesses that classes may have: 0 is none, 1 full."""

_RARE: Final = 0.15
_FREQUENT: Final = 0.3
"""Parts of 1 / (effective number of classes), the share of even ones: a class below the first is rare in full, one
above the second not at all.
"""

_LEAST: Final = 0.01
"""The part of a value's marginal share that a centre leaves at least."""


def scale_logarithms(information: Array, effects: Array) -> Array:
    """Return ln p(effects | tau) up to a constant for every scale, shape (..., 11); see :data:`SCALES`.

    ``information`` S and ``effects`` y, shape (..., r) both, are in coordinates in which y ~ N(S z, S) and
    z ~ N(0, tau): ln p(y | tau) = sum_i [-ln(1 + tau S_i) + tau y_i^2 / (1 + tau S_i)] / 2.
    """
    spread = 1 + SCALES[:, None] * information[..., None, :]
    squares = (SCALES[:, None] / spread * effects[..., None, :] ** 2).sum(axis=-1)
    return np.asarray((squares - np.log(spread).sum(axis=-1)) / 2)


def gains(information: Array) -> Array:
    """Return how much of an effect y is believed at each scale, tau / (1 + tau S), shape (..., 11, r)."""
    return SCALES[:, None] / (1 + SCALES[:, None] * information[..., None, :])


def ordered_factor(shares: Array, effective: Array) -> Array:
    """F(m) R, shape (..., K, K - 1), for P(value) in order, known as from ``effective`` reports without noise."""
    size, plain = shares.shape[-1], factor(shares)
    places = np.arange(size) / max(1.0, size / _REACH)
    alike = np.exp(-0.5 * np.subtract.outer(places, places) ** 2)
    prior = plain.mT @ alike @ plain
    eigenvalues = np.linalg.eigvalsh(prior)
    scale = np.sqrt(eigenvalues[..., -1] * eigenvalues.mean(axis=-1))[..., None, None]
    believed = ((1 - _OWN) * effective / (effective + _KNOWN * size))[..., None, None]
    return plain @ np.linalg.cholesky(believed * prior / scale + (1 - believed) * np.eye(size - 1))


def rarity(classes: Array) -> Array:
    """Return how rare each class is, from 0 to 1, for shares of shape (..., C). Even classes are not, however many."""
    relative = classes / (classes**2).sum(axis=-1, keepdims=True)
    return np.asarray(np.clip((_FREQUENT - relative) / (_FREQUENT - _RARE), 0.0, 1.0))


def centre(marginal: Array, classes: Array, alike: float) -> Array:
    """P(value | class), shape (..., K, C), before effects, from P(value), (..., K), and P(class), (..., C)."""
    pull = (1 - alike) * rarity(classes)
    frequent = 1 - rarity(classes)
    given = (pull * classes).sum(axis=-1, keepdims=True) / (frequent * classes).sum(axis=-1, keepdims=True)
    pull = pull - given * frequent
    away = 1 / marginal.shape[-1] - marginal
    moved = marginal[..., :, None] + pull[..., None, :] * away[..., :, None]
    inside = np.maximum(moved, _LEAST * marginal[..., :, None])
    return np.asarray(inside / inside.sum(axis=-2, keepdims=True))


def likeness(information: Sequence[Array], effects: Sequence[Sequence[Array]]) -> float:
    """Return how far classes are alike, from 0 to 1: the posterior mean of a.

    ``information`` S is of features of each shape, shape (features, r); ``effects`` y, for every value of
    :data:`ALIKE`, too. Given a and the scale tau of a feature y ~ N(0, S + tau S^2), coordinate by coordinate.
    """
    least = np.finfo(float).eps * max(one.max(initial=0.0) for one in information)
    evidence = np.zeros(len(effects))
    for place, of_features in enumerate(effects):
        for told, its in zip(information, of_features, strict=True):
            squares = np.divide(its**2, told, out=np.zeros_like(its), where=told > least).sum(axis=-1, keepdims=True)
            logarithms = scale_logarithms(told, its) - squares / 2
            most = logarithms.max(axis=-1, keepdims=True)  # Numpy alone: a server draws pages without scipy.
            evidence[place] += float((most[..., 0] + np.log(np.exp(logarithms - most) @ USUAL)).sum())
    weights = np.exp(evidence - evidence.max())
    return float(weights @ ALIKE / weights.sum())
