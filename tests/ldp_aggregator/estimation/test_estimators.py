"""Estimates of the same thing from several questions, as one."""

from types import SimpleNamespace

import numpy as np
import pytest

from ldp_aggregator.estimation import estimators
from ldp_aggregator.estimation.cells import Cells


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
