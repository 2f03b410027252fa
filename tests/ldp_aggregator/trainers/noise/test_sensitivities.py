"""Every sensitivity against brute force over all small tables on a grid."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ldp_aggregator.trainers.noise import sensitivities

GRID = tuple(i / 4 for i in range(5))


def replaced(rows):
    """All pairs of tables of ``rows`` values that differ in one value."""
    for others in itertools.combinations_with_replacement(GRID, rows - 1):
        for p, q in itertools.combinations(GRID, 2):
            yield (*others, p), (*others, q)


def extended(rows):
    """All pairs of a table of ``rows`` values and one with one more."""
    for values in itertools.combinations_with_replacement(GRID, rows):
        for more in GRID:
            yield values, (*values, more)


def largest_change(query, pairs):
    return max(abs(query(first) - query(second)) for first, second in pairs)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_replacing_moves_mean_variance_and_deviation_exactly_this_far(rows):
    mean = sensitivities.mean_replacing(rows, Fraction(1))
    variance = sensitivities.variance_replacing(rows, Fraction(1))
    assert largest_change(np.mean, replaced(rows)) == pytest.approx(float(mean))
    assert largest_change(np.var, replaced(rows)) == pytest.approx(float(variance), abs=1e-15)
    assert largest_change(np.std, replaced(rows)) == pytest.approx(sensitivities.deviation_replacing(rows, 1.0))


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_the_published_sensitivities_are_those_of_adding(rows):
    assert largest_change(np.mean, extended(rows)) == pytest.approx(sensitivities.mean_adding(rows, 1.0))
    assert largest_change(np.std, extended(rows)) == pytest.approx(sensitivities.deviation_adding(rows, 1.0))


@pytest.mark.parametrize("rows", [2, 3, 4, 5])
def test_removing_moves_further_than_published(rows):
    pairs = [(first, second) for second, first in extended(rows - 1)]
    assert largest_change(np.mean, pairs) == pytest.approx(sensitivities.mean_removing(rows, 1.0))
    assert largest_change(np.std, pairs) == pytest.approx(sensitivities.deviation_removing(rows, 1.0))
    assert sensitivities.mean_removing(rows, 1.0) > sensitivities.mean_adding(rows, 1.0)


@pytest.mark.parametrize("relation", sensitivities.RELATIONS)
def test_tables_move_exactly_this_far(relation):
    rows = np.linspace(-1, 1, 9)
    neighbours = [(p, q) for p in rows for q in rows] if relation == "replace" else [(p, None) for p in rows]

    def cells(value):
        return np.bincount([round(4 * (value + 1))], minlength=9)

    table = max(np.abs(cells(p) - (0 if q is None else cells(q))).sum() for p, q in neighbours)
    assert table == sensitivities.table_cells(relation)


@pytest.mark.parametrize("relation", sensitivities.RELATIONS)
def test_sum_and_square_together_move_exactly_this_far(relation):
    t = np.linspace(-1, 1, 401)
    pair = np.stack([t, float(sensitivities.SQUARE_WEIGHT) * (1 - t**2)], axis=1)
    moved = pair[:, None] - pair[None] if relation == "replace" else pair
    worst = np.abs(moved).sum(axis=-1).max()
    assert worst == pytest.approx(float(sensitivities.sum_and_square(relation)), abs=1e-12)
    assert sensitivities.sum_and_square("add-remove") == Fraction(25, 24)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_resampling_loses_what_is_stated(epsilon):
    def density(x, centre):
        return math.exp(-epsilon * abs(x - centre)) / (1 - math.exp(-epsilon * centre) / 2)

    worst = max(
        abs(math.log(density(x, centre) / density(x, centre + 1)))
        for x in np.linspace(0, 5, 101)
        for centre in np.linspace(0, 5, 101)
    )
    assert worst == pytest.approx(sensitivities.resampling_loss(epsilon))
    assert sensitivities.resampling_loss(1.0) == pytest.approx(1.49, abs=0.005)


def test_an_unknown_relation_is_refused():
    with pytest.raises(ValueError, match="relation must be add-remove or replace, not 'both'"):
        sensitivities.sum_and_square("both")
