"""Statistics are exact integers, noise spends exactly epsilon, and a model is rebuilt with what is known of both."""

from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.node_statistics import parts_of
from ldp_aggregator.trainers.model_from_statistics import Options, rebuild
from ldp_aggregator.trainers.noise.accountant import Accountant
from ldp_aggregator.trainers.noise.randomness import SeededCoins
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import GRID, add_noise, plan_noise, statistics_of
from protocols.exact import exact_epsilon


@pytest.fixture
def read(schema):
    return Schema.read(schema)


def test_the_vector_holds_what_it_says(read):
    frame = pd.DataFrame({"colour": ["red", "mauve"], "hours": [100, np.nan], "income": [-10, 9.9], "age": [54, 0]})
    vector = statistics_of(read, frame, read.classes_of(["a", "c"], 2))
    parts = parts_of(read.label, read.features)
    assert [(part.query, part.kind, vector[part.start : part.stop].tolist()) for part in parts] == [
        ("class counts", "classes", [1, 0, 1]),
        ("colour", "table", [1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("hours: sum and square", "sum", [GRID, 0, 0]),
        ("hours: sum and square", "square", [0, 0, GRID]),
        ("income", "table", [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ("age: sum and square", "sum", [0, 0, -GRID]),
        ("age: sum and square", "square", [GRID, 0, 0]),
    ]


def test_one_row_moves_every_query_by_at_most_its_sensitivity(read):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "blue", "?"], 200),
            "hours": rng.choice([-np.inf, 0, 50, 87.5, 99.9, np.inf, np.nan], 200),  # 87.5 is t = 3/4, the worst of all
            "income": rng.normal(0, 20, 200),
            "age": rng.choice([81.0, 0.0, 30.5, 99.0], 200),  # so is 81
        }
    )
    plans = {relation: plan_noise(read, 1.0, relation) for relation in ("add-remove", "replace")}
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


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("share", [None, 0.8])
def test_the_noise_spends_exactly_epsilon(read, table, relation, share):
    exact = vector_of(read, table)
    accountant = Accountant(0.7)
    noisy = add_noise(exact, plan_noise(read, 0.7, relation, share), accountant, SeededCoins(np.random.default_rng(0)))
    assert accountant.spent == exact_epsilon(0.7)
    assert (noisy[:3] == exact[:3]).all() == (relation == "replace")
    assert (noisy[3:] != exact[3:]).mean() > 0.8


def test_noise_has_the_planned_variance_everywhere(read):
    """200 releases of nothing, 600 draws a query: a variance's relative error has sd 9 %, 45 % is five of them."""
    plans = plan_noise(read, 2.0, "add-remove")
    nothing = np.zeros((200, parts_of(read.label, read.features)[-1].stop), dtype=np.int64)
    coins = SeededCoins(np.random.default_rng(0))
    noisy = np.array([add_noise(row, plans, Accountant(2.0), coins) for row in nothing])
    for plan in plans:
        drawn = noisy[:, plan.part.start : plan.part.start + 3].astype(float)
        assert (drawn**2).mean() == pytest.approx(plan.variance, rel=0.45)


def vector_of(read, table):
    return statistics_of(read, table[0], read.classes_of(table[1], len(table[0])))


def test_class_sizes_are_pooled_from_every_table_by_inverse_variance(read):
    vector = np.zeros(parts_of(read.label, read.features)[-1].stop, dtype=np.int64)
    places = {part.query: slice(part.start, part.stop) for part in parts_of(read.label, read.features)}
    vector[places["class counts"]] = [100, 100, 200]
    vector[places["colour"]] = [103, 100, 200] + [0] * 6  # three cells a class: a third of the weight
    vector[places["income"]] = [100, 100, 200] + [0] * 9  # four cells a class: a quarter
    plans = plan_noise(read, 1.0, "add-remove")
    pooled = 100 + 3 * (1 / 3) / (1 + 1 / 3 + 1 / 4)
    assert rebuild(read, vector, plans, Options()).prior[0] == pytest.approx(pooled / (300 + pooled))
    assert rebuild(read, vector, plans, Options(pool=False)).prior[0] == 0.25


def test_a_table_with_many_undeclared_values_does_not_count_classes(read, table):
    frame, labels = table
    vector = vector_of(read, (frame.assign(colour="?"), labels))
    shares = rebuild(read, vector, plan_noise(read, 10.0, "add-remove"), Options()).prior
    assert shares == pytest.approx([(labels == name).mean() for name in "abc"], abs=1e-9)


def test_noise_that_explains_the_differences_makes_the_classes_alike(read, table):
    vector = vector_of(read, table)
    hours = [
        rebuild(read, vector, plan_noise(read, epsilon, "add-remove"), options).likelihoods[1]
        for epsilon, options in ((1e-4, Options()), (1e-4, Options(shrink=False)), (1e4, Options()))
    ]
    spread = [max(one.mean) - min(one.mean) for one in hours]
    assert spread[0] < 1e-3 * spread[1]
    assert spread[1] == pytest.approx(spread[2], rel=1e-3)
    assert spread[2] > 30


def test_a_variance_is_not_believed_below_its_noise(read):
    frame = pd.DataFrame({"colour": "red", "hours": [50.0] * 900, "income": 0.0, "age": 54.0})
    vector = statistics_of(read, frame, np.arange(900) % 3)
    floors = [
        rebuild(read, vector, plan_noise(read, epsilon, "add-remove"), Options()).likelihoods[1].variance[0] / 100**2
        for epsilon in (0.1, 10.0, 1e4)
    ]
    assert floors[0] == pytest.approx(1e-3)
    assert floors[2] == pytest.approx(1e-4)
    assert 1e-4 <= floors[1] <= 1e-3


def test_statistics_beyond_reason_give_a_model_all_the_same(read):
    rng = np.random.default_rng(0)
    for scale in (1, GRID, 1 << 60):
        vector = rng.integers(-scale, scale + 1, size=parts_of(read.label, read.features)[-1].stop)
        for options in (Options(), Options(pool=False, shrink=False)):
            model = rebuild(read, vector, plan_noise(read, 1.0, "add-remove"), options)
            assert all(np.isfinite(model.prior))
            type(model).from_json(model.to_json())
