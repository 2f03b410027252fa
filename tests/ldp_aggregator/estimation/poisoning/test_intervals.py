"""An interval holds every result of an operation on the members of its operands."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from ldp_aggregator.estimation.poisoning.intervals import Interval

RNG = np.random.default_rng(3)
ENDS = np.sort(RNG.uniform(-2, 2, (200, 4)).reshape(2, -1), axis=0)
ONE, OTHER = Interval(ENDS[0][:200], ENDS[1][:200]), Interval(ENDS[0][200:], ENDS[1][200:])
POSITIVE = Interval(np.abs(OTHER.low) + 0.1, np.abs(OTHER.low) + 0.1 + OTHER.high - OTHER.low)


def members(interval):
    return [interval.low + part * (interval.high - interval.low) for part in (0, 0.3, 0.5, 0.9, 1)]


def holds(interval, value):
    return ((interval.low - 1e-12 <= value) & (value <= interval.high + 1e-12)).all()


@pytest.mark.parametrize(
    ("operation", "second"),
    [
        (operator.add, OTHER),
        (operator.sub, OTHER),
        (operator.mul, OTHER),
        (operator.truediv, POSITIVE),
        (lambda x, y: x.maximum(y) if isinstance(x, Interval) else np.maximum(x, y), OTHER),
        (lambda x, y: x.minimum(y) if isinstance(x, Interval) else np.minimum(x, y), OTHER),
    ],
    ids=["add", "subtract", "multiply", "divide", "maximum", "minimum"],
)
def test_an_operation_holds_what_it_gives_of_members_and_reaches_its_ends(operation, second):
    result = operation(ONE, second)
    found = np.array([operation(x, y) for x in members(ONE) for y in members(second)])
    assert all(holds(result, value) for value in found)
    assert found.min(axis=0) == pytest.approx(result.low)
    assert found.max(axis=0) == pytest.approx(result.high)


@pytest.mark.parametrize("number", [-1.5, 0.0, 2.0, OTHER.low])
def test_a_number_is_an_interval_of_nothing_else(number):
    for operation in (operator.add, operator.sub, operator.mul):
        found, expected = operation(ONE, number), operation(ONE, Interval.exactly(number))
        assert (found.low == expected.low).all()
        assert (found.high == expected.high).all()
    divided, expected = ONE / POSITIVE.low, ONE / Interval.exactly(POSITIVE.low)
    assert (divided.low == expected.low).all()
    assert (divided.high == expected.high).all()


def test_a_square_is_never_below_zero_and_holds_the_squares_of_members():
    assert all(holds(ONE.square(), value**2) for value in members(ONE))
    across = (ONE.low < 0) & (ONE.high > 0)
    assert across.any()
    assert (ONE.square().low[across] == 0).all()


def test_a_hull_holds_both_and_a_choice_takes_either():
    hull, chosen = ONE.hull(OTHER), ONE.where(ONE.low > 0, OTHER)
    for one, other in zip(members(ONE), members(OTHER), strict=True):
        assert holds(hull, one)
        assert holds(hull, other)
        assert holds(chosen, np.where(ONE.low > 0, one, other))


def test_a_sum_is_of_all_elements():
    assert ONE.sum().low == pytest.approx([ONE.low.sum()])
    assert ONE.sum().high.shape == (1,)


def test_nothing_is_divided_by_what_may_be_zero():
    with pytest.raises(ZeroDivisionError, match="may be zero"):
        ONE / OTHER


def test_the_reach_is_the_distance_of_the_farther_end():
    assert Interval.around(1.0, 0.25).reach(np.array(1.1)) == pytest.approx(0.35)
    assert Interval.exactly(2.0).reach(np.array(2.0)) == 0
