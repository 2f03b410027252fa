"""What a query of distributed noise really loses where a part of the noise is missing, or known to who attacks.

The sum of a part r of the shares that one scale takes has noise of the law of the difference of two negative binomials
(Polya) of shape r (see :mod:`ldp_aggregator.trainers.federation.distributed_noise`). For r = 1 that is discrete
Laplace, and the loss is what was claimed. Below 1 the law is more pointed: it is even, and its logarithm is convex on
each side of 0, so that two neighbours whose query differs by delta are told apart best where the one has noise 0::

    loss = ln P(0) - ln P(delta),   P(x) = sum over k of p(k) p(k + x),   p the negative binomial law of shape r

Small claims lose by a larger factor than large ones, and what the queries that a row moves lose adds up. As the grid
gets finer, the loss grows, and for r > 1/2 to a limit, that of the difference of two gamma variables, which
has the density |u|^v K_v(|u|) up to a constant, v = r - 1/2, u in units of the scale. Up to r = 1/2 there is none: that
density is infinite at 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kve

Array = NDArray[np.float64]

_REACH = 20
"""Scales beyond which p(k) p(k + x) is below exp(-40) of its largest."""


def loss_of_part(part: float, claim: float, steps: int) -> float:
    """Epsilon that a query really costs with a part of its noise, by convolution.

    ``part``: of the noise, above 0 and at most 1 (there may be more than all; it does not hurt). ``claim``: the epsilon
    that all of it promises. ``steps``: how far one row moves the query, in steps of its grid (a count: 1).
    """
    _check(part, claim)
    if steps < 1:
        raise ValueError(f"steps must be at least 1, not {steps}")
    scale = steps / claim
    masses = _negative_binomial(part, scale, math.ceil(_REACH * scale) + 1 + steps)
    reach = len(masses) - steps
    return math.log(float(masses[:reach] @ masses[:reach]) / float(masses[:reach] @ masses[steps:]))


def most_loss_of_part(part: float, claim: float) -> float:
    """The limit of :func:`loss_of_part` as the grid gets finer; infinite up to a half of the noise."""
    _check(part, claim)
    order = part - 0.5
    if order <= 0:
        return math.inf
    at_zero = (order - 1) * math.log(2) + math.lgamma(order)
    return float(at_zero - order * math.log(claim) - math.log(kve(order, claim)) + claim)


def _negative_binomial(shape: float, scale: float, count: int) -> Array:
    """P(K = k) for k below ``count``, up to a constant."""
    k = np.arange(count, dtype=np.float64)
    masses: Array = np.exp(gammaln(shape + k) - gammaln(k + 1) - gammaln(shape) - k / scale)
    return masses


def _check(part: float, claim: float) -> None:
    if not 0 < part <= 1:
        raise ValueError(f"part must be above 0 and at most 1, not {part}")
    if not (math.isfinite(claim) and claim > 0):
        raise ValueError(f"claim must be a finite epsilon above 0, not {claim}")
