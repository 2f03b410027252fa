"""No rows are a number of rows like any other: an error where there are none would tell them from one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    PrivateKMeans,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
    decode_share,
    node_statistics,
)
from protocols import Campaign
from protocols.model import Model

pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.noise.randomness.PrivacyWarning")

TRAINERS = {
    "sums": SufficientStatisticsNB,
    "sums, replace": lambda schema, **more: SufficientStatisticsNB(schema, relation="replace", **more),
    "global": GlobalSensitivityNB,
    "global, replace": lambda schema, **more: GlobalSensitivityNB(schema, relation="replace", **more),
    "global, published": lambda schema, **more: GlobalSensitivityNB(schema, variant="published", **more),
    "smooth": SmoothSensitivityNB,
    "smooth, replace": lambda schema, **more: SmoothSensitivityNB(schema, relation="replace", **more),
    "smooth, published": lambda schema, **more: SmoothSensitivityNB(schema, variant="published", **more),
    "federated": lambda schema, **more: FederatedNB(schema, nodes=5, groups=3, **more),
    "federated, published": lambda schema, **more: FederatedNB(schema, nodes=5, variant="published", **more),
}
COLUMNS = ["colour", "hours", "income", "age"]
EMPTY = {
    "no columns' types": (pd.DataFrame(columns=COLUMNS), []),
    "doubles": (pd.DataFrame({name: np.zeros(0) for name in COLUMNS}), np.zeros(0)),
    "an array": (np.zeros((0, 4)), pd.Series([], dtype=object)),
}


@pytest.mark.parametrize("empty", list(EMPTY))
@pytest.mark.parametrize("trainer", list(TRAINERS))
def test_every_trainer_learns_from_no_rows_a_model_that_a_device_accepts(schema, table, trainer, empty):
    rows, labels = EMPTY[empty]
    fitted = TRAINERS[trainer](schema, epsilon=0.5, random_state=1).fit(rows, labels)
    Model.from_json(fitted.to_json())
    assert sum(fitted.budget_.values()) == pytest.approx(0.5), "as much is spent as on any table"
    assert fitted.predict_proba(table[0]).sum(axis=1) == pytest.approx(np.ones(len(table[0])))


@pytest.mark.parametrize("trainer", list(TRAINERS))
def test_no_rows_and_one_row_meet_the_same_queries_and_the_same_guarantee(schema, table, trainer):
    models = [
        TRAINERS[trainer](schema, epsilon=1e-4, random_state=3).fit(table[0].head(rows), table[1].head(rows))
        for rows in (0, 1)
    ]
    assert models[0].guarantee_ == models[1].guarantee_
    assert list(models[0].budget_.items()) == list(models[1].budget_.items())


def test_no_pieces_are_no_rows(schema):
    fitted = SufficientStatisticsNB(schema, random_state=1).fit_chunks([])
    whole = SufficientStatisticsNB(schema, random_state=1).fit(*EMPTY["no columns' types"])
    assert fitted.to_json() == whole.to_json()


def test_what_is_released_of_no_rows_is_noise(schema):
    frame, labels = EMPTY["no columns' types"]
    models = {SufficientStatisticsNB(schema, random_state=i).fit(frame, labels).to_json() for i in range(8)}
    assert len(models) == 8


def test_k_means_finds_centres_of_no_rows(schema):
    fitted = PrivateKMeans(schema, n_clusters=4, random_state=1).fit(EMPTY["no columns' types"][0])
    assert fitted.cluster_centers_.shape == (4, 2)
    assert sum(fitted.budget_.values()) == pytest.approx(1.0)


def test_a_node_without_rows_sends_noise_of_the_same_length_as_any(schema, table):
    campaign = Campaign.compile({"version": 1, "title": "Federated", **schema, "privacy": {"epsilon": 2}})
    frame, labels = pd.DataFrame(columns=COLUMNS), pd.Series([], dtype=object)
    share = decode_share(node_statistics(campaign, frame, labels), campaign)
    assert len(share) == len(decode_share(node_statistics(campaign, *table), campaign))
    assert share.any()
