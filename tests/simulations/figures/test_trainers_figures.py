"""The figures of the trainers: what is measured on one split, and that a page says what its table shows."""

from __future__ import annotations

import sys
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.trainers.noise.accountant import allocate
from simulations.__main__ import main
from simulations.figures import central, federated
from simulations.figures.cross_validation import Data, Split, data_of, split_of, summarise
from simulations.figures.pages import central as central_page
from simulations.figures.pages import federated as federated_page
from simulations.figures.pages.comparisons import compare
from simulations.figures.peer import find_peer
from simulations.tables.frames import Table, TableError


@pytest.fixture(scope="module")
def split() -> Split:
    """Two classes that a number and a category tell apart."""
    rng = np.random.default_rng(5)
    labels = np.where(np.arange(600) % 3 == 0, "yes", "no")
    frame = pd.DataFrame(
        {
            "x": np.where(labels == "yes", 7.0, 3.0) + rng.normal(0, 1.0, 600),
            "colour": pd.Categorical(np.where((labels == "yes") == (rng.random(600) < 0.8), "red", "blue")),
        }
    )
    schema = {
        "label": {"name": "class", "classes": ["yes", "no"]},
        "features": [
            {"name": "x", "kind": "continuous", "missing": False, "low": 0, "high": 10},
            {"name": "colour", "kind": "categorical", "missing": False, "values": ["red", "blue"]},
        ],
    }
    return split_of(Data("small", schema, Table(frame, pd.Series(labels))), 0)


def test_a_split_has_every_trainer_at_every_epsilon_and_the_references(split, monkeypatch):
    monkeypatch.setattr(central, "EPSILONS", (0.1, 1000.0))
    rows = pd.DataFrame(central.measure_curves(None, split))
    private = rows[rows["epsilon"].notna()]
    assert set(zip(private["trainer"], private["epsilon"], strict=True)) == set(
        product(central.TRAINERS, (0.1, 1000.0))
    )
    found = private[private["epsilon"] == 1000.0].set_index("trainer")["accuracy"]
    assert (found[["global, add-remove", "smooth, replace", "sums, add-remove"]] > 0.9).all()
    assert set(rows.loc[rows["epsilon"].isna(), "trainer"]) == {"non-private", "majority"}
    guaranteed = private.set_index(["trainer", "epsilon"])["guaranteed_epsilon"]
    assert guaranteed["sums, replace", 0.1] == 0.1
    assert guaranteed["global, published", 0.1] > 0.1
    assert np.isnan(guaranteed["smooth, published", 0.1])


def test_a_split_has_every_share_of_the_budget(split):
    rows = pd.DataFrame(central.measure_budget(split))
    assert len(rows) == len(central.DIVIDED) * len(central.BUDGET_EPSILONS) * len(central.SHARES)
    assert set(rows["numerical_share"]) == set(central.SHARES)


def test_equal_parts_of_adult_are_what_the_page_says(uci_folder):
    features = data_of("adult").schema["features"]
    tables = sum(feature["kind"] == "categorical" for feature in features)
    parts = allocate(1.0, tables=tables, gaussians=len(features) - tables, label=False)
    assert float(2 * (len(features) - tables) * parts.moment) == pytest.approx(central_page.EQUAL_SHARE)


def test_a_federated_split_has_every_number_of_nodes_and_variants_where_they_differ(split, monkeypatch):
    monkeypatch.setattr(federated, "EPSILONS", (1000.0,))
    monkeypatch.setattr(federated, "NODES", (1, 5))
    rows = pd.DataFrame(federated.measure_split(split))
    private = rows[rows["epsilon"].notna()]
    assert set(zip(private["trainer"], private["nodes"], strict=True)) == set(product(("sound", "published"), (1, 5)))
    assert (private["accuracy"] > 0.9).all()
    texts = Data("texts", {**split.data.schema, "features": [split.data.schema["features"][1]]}, split.data.people)
    assert {row["trainer"] for row in federated.measure_split(split_of(texts, 0))} == {
        "sound",
        "non-private",
        "majority",
    }


def central_table(score) -> pd.DataFrame:
    """A summary whose accuracies are ``score(trainer, epsilon)``; published costs twice what it says, or anything."""

    def row(data, trainer, epsilon, share=np.nan):
        real = {"global, published": 2 * epsilon, "smooth, published": np.nan}.get(trainer, epsilon)
        keys = {"data": data, "trainer": trainer, "epsilon": epsilon, "guaranteed_epsilon": real}
        found = {"accuracy": score(trainer, epsilon), "standard_error": 0.01, "splits": 10}
        return {**keys, "numerical_share": share, **found}

    rows = [row(*keys) for keys in product(central.DATA, [*central.TRAINERS, "diffprivlib 9"], central.EPSILONS)]
    rows += [row(*keys, np.nan) for keys in product(central.DATA, ("non-private", "majority"))]
    rows += [
        row("adult", trainer, epsilon, share)
        for trainer, epsilon, share in product(central.DIVIDED, central.BUDGET_EPSILONS, central.SHARES)
    ]
    return pd.DataFrame(rows)


def test_the_page_of_the_trainers_follows_from_its_table(tmp_path):
    table = central_table(lambda trainer, epsilon: 0.9 if "smooth" in trainer else 0.7)
    page = central_page.make_page(table)
    assert "global, published really guarantees 2 to 2 times that epsilon" in page
    assert "smooth, published guarantees nothing" in page
    better = "Adult confirmed, clearly higher in 7 and clearly lower in 0 of 7, mean +0.200;"
    assert page.count(better) == 3
    assert (
        "than `smooth`, sound, `replace`: Adult contradicted, clearly higher in 0 and clearly lower in 7 of 7" in page
    )
    assert "- Skin: at all 7, clearly lower in 0, clearly higher in 0, mean +0.000." in page
    assert "- smooth, replace, epsilon 0.1: best at 0.1 (+0.000, no clear gain on equal parts)" in page
    worse = central_page.make_page(table.assign(accuracy=table["accuracy"] - (table["trainer"] == "sums, add-remove")))
    assert "- Skin: below it at epsilon 0.01 (-1.000), 0.03 (-1.000)," in worse
    plots = central_page.draw(table, tmp_path)
    assert [path.stem.removeprefix(central_page.NAME) for path in plots] == ["-add-remove", "-replace", "-budget"]
    drawn = plots[1].read_text()
    for text in ("smooth, published", "without privacy", "majority class", "2 to 2 times"):
        assert f"<!-- {text}" in drawn or text in drawn


def federated_table(score) -> pd.DataFrame:
    rows = []
    for data in federated.DATA:
        keys = [("non-private", None, np.nan), ("majority", None, np.nan)]
        variants = ("sound",) if data in ("mushroom", "spect") else ("sound", "published")
        keys += list(product(variants, federated.NODES, federated.EPSILONS))
        rows += [
            {
                "data": data,
                "trainer": trainer,
                "nodes": nodes,
                "epsilon": epsilon,
                "standard_error": 0.001,
                "splits": 20,
            }
            | {"accuracy": score(trainer, nodes or 1, epsilon)}
            for trainer, nodes, epsilon in keys
        ]
    return pd.DataFrame(rows)


def test_the_page_of_the_nodes_follows_from_its_table(tmp_path):
    def score(trainer: str, nodes: int, epsilon: float) -> float:
        lost = 0.0 if np.isnan(epsilon) else 0.02 * np.log10(nodes) * (trainer == "sound")
        return 0.8 - lost + (0.1 if trainer == "published" and nodes > 1 else 0.0)

    page = federated_page.make_page(federated_table(score))
    assert "Means of 2 x 10-fold cross-validation." in page
    assert "   - Sound: Adult contradicted, in 0 of 9; Mushroom contradicted, in 0 of 9;" in page
    assert "   - Published: Adult confirmed, in 9 of 9; Skin confirmed, in 9 of 9;" in page
    assert "Published: Adult confirmed, clearly higher in 12 and clearly lower in 0 of 12, mean +0.100;" in page
    assert "SPECT contradicted, clearly higher in 0 and clearly lower in 12 of 12, mean -0.040." in page
    assert "| Skin, 1000 nodes, published | 0.69 / 0.90 |" in page
    (plot,) = federated_page.draw(federated_table(score), tmp_path)
    assert "<!-- 1000 nodes, published -->" in plot.read_text()


@pytest.fixture
def interpreter(tmp_path) -> str:
    """What stands in for an interpreter with diffprivlib: it tells a version, and as accuracies what it was given."""
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "import numpy as np\n"
        "if sys.argv[1] == '-c':\n"
        "    print('9.9')\n"
        "else:\n"
        "    split = np.load(sys.argv[2])\n"
        "    sizes = [len(split['train']), len(split['test']), int(split['test_classes'].sum()), split['high'][0]]\n"
        "    print(json.dumps([float(size) for size in sizes]))\n"
    )
    program.chmod(0o755)
    return str(program)


def test_the_peer_gets_the_numbers_of_the_split_in_a_process_of_its_own(split, interpreter):
    numeric = {**split.data.schema, "features": split.data.schema["features"][:1]}
    peer = find_peer(interpreter)
    assert peer.name == "diffprivlib 9.9"
    here = split_of(Data("numbers", numeric, split.data.people), 0)
    assert peer.accuracies(here, (0.1, 1.0, 2.0, 3.0)) == [540.0, 60.0, 40.0, 10.0]


def test_the_peer_takes_part_where_all_features_are_numbers(split, interpreter, monkeypatch):
    monkeypatch.setattr(central, "EPSILONS", (0.1, 1.0, 2.0, 3.0))
    monkeypatch.setattr(central, "TRAINERS", {})
    measure = partial(central.measure_curves, find_peer(interpreter))
    assert {row["trainer"] for row in measure(split)} == {"non-private", "majority"}
    numeric = {**split.data.schema, "features": split.data.schema["features"][:1]}
    rows = summarise(measure(split_of(Data("numbers", numeric, split.data.people), 0)))
    assert rows.loc[rows["trainer"] == "diffprivlib 9.9", "epsilon"].tolist() == [0.1, 1.0, 2.0, 3.0]


def test_an_interpreter_without_the_peer_is_told_in_one_line(tmp_path, capsys):
    lacking = tmp_path / "python"
    lacking.write_text("#!/bin/sh\necho 'ModuleNotFoundError: No module named diffprivlib' >&2\nexit 1\n")
    lacking.chmod(0o755)
    for python, problem in ((lacking, "No module named diffprivlib"), (tmp_path / "none", "No such file")):
        with pytest.raises(TableError, match=problem):
            find_peer(str(python))
    arguments = ["reproduce", central_page.NAME, "--peer", str(lacking), "--output", str(tmp_path / "figures")]
    assert main(arguments) == 1
    told = capsys.readouterr().err
    assert "F/bin/pip install diffprivlib" in told
    assert told.count("\n") == 1


def test_sums_are_clearly_above_diffprivlib_somewhere_and_clearly_below_it_nowhere():
    """What docs/trainers.md says of the committed table."""
    table = central_page.FIGURE.read(Path(__file__).parents[3] / "docs" / "figures")
    curves = table[table[central.SHARE].isna()]
    sums, peer = (curves[curves["trainer"].str.startswith(name)] for name in ("sums, add-remove", "diffprivlib"))
    assert set(peer["data"]) == {"adult-numeric", "skin", "seeds", "diabetes"}
    for name in set(peer["data"]):
        found = compare(sums[sums["data"] == name], peer[peer["data"] == name], ["epsilon"])
        assert found.clearly_higher > 0
        assert found.clearly_lower == 0
