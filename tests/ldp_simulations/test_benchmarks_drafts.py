"""A draft from a table says loudly what it took from the data."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from drafts import number, text

from ldp_aggregator.trainers.reading import TableError, read_csv
from ldp_aggregator.trainers.table_drafts import draft_from_table, round_bounds
from ldp_protocols import Campaign
from ldp_simulations.benchmarks import DATASETS, ORDERED, draft_of
from ldp_simulations.tables import as_texts

ROWS = 40


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": [f"person {row}" for row in range(ROWS)],
            "colour": ["red", "blue"] * (ROWS // 2),
            "code": [str(row % 11) for row in range(ROWS)],
            "weight": [str(40.3 + row) for row in range(ROWS)],
            "same": ["x"] * ROWS,
            "holes": [["", "a", "b", "a"][row % 4] for row in range(ROWS)],
            "empty": [""] * ROWS,
            "sold": [["yes", "no"][row % 2] for row in range(ROWS)],
        }
    )


def test_columns_become_the_features_they_look_like_and_everything_that_was_read_off_the_data_is_noted(table):
    derived = draft_from_table(table, "sold", source="t.csv", epsilon=1.5, bins=4)
    features = {feature["name"]: feature for feature in derived.draft["features"]}
    assert features["colour"] == text("colour", "blue", "red")
    assert features["code"]["values"] == [str(value) for value in range(11)]
    assert features["weight"] == number("weight", 40, 80, bins=4)
    assert (features["holes"]["values"], features["holes"]["missing"]) == (["a", "b"], True)
    assert derived.left_out == ("name", "same", "empty")
    campaign = Campaign.compile(derived.draft)
    assert campaign.privacy.epsilon == 1.5
    assert campaign.label.classes == ("no", "yes")
    notes = "\n".join(derived.notes)
    for note in (
        "the classes of sold (no, yes)",
        "the bounds of weight (40 to 80)",
        "the 11 values of code",
        "the 2 values of holes",
        "since no row is empty, which is yours to confirm: colour, code, weight",
        "name: left out: 40 different texts",
        "same: left out: it has the same value in every row",
        "empty: left out: no row holds a value",
    ):
        assert note in notes
    assert [note.partition(": ")[0] for note in derived.notes[:3]] == ["name", "same", "empty"], "first what was lost"


def test_a_bin_that_holds_nearly_all_rows_is_told_and_narrower_bounds_are_proposed_where_they_help():
    rng = np.random.default_rng(1)
    prices = rng.uniform(100, 900, 1_000)
    prices[:3] = 9e6
    zeros = np.where(np.arange(1_000) < 970, 0, np.arange(1_000))
    columns = {"price": prices, "fees": zeros, "size": rng.uniform(0, 9, 1_000)}
    table = pd.DataFrame(columns).astype(str).assign(sold=["yes", "no"] * 500)
    derived = draft_from_table(table, "sold", source="t.csv")
    price, fees, *others = derived.notes
    assert (
        "price: 99.7% of the rows lie from 0 to 1.125e+06, in one bin: bounds 100 to 900 (percentiles 1 and 99" in price
    )
    assert "declare them where public knowledge agrees" in price
    assert "97.0% of the rows lie from 0 to 125, in one bin, and no narrower bounds tell them apart" in fees
    assert "of the rows" not in "\n".join(others)
    bounds = [(feature["low"], feature["high"]) for feature in derived.draft["features"]]
    assert bounds == [(0, 9e6), (0, 1000), (0, 9)], "they are proposed, not taken"


def test_an_ordered_column_gives_its_values_in_their_order(table):
    sizes = ["small", "medium", "large", "huge"]
    grades = [str(grade) for grade in range(20, 0, -1)]
    held = [None, "small", "large", "small"] * (ROWS // 4)
    columns = pd.DataFrame(
        {
            "size": pd.Categorical(held, sizes, ordered=True),
            "grade": pd.Categorical([grades[row % 20] for row in range(ROWS)], grades, ordered=True),
            "told": pd.Categorical(["missing", "yes"] * (ROWS // 2), ["yes", "no", "missing"], ordered=True),
            "kind": pd.Categorical(["b", "a"] * (ROWS // 2), ["b", "a"]),
            "sold": table["sold"],
        }
    )
    derived = draft_from_table(as_texts(columns), "sold", source="t.parquet")
    size, grade, told, kind = derived.draft["features"]
    assert size == text("size", *sizes, missing=True, ordered=True)
    assert (grade["values"], grade["missing"], grade["ordered"]) == (grades, False, True)
    assert (told["values"], "ordered" in told) == (["yes", "no", "missing"], False)
    assert (kind["values"], "ordered" in kind) == (["a", "b"], False)
    assert "the 4 values of size and their order, those of an ordered column" in "\n".join(derived.notes)
    assert [one.ordered for one in Campaign.compile(derived.draft).features] == [True, True, False, False]


@pytest.mark.parametrize(
    ("label", "change", "problem"),
    [
        ("bought", {}, "no column 'bought'"),
        ("sold", {"sold": ["yes"] * ROWS}, "column 'sold' has 1 different values"),
        ("weight", {}, "column 'weight' has 40 different values"),
        ("sold", {"sold": ["yes", ""] * (ROWS // 2)}, "column 'sold' has 1 different values"),
        ("sold", {"sold": ["yes", "n\vo"] * (ROWS // 2)}, "column 'sold', row 2: .* has a control character"),
        ("sold", {"sold": ["1", "True"] * (ROWS // 2)}, "'1' and 'True' mean the same"),
        ("sold", {name: ["x"] * ROWS for name in ("name", "colour", "code", "weight", "holes")}, "no column beside"),
    ],
)
def test_a_table_that_gives_no_campaign_says_why(label, change, problem, table):
    with pytest.raises(TableError, match=problem) as raised:
        draft_from_table(table.assign(**change), label, source="t.csv")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(6.98, 28.11, (0, 30)), (0.053, 0.163, (0.05, 0.17)), (-3, 4, (-3, 4)), (0, 846, (0, 900)), (1.5, 1.5, (1, 2))],
)
def test_bounds_are_round_and_hold_everything(low, high, expected):
    assert round_bounds(low, high) == pytest.approx(expected)


GRADES = [f"g{grade}" for grade in range(51)]


def test_the_edges_of_what_a_list_of_values_may_be(table):
    """50 different texts and 20 classes are the most, 12 whole numbers are a measurement; blanks are no value."""
    longest = 200
    columns = pd.DataFrame(
        {
            "blank": [["  ", "", "a", "b"][row % 4] for row in range(60)],
            "fifty": [f"v{row % 50}" for row in range(60)],
            "more": [f"v{row % 51}" for row in range(60)],
            "twelve": [str(row % 12) for row in range(60)],
            "alike": [["1.0", "1", "10", "2"][row % 4] for row in range(60)],
            "endless": [["1.5", "2.5", "inf"][row % 3] for row in range(60)],
            "long": [["a", "b" * longest][row % 2] for row in range(60)],
            "longer": [["a", "b" * (longest + 1)][row % 2] for row in range(60)],
            "missing": [["missing", "", "x"][row % 3] for row in range(60)],
            "ordered": pd.Categorical([f"g{row % 51}" for row in range(60)], GRADES, ordered=True),
            "y" * longest: [f"c{row % 20}" for row in range(60)],
        }
    )
    derived = draft_from_table(columns, "y" * longest, source="t.csv")
    features = {feature["name"]: feature for feature in derived.draft["features"]}
    assert derived.left_out == ("more", "longer")
    assert (features["blank"]["values"], features["blank"]["missing"]) == (["a", "b"], True)
    assert len(features["fifty"]["values"]) == 50
    assert (features["twelve"]["low"], features["twelve"]["high"]) == (0, 11)
    assert features["alike"]["values"] == ["1", "2", "10"], "in one order, whatever that of the rows"
    assert (features["endless"]["low"], features["endless"]["missing"]) == (1.5, True)
    assert (features["missing"]["values"], features["missing"]["missing"]) == (["missing", "x"], False)
    assert features["ordered"]["values"] == GRADES, "somebody has listed them, however many"
    assert len(derived.draft["label"]["classes"]) == 20
    assert len(derived.draft["title"]) == longest
    few = pd.DataFrame({"name": ["ann", "bob", "cy"], "is": ["a", "a", "b"], "y": ["0", "1", "1"]})
    assert draft_from_table(few, "y", source="t.csv").left_out == ("name",), "each row has another: a name"
    with pytest.raises(TableError, match="has 21 different values; a label to learn has 2 to 20"):
        draft_from_table(columns.assign(y=[str(row % 21) for row in range(60)]), "y", source="t.csv")


@pytest.mark.parametrize(("text", "problem"), [("a,b\n", "holds no rows"), ("", "not a CSV table"), ("a\n1\n", None)])
def test_a_file_without_a_row_is_no_table(text, problem, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    expected = pytest.raises(TableError, match=problem) if problem else nullcontext()
    with expected:
        assert read_csv(tmp_path / "t.csv").to_dict("list") == {"a": ["1"]}


def ordered_in(draft):
    return {feature["name"] for feature in draft["features"] if feature.get("ordered")}


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("name", ["car", "mushroom", "adult", "connect4"])
def test_the_features_that_the_documentation_orders_are_ordered_and_no_others(name, observed):
    draft = draft_of(name, observed=observed)
    assert ordered_in(draft) == set(ORDERED.get(name, ()))
    assert {f.name for f in Campaign.compile(draft).features if f.ordered and hasattr(f, "values")} == ordered_in(draft)


@pytest.mark.parametrize(
    ("values", "seen", "observed", "ordered"),
    [
        (["low", "med", "high"], ["low", "med", "high"], False, True),
        (["high", "med", "low"], ["high", "med", "low"], False, True),
        (["low", "med", "high"], ["low", "high"], True, True),
        (["low", "high", "med"], ["low", "high", "med"], False, False),
        (["low", "med", "high", "unknown"], ["low", "med", "high"], False, False),
    ],
)
def test_a_feature_is_ordered_only_where_its_values_are_listed_so(values, seen, observed, ordered, monkeypatch):
    columns = [{"name": "safety", "kind": "categorical", "values": values, "observed_values": seen}]
    car = {"title": "Car", "classes": ["no", "yes"], "columns": columns}
    monkeypatch.setitem(DATASETS, "car", car)
    draft = draft_of("car", observed=observed)
    assert ordered_in(draft) == ({"safety"} if ordered else set())


@pytest.mark.parametrize(
    ("seen", "listed"),
    [(["low"], ["low", "med", "high"]), (["low", "high"], ["low", "high"]), ([], ["low", "med", "high"])],
)
def test_a_column_that_is_constant_in_the_table_keeps_its_documented_values(seen, listed, monkeypatch):
    columns = [{"name": "safety", "kind": "categorical", "values": ["low", "med", "high"], "observed_values": seen}]
    car = {"title": "Car", "classes": ["no", "yes"], "columns": columns}
    monkeypatch.setitem(DATASETS, "car", car)
    draft = draft_of("car", observed=True)
    assert draft["features"][0]["values"] == listed
    assert draft_of("car")["features"][0]["values"] == ["low", "med", "high"]
    assert Campaign.compile(draft)
