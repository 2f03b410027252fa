"""Budgets are divided and spent exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ldp_aggregator.trainers.noise.accountant import Accountant, BudgetError, allocate
from protocols.exact.rationals import exact_epsilon


def test_what_is_too_much_is_refused_and_not_booked():
    accountant = Accountant(1.0)
    accountant.spend("counts", Fraction(2, 3))
    with pytest.raises(BudgetError, match=r"sums: needs epsilon 0.5, but 0.333333 of 1 is left"):
        accountant.spend("sums", Fraction(1, 2))
    assert accountant.spent == Fraction(2, 3)
    accountant.spend("sums", Fraction(1, 3))
    assert accountant.remaining == 0
    assert accountant.to_budget() == {"counts": pytest.approx(2 / 3), "sums": pytest.approx(1 / 3)}


def test_a_query_must_spend_something():
    with pytest.raises(ValueError, match="more than 0"):
        Accountant(1.0).spend("counts", Fraction(0))


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), True])
def test_epsilon_must_be_finite_and_above_zero(epsilon):
    with pytest.raises(ValueError, match="finite number above 0"):
        Accountant(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 7.7])
@pytest.mark.parametrize("share", [None, 0.25, 0.9])
@pytest.mark.parametrize(("tables", "gaussians", "label"), [(8, 6, True), (0, 3, True), (4, 0, True), (3, 2, False)])
def test_the_pieces_add_up_to_epsilon_exactly(epsilon, share, tables, gaussians, label):
    parts = allocate(epsilon, tables=tables, gaussians=gaussians, label=label, numerical_share=share)
    spent = label * parts.label + tables * parts.table + 2 * gaussians * parts.moment
    assert spent == exact_epsilon(epsilon)


def test_the_numerical_share_is_what_the_moments_get():
    parts = allocate(2.0, tables=3, gaussians=5, numerical_share=0.75)
    assert 10 * parts.moment == Fraction(3, 2)
    assert parts.label == parts.table == Fraction(1, 8)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(ValueError, match="numerical_share must be above 0 and below 1"):
        allocate(1.0, tables=1, gaussians=1, numerical_share=share)


@pytest.mark.parametrize(
    ("tables", "gaussians", "even", "label"),
    [
        (0, 8, False, Fraction(1, 5)),
        (0, 8, True, Fraction(1, 17)),
        (1, 8, False, Fraction(1, 18)),
        (0, 1, False, Fraction(1, 3)),
    ],
)
def test_class_counts_get_a_fifth_where_no_table_carries_the_class_sizes(tables, gaussians, even, label):
    parts = allocate(1.0, tables=tables, gaussians=gaussians, even=even)
    assert parts.label == label
    assert parts.label + tables * parts.table + 2 * gaussians * parts.moment == 1
