"""Lies to the bits of a table: no made-up reports move a cell, or a model, further than is stated."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from ldp_aggregator import Tally, estimate, train
from protocols import Campaign
from simulations import simulate

ATTACKS = 10_000
TRAININGS = 300


def campaign():
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": ["a", "b"]},
            "features": [
                {"name": "u", "kind": "categorical", "missing": False, "values": ["p", "q"]},
                {"name": "w", "kind": "categorical", "missing": False, "values": ["1", "2", "3"]},
            ],
            "privacy": {"epsilon": 1, "discrete": "auto"},
        }
    )


def honest():
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(3_000) < 0.4, "a", "b")
    u = np.where(rng.random(3_000) < np.where(labels == "a", 0.3, 0.7), "p", "q")
    asked = campaign()
    assert [q.kind for q in asked.questions] == ["label", "xor", "marginal", "pair"]
    return asked, simulate(asked, pd.DataFrame({"u": u, "w": rng.integers(1, 4, 3_000).astype(str)}), labels, rng=2)


def attacked(tally, liars, rng):
    """The same number of reports to each question, of which ``liars`` were made up: to bits and to the label."""
    after = Tally(tally.campaign) + tally
    for question in rng.choice([0, 1, 2], size=liars):
        counts = after.counts[question]
        source = int(rng.integers(2))
        if counts[source]:
            counts += [-1, 1] if source == 0 else [1, -1]
    return after


def test_no_lies_of_ten_thousand_random_attacks_move_a_cell_further_than_is_stated_and_some_get_near():
    asked, tally = honest()
    before = estimate(asked, tally).tables["u"]
    rng, nearest = np.random.default_rng(3), 0.0
    for _ in range(ATTACKS):
        liars = int(rng.integers(1, 40))
        after = estimate(asked, attacked(tally, liars, rng)).tables["u"]
        moved = np.abs(after.cells.value - before.cells.value) / (liars * before.per_liar)
        assert moved.max() <= 1 + 1e-9
        nearest = max(nearest, float(moved.max()))
    assert nearest > 0.9


def test_no_lies_move_a_model_of_bits_further_than_it_states():
    asked, tally = honest()
    model = train(asked, tally)
    stated = json.loads(model.to_json())["training"]["poisoning"]
    before = np.array(model.model_.likelihoods[0].table)
    rng = np.random.default_rng(4)
    for row in stated:
        for _ in range(TRAININGS):
            after = np.array(train(asked, attacked(tally, row["liars"], rng)).model_.likelihoods[0].table)
            assert np.abs(after - before).max() <= row["features"]["u"]["likelihood"] * (1 + 1e-9)
