"""The experiments run from a table to a CSV and a plot, here on a small table with a few epsilons."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from simulations.figures import trainers_accuracy, trainers_federated
from simulations.figures.trainers_experiment import Data, plot, summary, write_table


@pytest.fixture
def data(schema, table):
    made = Data.__new__(Data)
    made.name, made.schema, made.frame = "small", schema, table[0]
    made.labels = table[1].to_numpy(dtype=object)
    return made


def test_accuracy_has_a_line_for_every_trainer_and_epsilon(data, monkeypatch):
    monkeypatch.setattr(trainers_accuracy, "EPSILONS", (0.5, 20.0))
    results = trainers_accuracy.measure(data, 1, 2, None)
    names = {*trainers_accuracy.TRAINERS, "non-private", "majority"}
    assert {(r["trainer"], r["epsilon"]) for r in results} == {(n, e) for n in names for e in (0.5, 20.0)}
    found = {(r["trainer"], r["epsilon"]): r["accuracy"] for r in results}
    assert found["non-private", 20.0] == pytest.approx(found["sums, add-remove", 20.0], abs=0.03)
    assert found["majority", 20.0] == pytest.approx(np.mean(data.labels == "a"), abs=0.01)


def test_federated_has_a_line_for_every_number_of_nodes(data, monkeypatch):
    monkeypatch.setattr(trainers_federated, "EPSILONS", (20.0,))
    monkeypatch.setattr(trainers_federated, "NODES", (1, 5))
    results = trainers_federated.measure(data, 1, 2)
    assert [r["trainer"] for r in results][:2] == ["1 nodes, sound", "5 nodes, sound"]
    assert len(results) == 6


def test_results_become_a_table_and_a_plot(tmp_path):
    results = [
        summary([0.5, 0.7], data="one", trainer=name, epsilon=epsilon)
        for name in ("sums", "majority", "non-private")
        for epsilon in (0.1, 1.0)
    ]
    assert results[0] == {"data": "one", "trainer": "sums", "epsilon": 0.1, "accuracy": 0.6, "error": 0.1, "runs": 2}
    write_table(tmp_path / "t.csv", results)
    with (tmp_path / "t.csv").open() as file:
        assert [row["accuracy"] for row in csv.DictReader(file)] == ["0.6"] * 6
    plot(tmp_path / "t.svg", results, "epsilon", "trainer")
    drawn = (tmp_path / "t.svg").read_text()
    assert "<svg" in drawn
    assert "<!-- one -->" in drawn
