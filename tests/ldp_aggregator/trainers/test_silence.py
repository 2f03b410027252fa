"""A feature that no row expresses is told by what the noise lets through, and by nothing else."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
    node_statistics,
)
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.silence import SilentFeatureWarning, silent_features
from ldp_aggregator.trainers.statistics import plan_noise, statistics_of
from protocols import Campaign

SCHEMA = {
    "label": {"name": "y", "classes": ["a", "b"]},
    "features": [
        {"name": "colour", "kind": "categorical", "values": ["red", "blue"]},
        {"name": "smoker", "kind": "categorical", "values": ["yes", "no"]},
        {"name": "size", "kind": "continuous", "low": 0, "high": 1},
    ],
}
ROWS = 4000
FRAME = pd.DataFrame({"colour": ["red", "blue"] * (ROWS // 2), "smoker": True, "size": 0.5})
LABELS = pd.Series(["a", "a", "b", "b"] * (ROWS // 4))
TRAINERS = {
    "sums": SufficientStatisticsNB(SCHEMA),
    "sums, replace": SufficientStatisticsNB(SCHEMA, relation="replace"),
    "global": GlobalSensitivityNB(SCHEMA),
    "global, replace": GlobalSensitivityNB(SCHEMA, relation="replace"),
    "smooth": SmoothSensitivityNB(SCHEMA),
    "federated": FederatedNB(SCHEMA, nodes=3),
}


@pytest.mark.parametrize("trainer", TRAINERS.values(), ids=TRAINERS)
def test_a_feature_that_no_row_expresses_is_named(trainer):
    with pytest.warns(SilentFeatureWarning, match="declared value of 'smoker': compare"):
        trainer.fit(FRAME, LABELS)


@pytest.mark.parametrize("trainer", TRAINERS.values(), ids=TRAINERS)
def test_features_that_rows_express_are_not_named(trainer):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SilentFeatureWarning)
        trainer.fit(FRAME.assign(smoker="yes"), LABELS)
        trainer.fit(FRAME.head(2), LABELS.head(2))
        trainer.fit(FRAME.head(0), LABELS.head(0))


def test_a_node_is_told_before_it_sends():
    campaign = Campaign.compile({"version": 1, "title": "t", **SCHEMA, "privacy": {"epsilon": 1}})
    with pytest.warns(SilentFeatureWarning, match="'smoker'"):
        node_statistics(campaign, FRAME, LABELS)


def test_what_is_told_follows_from_the_noisy_numbers_alone():
    schema = Schema.read(SCHEMA)
    plans = plan_noise(schema, 1.0, "add-remove")
    exact = statistics_of(schema, FRAME, schema.classes_of(LABELS, ROWS))
    assert silent_features(exact, plans) == ("smoker",)
    assert silent_features(exact, plans, copies=ROWS) == (), "more noise hides it"
    (smoker,) = (plan for plan in plans if plan.part.query == "smoker")
    spread = (smoker.variance * (smoker.part.stop - smoker.part.start)) ** 0.5
    for total, silent in ((4.9, True), (-4.9, True), (5.1, False)):
        noisy = exact.copy()
        noisy[smoker.part.start] = round(total * spread)
        assert silent_features(noisy, plans) == (("smoker",) if silent else ())
    assert silent_features(np.zeros_like(exact), plans) == ()
