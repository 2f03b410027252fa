"""Estimates of the same thing from several questions, as one."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from ldp_aggregator.estimation import estimators
from ldp_aggregator.estimation.cells import Cells, wilson
from ldp_aggregator.estimation.estimators import chance_of_number, estimate_question, pool, sums_of_cells
from ldp_protocols import Question
from ldp_protocols.document.questions import INDEX, PAIR
from ldp_protocols.drafting import make_discrete


@pytest.mark.parametrize(("shared", "variance"), [(False, 0.005), (True, 0.00605)])
def test_the_records_own_spread_is_not_reduced_where_the_same_devices_answered_all_questions(
    monkeypatch, shared, variance
):
    """Two questions to the same 100 devices: 0.01 each, of which .3 x .7 / 100 = 0.0021 is the records' own."""
    monkeypatch.setattr(estimators, "class_shares", lambda telling, _: np.full(len(telling), 1 / len(telling)))
    one = SimpleNamespace(n=100, classes=Cells.normal(np.array([0.3, 0.7]), np.array([0.01, 0.01])))
    pooled = estimators.pool_classes([one, one], 2, shared_records=shared)
    assert pooled.value == pytest.approx([0.3, 0.7])
    assert pooled.variance == pytest.approx([variance] * 2)


def question_of(name="de", size=4, epsilon=1.0):
    made = make_discrete(name, size, Fraction(repr(epsilon)))
    return Question(0, PAIR, "x", None, 1, INDEX, made, epsilon, 1)


def test_cells_that_all_reports_support_or_none_have_a_variance_all_the_same():
    """Half a report is added on either side: of 10 reports 10.5 / 11 x 0.5 / 11 / (10 (p - q)^2), whichever it is."""
    question = question_of()
    found = estimate_question(question, 10, np.array([10, 0, 0, 0]), 2, "none").cells
    gain = (np.e - 1) / (np.e + 3)
    assert found.variance == pytest.approx([0.0433884 / 10 / gain**2] * 4, rel=1e-5)
    assert found.value.sum() == pytest.approx(1)


def test_a_sum_of_all_cells_of_direct_encoding_is_known_but_for_half_a_report():
    cells = sums_of_cells(question_of(), 100, np.ones(1), 4)
    assert cells.variance == pytest.approx([0.5 / 100**2])


def test_wilsons_interval_of_ten_trials():
    low, high = wilson(np.array([0, 5, 10]), 10)
    assert low == pytest.approx([0, 0.236593, 0.722467], abs=1e-6)
    assert high == pytest.approx([0.277533, 0.763407, 1], abs=1e-6)


def test_a_campaign_that_nobody_answered_has_no_part_in_what_several_tell_and_none_at_all_tell_nothing():
    question = question_of()
    none = estimate_question(question, 0, np.zeros(4, dtype=np.int64), 2, "none")
    few = estimate_question(question, 100, np.array([40, 30, 20, 10]), 2, "none")
    many = estimate_question(question, 300, np.array([60, 90, 60, 90]), 2, "none")
    for together in ([none, few], [few, none], [few], [none, few, none]):
        assert pool(together).value == pytest.approx(few.cells.value)
        assert pool(together).variance == pytest.approx(few.cells.variance)
    assert np.isinf(pool([none, none]).variance).all()
    pooled = pool([few, none, many])
    assert pooled.value == pytest.approx((few.cells.value + 3 * many.cells.value) / 4)
    assert pooled.variance == pytest.approx((few.cells.variance + 9 * many.cells.variance) / 16)


@pytest.mark.parametrize(("devices", "share"), [(1000, 0.1), (1000, 0.5), (400, 1.0)])
def test_how_much_the_chance_in_the_number_of_answers_costs_is_that_of_the_binomial_law(devices, share):
    """E[1 / n] E[n], to the first order in 1 / n; of a number that is certain it is 1."""
    numbers = np.arange(1, devices + 1)
    exact = (binom.pmf(numbers, devices, share) / numbers).sum() * devices * share
    assert chance_of_number(question_of(), devices * share, devices) == pytest.approx(exact, abs=3e-4)
