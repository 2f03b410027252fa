"""Drafts of the benchmark tables say what the documentation of the tables says."""

import json

import pytest

from protocols import Campaign
from simulations.tables.benchmarks import FOLDER_VARIABLE, ORDERED, description_of, draft_of


def ordered_in(draft):
    return {feature["name"] for feature in draft["features"] if feature.get("ordered")}


@pytest.mark.usefixtures("uci_folder")
@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("name", ["car", "mushroom", "adult", "connect4"])
def test_the_features_that_the_documentation_orders_are_ordered_and_no_others(name, observed):
    draft = draft_of(name, observed=observed)
    assert ordered_in(draft) == set(ORDERED.get(name, ()))
    assert {f.name for f in Campaign.compile(draft).features if f.ordered and hasattr(f, "values")} == ordered_in(draft)


@pytest.mark.usefixtures("uci_folder")
def test_every_value_of_an_ordered_column_has_its_place():
    for name, columns in ORDERED.items():
        documented = {column["name"]: column["values"] for column in description_of(name)["columns"]}
        assert {column: sorted(order) for column, order in columns.items()} == {
            column: sorted(documented[column]) for column in columns
        }


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
def test_a_feature_is_ordered_only_where_its_values_are_listed_so(
    values, seen, observed, ordered, tmp_path, monkeypatch
):
    columns = [{"name": "safety", "kind": "categorical", "values": values, "observed_values": seen}]
    car = {"title": "Car", "classes": ["no", "yes"], "columns": columns}
    (tmp_path / "datasets.json").write_text(json.dumps({"datasets": {"car": car}}), encoding="utf-8")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    draft = draft_of("car", observed=observed)
    assert ordered_in(draft) == ({"safety"} if ordered else set())
