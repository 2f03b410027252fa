"""The figures of the trainers: what is measured on one split."""

import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
from drafts import number, text

from ldp_aggregator.trainers.reading import TableError
from ldp_simulations.__main__ import main
from ldp_simulations.figures import trainers
from ldp_simulations.figures.figure import Execution
from ldp_simulations.figures.trainers import Data, Split, cross_validate, data_of, find_peer, split_of, summarise
from ldp_simulations.tables import Table

FOLDS = 10


@pytest.fixture(scope="module")
def data() -> Data:
    """Two classes that a number and a category tell apart."""
    rng = np.random.default_rng(5)
    labels = np.where(np.arange(600) % 3 == 0, "yes", "no")
    colours = np.where((labels == "yes") == (rng.random(600) < 0.8), "red", "blue")
    numbers = np.where(labels == "yes", 7.0, 3.0) + rng.normal(0, 1.0, 600)
    schema = {"label": {"name": "class", "classes": ["yes", "no"]}}
    schema["features"] = [number("x", high=10), text("colour", "red", "blue")]
    frame = pd.DataFrame({"x": numbers, "colour": pd.Categorical(colours)})
    return Data("small", schema, Table(frame, pd.Series(labels)))


@pytest.fixture(scope="module")
def split(data) -> Split:
    return split_of(data, 0)


def of_feature(split: Split, place: int) -> Split:
    """The same of one feature alone."""
    schema = {**split.data.schema, "features": [split.data.schema["features"][place]]}
    return split_of(Data("one feature", schema, split.data.people), 0)


def test_a_split_has_every_trainer_at_every_epsilon_the_references_and_every_share_of_the_budget(split, monkeypatch):
    monkeypatch.setattr(trainers, "EPSILONS", (0.1, 1000.0))
    rows = pd.DataFrame(trainers.measure_curves(None, (0.1, 1000.0), split))
    assert set(rows["data"]) == {"small"}
    private = rows[rows["epsilon"].notna()]
    measured = set(zip(private["trainer"], private["epsilon"], strict=True))
    assert measured == set(product(trainers.TRAINERS, (0.1, 1000.0)))
    found = private[private["epsilon"] == 1000.0].set_index("trainer")["accuracy"]
    assert (found[["global, add-remove", "smooth, replace", "sums, add-remove"]] > 0.9).all()
    assert set(rows.loc[rows["epsilon"].isna(), "trainer"]) == {"non-private", "majority"}
    guaranteed = private.set_index(["trainer", "epsilon"])["guaranteed_epsilon"]
    assert guaranteed["sums, replace", 0.1] == 0.1
    assert guaranteed["global, published", 0.1] > 0.1
    assert np.isnan(guaranteed["smooth, published", 0.1])
    rows = pd.DataFrame(trainers.measure_budget(trainers.BUDGET_EPSILONS, split))
    assert len(rows) == len(trainers.DIVIDED) * len(trainers.BUDGET_EPSILONS) * len(trainers.SHARES)
    assert set(rows["numerical_share"]) == set(trainers.SHARES)


def test_a_federated_split_has_every_number_of_nodes_and_variants_where_they_differ(split, monkeypatch):
    monkeypatch.setattr(trainers, "NODE_EPSILONS", (1000.0,))
    monkeypatch.setattr(trainers, "NODES", (1, 5))
    rows = pd.DataFrame(trainers.measure_nodes((1000.0,), split))
    private = rows[rows["epsilon"].notna()]
    assert set(zip(private["trainer"], private["nodes"], strict=True)) == set(product(("sound", "published"), (1, 5)))
    assert (private["accuracy"] > 0.9).all()
    found = {row["trainer"] for row in trainers.measure_nodes((1000.0,), of_feature(split, 1))}
    assert found == {"sound", "non-private", "majority"}


PROGRAM = f"""#!{sys.executable}
import json, sys
import numpy as np
if sys.argv[1] == '-c':
    print('9.9')
else:
    split = np.load(sys.argv[2])
    sizes = [len(split['train']), len(split['test']), int(split['test_classes'].sum()), split['high'][0]]
    print(json.dumps([float(size) for size in sizes]))
"""
"""What stands in for an interpreter with diffprivlib: it tells a version, and as accuracies what it was given."""


def test_the_peer_gets_the_numbers_of_the_split_in_a_process_of_its_own_where_all_features_are_numbers(
    split, tmp_path, monkeypatch
):
    (tmp_path / "python").write_text(PROGRAM)
    (tmp_path / "python").chmod(0o755)
    epsilons, peer, numbers = (0.1, 1.0, 2.0, 3.0), find_peer(str(tmp_path / "python")), of_feature(split, 0)
    assert peer.name == "diffprivlib 9.9"
    assert peer.accuracies(numbers, epsilons) == [540.0, 60.0, 40.0, 10.0]
    monkeypatch.setattr(trainers, "EPSILONS", epsilons)
    monkeypatch.setattr(trainers, "TRAINERS", {})
    assert {row["trainer"] for row in trainers.measure_curves(peer, epsilons, split)} == {"non-private", "majority"}
    rows = summarise(trainers.measure_curves(peer, epsilons, numbers))
    assert rows.loc[rows["trainer"] == "diffprivlib 9.9", "epsilon"].tolist() == list(epsilons)


def test_an_interpreter_without_the_peer_is_told_in_one_line(tmp_path, capsys):
    lacking = tmp_path / "python"
    lacking.write_text("#!/bin/sh\necho 'ModuleNotFoundError: No module named diffprivlib' >&2\nexit 1\n")
    lacking.chmod(0o755)
    for python, problem in ((lacking, "No module named diffprivlib"), (tmp_path / "none", "No such file")):
        with pytest.raises(TableError, match=problem):
            find_peer(str(python))
    arguments = ["reproduce", trainers.CENTRAL.name, "--peer", str(lacking), "--output", str(tmp_path / "figures")]
    assert main(arguments) == 1
    told = capsys.readouterr().err
    assert "F/bin/pip install diffprivlib" in told
    assert told.count("\n") == 1


def test_every_row_is_held_out_once_in_each_repeat_and_no_two_fits_have_one_seed(data):
    for repeat in range(2):
        splits = [split_of(data, repeat * FOLDS + fold) for fold in range(FOLDS)]
        held_out = pd.concat([split.held_out.frame for split in splits])
        assert sorted(held_out["x"]) == sorted(data.people.frame["x"])
        assert all(len(split.training) + len(split.held_out) == len(data.people) for split in splits)
    assert split_of(data, 0).held_out.frame["x"].tolist() != split_of(data, FOLDS).held_out.frame["x"].tolist()
    splits = [split_of(data, place) for place in (0, 1)]
    plain, majority = splits[0].references()  # The model without noise, and the most frequent class.
    assert plain["accuracy"] > 0.9
    assert majority["accuracy"] == pytest.approx(2 / 3)
    assert len({split.seed(fit) for split in splits for fit in range(100)}) == 200


def test_texts_become_categories_and_mean_the_same(uci_folder):
    adult = data_of("adult")
    assert adult.people.frame["sex"].dtype == "category"
    assert set(adult.people.frame["sex"].unique()) == {"Male", "Female"}
    assert (adult.is_numeric, adult.has_numbers) == (False, True)
    assert data_of("adult-numeric").is_numeric
    assert not data_of("mushroom").has_numbers


def test_finished_splits_are_not_measured_again(data, monkeypatch, tmp_path):
    def count_rows(split: Split):
        return [split.row(len(split.held_out) / 100, trainer="rows")]

    monkeypatch.setattr(trainers, "data_of", lambda _name: data)
    execution = Execution(runs=2, journal=tmp_path / "journal", workers=1)
    rows = cross_validate(execution, ["small"], count_rows, "rows")
    assert [row["split"] for row in rows] == list(range(2 * FOLDS))
    # What a trial would do now would fail: None is no function.
    again = cross_validate(execution, ["small"], None, "rows")
    pd.testing.assert_frame_equal(summarise(again), summarise(rows))
    (line,) = summarise(rows).to_dict("records")
    assert (line["data"], line["trainer"], line["splits"]) == ("small", "rows", 2 * FOLDS)
    assert (line["accuracy"], line["standard_error"]) == pytest.approx((0.6, 0.0))
    with pytest.raises(TypeError):
        cross_validate(execution, ["small"], None, "others")
