"""Statistics are exact integers, whatever the chunks; noise is planned to spend exactly epsilon."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.node_statistics import parts_of
from ldp_aggregator.trainers.noise.accountant import Accountant
from ldp_aggregator.trainers.noise.randomness import PrivacyWarning, coins_of
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import (
    GRID,
    add_noise,
    plan_noise,
    statistics_of,
    statistics_of_chunks,
)
from protocols.exact.rationals import exact_epsilon


def test_the_vector_holds_what_it_says(schema):
    read = Schema.read(schema)
    frame = pd.DataFrame({"colour": ["red", "mauve"], "hours": [100, np.nan], "income": [-10, 9.9], "age": [54, 0]})
    vector = statistics_of(read, frame, read.classes_of(["a", "c"], 2))
    found = [
        (part.query, part.kind, vector[part.start : part.stop].tolist()) for part in parts_of(read.label, read.features)
    ]
    assert found == [
        ("class counts", "classes", [1, 0, 1]),
        ("colour", "table", [1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("hours: sum and square", "sum", [GRID, 0, 0]),
        ("hours: sum and square", "square", [0, 0, GRID]),
        ("income", "table", [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ("age: sum and square", "sum", [0, 0, -GRID]),
        ("age: sum and square", "square", [GRID, 0, 0]),
    ]


def test_one_row_moves_every_query_by_at_most_its_sensitivity(schema):
    read = Schema.read(schema)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "blue", "?"], 200),
            "hours": rng.choice([-np.inf, 0, 50, 87.5, 99.9, np.inf, np.nan], 200),  # 87.5 is t = 3/4, the worst of all
            "income": rng.normal(0, 20, 200),
            "age": rng.choice([81.0, 0.0, 30.5, 99.0], 200),  # so is 81
        }
    )
    plans = {r: plan_noise(read, 1.0, r) for r in ("add-remove", "replace")}
    rows = [statistics_of(read, frame.iloc[[i]].reset_index(drop=True), np.array([0])) for i in range(200)]
    loss = {relation: defaultdict(float) for relation in plans}
    for number, part in enumerate(parts_of(read.label, read.features)):
        pieces = np.array([row[part.start : part.stop] for row in rows])
        moved = {"add-remove": np.abs(pieces).sum(axis=1)}
        moved["replace"] = np.abs(pieces[:, None] - pieces[None]).sum(axis=2)
        for relation, plan in ((name, plans[name][number]) for name in plans):
            if plan.scale:
                loss[relation][part.query] = loss[relation][part.query] + moved[relation] / float(plan.scale)
    for relation, queries in loss.items():
        spent = {plan.part.query: float(plan.epsilon) for plan in plans[relation] if plan.scale}
        assert {query: worst.max() for query, worst in queries.items()} == pytest.approx(spent, rel=1e-5)
        assert all(worst.max() <= spent[query] * (1 + 1e-12) for query, worst in queries.items())


def test_chunks_give_the_bits_of_the_whole_table(schema, table):
    frame, labels = table
    read = Schema.read(schema)
    whole = statistics_of(read, frame, read.classes_of(labels, len(frame)))
    pieces = [(frame.iloc[i : i + 7], labels.iloc[i : i + 7]) for i in range(0, len(frame), 7)]
    chunked, rows = statistics_of_chunks(read, reversed(pieces))
    assert rows == len(frame)
    assert (chunked == whole).all()


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("share", [None, 0.8])
def test_the_noise_spends_exactly_epsilon(schema, table, relation, share):
    read = Schema.read(schema)
    exact = statistics_of(read, table[0], read.classes_of(table[1], len(table[0])))
    with pytest.warns(PrivacyWarning):
        coins = coins_of(0)
    accountant = Accountant(0.7)
    noisy = add_noise(exact, plan_noise(read, 0.7, relation, share), accountant, coins)
    assert accountant.spent == exact_epsilon(0.7)
    assert (noisy[:3] == exact[:3]).all() == (relation == "replace")
    assert (noisy[3:] != exact[3:]).mean() > 0.8


def test_noise_has_the_planned_variance_everywhere(schema):
    """200 releases of nothing, 600 draws a query: a variance's relative error has sd 9 %, 45 % is five of them."""
    read = Schema.read(schema)
    plans = plan_noise(read, 2.0, "add-remove")
    nothing = np.zeros(parts_of(read.label, read.features)[-1].stop * 200, dtype=np.int64).reshape(200, -1)
    with pytest.warns(PrivacyWarning):
        coins = coins_of(0)
    noisy = np.array([add_noise(row, plans, Accountant(2.0), coins) for row in nothing])
    for plan in plans:
        drawn = noisy[:, plan.part.start : plan.part.start + 3].astype(float)
        assert (drawn**2).mean() == pytest.approx(plan.variance, rel=0.45)


def test_labels_of_a_wrong_length_or_shape_are_named(schema):
    read = Schema.read(schema)
    with pytest.raises(ValueError, match="y must be one column"):
        read.classes_of(np.array([["a"], ["b"]]), 2)
    with pytest.raises(ValueError, match="X has 3 rows and y has 2"):
        read.classes_of(["a", "b"], 3)


def test_scales_are_fractions_of_what_is_spent(schema):
    counts = plan_noise(Schema.read(schema), 1.0, "add-remove")[0]
    assert counts.epsilon == Fraction(1, 7)
    assert counts.scale == 7
