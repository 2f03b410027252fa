"""No rows are a number of rows like any other, and a feature that no row expresses is told by noisy numbers alone."""

import warnings

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
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import SilentFeatureWarning, plan_noise, silent_features, statistics_of
from protocols import Campaign
from protocols.model import Model

pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.noise.randomness.PrivacyWarning")

TRAINERS = {
    "sums": (SufficientStatisticsNB, {}),
    "sums, replace": (SufficientStatisticsNB, {"relation": "replace"}),
    "global": (GlobalSensitivityNB, {}),
    "global, replace": (GlobalSensitivityNB, {"relation": "replace"}),
    "smooth": (SmoothSensitivityNB, {}),
    "smooth, replace": (SmoothSensitivityNB, {"relation": "replace"}),
    "federated": (FederatedNB, {"nodes": 3}),
    "federated, groups": (FederatedNB, {"nodes": 5, "groups": 3}),
    "global, published": (GlobalSensitivityNB, {"variant": "published"}),
    "smooth, published": (SmoothSensitivityNB, {"variant": "published"}),
    "federated, published": (FederatedNB, {"nodes": 5, "variant": "published"}),
}


def made(trainer, schema, **more):
    kind, parameters = TRAINERS[trainer]
    return kind(schema, **parameters, **more)


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
    fitted = made(trainer, schema, epsilon=0.5, random_state=1).fit(rows, labels)
    Model.from_json(fitted.to_json())
    assert sum(fitted.budget_.values()) == pytest.approx(0.5), "as much is spent as on any table"
    assert fitted.predict_proba(table[0]).sum(axis=1) == pytest.approx(np.ones(len(table[0])))


@pytest.mark.parametrize("trainer", list(TRAINERS))
def test_no_rows_and_one_row_meet_the_same_queries_and_the_same_guarantee(schema, table, trainer):
    models = [
        made(trainer, schema, epsilon=1e-4, random_state=3).fit(table[0].head(rows), table[1].head(rows))
        for rows in (0, 1)
    ]
    assert models[0].guarantee_ == models[1].guarantee_
    assert list(models[0].budget_.items()) == list(models[1].budget_.items())


def test_of_no_rows_a_trainer_releases_noise_k_means_finds_centres_and_a_node_sends_a_share_like_any(schema, table):
    frame, labels = EMPTY["no columns' types"]
    models = {SufficientStatisticsNB(schema, random_state=i).fit(frame, labels).to_json() for i in range(8)}
    assert len(models) == 8
    clusters = PrivateKMeans(schema, n_clusters=4, random_state=1).fit(frame)
    assert clusters.cluster_centers_.shape == (4, 2)
    assert sum(clusters.budget_.values()) == pytest.approx(1.0)
    campaign = Campaign.compile({"version": 1, "title": "Federated", **schema, "privacy": {"epsilon": 2}})
    share = decode_share(node_statistics(campaign, frame, pd.Series(labels, dtype=object)), campaign)
    assert len(share) == len(decode_share(node_statistics(campaign, *table), campaign))
    assert share.any()


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
TELLING = ["sums", "sums, replace", "global", "global, replace", "smooth", "federated"]


@pytest.mark.parametrize("trainer", TELLING)
def test_a_feature_that_no_row_expresses_is_named_and_no_other(trainer):
    """With seeds: noise that hides it is drawn less than once in 25,000 fits, and that is too often."""
    with pytest.warns(SilentFeatureWarning, match="declared value of 'smoker': compare"):
        made(trainer, SCHEMA, random_state=1).fit(FRAME, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SilentFeatureWarning)
        for frame, labels in ((FRAME.assign(smoker="yes"), LABELS), (FRAME.head(2), LABELS.head(2)), (FRAME[:0], [])):
            made(trainer, SCHEMA, random_state=1).fit(frame, labels)


def test_what_is_told_follows_from_the_noisy_numbers_alone_and_a_node_is_told_before_it_sends():
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
    campaign = Campaign.compile({"version": 1, "title": "t", **SCHEMA, "privacy": {"epsilon": 1}})
    with pytest.warns(SilentFeatureWarning, match="'smoker'"):
        node_statistics(campaign, FRAME, LABELS, random_state=1)
