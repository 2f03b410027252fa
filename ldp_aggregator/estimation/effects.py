"""Effects of the class on a feature, before its reports are seen: how large, and how smooth.

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
"""

from __future__ import annotations

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

OWN: Final = 0.1
"""The part of the prior variance that a value does not share with those beside it."""

_REACH: Final = 16.0
"""Parts of the range, within one of which effects are alike."""

_KNOWN: Final = 0.5
"""Reports without noise, for each value, with which half of the order is believed."""


def scale_logarithms(information: Array, effects: Array) -> Array:
    """`ln p(effects | tau)` up to a constant for every scale, shape (..., 11); see :data:`SCALES`.

    ``information`` S and ``effects`` y, shape (..., r) both, are in coordinates in which y ~ N(S z, S) and
    z ~ N(0, tau): ln p(y | tau) = sum_i [-ln(1 + tau S_i) + tau y_i^2 / (1 + tau S_i)] / 2.
    """
    spread = 1 + SCALES[:, None] * information[..., None, :]
    squares = (SCALES[:, None] / spread * effects[..., None, :] ** 2).sum(axis=-1)
    return np.asarray((squares - np.log(spread).sum(axis=-1)) / 2)


def gains(information: Array) -> Array:
    """The part of an effect y that is believed at each scale, `tau / (1 + tau S)`, shape (..., 11, r)."""
    return SCALES[:, None] / (1 + SCALES[:, None] * information[..., None, :])


def ordered_factor(shares: Array, effective: Array) -> Array:
    """F(m) R, shape (..., K, K - 1), for P(value) in order, known as from ``effective`` reports without noise."""
    size, plain = shares.shape[-1], factor(shares)
    places = np.arange(size) / max(1.0, size / _REACH)
    alike = np.exp(-0.5 * np.subtract.outer(places, places) ** 2)
    prior = plain.mT @ alike @ plain
    eigenvalues = np.linalg.eigvalsh(prior)
    scale = np.sqrt(eigenvalues[..., -1] * eigenvalues.mean(axis=-1))[..., None, None]
    believed = ((1 - OWN) * effective / (effective + _KNOWN * size))[..., None, None]
    return plain @ np.linalg.cholesky(believed * prior / scale + (1 - believed) * np.eye(size - 1))
