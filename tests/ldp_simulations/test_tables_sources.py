"""Tables of any source are the texts that a CSV file would hold."""

import math
import sys

import pandas as pd
import pytest
from buyers import run
from sklearn import datasets

from ldp_aggregator.trainers.reading import TableError
from ldp_protocols import Campaign
from ldp_simulations import simulate
from ldp_simulations.tables import BUNDLED, as_texts, check_declared, read_text_table, source_without_schema


def test_an_ordered_column_keeps_its_order_and_is_of_texts_like_all_others(tmp_path):
    ages = pd.Categorical([30, None, 10], categories=[30, 20, 10], ordered=True)
    assert list(as_texts(pd.DataFrame({"age": ages}))["age"].cat.categories) == ["30", "20", "10", ""]
    texts = ages.rename_categories(str)  # Parquet keeps the categories of texts alone.
    path = tmp_path / "t.parquet"
    pd.DataFrame({"age": texts, "self": pd.Categorical(["yes", "no", "yes"], ordered=True)}).to_parquet(path)
    table = read_text_table(path)
    assert table["age"].tolist() == ["30", "", "10"]
    assert (list(table["age"].cat.categories), table["age"].cat.ordered) == (["30", "20", "10", ""], True)
    source = source_without_schema(str(path), "self", epsilon=1.0)
    (age,) = source.draft["features"]
    assert (age["values"], age["ordered"], age["missing"]) == (["30", "20", "10"], True, True)
    campaign = Campaign.compile(source.draft)
    check_declared(source.people, campaign.features, campaign.label, "t.parquet")
    assert int(simulate(campaign, source.people.frame, source.people.labels, rng=1).n.sum()) == 3


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_come_with_their_class_names_and_exact_numbers(name):
    table = read_text_table(f"sklearn:{name}")
    bunch = BUNDLED[name](as_frame=True)
    assert list(table.columns) == [*map(str, bunch.data.columns), "class"]
    assert set(table["class"]) == set(map(str, bunch.target_names))
    first = bunch.data.columns[0]
    assert [float(text) for text in table[first]] == bunch.data[first].tolist()
    assert source_without_schema(f"sklearn:{name}", "class", epsilon=1.0).people.frame.shape[0] == len(bunch.data)


def test_a_parquet_file_is_the_table_that_its_csv_file_would_be(tmp_path):
    frame = pd.DataFrame(
        {
            "colour": pd.Categorical(["red", None, "blue"], categories=["blue", "red", "green"]),
            "count": [1, 2, 2**53 + 1],
            "some": pd.array([7, None, 9], dtype="Int64"),
            "ratio": [0.1, math.nan, 3.0],
            "text": ["a", "?", None],
            "flag": [True, False, True],
            "day": pd.to_datetime(["2026-01-31", None, "2026-02-28"]),
        }
    )
    for name in ("t.parquet", "t.pq"):
        frame.to_parquet(tmp_path / name)
        table = read_text_table(tmp_path / name)
        assert table.to_dict("list") == {
            "colour": ["red", "", "blue"],
            "count": ["1", "2", "9007199254740993"],
            "some": ["7", "", "9"],
            "ratio": ["0.1", "", "3"],
            "text": ["a", "?", ""],
            "flag": ["True", "False", "True"],
            "day": ["2026-01-31 00:00:00", "", "2026-02-28 00:00:00"],
        }
    assert float(as_texts(pd.DataFrame({"a": [1 / 3]}))["a"][0]) == 1 / 3
    numbers = frame[["count", "ratio"]]
    numbers.to_parquet(tmp_path / "n.parquet")
    numbers.to_csv(tmp_path / "n.csv", index=False)
    parquet, csv = (read_text_table(tmp_path / name) for name in ("n.parquet", "n.csv"))
    assert [float(text) for text in parquet["ratio"] if text] == [float(text) for text in csv["ratio"] if text]
    assert parquet["count"].tolist() == csv["count"].tolist()


def test_what_is_no_parquet_file_is_told_in_one_line_and_one_without_rows(tmp_path):
    path = tmp_path / "t.parquet"
    for problem in ("no such file", "not a Parquet file"):
        with pytest.raises(TableError, match=f"t.parquet: {problem}") as raised:
            read_text_table(path)
        assert "\n" not in str(raised.value)
        path.write_bytes(b"x,y\n1,2\n")
    pd.DataFrame({"x": pd.array([], dtype="int64")}).to_parquet(path)
    with pytest.raises(TableError, match="holds no rows"):
        read_text_table(path)


def test_without_pyarrow_it_says_what_to_install(tmp_path, capsys, monkeypatch):
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = run(capsys, "draft", "--data", tmp_path / "t.parquet", "--label", "x")
    assert (code, err.count("\n")) == (2, 1)
    assert "reading Parquet takes pyarrow; pip install 'ldp-bayes[simulations]'" in err


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
