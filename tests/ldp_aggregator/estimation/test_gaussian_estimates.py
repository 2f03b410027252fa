"""Unbiasedness, variance and coverage of the Gaussian questions.

laplace, onebit and sign; one answer or all; 2 and 10 classes; on the vectorised path with fixed seeds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ldp_aggregator import Tally, estimate
from ldp_aggregator.counting.tally import count
from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.learning.frames import numbers, rescaled
from ldp_aggregator.mechanisms import analysis_of
from protocols import Campaign
from protocols.document.questions import SQUARE, VALUE
from simulations import simulate
from simulations.fidelities import Columns, draw_questions

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


def resampled(campaign: Campaign, frame, labels, users: int, runs: int, seed: int) -> Iterator[Estimates]:
    """The estimates of every run, each of so many people drawn from the population; all runs are perturbed at once."""
    rng, columns = np.random.default_rng(seed), Columns.of(campaign, frame, labels)
    owners, tallies = rng.integers(0, len(columns), users * runs), [Tally(campaign) for _ in range(runs)]
    for question, devices in draw_questions(campaign, len(owners), rng):
        payloads = analysis_of(question.mechanism).perturb(columns.items(question, owners[devices], rng), rng)
        ends = np.searchsorted(devices, users * np.arange(1, runs))
        for tally, answers in zip(tallies, np.split(payloads, ends), strict=True):
            tally.add(question.index, len(answers), count(question, answers))
    return (estimate(campaign, tally) for tally in tallies)


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


@pytest.mark.parametrize("runs", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("answers", MODES)
@pytest.mark.parametrize("continuous", CONTINUOUS)
def test_the_variance_is_the_stated_one_and_intervals_cover_the_truth_in_93_to_97_of_100_runs(
    make_campaign, gaussian_population, continuous, answers, classes, runs
):
    """The empirical variance of a cell in 1,000 runs has a standard error of 4.5 %, the mean over all cells of at most
    2.5 %; it is to be within 7 %, and in 10,000 runs within 2.2 %.
    """
    campaign = make_campaign(FEATURE, classes=classes, continuous=continuous, answers=answers)
    frame, labels = gaussian_population(50_000, classes)
    truth = truth_of(campaign, frame, labels)
    found = {kind: [] for kind in truth}
    for run in resampled(campaign, frame, labels, 1_000, runs, 12):
        for question in run.questions:
            if question.question.kind in truth:
                found[question.question.kind].append(question.cells)
    empirical = [np.var([cells.value for cells in found[kind]], axis=0) for kind in truth]
    stated = [np.mean([cells.variance for cells in found[kind]], axis=0) for kind in truth]
    assert np.sum(empirical) / np.sum(stated) == pytest.approx(1, abs=2.2 / np.sqrt(runs))
    for kind, true in truth.items():
        covered = np.mean([(cells.low <= true) & (true <= cells.high) for cells in found[kind]])
        assert 0.93 <= covered <= 0.97, kind


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
