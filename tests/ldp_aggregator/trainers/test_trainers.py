"""The trainers: accurate where the noise is small, sensible where it is not, honest about both."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator import NaiveBayes
from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    PrivateKMeans,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
)
from ldp_aggregator.trainers.moment_training import SPAN, MomentColumn, published_sensitivities
from ldp_aggregator.trainers.noise.randomness import PrivacyWarning
from protocols.model import GaussianLikelihood, Model

pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.noise.randomness.PrivacyWarning")


MOMENTS = [
    (trainer, {"variant": variant, "relation": relation})
    for trainer in (GlobalSensitivityNB, SmoothSensitivityNB)
    for variant, relation in (("sound", "add-remove"), ("sound", "replace"), ("published", "replace"))
]
ALL = [(SufficientStatisticsNB, {}), *MOMENTS]


@pytest.mark.parametrize(("trainer", "parameters"), ALL)
def test_with_hardly_any_noise_it_is_the_model_without_noise(schema, table, trainer, parameters):
    frame, labels = table
    frame = frame.assign(hours=frame["hours"].clip(0, 100), age=frame["age"].clip(18, 90))
    epsilon, off = (300.0, 0.01) if parameters else (1e5, 1e-3)
    private = trainer(schema, epsilon=epsilon, random_state=0, **parameters).fit(frame, labels).model_
    exact = NaiveBayes(schema).fit(frame, labels).model_
    assert private.prior == pytest.approx(exact.prior, abs=off)
    for mine, right in zip(private.likelihoods, exact.likelihoods, strict=True):
        if isinstance(right, GaussianLikelihood):
            assert mine.mean == pytest.approx(right.mean, rel=off)
            assert mine.variance == pytest.approx(right.variance, rel=10 * off)
        else:
            assert np.array(mine.table) == pytest.approx(np.array(right.table), abs=off)


def test_the_guarantee_and_the_budget_are_stated_and_without_a_schema_there_is_no_guarantee(schema, table):
    fitted = SufficientStatisticsNB(schema, epsilon=0.5).fit(*table)
    assert str(fitted.guarantee_) == (
        "epsilon = 0.5; relation: add or remove one row; public: the schema: classes, values, bounds"
    )
    assert sum(fitted.budget_.values()) == pytest.approx(0.5)
    assert list(fitted.budget_)[:3] == ["class counts", "colour", "hours: sum and square"]
    assert NaiveBayes.from_json(fitted.to_json()).guarantee_ == fitted.guarantee_
    replaced = SufficientStatisticsNB(schema, relation="replace").fit(*table)
    assert "labels and class counts" in str(replaced.guarantee_)
    assert "class counts" not in replaced.budget_
    with pytest.warns(PrivacyWarning, match="were read off the table"):
        assert SufficientStatisticsNB(epsilon=1.0).fit(*table).guarantee_.epsilon is None


def test_pieces_of_a_table_give_the_model_of_the_whole(schema, table):
    frame, labels = table
    pieces = [(frame.iloc[i : i + 100], labels.iloc[i : i + 100]) for i in range(0, len(frame), 100)]
    for chunks, rows in ((pieces, len(frame)), ([], 0)):
        whole = SufficientStatisticsNB(schema, random_state=4).fit(frame.head(rows), labels.head(rows))
        assert SufficientStatisticsNB(schema, random_state=4).fit_chunks(chunks).to_json() == whole.to_json()
    with pytest.raises(ValueError, match="need a schema"):
        SufficientStatisticsNB().fit_chunks(pieces)


def odd_tables():
    base = pd.DataFrame({"colour": ["red"] * 30, "hours": [50.0] * 30, "income": [1.0] * 30, "age": [40.0] * 30})
    labels = ["a"] * 29 + ["b"]
    yield "constant columns, a class of one row, a class of none", base, labels
    yield "only one class", base, ["b"] * 30
    yield "out of bounds", base.assign(hours=[-1e300] * 15 + [np.inf] * 15, income=1e9), labels
    yield "missing numbers", base.assign(hours=np.nan, income=np.nan), labels
    yield "unseen and missing categories", base.assign(colour=["mauve"] * 20 + [None] * 10), labels
    yield "one row", base.head(1), ["a"]


@pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.statistics.SilentFeatureWarning")
@pytest.mark.parametrize(("case", "frame", "labels"), list(odd_tables()), ids=[case for case, _, _ in odd_tables()])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 1e4])
def test_odd_tables_give_a_model_that_a_device_accepts(schema, case, frame, labels, epsilon):
    for trainer, parameters in ALL:
        fitted = trainer(schema, epsilon=epsilon, random_state=3, **parameters).fit(frame, labels)
        Model.from_json(fitted.to_json())
        assert np.isfinite(fitted.predict_proba(frame)).all(), case


@pytest.mark.parametrize(
    ("trainer", "parameters", "message"),
    [
        (SufficientStatisticsNB, {"epsilon": 0}, "epsilon must be a finite number above 0"),
        (SufficientStatisticsNB, {"relation": "swap"}, "relation must be add-remove or replace"),
        (SufficientStatisticsNB, {"variant": "published"}, "its only variant is 'sound'"),
        (SufficientStatisticsNB, {"variant": "fast"}, "variant must be sound or published"),
        (SufficientStatisticsNB, {"variance_floor": 0}, "variance_floor must be above 0"),
        (SufficientStatisticsNB, {"numerical_share": 2}, "numerical_share must be above 0 and below 1"),
        (SufficientStatisticsNB, {"smoothing": -1}, "smoothing must be at least 0"),
        (PrivateKMeans, {"schema": None}, "needs a schema"),
        (PrivateKMeans, {"split": "odd"}, "split must be even or optimal"),
        (PrivateKMeans, {"n_clusters": 0}, "at least 1"),
        (PrivateKMeans, {"epsilon": -1}, "finite number above 0"),
        (FederatedNB, {"nodes": 0}, "nodes"),
        (FederatedNB, {"nodes": 2, "groups": 3}, "nodes"),
        (FederatedNB, {"relation": "replace"}, "nodes"),
    ],
)
def test_wrong_parameters_are_refused_with_what_would_be_right(schema, table, trainer, parameters, message):
    with pytest.raises(ValueError, match=message):
        trainer(**{"schema": schema, **parameters}).fit(*table)


def test_the_published_variants_say_what_they_guarantee(schema, table):
    with pytest.warns(PrivacyWarning, match=r"as published, this guarantees epsilon = .*replace the feature values"):
        fitted = GlobalSensitivityNB(schema, epsilon=0.7, variant="published").fit(*table)
    loss = 2 * 2 * math.log(2 * math.exp(0.1) - 1) + 2 * (0.2 + math.log(2 * math.exp(0.109) - 1))
    assert fitted.guarantee_.epsilon == pytest.approx(loss)
    with pytest.warns(PrivacyWarning, match=r"as published, this guarantees no privacy \(none: the published"):
        fitted = SmoothSensitivityNB(schema, variant="published").fit(*table)
    assert fitted.guarantee_.epsilon is None


@pytest.mark.parametrize("trainer", [GlobalSensitivityNB, SmoothSensitivityNB])
def test_sound_variants_promise_epsilon_and_do_not_warn(schema, table, trainer):
    """A feature is called silent where noise of seven deviations hides it: less than once in 10**7 fits."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = trainer(schema, epsilon=0.3).fit(*table)
    assert (fitted.guarantee_.epsilon, fitted.guarantee_.relation) == (0.3, "add or remove one row")


def test_moments_of_a_column_are_exact():
    rng = np.random.default_rng(0)
    steps = np.sort(rng.integers(0, SPAN + 1, size=3_000_000))
    column = MomentColumn(steps)
    assert float(column.mean) == pytest.approx((steps / SPAN).mean(), rel=1e-12)
    assert float(column.variance) == pytest.approx((steps / SPAN).var(), rel=1e-9)
    assert float(MomentColumn(steps[:0]).mean) == 0.5


def test_the_published_sensitivity_is_not_smooth():
    """Two neighbours whose published values differ by more than beta, and one below its local sensitivity."""
    values = np.array([0.5, 0.5, 0.5, 0.5, 0.5])
    mean, _ = published_sensitivities(values, 2.0)
    assert mean < 0.5 / 5
    constant, moved = np.zeros(5), np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    for beta in (0.05, 0.1):
        first, second = (published_sensitivities(column, beta)[1] for column in (constant, moved))
        assert abs(math.log(first / second)) > beta
