"""A column on arrays is what the device makes of its record, value by value."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.frames import feature_indices, numbers, scaled
from protocols import RecordError, ScriptedCoins
from protocols.questions import SQUARE, VALUE, fixed_point
from protocols.schema import CategoricalFeature, ContinuousFeature, Label
from simulations.items import Columns, class_indices, fixed_points

AWKWARD = [
    0,
    -0.0,
    1e-320,
    1e308,
    -1e308,
    math.inf,
    -math.inf,
    math.nan,
    None,
    "3",
    True,
    10**400,
    7,
    6.999999999999999,
]


def device_indices(feature, values):
    return [-1 if (index := feature.index_of(value)) is None else index for value in values]


@pytest.mark.parametrize(("low", "high", "bins"), [(0, 1, 10), (-3.3, 7.7, 7), (0, 200000, 8), (0.1, 0.7, 3)])
def test_bins_agree_with_the_device_at_and_beside_every_edge(low, high, bins):
    feature = ContinuousFeature("x", low, high, bins)
    edges = np.array([low, high, *feature.inner_edges], dtype=float)
    values = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    assert feature_indices(feature, pd.Series(values)).tolist() == device_indices(feature, values.tolist())
    assert feature_indices(feature, pd.Series(AWKWARD, dtype=object)).tolist() == device_indices(feature, AWKWARD)


@pytest.mark.parametrize("kind", [VALUE, SQUARE])
def test_fixed_points_agree_with_the_device_to_the_last_bit(kind):
    feature = ContinuousFeature("x", -1.3, 7.1)
    values = np.concatenate([np.random.default_rng(6).normal(3, 4, size=5_000), [-1.3, 7.1, 2.9, np.inf, -np.inf, 0.0]])
    on_device = [fixed_point(feature, value, kind, ScriptedCoins([])) for value in values.tolist()]
    assert fixed_points(scaled(feature, pd.Series(values)), kind).tolist() == on_device


@pytest.mark.parametrize(
    "values",
    [
        ["red", "blue", None, "mauve", "RED", ""],
        [1, 2, 3, "1", None],
        [1, 2, 3],
        [1.0, 2.0, math.nan],
        [True, False],
    ],
)
@pytest.mark.parametrize("declared", [("red", "blue", "1", "2"), ("1", "True", "missing")])
def test_categories_agree_with_the_device_whatever_the_column_type(values, declared):
    feature = CategoricalFeature("colour", declared)
    assert feature_indices(feature, pd.Series(values)).tolist() == device_indices(feature, values)
    assert feature_indices(feature, pd.Series(values, dtype=object)).tolist() == device_indices(feature, values)


def test_numbers_of_whole_number_columns_are_their_doubles():
    assert numbers(pd.Series([1, 2**60])).tolist() == [1.0, float(2**60)]
    assert np.isnan(numbers(pd.Series([True, False]))).all()


def test_an_undeclared_label_names_its_row():
    with pytest.raises(RecordError, match=r"row 3: y is 'maybe'; it must be one of yes, no"):
        class_indices(Label("y", ("yes", "no")), pd.Series(["yes", "no", "maybe"]))


def test_rows_and_labels_must_be_as_many(make_everything, make_people):
    frame, labels = make_people(10, 1)
    with pytest.raises(ValueError, match="10 rows have 9 labels"):
        Columns.of(make_everything(), frame, labels[:9])


def test_a_missing_value_is_replaced_anew_each_time_and_never_changes_the_table(make_everything):
    campaign = make_everything()
    columns = Columns.of(campaign, pd.DataFrame(index=range(3_000)), ["yes"] * 3_000)
    pair = next(q for q in campaign.questions if q.feature == "colour")
    rows, rng = np.arange(3_000), np.random.default_rng(1)
    first, second = columns.items(pair, rows, rng), columns.items(pair, rows, rng)
    assert set(first.tolist()) == set(second.tolist()) == {0, 2, 4}
    assert first.tolist() != second.tolist()
    declared = next(q for q in campaign.questions if q.feature == "shape")
    assert set(columns.items(declared, rows, rng).tolist()) == {2}
