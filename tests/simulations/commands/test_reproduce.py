"""Reproducing a figure writes a table, plots and a page whose sentences follow from the table."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from simulations.__main__ import main
from simulations.commands.reproduce import FIGURES
from simulations.figures import continuous
from simulations.figures.figure import Execution, Figure
from simulations.figures.pages import continuous as continuous_page
from simulations.studies.plots import make_figure, save
from simulations.tables.frames import TableError


@pytest.fixture(scope="module")
def summary() -> pd.DataFrame:
    """A made-up experiment: DCA always wins by 0.1, bins by 0.05, approach 1 loses by 0.2."""
    rows = []
    for dataset in continuous.DATASETS:
        for seed in range(2):
            rows.append(continuous._row(dataset, seed, "raw", "majority", "", 0.0, 0.0, 0.5))
            for inputs in continuous.INPUTS:
                rows.append(continuous._row(dataset, seed, inputs, "non-private Gaussian", "", 0.0, 0.0, 0.9))
                for method in continuous.METHODS:
                    value = 0.6 + 0.1 * (inputs == "dca") + 0.05 * (method.bins is not None)
                    value -= 0.2 * (not method.per_question)
                    for epsilon in continuous.EPSILONS:
                        for accounting in ("total", "per question") if method.per_question else ("total",):
                            price = epsilon * (1 if accounting == "total" else 9)
                            rows.append(
                                continuous._row(dataset, seed, inputs, method.name, accounting, epsilon, price, value)
                            )
    return continuous.summarise(pd.DataFrame(rows))


def test_the_page_states_each_sentence_of_the_paper_with_its_count(summary):
    page = continuous_page.make_page(summary)
    assert "Diabetes: confirmed, 24 of 24 comparisons, mean +0.100." in page
    assert "*Discretisation beats Gaussian at small epsilon*" in page
    assert "*Approach 1 is the worst*" in page
    assert "Means of 2 runs" in page


def test_a_sentence_that_does_not_hold_is_contradicted(summary):
    turned = summary.assign(accuracy=1 - summary["accuracy"])
    page = continuous_page.make_page(turned)
    assert "Diabetes: contradicted, 0 of 24 comparisons, mean -0.100." in page


def test_the_plots_of_a_table_name_every_method_and_the_loss_of_a_device(summary, tmp_path):
    plots = continuous_page.draw(summary, tmp_path)
    assert [path.name for path in plots] == [f"ldp-figures-3-and-4-{name}.svg" for name in continuous.DATASETS]
    drawn = plots[0].read_text()
    for text in [*(method.name for method in continuous.METHODS), "majority class"]:
        assert f"<!-- {text} -->" in drawn
    assert "a device loses 9" in drawn


def draw_accuracies(table: pd.DataFrame, folder: Path) -> list[Path]:
    figure, panels = make_figure(1, 1, (3.0, 2.0))
    panels[0, 0].plot(table["epsilon"], table["accuracy"])
    save(figure, "Accuracy", folder / "made-up.svg")
    return [folder / "made-up.svg"]


def test_the_same_table_gives_the_same_bytes_also_when_it_is_only_drawn_again(tmp_path):
    table = pd.DataFrame({"epsilon": [0.1, 1.0], "accuracy": [0.51236, 0.75]})
    figure = Figure("made-up", "", 2, "", lambda _: table, draw_accuracies, lambda read: f"{read['accuracy'][0]}\n")
    paths = figure.run(Execution(runs=2), tmp_path / "a")
    assert [path.name for path in paths] == ["made-up.csv", "made-up.svg", "made-up.md"]
    assert paths[-1].read_text() == "0.5124\n"
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "made-up.csv").write_bytes(paths[0].read_bytes())
    assert [path.read_bytes() for path in figure.redraw(tmp_path / "b")] == [path.read_bytes() for path in paths]


@pytest.mark.parametrize("name", FIGURES)
def test_a_committed_page_says_what_its_table_holds(name):
    figure, folder = FIGURES[name], Path(__file__).parents[3] / "docs" / "figures"
    page = (folder / f"{name}.md").read_text(encoding="utf-8")
    assert figure.make_page(figure.read(folder)) == page
    for plot in re.findall(r"\]\((\S+\.(?:svg|csv))\)", page):
        assert (folder / plot).is_file()


def test_every_file_of_the_figures_belongs_to_one_of_them():
    folder = Path(__file__).parents[3] / "docs" / "figures"
    assert all(path.name.startswith(tuple(FIGURES)) for path in folder.iterdir())


@pytest.mark.parametrize(
    ("execution", "problem"),
    [(Execution(runs=1), "take --runs 2 or more"), (Execution(runs=2, peer="python"), "leave --peer out")],
)
def test_what_a_figure_cannot_do_is_refused_before_anything_is_measured(execution, problem, tmp_path):
    with pytest.raises(TableError, match=problem):
        replace(continuous_page.FIGURE, measure=None).run(execution, tmp_path)


def test_there_is_nothing_to_draw_again_without_a_table(tmp_path, capsys):
    assert main(["reproduce", continuous_page.NAME, "--redraw", "--output", str(tmp_path)]) == 1
    assert "ldp-figures-3-and-4.csv: cannot be read" in capsys.readouterr().err


def test_finished_runs_are_not_run_again(uci_folder, monkeypatch, tmp_path):
    monkeypatch.setattr(continuous, "EPSILONS", (2.0,))
    monkeypatch.setattr(continuous, "INPUTS", ("raw",))
    monkeypatch.setattr(continuous, "DATASETS", ("diabetes",))
    execution = Execution(runs=2, journal=tmp_path / "journal", workers=1, progress=False)
    first = continuous.measure(execution)
    monkeypatch.setattr(continuous, "simulate", None)
    pd.testing.assert_frame_equal(continuous.measure(execution), first)


def test_one_run_of_the_experiment_has_every_combination(uci_folder, monkeypatch):
    monkeypatch.setattr(continuous, "EPSILONS", (2.0,))
    rows = pd.DataFrame(continuous.run_once("diabetes", 1))
    assert rows["accuracy"].between(0, 1).all()
    private = rows[rows["epsilon"] > 0]
    assert len(private) == len(continuous.INPUTS) * (2 * len(continuous.METHODS) - 1)
    raw = private[(private["inputs"] == "raw") & (private["accounting"] == "per question")]
    assert set(raw["total_epsilon"]) == {2.0 * 9}
    assert set(private.loc[private["accounting"] == "total", "total_epsilon"]) == {2.0}


def test_an_unknown_figure_is_told_in_one_line(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "figure-99"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
