"""Value and square at once of a number that may be missing: held to the law of one report, payload by payload."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator import Tally, estimate, train
from ldp_aggregator.estimation.estimators import estimate_question
from ldp_aggregator.estimation.expected import even_expectation, variance_per_answer
from ldp_aggregator.estimation.moments import once, present_shares
from ldp_aggregator.estimation.poisoning.intervals import Interval
from ldp_aggregator.estimation.poisoning.reports import class_range, per_liar, sum_range
from ldp_aggregator.estimation.poisoning.shares import present_reach
from ldp_aggregator.estimation.pooling import cell_variance, class_variance
from ldp_aggregator.estimation.posterior.evidence import information_of_classes
from ldp_aggregator.learning.rounds.second import interactions
from protocols import Campaign
from protocols.document.questions import SQUARE, VALUE
from protocols.exact.rationals import exact_epsilon
from protocols.mechanisms import PURE
from simulations import simulate

CELLS = 10
MANY = 10**9
"""Reports of which as many as is expected say everything: what is stated of them is stated of the law itself."""

VALUES = np.array([-1, -1, 1, 1, 0])
SQUARES = np.array([-1, 1, -1, 1, 0])
ABSENT = np.array([0, 0, 0, 0, 1])
HELD = np.array([0.03, 0.11, 0.2, 0.06, 0.1, 0.13, 0.02, 0.07, 0.23, 0.05])
"""The shares of people of every cell, class by class."""


def campaign(**changes):
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": ["a", "b"]},
            "features": [{"name": "x", "kind": "continuous", "low": 0, "high": 100}],
            "privacy": {"epsilon": 3, **changes},
        }
    )


def asked(mechanism):
    """The question, answered by another mechanism."""
    return replace(campaign().questions[1], mechanism=PURE[mechanism].make(CELLS, exact_epsilon(3)))


def law(mechanism):
    """Every payload as the flags of the cells that it supports, shape (payloads, 10), and its chance for each item."""
    p, q = float(mechanism.p), float(mechanism.q)
    if mechanism.name == "de":
        return np.eye(CELLS), np.where(np.eye(CELLS) == 1, p, q)
    if mechanism.name == "ss":
        size = mechanism.subset_size
        sets = np.array([np.isin(range(CELLS), one) for one in itertools.combinations(range(CELLS), size)])
        within, without = sets.sum(axis=0)[0], (~sets).sum(axis=0)[0]
        return sets.astype(float), np.where(sets, p / within, (1 - p) / without)
    sets = np.array(list(itertools.product((0, 1), repeat=CELLS)))
    chances = [
        np.where(sets, *(np.where(np.arange(CELLS) == x, *pq) for pq in ((p, q), (1 - p, 1 - q)))).prod(axis=1)
        for x in range(CELLS)
    ]
    return sets.astype(float), np.array(chances).T


def contribution(mechanism):
    """What a payload adds to each estimate: sums of values and of squares, classes, their missing, and all missing."""
    sets, _ = law(mechanism)
    p, q = float(mechanism.p), float(mechanism.q)
    told = (sets - q) / (p - q)
    of_classes = told.reshape(len(sets), 2, 5)
    parts = [of_classes @ VALUES, of_classes @ SQUARES, of_classes.sum(axis=2), of_classes @ ABSENT]
    return np.hstack([*parts, (of_classes @ ABSENT).sum(axis=1, keepdims=True)])


def stated(question, counts, n):
    """Value, variance and what a report moves, in the order of :func:`contribution`."""
    found = estimate_question(question, n, counts, 2, "none", missing=True)
    told = [found.cells, found.classes, found.missing, found.missing_share]
    moved = [
        *per_liar(question, n, counts, 4),
        *[class_range(question, 2) / n] * 2,
        *[sum_range(question, 1) / n] * 2,
        sum_range(question, 2) / n,
    ]
    return found, [np.concatenate([getattr(one, name) for one in told]) for name in ("value", "variance")], moved


@pytest.mark.parametrize("mechanism", ["de", "ss", "oue", "sue"])
def test_estimates_and_their_variances_are_those_of_the_enumerated_law(mechanism):
    question = asked(mechanism)
    sets, chances = law(question.mechanism)
    assert chances.sum(axis=0) == pytest.approx(1)
    heard = chances @ HELD
    added = contribution(question.mechanism)
    mean = heard @ added
    spread = (added - mean).T @ (heard[:, None] * (added - mean))
    counts = np.round(MANY * (heard @ sets)).astype(np.int64)
    found, (values, variances), moved = stated(question, counts, MANY)
    by_class = HELD.reshape(2, 5)
    truth = [by_class @ VALUES, by_class @ SQUARES, by_class.sum(axis=1), by_class[:, 4], [by_class[:, 4].sum()]]
    assert mean == pytest.approx(np.concatenate(truth))
    assert values == pytest.approx(mean, abs=1e-7)
    assert MANY * variances == pytest.approx(np.diag(spread), rel=1e-6)
    assert MANY * found.covariance == pytest.approx([spread[0, 2], spread[1, 3]], abs=1e-6)
    assert MANY * np.array(moved) == pytest.approx(np.ptp(added, axis=0))
    assert found.missing_share.high[0] - found.missing_share.low[0] == pytest.approx(
        2 * 1.959964 * np.sqrt(spread[-1, -1] / MANY), rel=1e-6
    )


@pytest.mark.parametrize("mechanism", ["de", "ss", "oue"])
def test_what_is_predicted_and_what_is_believed_of_classes_are_the_enumerated_ones_at_even_shares(mechanism):
    question, even = asked(mechanism), np.full(CELLS, 1 / CELLS)
    _, chances = law(question.mechanism)
    added = contribution(question.mechanism)
    heard = chances @ even
    spread = (added - heard @ added).T @ (heard[:, None] * (added - heard @ added))
    found, _, _ = stated(question, np.zeros(CELLS, dtype=np.int64) + 1, 1)
    assert cell_variance(found) == pytest.approx(spread[0, 0])
    assert class_variance(found, 2) == pytest.approx(spread[4, 4])
    contrast = np.array([1, -1]) / np.sqrt(2)
    assert 1 / (contrast @ information_of_classes(found, 2) @ contrast) == pytest.approx(
        contrast @ spread[4:6, 4:6] @ contrast
    )
    none_missing = chances @ np.tile([1 / 6, 1 / 12, 1 / 6, 1 / 12, 0], 2)  # t uniform: E[2 t^2 - 1] = -1/3.
    spread = (added - none_missing @ added).T @ (none_missing[:, None] * (added - none_missing @ added))
    predicted = variance_per_answer(question, even_expectation(campaign(), question))
    assert predicted == pytest.approx(np.diag(spread)[:4])


def answered(seed=1, people=3_000, **privacy):
    """A campaign, and what 40,000 devices told it; of class b three in ten hold no value, of class a one."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(["a", "b"], people)
    x = np.clip(rng.normal(40 + 30 * (labels == "b"), 12), 0, 100)
    x[rng.random(people) < np.where(labels == "b", 0.3, 0.1)] = np.nan
    asked_of = campaign(**privacy)
    return asked_of, simulate(asked_of, pd.DataFrame({"x": x}), labels, rng=seed, devices=40_000)


def told(seed=1):
    return estimate(*answered(seed))


def test_who_holds_no_value_is_told_once_though_value_and_square_both_have_it():
    found = told()
    parts = [found.asking("x", kind) for kind in (VALUE, SQUARE)]
    assert len(once(parts)) == 1
    both, one = present_shares(found.class_prior, parts), present_shares(found.class_prior, parts[:1])
    assert both.whole.variance == pytest.approx(one.whole.variance)
    assert both.whole.variance == pytest.approx(parts[0].missing_share.variance)
    share, noise = (present_reach([(part, 1) for part in use], 1, *_around(found)).whole for use in (parts, parts[:1]))
    assert (share.low, share.high) == (noise.low, noise.high)
    assert once([parts[0], told(2).asking("x", VALUE)])[1:]


def _around(found):
    return Interval.exactly(found.class_prior.value), Interval.exactly(found.class_prior.variance)


def test_moments_and_shares_are_those_of_who_holds_a_value():
    """40,000 devices; five standard errors."""
    found = told()
    assert found.missing["x"].cells.value[0] == pytest.approx(0.2, abs=0.03)
    moments = found.moments["x"]
    assert not moments.insufficient.any()
    assert moments.mean == pytest.approx([40, 70], abs=2.5)
    assert np.sqrt(moments.variance) == pytest.approx([12, 12], abs=4)
    row = found.to_json()["missing"]["x"]
    assert row["low"] < row["estimate"] < row["high"]
    assert row["per_liar"] > 0


def test_rounds_that_asked_at_once_and_apart_add_up():
    """40,000 devices each; five standard errors. A feature's interaction is that of the class means."""
    rounds = [answered(1), answered(2, joint=False), answered(3, epsilon=1)]
    assert [[q.kind for q in one.questions[1:]] for one, _ in rounds] == [["signs"], *[["value", "square"]] * 2]
    model = json.loads(train(rounds).to_json())
    (feature,) = model["features"]
    assert feature["mean"] == pytest.approx([40, 70], abs=2.5)
    assert np.sqrt(feature["variance"]) == pytest.approx([12, 12], abs=4)
    of_one, of_all = (one["features"]["x"] for one in model["training"]["poisoning"])
    assert 0 < of_one["mean"] < 1
    assert of_all["mean"] is None or of_all["mean"] > of_one["mean"]
    assert interactions(rounds)["x"] == pytest.approx(interactions(rounds[:1])["x"], rel=0.3)


def test_without_reports_nothing_is_known_of_the_missing_either():
    asked_of = campaign()
    found = estimate(asked_of, Tally(asked_of))
    assert np.isinf(found.missing["x"].cells.variance).all()
    assert found.to_json()["missing"]["x"]["variance"] is None
    assert found.moments["x"].insufficient.all()
