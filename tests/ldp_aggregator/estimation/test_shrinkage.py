"""Shrinkage changes nothing with many reports and everything with few; it never leaves the bounds."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_aggregator import estimate, train
from ldp_aggregator.estimation.intervals import Cells
from ldp_aggregator.estimation.moments import Present, rebuild_moments, shrink_moments
from protocols.document.schema import ContinuousFeature
from simulations import simulate

FEATURE = ContinuousFeature("x", 0, 100)
ASKED = {"kind": "continuous", "missing": False, "low": 0, "high": 100}
PRIOR = Cells.normal(np.array([0.5, 0.5]), np.full(2, 1e-9))


def moments_at(noise: float):
    """Class means 40 and 60, class variances 100 and 400, in t: -0.2, 0.2, 0.04, 0.16."""
    value = Cells.normal(np.array([-0.1, 0.1]), np.full(2, noise))
    second = np.array([0.04, 0.16]) + 0.04
    square = Cells.normal(0.5 * (2 * second - 1), np.full(2, noise))
    present = Present(PRIOR, Cells.normal(np.ones(1), np.zeros(1)))
    moments = rebuild_moments(FEATURE, value, square, present)
    return moments, shrink_moments(moments, FEATURE, value, square, present, variance_floor=1e-3)


def test_without_noise_the_moments_stay_and_more_noise_draws_closer_to_those_of_all_classes():
    moments, shrunk = moments_at(0.0)
    assert moments.mean == pytest.approx([40, 60])
    assert moments.variance == pytest.approx([100, 400])
    assert shrunk.mean == pytest.approx(moments.mean, rel=1e-6)
    assert shrunk.variance == pytest.approx(moments.variance, rel=1e-5)
    distances = []
    for noise in (1e-4, 1e-2, 1e2, np.inf):
        _, shrunk = moments_at(noise)
        distances.append(abs(shrunk.mean[1] - shrunk.mean[0]))
        assert (shrunk.variance > 0).all()
        assert ((shrunk.mean >= 0) & (shrunk.mean <= 100)).all()
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] == 0


def test_a_model_of_few_reports_gains_and_one_of_many_does_not_lose(make_campaign, gaussian_population):
    campaign = make_campaign(ASKED, continuous="laplace")
    frame, labels = gaussian_population(100_000, 2)
    gains = {}
    for devices, runs in ((400, 60), (100_000, 3)):
        scores = []
        for seed in range(runs):
            rows = np.random.default_rng(seed).choice(len(frame), size=devices, replace=False)
            tally = simulate(campaign, frame.iloc[rows], labels[rows], rng=seed)
            models = [train(campaign, tally, shrinkage=shrinkage) for shrinkage in (True, False)]
            scores.append([(model.predict(frame[:5_000]) == labels[:5_000]).mean() for model in models])
        gains[devices] = np.subtract(*np.mean(scores, axis=0))
    assert gains[400] > 0
    assert gains[100_000] > -0.002


def test_the_estimates_themselves_are_not_shrunk(make_campaign, gaussian_population):
    campaign = make_campaign(ASKED)
    frame, labels = gaussian_population(2_000, 2)
    tally = simulate(campaign, frame, labels, rng=1)
    plain = train(campaign, tally, shrinkage=False).model_.likelihoods[0]
    assert estimate(campaign, tally).moments["x"].mean.tolist() == list(plain.mean)
