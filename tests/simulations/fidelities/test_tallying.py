"""The drawn tally of a few devices has the distribution of their counted reports, cell by cell and jointly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ldp_aggregator.counting.tally import cells as tally_length
from ldp_aggregator.counting.tally import count
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.noisy_vector import noise_sums
from protocols import Question
from protocols.document.questions import INDEX, LABEL, MOMENT, VALUE
from protocols.mechanisms import DISCRETE, MOMENTS, NoisyVector, SubsetSelection
from simulations.fidelities import UNIT, MomentBatch

DRAWN = 2_000
COUNTED = 10_000
THERE = np.zeros(2, dtype=bool)
"""Nothing is missing."""


def question_with(mechanism, kind: str, encoding: str) -> Question:
    return Question(0, kind, None, None, 0, encoding, mechanism, 1.0, 1)


def assert_same_tallies(question: Question, items, drawn: list[np.ndarray], same_distribution) -> None:
    """``items`` are reported together, over and over; noisy cells are compared in steps of half a scale."""
    reports = analysis_of(question.mechanism).perturb(items, np.random.default_rng(1))
    real = np.array([count(question, rows) for rows in reports.reshape(COUNTED, -1, question.mechanism.width)])
    made = np.array(drawn)
    assert real.shape[1] == made.shape[1] == tally_length(question)
    if isinstance(question.mechanism, NoisyVector):
        step = max(1, int(question.mechanism.scale / 2))
        real, made = (np.clip(tallies // step, -6, 6)[:, :2] for tallies in (real, made))
    same_distribution(map(tuple, real.tolist()), map(tuple, made.tolist()))


@pytest.mark.parametrize(
    ("name", "size", "epsilon"), [*((name, 5, Fraction(1)) for name in DISCRETE), ("ss", 6, Fraction(1, 3))]
)
def test_three_reports_of_an_index_add_up_as_drawn(name, size, epsilon, same_distribution):
    mechanism = DISCRETE[name].make(size, epsilon)
    rng = np.random.default_rng(2)
    cells = np.zeros(size, dtype=np.int64)
    cells[[1, size - 1]] = 1, 2
    drawn = [analysis_of(mechanism).tally(cells, rng) for _ in range(DRAWN)]
    question = question_with(mechanism, LABEL, INDEX)
    assert_same_tallies(question, np.tile([1, size - 1, size - 1], COUNTED), drawn, same_distribution)


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.parametrize("classes", [1, 3])
def test_three_reports_of_moments_add_up_as_drawn(name, classes, same_distribution):
    mechanism = MOMENTS[name].make(classes, Fraction(3))
    rng = np.random.default_rng(3)
    moments = MomentBatch(np.array([0, classes - 1]), np.array([int(0.8 * UNIT), int(-0.35 * UNIT)]), THERE)
    drawn = [analysis_of(mechanism).tally_moments(moments, np.array([2, 1]), rng) for _ in range(DRAWN)]
    cells, values = (np.tile(one[[0, 0, 1]], COUNTED) for one in (moments.cells, moments.values))
    together = MomentBatch(cells, values, np.zeros(len(cells), dtype=bool))
    assert_same_tallies(question_with(mechanism, VALUE, MOMENT), together, drawn, same_distribution)


def test_subsets_of_two_billion_devices_are_tallied_and_every_one_counts():
    mechanism = SubsetSelection.make(12, Fraction(1, 2))
    cells = np.full(12, 2_000_000_000 // 12)
    counts = analysis_of(mechanism).tally(cells, np.random.default_rng(4))
    assert counts.sum() == mechanism.subset_size * cells.sum()
    expected = cells * float(mechanism.p) + (cells.sum() - cells) * float(mechanism.q)
    # No count varies more than a binomial one; 12 counts, false alarm below 1e-6.
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()


def test_noise_of_no_report_is_none_and_of_many_has_the_stated_variance():
    scale = Fraction(7, 3)
    assert noise_sums(scale, 0, 3, np.random.default_rng(0)).tolist() == [0, 0, 0]
    sums = noise_sums(scale, 1_000, 20_000, np.random.default_rng(5))
    a = np.exp(-1 / float(scale))
    expected = 1_000 * 2 * a / (1 - a) ** 2
    # A variance of 20,000 nearly normal sums has a relative standard error of 1 %; false alarm below 1e-6.
    assert abs(sums.var() / expected - 1) < 0.05
    assert abs(sums.mean()) < 5 * np.sqrt(expected / 20_000)


def test_a_mechanism_without_a_tally_is_named():
    rng, moments = np.random.default_rng(0), MomentBatch(np.zeros(1), np.zeros(1), THERE[:1])
    with pytest.raises(TypeError, match="laplace"):
        analysis_of(MOMENTS["laplace"].make(2, Fraction(1))).tally(np.zeros(2, dtype=int), rng)
    with pytest.raises(TypeError, match="oue"):
        analysis_of(DISCRETE["oue"].make(2, Fraction(1))).tally_moments(moments, np.ones(1), rng)
