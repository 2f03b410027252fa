"""The reach of one person in a query: every sensitivity, with its relation, its units and its source.

Two relations are used. ``add-remove``: one row more or less; the classes are disjoint, so that a row counts in one of
them, and class counts are private. ``replace``: the feature values of one row change; labels and class counts are
public. A change of a row's label costs at most twice ``add-remove``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

ADD_REMOVE: Final = "add-remove"
REPLACE: Final = "replace"

RELATIONS: Final = {
    ADD_REMOVE: "add or remove one row",
    REPLACE: "replace the feature values of one row (labels are public)",
}
"""Each relation, in words, as guarantees state it."""


def checked_relation(relation: str) -> str:
    if relation not in RELATIONS:
        raise ValueError(f"relation must be {' or '.join(RELATIONS)}, not {relation!r}")
    return relation


def table_cells(relation: str) -> Fraction:
    """Counts of a categorical feature by value and class (Vaidya et al. 2013, 4.1); replacing moves two. L1, rows."""
    return Fraction(2 if checked_relation(relation) == REPLACE else 1)


SQUARE_WEIGHT: Final = Fraction(2, 3)
"""b in :func:`sum_and_square`: what a unit of the square weighs against a unit of the sum."""


def sum_and_square(relation: str) -> Fraction:
    """Sum of t and b times sum of 1 - t^2 per class, t in [-1, 1], asked as one query. Units: t, L1 over all of it.

    A row with a large t adds little to the square, so that both together move by less than one after the other:

    * ``add-remove``: |t| + b (1 - t^2), for b >= 1/2 largest at |t| = 1 / (2 b): b + 1 / (4 b).
    * ``replace`` s by t: |t - s| + b |t^2 - s^2|, largest from s = -1 to t = 1 / (2 b): one more than that.
    """
    adding = SQUARE_WEIGHT + 1 / (4 * SQUARE_WEIGHT)
    return adding + 1 if checked_relation(relation) == REPLACE else adding


def mean_replacing(rows: int, span: Fraction) -> Fraction:
    """Mean of ``rows`` values in a range of width ``span``, relation ``replace``. Units: of the values."""
    return span / rows


def variance_replacing(rows: int, span: Fraction) -> Fraction:
    """Population variance of ``rows`` values, relation ``replace``. Units: of the values, squared.

    Replacing p by q changes the sum of squared deviations by (rows - 1)/rows * ((q - m)^2 - (p - m)^2), m the mean of
    the others: at most span^2 (rows - 1)/rows.
    """
    return span**2 * Fraction(rows - 1, rows**2)


def mean_adding(rows: int, span: float) -> float:
    """Mean when one value is *added* to ``rows`` (Vaidya et al. 2013, equation 5). Units: of the values."""
    return span / (rows + 1)


def deviation_adding(rows: int, span: float) -> float:
    """Standard deviation when one value is *added* to ``rows`` (Vaidya et al. 2013, equation 7). Units: values."""
    return math.sqrt(rows) * span / (rows + 1)


def resampling_loss(epsilon: float) -> float:
    """The loss of "draw again until not negative" of a query >= 0 with noise for ``epsilon``: ln(2 exp(epsilon) - 1).
    The normalising constants 1/2 (at 0) and 1 - exp(-epsilon)/2 come on top.
    """
    return epsilon + math.log(2 - math.exp(-epsilon))
