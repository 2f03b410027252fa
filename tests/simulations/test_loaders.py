"""Tables of any source are the texts that a CSV file would hold."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from sklearn import datasets

from simulations.frames import TableError
from simulations.loaders import BUNDLED, as_texts, read_text_table
from simulations.sources import source_without_schema


def test_values_become_texts_that_read_back_as_them():
    frame = pd.DataFrame({"a": [0.1, 3.0, math.nan], "b": [1, 2, 3], "c": ["x", None, "?"], "d": [True, False, True]})
    texts = as_texts(frame)
    assert texts["a"].tolist() == ["0.1", "3", ""]
    assert texts["b"].tolist() == ["1", "2", "3"]
    assert texts["c"].tolist() == ["x", "", "?"]
    assert texts["d"].tolist() == ["True", "False", "True"]
    assert float(as_texts(pd.DataFrame({"a": [1 / 3]}))["a"][0]) == 1 / 3


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_come_with_their_class_names_and_exact_numbers(name):
    table = read_text_table(f"sklearn:{name}")
    bunch = BUNDLED[name](as_frame=True)
    assert list(table.columns) == [*map(str, bunch.data.columns), "class"]
    assert set(table["class"]) == set(map(str, bunch.target_names))
    first = bunch.data.columns[0]
    assert [float(text) for text in table[first]] == bunch.data[first].tolist()
    assert source_without_schema(f"sklearn:{name}", "class", epsilon=1.0).people.frame.shape[0] == len(bunch.data)


def test_parquet_reads_like_csv_or_says_what_it_needs(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    monkeypatch.setattr(pd, "read_parquet", lambda _path: pd.DataFrame({"x": [1.5, 2.0], "y": ["a", "b"]}))
    assert read_text_table(path)["x"].tolist() == ["1.5", "2"]

    def no_engine(_path):
        raise ImportError("Unable to find a usable engine")

    monkeypatch.setattr(pd, "read_parquet", no_engine)
    with pytest.raises(TableError, match="pip install pyarrow"):
        read_text_table(path)


def test_a_real_parquet_file_is_read(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"x": [1.5, None], "y": ["a", "b"]}).to_parquet(tmp_path / "t.parquet")
    assert read_text_table(tmp_path / "t.parquet")["x"].tolist() == ["1.5", ""]


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("sklearn:mushroom", "not one of scikit-learn's bundled sets breast_cancer, digits, iris, wine"),
        ("openml:adult:two", "the version must be a whole number"),
        ("openml:adult:2", "cannot be had from OpenML"),
    ],
)
def test_a_set_that_cannot_be_had_says_so_in_one_line(place, problem, monkeypatch):
    def no_network(*_arguments, **_options):
        raise OSError("no route to host\nsecond line")

    monkeypatch.setattr(datasets, "fetch_openml", no_network)
    with pytest.raises(TableError, match=problem) as raised:
        read_text_table(place)
    assert "\n" not in str(raised.value)


def test_openml_keeps_its_own_label_column(monkeypatch):
    found = []

    def fetch(name, *, version, as_frame):
        found.append((name, version, as_frame))
        return type("Bunch", (), {"frame": pd.DataFrame({"x": [1, 2], "income": ["low", "high"]})})

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    assert read_text_table("openml:adult:2")["income"].tolist() == ["low", "high"]
    assert read_text_table("openml:adult")["x"].tolist() == ["1", "2"]
    assert found == [("adult", 2, True), ("adult", "active", True)]
