"""Every classifier survives being cloned, pickled and written as JSON: it predicts as before."""

from __future__ import annotations

import pickle

import pytest
from sklearn.base import ClassifierMixin, clone

from ldp_aggregator import NaiveBayes, trainers
from ldp_aggregator.trainers import PrivateKMeans

CLASSIFIERS = [
    NaiveBayes,
    *(
        kind
        for name in trainers.__all__
        if isinstance(kind := getattr(trainers, name), type) and issubclass(kind, ClassifierMixin)
    ),
]


def made(kind, schema):
    return kind(schema) if kind is NaiveBayes else kind(schema, epsilon=5.0, random_state=3)


def test_all_classifiers_are_here():
    assert {kind.__name__ for kind in CLASSIFIERS} == {
        "NaiveBayes",
        "FederatedNB",
        "GlobalSensitivityNB",
        "SmoothSensitivityNB",
        "SufficientStatisticsNB",
    }


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
def test_clusters_round_trip_through_clone_and_pickle(schema, table):
    original = made(PrivateKMeans, schema).fit(table[0])
    again = clone(original).fit(table[0])
    assert (again.cluster_centers_ == original.cluster_centers_).all()
    assert (pickle.loads(pickle.dumps(original)).predict(table[0]) == original.predict(table[0])).all()
