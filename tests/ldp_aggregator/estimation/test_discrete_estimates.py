"""Unbiasedness, variance and coverage of every discrete mechanism, on the vectorised path with fixed seeds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from ldp_aggregator.counting.tally import count
from ldp_aggregator.estimation.estimators import QuestionEstimate, estimate_question
from ldp_aggregator.mechanisms import analysis_of
from protocols import Question
from protocols.document.questions import INDEX, PAIR
from protocols.drafting.compiling import make_discrete
from protocols.mechanisms import DISCRETE

USERS = 200_000
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
def test_frequencies_and_classes_are_estimated_without_bias_with_the_predicted_variance(mechanism, epsilon):
    question = question_of(mechanism, epsilon)
    found = learn(question, ask(question, USERS, np.random.default_rng(1)))
    z = (found.cells.value - FREQUENCIES) / np.sqrt(predicted_variance(question) / USERS)
    assert np.abs(z).max() < norm.isf(FALSE_ALARM / (2 * len(FREQUENCIES)))
    truth = FREQUENCIES.reshape(-1, CLASSES).sum(axis=0)
    z = (found.classes.value - truth) / np.sqrt(found.classes.variance)
    assert np.abs(z).max() < norm.isf(FALSE_ALARM / (2 * CLASSES))
    assert found.cells.variance * USERS == pytest.approx(predicted_variance(question), rel=0.05)


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
def test_intervals_cover_the_truth_in_93_to_97_of_100_runs(mechanism, epsilon):
    question, users, runs = question_of(mechanism, epsilon), 500, 1_000
    covered = np.zeros(len(FREQUENCIES))
    for rows in np.split(ask(question, runs * users, np.random.default_rng(5)), runs):
        cells = learn(question, rows).cells
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
