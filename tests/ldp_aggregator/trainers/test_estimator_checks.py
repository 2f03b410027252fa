"""scikit-learn's own contract, on tables without a schema and with hardly any noise.

Checks that do not apply: ``check_pipeline_consistency`` (skipped by scikit-learn: without a seed the trainers are not
deterministic) and ``check_array_api_input`` (skipped where no other array library is there). ``PrivateKMeans`` takes
no part: it refuses to fit without public bounds, and to give the exact labels that the checks of clusterers ask for.
"""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_estimator

from ldp_aggregator.trainers import FederatedNB, GlobalSensitivityNB, SmoothSensitivityNB, SufficientStatisticsNB

NOT_APPLICABLE = {"check_pipeline_consistency", "check_array_api_input"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "trainer",
    [
        SufficientStatisticsNB(epsilon=1e4),
        GlobalSensitivityNB(epsilon=1e4),
        SmoothSensitivityNB(epsilon=500.0),
        FederatedNB(epsilon=1e4),
    ],
    ids=lambda trainer: type(trainer).__name__,
)
def test_every_check_that_applies_passes(trainer):
    results = check_estimator(trainer, on_skip=None, on_fail=None)
    by_status = {
        status: {r["check_name"] for r in results if r["status"] == status} for status in ("failed", "skipped")
    }
    assert by_status["failed"] == set()
    assert by_status["skipped"] <= NOT_APPLICABLE
    assert len(results) > 40
