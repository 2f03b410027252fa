"""Quantiles of a number that is asked by bins, with intervals that need no shape of its distribution.

Of the shares E of the bins, the cells up to edge j less those beyond it say on which side of the edge the quantile of
order r is: the mean of T_j = (1 - r) sum_{i <= j} E_i - r sum_{i > j} E_i is P(present) (F_j - r), and its variance is
known where F_j = r. The interval goes from the last edge up to which every T is clearly below 0 to the first edge from
which on every T is clearly above it: of the edges beside the quantile one has to mislead before it is left out. Where
the quantile lies between its two edges no report says, so that an interval is a bin at least; the estimate takes the
values of a bin to be spread evenly.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ldp_aggregator.estimation.cells import Z_95
from ldp_aggregator.estimation.estimators import QuestionEstimate, covariance_of_sums
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_protocols.features import NumericFeature

ORDERS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Orders of the quantiles that are told without being asked for; the middle one is the median."""


def quantile(one: QuestionEstimate, feature: NumericFeature, order: float) -> tuple[float, float, float]:
    """The quantile of ``order`` in (0, 1) of those who hold a value, and the ends of its 95 % interval; not a number
    between the bounds where nobody who holds one is known of.
    """
    edges = np.array([feature.low, *feature.inner_edges, feature.high])
    cells = one.cells.value[: feature.size]
    present = min(float(cells.sum()), 1.0)
    if one.n == 0 or present <= 0:
        return np.nan, float(feature.low), float(feature.high)
    below = np.cumsum(cells)[:-1]
    inside = np.arange(1.0, feature.size)
    lower, upper = np.full(inside.size, order * present), np.full(inside.size, (1 - order) * present)
    first, both, second = covariance_of_sums(one.question, (inside, lower), (feature.size - inside, upper))
    variance = ((1 - order) ** 2 * first - 2 * order * (1 - order) * both + order**2 * second) / one.n
    clear = ((1 - order) * below - order * (cells.sum() - below)) / np.sqrt(variance)
    # Edges in a row from either end, the bounds among them: those the quantile is clearly beyond.
    low = np.argmin(np.append(clear < -Z_95, False))
    high = feature.size - np.argmin(np.append(clear[::-1] > Z_95, False))
    shares = np.concatenate([[0.0], np.cumsum(norm_sub(cells / present))])
    # The least number up to which so many are: a bin that nobody is in has no part.
    place = min(int(np.searchsorted(shares, order, side="left")), feature.size)
    part = (order - shares[place - 1]) / (shares[place] - shares[place - 1])
    value = edges[place - 1] + part * (edges[place] - edges[place - 1])
    return float(value), float(min(edges[low], value)), float(max(edges[high], value))
