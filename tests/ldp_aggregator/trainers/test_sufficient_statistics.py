"""The trainer: accurate where the noise is small, sensible where it is not, honest about both."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from ldp_aggregator import NaiveBayes
from ldp_aggregator.trainers.noise.randomness import PrivacyWarning
from ldp_aggregator.trainers.sufficient_statistics import SufficientStatisticsNB
from ldp_client.classifier import Classifier
from protocols.model import Model

pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.noise.randomness.PrivacyWarning")


def test_with_hardly_any_noise_it_is_the_model_without_noise(schema, table):
    frame, labels = table
    frame = frame.assign(hours=frame["hours"].clip(0, 100), age=frame["age"].clip(18, 90))
    private = SufficientStatisticsNB(schema, epsilon=1e5, random_state=0).fit(frame, labels).model_
    exact = NaiveBayes(schema).fit(frame, labels).model_
    assert private.prior == pytest.approx(exact.prior, abs=1e-3)
    for mine, right in zip(private.likelihoods, exact.likelihoods, strict=True):
        if hasattr(right, "table"):
            assert np.array(mine.table) == pytest.approx(np.array(right.table), abs=1e-3)
        else:
            assert mine.mean == pytest.approx(right.mean, rel=1e-3)
            assert mine.variance == pytest.approx(right.variance, rel=1e-2)


def test_the_guarantee_and_the_budget_are_stated(schema, table):
    fitted = SufficientStatisticsNB(schema, epsilon=0.5).fit(*table)
    assert str(fitted.guarantee_) == (
        "epsilon = 0.5; relation: add or remove one row; public: the schema: classes, values, bounds"
    )
    assert sum(fitted.budget_.values()) == pytest.approx(0.5)
    assert list(fitted.budget_)[:3] == ["class counts", "colour", "hours: sum and square"]
    back = NaiveBayes.from_json(fitted.to_json())
    assert back.guarantee_ == fitted.guarantee_
    replaced = SufficientStatisticsNB(schema, relation="replace").fit(*table)
    assert "labels and class counts" in str(replaced.guarantee_)
    assert "class counts" not in replaced.budget_


def test_without_a_schema_there_is_no_guarantee(table):
    with pytest.warns(PrivacyWarning, match="were read off the table"):
        fitted = SufficientStatisticsNB(epsilon=1.0).fit(*table)
    assert fitted.guarantee_.epsilon is None


def test_a_device_classifies_as_the_server_does(schema, table):
    fitted = SufficientStatisticsNB(schema, epsilon=1.0, random_state=1).fit(*table)
    device = Classifier(Model.from_json(fitted.to_json()))
    records = table[0].head(200).to_dict("records")
    assert fitted.predict(table[0].head(200)).tolist() == [device.predict(record) for record in records]


def test_pieces_of_a_table_give_the_model_of_the_whole(schema, table):
    frame, labels = table
    pieces = [(frame.iloc[i : i + 100], labels.iloc[i : i + 100]) for i in range(0, len(frame), 100)]
    whole = SufficientStatisticsNB(schema, random_state=4).fit(frame, labels)
    chunked = SufficientStatisticsNB(schema, random_state=4).fit_chunks(pieces)
    assert chunked.to_json() == whole.to_json()
    with pytest.raises(ValueError, match="need a schema"):
        SufficientStatisticsNB().fit_chunks(pieces)
    nothing = SufficientStatisticsNB(schema, random_state=4).fit_chunks([])
    assert (
        nothing.to_json() == SufficientStatisticsNB(schema, random_state=4).fit(frame.head(0), labels.head(0)).to_json()
    )


def test_the_scikit_learn_tools_work(schema, table):
    frame, labels = table
    trainer = SufficientStatisticsNB(schema, epsilon=10.0, random_state=2)
    fitted = trainer.fit(frame, labels)
    again = clone(trainer).fit(frame, labels)
    assert again.to_json() == fitted.to_json()
    assert pickle.loads(pickle.dumps(fitted)).predict_proba(frame) == pytest.approx(fitted.predict_proba(frame))
    assert make_pipeline(clone(trainer)).fit(frame, labels).score(frame, labels) > 0.8
    assert cross_val_score(clone(trainer), frame, labels, cv=3).min() > 0.8


def odd_tables():
    base = pd.DataFrame({"colour": ["red"] * 30, "hours": [50.0] * 30, "income": [1.0] * 30, "age": [40.0] * 30})
    labels = ["a"] * 29 + ["b"]
    yield "constant columns, a class of one row, a class of none", base, labels
    yield "only one class", base, ["b"] * 30
    yield "out of bounds", base.assign(hours=[-1e300] * 15 + [np.inf] * 15, income=1e9), labels
    yield "missing numbers", base.assign(hours=np.nan, income=np.nan), labels
    yield "unseen and missing categories", base.assign(colour=["mauve"] * 20 + [None] * 10), labels
    yield "one row", base.head(1), ["a"]


@pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.silence.SilentFeatureWarning")
@pytest.mark.parametrize(("case", "frame", "labels"), list(odd_tables()), ids=[case for case, _, _ in odd_tables()])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 1e4])
def test_odd_tables_give_a_model_that_a_device_accepts(schema, case, frame, labels, epsilon):
    fitted = SufficientStatisticsNB(schema, epsilon=epsilon, random_state=3).fit(frame, labels)
    Model.from_json(fitted.to_json())
    assert np.isfinite(fitted.predict_proba(frame)).all(), case


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number above 0"),
        ({"relation": "swap"}, "relation must be add-remove or replace"),
        ({"variant": "published"}, "its only variant is 'sound'"),
        ({"variant": "fast"}, "variant must be sound or published"),
        ({"variance_floor": 0}, "variance_floor must be above 0"),
        ({"numerical_share": 2}, "numerical_share must be above 0 and below 1"),
        ({"smoothing": -1}, "smoothing must be at least 0"),
    ],
)
def test_wrong_parameters_are_refused_with_what_would_be_right(schema, table, parameters, message):
    with pytest.raises(ValueError, match=message):
        SufficientStatisticsNB(schema, **parameters).fit(*table)


def test_a_missing_column_is_named(schema, table):
    with pytest.raises(ValueError, match="no column 'age'"):
        SufficientStatisticsNB(schema).fit(table[0].drop(columns="age"), table[1])
