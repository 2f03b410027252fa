"""Cells that say that a value is missing: read off where values are, and in nobody's way where none are."""

import numpy as np
import pandas as pd
import pytest
from drafts import draft, text

from ldp_aggregator import estimate
from ldp_aggregator.estimation.estimators import estimate_question
from ldp_aggregator.estimation.posterior import tables
from ldp_aggregator.estimation.posterior.evidence import MOST_MISSING, FeatureGroup, Statistics, absences
from ldp_aggregator.estimation.posterior.tables import posterior_of
from ldp_aggregator.mechanisms import analysis_of
from protocols import Campaign
from simulations import simulate

FEATURES = [text(f"x{i}", "v0", "v1", "v2", missing=True) for i in range(8)]
TABLE = np.array([[0.5, 0.2], [0.3, 0.3], [0.2, 0.5]])
"""P(value | class) of every feature."""


def campaign_of(features=FEATURES, epsilon=1.0):
    return Campaign.compile(draft(*features, privacy={"epsilon": epsilon, "discrete": "ss"}))


def answers(campaign, missing, n, seed):
    """Estimates of all questions, n reports each; ``missing`` is P(missing | class), shape (C,)."""
    rng = np.random.default_rng(seed)
    prior = np.array([0.3, 0.7])
    found = []
    for question in campaign.questions:
        joint = prior
        if question.feature is not None:
            joint = (np.vstack([TABLE * (1 - missing), missing]) * prior).ravel()
        counts = analysis_of(question.mechanism).tally(rng.multinomial(n, joint), rng)
        found.append(estimate_question(question, n, np.asarray(counts), 2, "none"))
    return found


def test_where_nothing_is_missing_a_model_is_nearly_the_one_of_who_knows_that(monkeypatch):
    """The same reports, believed with and without that knowledge, of a hundred and of ten thousand a feature."""
    campaign = campaign_of()
    for n in (100, 10_000):
        found = answers(campaign, np.zeros(2), n, seed=n)
        believed = posterior_of(campaign.asked, 2, found, found)
        with monkeypatch.context() as known:
            known.setattr(tables, "absences", lambda told, pi: [0 * one for one in absences(told, pi)])
            knowing = posterior_of(campaign.asked, 2, found, found)
        for name in believed.features:
            assert believed.features[name].table == pytest.approx(knowing.features[name].table, abs=0.015)
            assert believed.features[name].present > 0.95


@pytest.mark.parametrize("missing", [[0.05, 0.05], [0.4, 0.05], [0.9, 0.5]])
def test_what_is_missing_is_found_class_by_class_and_the_tables_are_of_the_others(missing):
    campaign = campaign_of(epsilon=4.0)
    found = answers(campaign, np.array(missing), 400_000, seed=3)
    believed = posterior_of(campaign.asked, 2, found, found)
    for one in believed.features.values():
        assert one.absence / believed.classes.value == pytest.approx(missing, abs=0.015)
        assert one.table == pytest.approx(TABLE, abs=0.04)
        cells = one.cells_of(one.mean[None])[0]
        assert cells.sum(axis=0) == pytest.approx(1)
        assert cells[-1] == pytest.approx(missing, abs=0.015)


def test_without_reports_and_where_everything_is_missing_somebody_is_taken_to_hold_a_value():
    classes = np.array([0.3, 0.7])
    (nothing,) = absences([Statistics(np.zeros((1, 8, 8)), np.zeros((1, 8)))], classes)
    assert (nothing >= 0).all()
    assert nothing.sum() < 0.5
    campaign = campaign_of(epsilon=4.0)
    found = answers(campaign, np.ones(2), 100_000, seed=5)
    group = FeatureGroup(list("abcdefgh"), [[one] for one in found if one.question.feature], 8, True, False)
    (every,) = absences([group.told()], classes)
    assert (every <= MOST_MISSING * classes).all()
    assert (every.sum(axis=1) > 0.95).all()
    believed = posterior_of(campaign.asked, 2, found, found)
    assert all(np.isfinite(one.table).all() and (one.table > 0).all() for one in believed.features.values())


def test_the_share_that_is_missing_is_read_without_bias_by_what_is_printed():
    """Beliefs serve the model; `estimates` prints the unbiased share still."""
    campaign = campaign_of(FEATURES[:1])
    frame = pd.DataFrame({"x0": ["v0"] * 900 + [None] * 100})
    found = [estimate(campaign, simulate(campaign, frame, ["a", "b"] * 500, rng=seed)) for seed in range(60)]
    shares = [one.missing["x0"].cells.value[0] for one in found]
    assert np.mean(shares) == pytest.approx(0.1, abs=4 * np.std(shares) / np.sqrt(60))  # Fails 1 in 16,000.
