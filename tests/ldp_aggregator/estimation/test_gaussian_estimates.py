"""Unbiasedness, variance and coverage of the Gaussian questions.

laplace, onebit and sign; one answer or all; 2 and 10 classes; on the vectorised path with fixed seeds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ldp_aggregator import estimate
from ldp_aggregator.learning.frames import numbers, rescaled
from protocols import Campaign
from protocols.document.questions import SQUARE, VALUE
from simulations import simulate

CONTINUOUS = ("laplace", "onebit", "sign")
MODES = ("one", "all")
FEATURE = {"kind": "continuous", "missing": False, "low": 0, "high": 100}
FALSE_ALARM = 1e-5

PUBLISHED = {
    # n Var of a class-conditional sum for 2 and 10 classes, by mechanism and epsilon.
    ("laplace", 0.5): (32, 32), ("onebit", 0.5): (33, 167), ("sign", 0.5): (24.9, 29.8),
    ("laplace", 1): (8, 8), ("onebit", 1): (9.2, 47), ("sign", 1): (5.4, 7.0),
    ("laplace", 2): (2, 2), ("onebit", 2): (3.3, 17), ("sign", 2): (1.20, 1.36),
}  # fmt: skip


def truth_of(campaign: Campaign, frame, labels) -> dict[str, np.ndarray]:
    """P(c) E[v | c] of the whole population, for v the value and the square as they are asked."""
    t = rescaled(campaign.features[0], numbers(frame["x"]))
    members = np.array([labels == name for name in campaign.label.classes])
    return {VALUE: (members * t).mean(axis=1), SQUARE: (members * (2 * t * t - 1)).mean(axis=1)}


def resamples(frame, labels, users: int, runs: int, seed: int) -> Iterator[tuple]:
    """People drawn from the population with replacement, run by run."""
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        rows = rng.integers(0, len(frame), size=users)
        yield frame.iloc[rows], labels[rows], rng


@pytest.fixture(params=[2, 10], ids=["2-classes", "10-classes"])
def classes(request) -> int:
    return request.param


@pytest.mark.parametrize("answers", MODES)
@pytest.mark.parametrize("continuous", CONTINUOUS)
def test_sums_of_values_and_squares_are_estimated_without_bias(
    make_campaign, gaussian_population, continuous, answers, classes
):
    campaign = make_campaign(FEATURE, classes=classes, continuous=continuous, answers=answers)
    frame, labels = gaussian_population(200_000, classes)
    found = estimate(campaign, simulate(campaign, frame, labels, rng=11))
    truth = truth_of(campaign, frame, labels)
    for question in found.questions:
        if question.question.kind in truth:
            z = (question.cells.value - truth[question.question.kind]) / np.sqrt(question.cells.variance)
            assert np.abs(z).max() < norm.isf(FALSE_ALARM / (4 * classes))


@pytest.mark.parametrize("answers", MODES)
@pytest.mark.parametrize("continuous", CONTINUOUS)
def test_intervals_cover_the_truth_in_93_to_97_of_100_runs(
    make_campaign, gaussian_population, continuous, answers, classes
):
    campaign = make_campaign(FEATURE, classes=classes, continuous=continuous, answers=answers, epsilon=2)
    frame, labels = gaussian_population(50_000, classes)
    truth, runs = truth_of(campaign, frame, labels), 1_000
    covered = {VALUE: np.zeros(classes), SQUARE: np.zeros(classes)}
    for people, their_labels, rng in resamples(frame, labels, 2_000, runs, 12):
        for question in estimate(campaign, simulate(campaign, people, their_labels, rng=rng)).questions:
            kind = question.question.kind
            if kind in truth:
                covered[kind] += (question.cells.low <= truth[kind]) & (question.cells.high >= truth[kind])
    for kind in truth:
        assert 0.93 <= covered[kind].mean() / runs <= 0.97, kind


@pytest.mark.parametrize("answers", MODES)
@pytest.mark.parametrize("continuous", CONTINUOUS)
def test_the_empirical_variance_is_the_stated_one(make_campaign, gaussian_population, continuous, answers, classes):
    """2,000 runs: averaged over cells within 5 % (a single cell's empirical variance has 3.2 % standard error)."""
    campaign = make_campaign(FEATURE, classes=classes, continuous=continuous, answers=answers)
    frame, labels = gaussian_population(50_000, classes)
    values, stated = [], []
    for people, their_labels, rng in resamples(frame, labels, 400, 2_000, 13):
        for question in estimate(campaign, simulate(campaign, people, their_labels, rng=rng)).questions:
            if question.question.kind == VALUE:
                values.append(question.cells.value)
                stated.append(question.cells.variance)
    assert np.var(values, axis=0).mean() / np.mean(stated) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(("continuous", "epsilon"), PUBLISHED)
def test_measured_variances_are_those_of_the_table(make_campaign, continuous, epsilon, classes):
    """Everybody at t = 0.7, classes equally frequent; within 5 % (the rounding of the table included).

    The table does not say for which values it holds. This t was inferred from its two-class rows; values spread evenly
    over the range give 1.32 instead of 1.20 for sign at epsilon 2 and two classes.

    The table counts the mechanism's noise and, for sign and onebit, the coins that stand for the value; a Laplace
    vector's estimate also has the spread of the records, which the table leaves out.
    """
    campaign = make_campaign(FEATURE, classes=classes, continuous=continuous, epsilon=epsilon)
    rng = np.random.default_rng(14)
    users = 400_000
    labels = np.array([f"c{c}" for c in rng.integers(0, classes, size=users)], dtype=object)
    frame = pd.DataFrame({"x": np.full(users, 85.0)})
    found = estimate(campaign, simulate(campaign, frame, labels, rng=rng))
    question = found.questions[1]
    measured = question.cells.variance.mean() * question.n
    own_spread = 0.7**2 * (1 / classes - 1 / classes**2) if continuous == "laplace" else 0.0
    assert measured - own_spread == pytest.approx(PUBLISHED[continuous, epsilon][classes == 10], rel=0.05)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_sign_is_measured_below_laplace(make_campaign, gaussian_population, epsilon, classes):
    """Squared errors of the sums over 100 populations, summed over the classes."""
    frame, labels = gaussian_population(20_000, classes)
    errors = {}
    for continuous in ("laplace", "sign"):
        campaign = make_campaign(FEATURE, classes=classes, continuous=continuous, epsilon=epsilon)
        truth = truth_of(campaign, frame, labels)
        found = [estimate(campaign, simulate(campaign, frame, labels, rng=seed)) for seed in range(100)]
        errors[continuous] = np.mean(
            [
                (q.cells.value - truth[q.question.kind]) ** 2
                for one in found
                for q in one.questions
                if q.question.kind in truth
            ]
        )
    assert errors["sign"] < errors["laplace"]
