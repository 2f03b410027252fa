"""Tables are read as they stand in the file, and what cannot be used is told in one line."""

import gzip
import json
import math

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number

from ldp_aggregator.trainers.reading import TableError, read_csv
from ldp_protocols import Campaign, DraftError
from ldp_protocols.document.schema import Label
from ldp_protocols.features import CategoricalFeature, NumericFeature
from ldp_simulations.benchmarks import BOUNDS, demonstration_source
from ldp_simulations.tables import (
    Table,
    check_declared,
    draft_of,
    read_draft,
    records,
    source_with_schema,
    source_without_schema,
    typed,
)

BINS = 4
EPSILON = 2.0


LABEL = Label("class", ("yes", "no"))
FEATURES = (CategoricalFeature("code", ("01", "?", "NA", "missing")), NumericFeature("size", 0, 10))


def read_table(path):
    return typed(read_csv(path), FEATURES, LABEL, str(path))


def test_text_stays_text_only_an_empty_number_is_missing_and_records_are_plain_python_values(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("code,unused,size,class\n01,x,0.1,yes\n?,y,,no\nNA,z,1e1,no\n", encoding="utf-8")
    table = read_table(path)
    assert table.frame["code"].tolist() == ["01", "?", "NA"]
    assert list(table.frame.columns) == ["code", "size"]
    first, second, third = table.frame["size"].tolist()
    assert (first, third) == (0.1, 10.0)
    assert math.isnan(second)
    assert table.labels.tolist() == ["yes", "no", "no"]
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_table(packed).frame.equals(table.frame)
    found = list(records(table.frame))
    assert found[1] == {"code": "?", "size": None}
    assert type(found[0]["code"]) is str
    assert type(found[0]["size"]) is float


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "no such file"),
        ("", "not a CSV table"),
        ("code,size,class\n", "holds no rows"),
        ('code,size,class\n"01,1,yes\n', "not a CSV table"),
        ("code,class\n01,yes\n", "no column 'size'; the columns are code, class"),
        ("code,size,class\n01,1,yes\n01,wide,no\n", "column 'size', row 2: 'wide' is not a number"),
    ],
)
def test_a_table_that_cannot_be_used_is_told_in_one_line(text, problem, tmp_path):
    file = tmp_path / "broken.csv"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(TableError) as raised:
        read_table(file)
    assert problem in str(raised.value)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_undeclared_values_and_labels_are_named_with_their_row_and_an_empty_text_is_one_where_none_may_be_missing():
    open_to_all, complete = (CategoricalFeature("code", ("a", "b"), missing=missing) for missing in (True, False))
    labels = pd.Series(["yes", "no", "no"])
    for values, feature, told, problem in (
        (["a", "b", "c"], open_to_all, labels, "column 'code', row 3: 'c' is not declared; the schema has a, b"),
        (["a", "", "b"], complete, labels, "row 2: '' is not declared"),
        (["a", "b"], open_to_all, pd.Series(["yes", "perhaps"]), "column 'class', row 2: 'perhaps' is not declared"),
    ):
        with pytest.raises(TableError, match=f"t: .*{problem}"):
            check_declared(Table(pd.DataFrame({"code": values}), told), (feature,), LABEL, "t")
    for values in (["a", "b", "a"], ["a", "", "b"]):
        check_declared(Table(pd.DataFrame({"code": values}), labels), (open_to_all,), LABEL, "t")


def test_a_split_gives_every_person_to_one_side_and_devices_are_of_different_people_while_there_are_enough():
    people = Table(pd.DataFrame({"x": range(10)}), pd.Series([str(i) for i in range(10)]))
    training, held_out = people.split(0.8, np.random.default_rng(1))
    assert (len(training), len(held_out)) == (8, 2)
    assert sorted([*training.frame["x"], *held_out.frame["x"]]) == list(range(10))
    assert training.labels.tolist() == [str(x) for x in training.frame["x"]]
    one, rest = people.split(0.0001, np.random.default_rng(1))
    assert (len(one), len(rest)) == (1, 9)
    most, last = people.split(0.9999, np.random.default_rng(1))
    assert (len(most), len(last)) == (9, 1)
    assert sorted(people.draw(10, np.random.default_rng(2)).frame["x"]) == list(range(10))
    assert len(people.draw(1000, np.random.default_rng(2))) == 1000


DRAFT = draft(number("x", high=10, bins=2))
TOML = """
version = 1
title = "t"
label = {name = "y", classes = ["a", "b"]}
features = [{name = "x", kind = "continuous", low = 0, high = 10, bins = 2, missing = false}]
privacy = {epsilon = 1.0}
"""


def test_a_draft_is_the_same_in_json_and_toml_and_a_wrong_one_is_refused_by_its_field(tmp_path):
    (tmp_path / "d.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    (tmp_path / "d.toml").write_text(TOML, encoding="utf-8")
    read = read_draft(tmp_path / "d.toml")
    assert read == read_draft(tmp_path / "d.json")
    assert Campaign.compile(read).id == Campaign.compile(DRAFT).id
    assert draft_of(Campaign.compile(read)) == read
    (tmp_path / "d.json").write_text(json.dumps({**DRAFT, "privacy": {"epsilon": -1}}), encoding="utf-8")
    with pytest.raises(DraftError, match=r"privacy\.epsilon"):
        read_draft(tmp_path / "d.json")


def test_clipped_numbers_are_noted_and_nothing_else_and_a_derived_campaign_fits_its_table(tmp_path):
    table, schema = str(tmp_path / "t.csv"), tmp_path / "d.json"
    rows = "".join(f"{x},{x % 10},{'ab'[x % 2]}\n" for x in range(-2, 18)) * 2
    (tmp_path / "t.csv").write_text("x,within,y\n" + rows, encoding="utf-8")
    schema.write_text(json.dumps(draft(number("x", high=10, bins=2), number("within", high=9))), encoding="utf-8")
    source = source_with_schema(table, schema)
    assert source.notes == ("x: 45.0% of the numbers lie beyond the declared bounds; devices clip them",)
    assert source.with_epsilon(3.0).draft["privacy"]["epsilon"] == 3.0
    assert source.draft["privacy"]["epsilon"] == 1.0
    source = source_without_schema(table, "y", epsilon=0.5, bins=3)
    campaign = Campaign.compile(source.draft)
    assert (campaign.privacy.epsilon, campaign.features[0].size) == (0.5, 3)
    assert source.people.frame["x"].between(campaign.features[0].low, campaign.features[0].high).all()


def test_the_demonstration_hardly_clips_anyone_and_its_arithmetic_holds():
    """The standard errors that justify its bins, from the mechanism the campaign really uses."""
    source = demonstration_source()
    campaign = Campaign.compile(source.draft)
    assert len(source.people) == 569
    for name, (low, high) in BOUNDS.items():
        assert source.people.frame[name].between(low, high).mean() > 0.98
    (question, *_), devices = campaign.questions, 20_000
    assert len(campaign.questions) == len(BOUNDS) == 10
    assert question.domain_size == 2 * BINS
    assert campaign.realised_epsilon <= EPSILON
    standard_error = (question.mechanism.noise_variance(1 / 8) / (devices / 10)) ** 0.5
    assert standard_error == pytest.approx(0.015, abs=5e-4)
