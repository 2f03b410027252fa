"""Global and smooth sensitivity: right where the noise is small, and honest about the published variants."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ldp_aggregator import NaiveBayes
from ldp_aggregator.trainers import GlobalSensitivityNB, PrivacyWarning, SmoothSensitivityNB
from ldp_aggregator.trainers.moment_training import SPAN, Column
from ldp_aggregator.trainers.smooth_sensitivity import published_sensitivities
from protocols.model import GaussianLikelihood, Model

pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.noise.randomness.PrivacyWarning")

TRAINERS = (GlobalSensitivityNB, SmoothSensitivityNB)
VARIANTS = [("sound", "add-remove"), ("sound", "replace"), ("published", "replace")]


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize(("variant", "relation"), VARIANTS)
def test_with_hardly_any_noise_they_are_the_model_without_noise(schema, table, trainer, variant, relation):
    frame, labels = table
    frame = frame.assign(hours=frame["hours"].clip(0, 100), age=frame["age"].clip(18, 90))
    private = trainer(schema, epsilon=300.0, variant=variant, relation=relation, random_state=0).fit(frame, labels)
    exact = NaiveBayes(schema).fit(frame, labels).model_
    assert private.model_.prior == pytest.approx(exact.prior, abs=0.01)
    for mine, right in zip(private.model_.likelihoods, exact.likelihoods, strict=True):
        if isinstance(right, GaussianLikelihood):
            assert mine.mean == pytest.approx(right.mean, rel=0.01)
            assert mine.variance == pytest.approx(right.variance, rel=0.1)
        else:
            assert np.array(mine.table) == pytest.approx(np.array(right.table), abs=0.01)


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize(("variant", "relation"), VARIANTS)
@pytest.mark.parametrize("share", [None, 0.7])
def test_the_queries_spend_epsilon(schema, table, trainer, variant, relation, share):
    fitted = trainer(schema, epsilon=0.9, variant=variant, relation=relation, numerical_share=share).fit(*table)
    assert sum(fitted.budget_.values()) == pytest.approx(0.9)


def test_the_published_variants_say_what_they_guarantee(schema, table):
    with pytest.warns(PrivacyWarning, match=r"as published, this guarantees epsilon = .*replace the feature values"):
        fitted = GlobalSensitivityNB(schema, epsilon=0.7, variant="published").fit(*table)
    loss = 2 * 2 * math.log(2 * math.exp(0.1) - 1) + 2 * (0.2 + math.log(2 * math.exp(0.109) - 1))
    assert fitted.guarantee_.epsilon == pytest.approx(loss)
    with pytest.warns(PrivacyWarning, match=r"as published, this guarantees no privacy \(none: the published"):
        fitted = SmoothSensitivityNB(schema, variant="published").fit(*table)
    assert fitted.guarantee_.epsilon is None


@pytest.mark.parametrize("trainer", TRAINERS)
def test_sound_variants_promise_epsilon_and_do_not_warn(schema, table, trainer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = trainer(schema, epsilon=0.3).fit(*table)
    assert (fitted.guarantee_.epsilon, fitted.guarantee_.relation) == (0.3, "add or remove one row")


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize(("variant", "relation"), VARIANTS)
@pytest.mark.parametrize("epsilon", [0.01, 50.0])
def test_odd_tables_give_a_model_that_a_device_accepts(schema, trainer, variant, relation, epsilon):
    frame = pd.DataFrame({"colour": ["red", None], "hours": [np.nan, np.inf], "income": [0, 99], "age": [54, 54]})
    for rows, labels in ((2, ["a", "b"]), (2, ["a", "a"]), (1, ["c"])):
        made = trainer(schema, epsilon=epsilon, variant=variant, relation=relation, random_state=1)
        fitted = clone(made).fit(frame.head(rows), labels)
        Model.from_json(fitted.to_json())


def test_moments_of_a_column_are_exact():
    rng = np.random.default_rng(0)
    steps = np.sort(rng.integers(0, SPAN + 1, size=3_000_000))
    column = Column(steps)
    assert float(column.mean) == pytest.approx((steps / SPAN).mean(), rel=1e-12)
    assert float(column.variance) == pytest.approx((steps / SPAN).var(), rel=1e-9)
    assert float(Column(steps[:0]).mean) == 0.5


def test_the_published_sensitivity_is_not_smooth():
    """Two neighbours whose published values differ by more than beta, and one below its local sensitivity."""
    values = np.array([0.5, 0.5, 0.5, 0.5, 0.5])
    mean, _ = published_sensitivities(values, 2.0)
    assert mean < 0.5 / 5
    constant, moved = np.zeros(5), np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    for beta in (0.05, 0.1):
        first, second = (published_sensitivities(column, beta)[1] for column in (constant, moved))
        assert abs(math.log(first / second)) > beta
