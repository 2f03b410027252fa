"""A column is read as its cells are, one by one, whatever its dtype."""

import json

import numpy as np
import pandas as pd
import pytest
from columns import columns
from hypothesis import given
from hypothesis import strategies as st

from ldp_aggregator.learning.frames import as_column, column_of, declared_indices, numbers, texts_of
from protocols.document.schema import CategoricalFeature, ContinuousFeature, Label
from protocols.values import number_of, text_of

FEATURES = [
    CategoricalFeature("f", ("0", "1", "2.5", "Cafe\u0301")),
    CategoricalFeature("f", ("true", "false", "0.5")),
    CategoricalFeature("f", ("red", "1.0", "missing", "0.1", "9007199254740992")),
    Label("y", ("1", "red")),
]


def indices_of(domain, cells):
    return [-1 if (index := domain.index_of(cell)) is None else index for cell in cells]


@given(columns())
def test_a_column_means_what_its_cells_mean(column):
    cells = [column.iloc[row] for row in range(len(column))]
    for domain in FEATURES:
        assert declared_indices(domain, column).tolist() == indices_of(domain, cells)
    expected = [np.nan if (number := number_of(cell)) is None else number for cell in cells]
    np.testing.assert_array_equal(numbers(column), expected)
    assert texts_of(column) == {text for cell in cells if (text := text_of(cell)) is not None}


def test_numbers_are_an_array_of_their_own_and_dates_beyond_pythons_calendar_are_missing():
    column = pd.Series([1.0, 2.0])
    numbers(column)[:] = 0
    assert column.tolist() == [1.0, 2.0]
    assert numbers(pd.Series([1, 2**60])).tolist() == [1.0, float(2**60)]
    column = pd.Series(np.array([10**9], dtype="datetime64[s]") + np.timedelta64(400_000_000_000, "s"))
    assert np.isnan(numbers(column)).all()
    assert declared_indices(FEATURES[0], column).tolist() == [-1]


@given(st.lists(st.text("0123456789+-.eE \t", max_size=6) | st.none() | st.sampled_from(["nan", "9" * 201, "1_0"])))
def test_texts_of_digits_are_read_at_once_as_one_by_one(texts):
    expected = [np.nan if (number := number_of(text)) is None else number for text in texts]
    for dtype in (object, "str"):
        np.testing.assert_array_equal(numbers(pd.Series(texts, dtype=dtype)), expected)


class Impostor:
    """Equal to 1, and no number."""

    def __eq__(self, other):
        return other == 1

    def __hash__(self):
        return hash(1)


def test_what_claims_to_equal_a_number_moves_no_number():
    for cells in ([Impostor(), 1], [1, Impostor()]):
        column = pd.Series(cells, dtype=object)
        assert declared_indices(FEATURES[0], column).tolist() == indices_of(FEATURES[0], cells)
        assert sorted(np.isnan(numbers(column)).tolist()) == [False, True]


def test_labels_of_a_list_keep_their_values_and_two_columns_are_no_column():
    assert indices_of(FEATURES[3], as_column([1.0, "red", True]).tolist()) == [0, 1, 0]
    with pytest.raises(ValueError, match="one column"):
        as_column(pd.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match="2 columns 'x'"):
        column_of(pd.DataFrame([[1, 2]], columns=["x", "x"]), ContinuousFeature("x", 0, 1))


@pytest.mark.parametrize(
    "made", [list, lambda y: np.array(y, dtype=object), np.array, lambda y: pd.Series(y, dtype=object)]
)
def test_a_label_that_has_no_utf_8_is_one_that_nobody_declared(made):
    """Half of a surrogate pair, as JSON can hold it: no row may end a fit."""
    column = as_column(made(["no", "yes", json.loads('"\\ud800"')]))
    assert declared_indices(Label("y", ("no", "yes")), column).tolist() == [0, 1, -1]
