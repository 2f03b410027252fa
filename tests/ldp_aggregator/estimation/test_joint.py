"""Bits of different devices estimate the joint table of two values and two classes, beside pairs and for training."""

from __future__ import annotations

import json
from math import tanh

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator import Tally, estimate, train
from ldp_aggregator.estimation.joint import sign_of
from protocols import Campaign
from protocols.document.questions import MARGINAL, XOR
from simulations import simulate

PEOPLE = 4_000
RUNS = 300


def campaign(**changes):
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": ["a", "b"]},
            "features": [
                {"name": "u", "kind": "categorical", "missing": False, "values": ["p", "q"]},
                {"name": "v", "kind": "continuous", "missing": False, "low": 0, "high": 1, "bins": 2},
                {"name": "w", "kind": "categorical", "missing": False, "values": ["1", "2", "3"]},
            ],
            "privacy": {"epsilon": 1, **changes},
        }
    )


def people():
    rng = np.random.default_rng(3)
    label = rng.random(PEOPLE) < 0.3
    u = np.where(rng.random(PEOPLE) < 0.8, label, ~label)
    v = np.clip(rng.normal(0.4 + 0.3 * label, 0.2), 0, 1)
    w = rng.integers(1, 4, PEOPLE).astype(str)
    return pd.DataFrame({"u": np.where(u, "q", "p"), "v": v, "w": w}), np.where(label, "b", "a")


def truth(frame, labels):
    held = {"u": frame["u"] == "q", "v": frame["v"] >= 0.5}
    return {name: pd.crosstab(of, labels).to_numpy().ravel() / len(frame) for name, of in held.items()}


@pytest.mark.parametrize("fidelity", ["counts", "vector"])
def test_the_table_of_bits_is_unbiased_with_the_variance_and_the_intervals_that_are_stated(fidelity):
    """Each assertion fails by chance in less than one of 10,000 choices of the seeds."""
    asked, (frame, labels) = campaign(), people()
    found = [
        estimate(asked, simulate(asked, frame, labels, rng=seed, fidelity=fidelity, devices=12_000)).tables
        for seed in range(RUNS)
    ]
    for name, cells in truth(frame, labels).items():
        values = np.array([one[name].cells.value for one in found])
        stated = np.mean([one[name].cells.variance for one in found], axis=0)
        assert np.abs(values.mean(axis=0) - cells) == pytest.approx(0, abs=4.5 * np.sqrt(stated.max() / RUNS))
        # A variance of 300 runs has a standard error of 8 %.
        assert values.var(axis=0) == pytest.approx(stated, rel=0.37)
        covered = np.mean([(one[name].cells.low <= cells) & (cells <= one[name].cells.high) for one in found], axis=0)
        assert covered == pytest.approx(0.95, abs=0.055)


def test_a_device_answers_as_the_simulated_columns_do():
    """The tallies of both have the same law; a cell beyond 5 standard deviations comes in one of a million runs."""
    asked, (frame, labels) = campaign(), people()
    tallies = [simulate(asked, frame, labels, rng=seed, fidelity=f) for seed, f in ((1, "device"), (2, "counts"))]
    for question in asked.questions[:5]:
        one, other = (tally.counts[question.index] / tally.n[question.index] for tally in tallies)
        spread = np.sqrt(0.25 * sum(1 / tally.n[question.index] for tally in tallies))
        assert np.abs(one - other).max() < 5 * spread


def test_n_times_the_variance_of_the_xor_is_the_formula():
    asked, (frame, labels) = campaign(), people()
    found = estimate(asked, simulate(asked, frame, labels, rng=1, fidelity="counts", devices=400_000))
    sign = sign_of(found.asking("u", XOR))
    assert sign.gain == pytest.approx(tanh(0.5))
    assert sign.variance * sign.n == pytest.approx(1 / tanh(0.5) ** 2 - sign.theta**2)
    assert 1 / tanh(0.5) ** 2 == pytest.approx(4.68, abs=0.005)


def test_a_sign_adds_up_the_reported_signs_over_the_cells():
    asked, (frame, labels) = campaign(), people()
    tally = simulate(asked, frame, labels, rng=1)
    found = estimate(asked, tally)
    for kind, signs in ((XOR, [1, -1, -1, 1]), (MARGINAL, [1, 1, -1, -1])):
        sign, index = sign_of(found.asking("u", kind)), found.asking("u", kind).question.index
        assert sign.signs.tolist() == signs
        assert sign.n == tally.n[index]
        assert sign.total == pytest.approx(tally.counts[index] @ [1, -1])


def test_rounds_of_bits_and_of_pairs_train_one_model():
    bits, pairs = campaign(), campaign(xor=False)
    assert {q.kind for q in bits.questions} - {q.kind for q in pairs.questions} == {"xor", "marginal"}
    frame, labels = people()
    tallies = [
        (one, simulate(one, frame, labels, rng=seed, fidelity="counts", devices=200_000))
        for seed, one in enumerate((bits, pairs))
    ]
    together = np.array(train(tallies).model_.likelihoods[0].table)
    cells = truth(frame, labels)["u"].reshape(2, 2)
    assert together == pytest.approx(cells / cells.sum(axis=0), abs=0.03)
    assert train(tallies[:1]).model_.classes == ("a", "b")


@pytest.mark.parametrize("silent", [(), (0,), (1,), (2,), (0, 1, 2, 3, 4, 5)])
def test_what_nobody_told_is_infinitely_uncertain_and_still_trains(silent):
    asked, (frame, labels) = campaign(), people()
    counted = simulate(asked, frame, labels, rng=1)
    tally = Tally(asked)
    for question in asked.questions:
        if question.index not in silent:
            tally.add(question.index, int(counted.n[question.index]), counted.counts[question.index])
    found = estimate(asked, tally)
    unknown = bool({1, 2} & set(silent))
    assert np.isinf(found.tables["u"].cells.variance).all() == unknown
    assert found.tables["u"].precision > 0 or unknown
    assert json.loads(json.dumps(found.to_json(), allow_nan=False)) == found.to_json()
    assert len(found.to_frame()) == 2 + 4 * 2 + 6 + 2 * 4
    for table in (one.table for one in train(asked, tally).model_.likelihoods):
        assert np.sum(table, axis=0) == pytest.approx(1)


def test_cells_are_named_and_post_processed():
    asked, (frame, labels) = campaign(), people()
    told = estimate(asked, simulate(asked, frame, labels, rng=1)).to_frame()
    table = told[(told["kind"] == "table") & (told["feature"] == "v")]
    assert list(table["value"]) == ["[0, 0.5)", "[0, 0.5)", "[0.5, 1]", "[0.5, 1]"]
    assert list(table["class"]) == ["a", "b", "a", "b"]
    assert table["processed"].sum() == pytest.approx(1)
    assert list(told[told["kind"] == "xor"]["value"][:2]) == ["alike", "crossed"]
