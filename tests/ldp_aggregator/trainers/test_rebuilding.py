"""What rebuilding does with the known noise: pools class sizes, shrinks what drowned, leaves the rest alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.node_statistics import parts_of
from ldp_aggregator.trainers.rebuilding import Options, rebuild
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import GRID, plan_noise, statistics_of


@pytest.fixture
def read(schema):
    return Schema.read(schema)


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
        next(one for one in rebuild(read, vector, plan_noise(read, epsilon, "add-remove"), options).likelihoods[1:2])
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
