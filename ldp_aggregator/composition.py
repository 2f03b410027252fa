"""Loss by several shuffled answers of one device together, composed from the curves of delta over epsilon.

Each group's curve is dominated by the one that :mod:`ldp_aggregator.amplification` bounds it by, and the composition of
what dominates dominates the composition (Zhu, Dong, Wang, "Optimal Accounting of Differential Privacy via
Characteristic Function", 2022). The bound is taken at a hundred points, and their convex hull from below: a true curve
is convex, and so below the hull. "Connect the Dots" (Doroshenko et al. 2022, algorithm 1) makes of it a distribution of
losses that is never better. dp-accounting, the extra ``composition``, does this and composes.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from ldp_aggregator.amplification import delta_bounds
from ldp_aggregator.mechanisms.analysis import Array, Blanket

_LEAST_DELTA: Final = 1e-10
"""Below, what a Fourier transform of doubles rounds away would count."""

_KEPT: Final = 0.99
"""The part of delta that is spent; what rounding could take is far below the rest."""

_DIGITS: Final = 3

_TAIL: Final = 1e-16
_STEPS: Final = 25
"""Steps of the grid to one group's epsilon."""

_FINE: Final = 75
_COARSE: Final = 40
"""Points at each step, and between these and the local loss, ever further apart."""


def can_compose(delta: float) -> bool:
    """True if the extra ``composition`` is installed and ``delta`` is one that doubles can tell."""
    return delta >= _LEAST_DELTA and find_spec("dp_accounting") is not None


def composed_bound(blankets: tuple[Blanket, ...], reports: int, delta: float, epsilon: float) -> float:
    """An upper bound of epsilon at ``delta`` for a device's answers to all groups, ``reports`` to each, infinite where
    none is found. ``epsilon`` is about one group's and decides how fine the grid is.

    Fewer reports reveal more: they are counted to three digits, so that a page that is asked for while reports come in
    composes nothing anew.
    """
    digits = 10 ** max(0, len(str(reports)) - _DIGITS)
    return _composed(blankets, reports // digits * digits, delta, float(f"{epsilon:.2g}"))


@lru_cache(maxsize=256)
def _composed(blankets: tuple[Blanket, ...], reports: int, delta: float, epsilon: float) -> float:
    from dp_accounting.pld import privacy_loss_distribution

    step, total = epsilon / _STEPS, privacy_loss_distribution.identity(epsilon / _STEPS)
    for blanket, groups in Counter(blankets).items():
        losses = privacy_loss_distribution.PrivacyLossDistribution(_losses(blanket, reports, step))
        total = total.compose(losses.self_compose(groups))
    return float(total.get_epsilon_for_delta(delta * _KEPT))


def _losses(blanket: Blanket, reports: int, step: float) -> Any:
    from dp_accounting.pld import pld_pmf

    end = math.ceil(math.log(float(blanket.ratio)) / step) + 1
    far = np.round(np.geomspace(min(_FINE, end), end, _COARSE))
    places = np.unique(np.concatenate([np.arange(min(_FINE, end)), far])).astype(np.int64)
    above = delta_bounds(blanket, reports, places * step, _TAIL)
    # The pair in the other order has the same bound: its curve at -epsilon follows.
    below = -np.expm1(-places * step) + np.exp(-places * step) * above
    every = np.concatenate([-places[:0:-1], places])
    ratio = np.exp(every * step)
    deltas = _convex(np.append(0.0, ratio), np.concatenate([[1.0], below[:0:-1], above]))[1:]
    return pld_pmf.create_pmf_pessimistic_connect_dots(step, every, np.minimum.accumulate(np.minimum(deltas, 1.0)))


def _convex(x: Array, y: Array) -> Array:
    """The largest convex function that is nowhere above the points, at each ``x`` (which rises)."""
    places: list[int] = []
    for place in range(len(x)):
        while len(places) > 1:
            first, middle = places[-2:]
            run, rise = x[place] - x[first], y[place] - y[first]
            if (y[middle] - y[first]) * run < rise * (x[middle] - x[first]):
                break
            places.pop()
        places.append(place)
    return np.interp(x, x[places], y[places])
