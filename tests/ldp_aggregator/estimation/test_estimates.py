"""Unbiasedness, variance and coverage of every question, on the vectorised path with fixed seeds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ldp_aggregator import Tally, estimate
from ldp_aggregator.counting.payloads import count
from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import QuestionEstimate, estimate_question
from ldp_aggregator.learning.frames import numbers, rescaled
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Campaign, Question
from ldp_protocols.document.questions import INDEX, PAIR, SQUARE, VALUE
from ldp_protocols.drafting import make_discrete
from ldp_protocols.mechanisms import DISCRETE
from ldp_simulations import simulate
from ldp_simulations.columns import Columns
from ldp_simulations.fidelities import draw_questions

CLASSES = 2
FREQUENCIES = np.array([0.02, 0.08, 0.30, 0.05, 0.25, 0.10, 0.0, 0.20])
FALSE_ALARM = 1e-5
"""Chance that a correct estimator fails one of these z-tests, all its cells together."""


def question_of(mechanism: str, epsilon: float) -> Question:
    made = make_discrete(mechanism, len(FREQUENCIES), Fraction(repr(epsilon)))
    return Question(0, PAIR, "x", None, 1, INDEX, made, epsilon, 1)


def ask(question: Question, users: int, rng: np.random.Generator) -> np.ndarray:
    """The payload rows of ``users`` people drawn from the population."""
    items = rng.choice(len(FREQUENCIES), size=users, p=FREQUENCIES)
    return analysis_of(question.mechanism).perturb(items, rng)


def learn(question: Question, rows: np.ndarray) -> QuestionEstimate:
    return estimate_question(question, len(rows), count(question, rows), CLASSES, "none")


def predicted_variance(question: Question) -> np.ndarray:
    """N times the variance of an estimated frequency: the mechanism's noise and the sampling of people."""
    noise = np.array([question.mechanism.noise_variance(f) for f in FREQUENCIES])
    return noise + FREQUENCIES * (1 - FREQUENCIES)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("mechanism", DISCRETE)
def test_the_empirical_variance_is_the_predicted_one(mechanism, epsilon):
    """4,000 groups of 20: the spread of the groups' estimates, averaged over the cells, within 5 %.

    Each cell's empirical variance has a relative standard error of 2.2 %; the classes are two cells and get 7 %.
    """
    question, group = question_of(mechanism, epsilon), 20
    rows = ask(question, 4_000 * group, np.random.default_rng(3))
    groups = [learn(question, rows[start : start + group]) for start in range(0, len(rows), group)]
    empirical = np.var([found.cells.value for found in groups], axis=0) * group
    predicted = predicted_variance(question)
    assert empirical.mean() / predicted.mean() == pytest.approx(1, abs=0.05)
    assert empirical / predicted == pytest.approx(1, abs=0.09)

    classes = np.var([found.classes.value for found in groups], axis=0) * group
    whole = learn(question, rows)
    assert classes / (whole.classes.variance * len(rows)) == pytest.approx(1, abs=0.07)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("mechanism", DISCRETE)
def test_frequencies_and_classes_are_estimated_without_bias_and_intervals_cover_the_truth_in_93_to_97_of_100_runs(
    mechanism, epsilon
):
    question, users, runs = question_of(mechanism, epsilon), 500, 1_000
    rows, covered = ask(question, runs * users, np.random.default_rng(5)), np.zeros(len(FREQUENCIES))
    found, variance = learn(question, rows), predicted_variance(question)
    z = (found.cells.value - FREQUENCIES) / np.sqrt(variance / len(rows))
    assert np.abs(z).max() < norm.isf(FALSE_ALARM / (2 * len(FREQUENCIES)))
    z = (found.classes.value - FREQUENCIES.reshape(-1, CLASSES).sum(axis=0)) / np.sqrt(found.classes.variance)
    assert np.abs(z).max() < norm.isf(FALSE_ALARM / (2 * CLASSES))
    assert found.cells.variance * len(rows) == pytest.approx(variance, rel=0.05)
    for some in np.split(rows, runs):
        cells = learn(question, some).cells
        covered += (cells.low <= FREQUENCIES) & (cells.high >= FREQUENCIES)
    assert 0.93 <= covered.mean() / runs <= 0.97
    # A single cell of coverage 0.95 leaves [0.92, 0.98] with chance 1e-5.
    assert ((covered / runs >= 0.92) & (covered / runs <= 0.98)).all()


def test_without_reports_nothing_is_claimed():
    question = question_of("oue", 1.0)
    found = learn(question, np.zeros((0, question.mechanism.width), dtype=np.uint8))
    assert found.n == 0
    assert found.cells.value.tolist() == [1 / 8] * 8
    assert np.isinf(found.cells.variance).all()
    assert (found.cells.low.tolist(), found.cells.high.tolist()) == ([0] * 8, [1] * 8)


FEATURE = {"kind": "continuous", "missing": False, "low": 0, "high": 100}

PUBLISHED = {
    # n Var of a class-conditional sum for 2 and 10 classes, by mechanism and epsilon.
    ("laplace", 0.5): (32, 32), ("onebit", 0.5): (33, 167), ("sign", 0.5): (24.9, 29.8),
    ("laplace", 1): (8, 8), ("onebit", 1): (9.2, 47), ("sign", 1): (5.4, 7.0),
    ("laplace", 2): (2, 2), ("onebit", 2): (3.3, 17), ("sign", 2): (1.20, 1.36),
}  # fmt: skip


def truth_of(campaign: Campaign, frame, labels) -> dict[str, np.ndarray]:
    """P(c) E[v | c] of the whole population, for v the value and the square as they are asked."""
    t = rescaled(campaign.features[0], numbers(frame["x"]))
    members = np.array([labels == name for name in campaign.label.names])
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


@pytest.fixture(params=[2, 10, 1], ids=["2-classes", "10-classes", "no-label"])
def classes(request) -> int:
    return request.param


@pytest.mark.parametrize("runs", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize("continuous", ["laplace", "onebit", "sign"])
def test_sums_of_values_and_squares_have_no_bias_the_stated_variance_and_intervals_that_cover_in_93_to_97_of_100_runs(
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
    stated = {kind: np.mean([cells.variance for cells in found[kind]], axis=0) for kind in truth}
    assert np.sum(empirical) / np.sum([*stated.values()]) == pytest.approx(1, abs=2.2 / np.sqrt(runs))
    for kind, true in truth.items():
        z = np.mean([cells.value - true for cells in found[kind]], axis=0) / np.sqrt(stated[kind] / runs)
        assert np.abs(z).max() < norm.isf(FALSE_ALARM / (4 * classes))
        covered = np.mean([(cells.low <= true) & (true <= cells.high) for cells in found[kind]])
        assert 0.93 <= covered <= 0.97, kind


@pytest.mark.parametrize("classes", [2, 10])
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
