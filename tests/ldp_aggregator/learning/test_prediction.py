"""What is told of a model's accuracy, beside what it is where features are as independent as Naive Bayes takes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator import Tally, train
from protocols import Campaign
from simulations import simulate

FEATURES = 6


def campaign_of(*, gaussian=False, epsilon=2.0):
    features = [
        {"name": f"x{n}", "kind": "categorical", "missing": False, "values": ["a", "b"]} for n in range(FEATURES)
    ]
    if gaussian:
        features.append({"name": "g", "kind": "continuous", "missing": False, "low": -10, "high": 10})
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": ["no", "yes"]},
            "features": features,
            "privacy": {"epsilon": epsilon},
        }
    )


def people(n, seed, *, right=0.7, share=0.4):
    rng = np.random.default_rng(seed)
    yes = rng.random(n) < share
    told = {f"x{i}": np.where((rng.random(n) < right) == yes, "b", "a") for i in range(FEATURES)}
    told["g"] = np.where(yes, rng.normal(3, 2, n), rng.normal(-3, 2, n)).clip(-10, 10)
    return pd.DataFrame(told), np.where(yes, "yes", "no")


def told_of(model):
    return model.model_.training["predicted_accuracy"]


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("n", [3_000, 100_000])
def test_the_accuracy_lies_in_the_range_told_where_features_are_independent(gaussian, n):
    """Twelve seeded models each; at least ten have to be inside."""
    campaign = campaign_of(gaussian=gaussian)
    others, truth = people(20_000, 99)
    inside = 0
    for seed in range(12):
        model = train(campaign, simulate(campaign, *people(n, seed), rng=seed))
        told = told_of(model)
        inside += told["low"] <= (model.predict(others) == truth).mean() <= told["high"]
        assert told["above_prior"] == (told["gain"] > 2 * told["gain_error"])
    assert inside >= 10


@pytest.mark.parametrize("post", ["posterior", "norm_sub", "floor"])
def test_a_model_of_no_reports_or_one_is_not_above_the_prior(post):
    campaign = campaign_of()
    for n in (0, 1):
        tally = simulate(campaign, *people(1, 1), rng=1) if n else Tally(campaign)
        told = told_of(train(campaign, tally, post=post))
        assert not told["above_prior"]
        assert 0 <= told["low"] <= told["high"] <= 1


def test_a_model_of_noise_alone_is_not_above_the_prior_and_one_with_signal_is():
    """Ten seeded models of people whose features tell nothing: at most one is told to be above the prior."""
    campaign = campaign_of(epsilon=1.0)
    above = 0
    for seed in range(10):
        frame, labels = people(2_000, seed, right=0.5, share=0.3)
        above += told_of(train(campaign, simulate(campaign, frame.drop(columns="g"), labels, rng=seed)))["above_prior"]
    assert above <= 1
    frame, labels = people(100_000, 5)
    assert told_of(train(campaign, simulate(campaign, frame, labels, rng=6)))["above_prior"]


def test_the_same_reports_give_the_same_prediction():
    campaign = campaign_of()
    tally = simulate(campaign, *people(2_000, 3), rng=3)
    assert told_of(train(campaign, tally)) == told_of(train(campaign, tally))
