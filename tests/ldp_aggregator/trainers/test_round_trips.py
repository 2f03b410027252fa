"""Every estimator survives being cloned, pickled and written as JSON: it predicts as before."""

import json
import pickle

import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.estimator_checks import check_estimator

import ldp_aggregator
import ldp_simulations
from ldp_aggregator import NaiveBayes, trainers
from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    PrivateKMeans,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
)
from ldp_protocols import DocumentError

HANDED_ON = [one for one in (getattr(trainers, name) for name in trainers.__all__) if isinstance(one, type)]
CLASSIFIERS = [NaiveBayes, *(kind for kind in HANDED_ON if issubclass(kind, ClassifierMixin))]


def made(kind, schema):
    return kind(schema) if kind is NaiveBayes else kind(schema, epsilon=5.0, random_state=3)


@pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.PrivacyWarning")
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_classifier_round_trips_through_clone_pickle_and_json(kind, schema, table):
    frame, labels = table
    original = made(kind, schema).fit(frame, labels)
    copied = clone(original)
    assert copied.get_params() == original.get_params()
    assert not hasattr(copied, "classes_")
    expected = original.predict_proba(frame)
    assert copied.fit(frame, labels).predict_proba(frame) == pytest.approx(expected, abs=1e-12)
    assert (pickle.loads(pickle.dumps(original)).predict_proba(frame) == expected).all()
    text = original.to_json()
    again = NaiveBayes.from_json(text)
    assert again.to_json() == text
    assert again.predict_proba(frame) == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.PrivacyWarning")
def test_clusters_round_trip_through_clone_pickle_and_json(schema, table):
    original = made(PrivateKMeans, schema).fit(table[0])
    expected = original.predict(table[0])
    again = clone(original).fit(table[0])
    assert (again.cluster_centers_ == original.cluster_centers_).all()
    assert (pickle.loads(pickle.dumps(original)).predict(table[0]) == expected).all()
    text = original.to_json()
    read = PrivateKMeans.from_json(text)
    assert read.to_json() == PrivateKMeans.from_json(text.encode()).to_json() == text
    assert (read.predict(table[0]) == expected).all()
    assert (read.cluster_centers_ == original.cluster_centers_).all()
    for told in ("guarantee_", "budget_", "n_features_in_"):
        assert getattr(read, told) == getattr(original, told)
    assert clone(read).get_params() == read.get_params()
    with pytest.raises(ValueError, match="needs a schema"):
        read.fit(table[0])


def test_every_estimator_that_a_package_hands_on_round_trips_here():
    handed_on = [
        getattr(package, name) for package in (ldp_aggregator, trainers, ldp_simulations) for name in package.__all__
    ]
    estimators = {kind for kind in handed_on if isinstance(kind, type) and issubclass(kind, BaseEstimator)}
    assert estimators == {*CLASSIFIERS, PrivateKMeans}


@pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.PrivacyWarning")
@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"version": 2}, "version"),
        ({"kind": "naive-bayes"}, "kind"),
        ({"grid": 7}, "grid"),
        ({"features": []}, "features"),
        ({"features": [{"name": "u", "kind": "categorical", "values": ["1", "2"]}]}, "features[0]"),
        ({"centres": [[1]]}, "centres[0]"),
        ({"centres": [[0.5, 0.5]]}, "centres[0]"),
        ({"centres": [[1 << 40, 0]]}, "centres[0]"),
        ({"centres": []}, "centres"),
        ({"guarantee": None}, "guarantee"),
        ({"budget": []}, "budget"),
        ({"labels": [0]}, "labels"),
    ],
)
def test_clusters_that_are_none_are_refused_with_the_field(change, place, schema, table):
    document = json.loads(made(PrivateKMeans, schema).fit(table[0]).to_json())
    with pytest.raises(DocumentError) as refused:
        PrivateKMeans.from_json(json.dumps({**document, **change}))
    assert str(refused.value).startswith(f"{place}:")


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
    failed, skipped = ({r["check_name"] for r in results if r["status"] == status} for status in ("failed", "skipped"))
    assert failed == set()
    assert skipped <= NOT_APPLICABLE
    assert len(results) > 40
