"""Reproducing a figure writes a table, plots, and the tables of a page."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from ldp_aggregator.trainers.reading import TableError
from ldp_simulations.__main__ import main
from ldp_simulations.commands.reproduce import FIGURES
from ldp_simulations.figures import ldp_naive_bayes
from ldp_simulations.figures.figure import TABLES, Execution, Figure, Plot

COMMITTED = Path(__file__).parents[3] / "docs" / "figures"


def made_up_figure() -> Figure:
    """Two tables of data and two curves; the references have no epsilon."""
    rows = [
        {"data": data, "trainer": trainer, "epsilon": epsilon, "accuracy": 0.5 + place / 7, "standard_error": 0.01}
        for place, (data, trainer, epsilon) in enumerate(product("ab", ("new", "old"), (0.1, 1.0)))
    ]
    rows += [{"data": data, "trainer": "majority", "accuracy": 0.4, "standard_error": 0.0} for data in "ab"]
    plot = Plot(name="-all", caption="Made up.", panels=("data",), curves=("trainer",))
    return Figure("made-up", "nothing", 2, "", lambda _: pd.DataFrame(rows), (plot,))


def test_a_figure_has_every_curve_and_number_the_same_table_gives_the_same_bytes_and_the_text_of_a_page_stays(tmp_path):
    paths = made_up_figure().run(Execution(runs=2), tmp_path / "a")
    assert [path.name for path in paths] == ["made-up.csv", "made-up-all.svg", "made-up.md"]
    _, plot, page = (path.read_text() for path in paths)
    assert all(f">{text}</text>" in plot for text in ("new", "old", "majority class", "Made up."))
    assert "### b\n\n| accuracy | epsilon 0.1 | epsilon 1 |\n" in page
    assert "| old | 1.357 | 1.500 |\n| majority class | 0.400 | 0.400 |" in page
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "made-up.csv").write_bytes(paths[0].read_bytes())
    again = made_up_figure().redraw(tmp_path / "b")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
    page = tmp_path / "b" / "made-up.md"
    page.write_text(f"# Ours\n\n{TABLES}\n\nold tables\n")
    made_up_figure().redraw(tmp_path / "b")
    assert page.read_text().startswith(f"# Ours\n\n{TABLES}\n\n### a\n")
    assert "old tables" not in page.read_text()


@pytest.mark.parametrize("name", FIGURES)
def test_a_committed_page_has_the_tables_of_its_table(name):
    figure, page = FIGURES[name], (COMMITTED / f"{name}.md").read_text(encoding="utf-8")
    assert page.partition(TABLES)[2].strip() == figure.tables(figure.read(COMMITTED))
    for plot in re.findall(r"\]\((\S+\.(?:svg|csv))\)", page):
        assert (COMMITTED / plot).is_file()


def test_every_file_of_the_figures_belongs_to_one_of_them():
    assert all(path.name.startswith(tuple(FIGURES)) for path in COMMITTED.iterdir())


def test_what_a_figure_cannot_do_is_refused_before_anything_is_measured(tmp_path):
    for execution, problem in (
        (Execution(1), "take --runs 2 or more"),
        (Execution(2, only="mushroom"), "--only takes one of australian, diabetes, not mushroom"),
        (Execution(2, epsilon=0.7), "--epsilon takes one of 0.5, 1, 2, 4, not 0.7"),
        (Execution(2, peer="python"), "leave --peer out"),
    ):
        with pytest.raises(TableError, match=problem):
            replace(ldp_naive_bayes.NUMERIC, measure=None).run(execution, tmp_path)


def test_a_part_is_measured_alone_beside_the_table_that_is_kept_and_leaves_every_file_as_it_was(tmp_path):
    def measure(execution: Execution) -> pd.DataFrame:
        table = made_up_figure().measure(execution)
        here = table["data"].isin(execution.tables("ab"))
        return table[here & (table["epsilon"].isin(execution.epsilons((0.1, 1.0))) | table["epsilon"].isna())]

    whole = replace(made_up_figure(), measure=measure, people=("a", "b"), epsilons=(0.1, 1.0))
    execution = Execution(2, only="b", epsilon=1.0)
    alone = whole.part(execution, tmp_path)
    assert alone["data"].tolist() == ["b"] * 3
    assert "in_the_table" not in alone
    kept = {path: path.read_bytes() for path in whole.run(Execution(2), tmp_path)}
    beside = whole.part(execution, tmp_path)
    assert beside["trainer"].tolist() == ["new", "old", "majority"]
    assert beside["in_the_table"].tolist() == beside["accuracy"].tolist()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == kept


def test_every_figure_says_which_tables_and_epsilons_it_has():
    for figure in FIGURES.values():
        table = figure.read(COMMITTED)
        assert set(table.iloc[:, 0]) == set(figure.people)
        assert set(table.loc[table["epsilon"] > 0, "epsilon"]) == set(figure.epsilons)


def test_a_check_of_one_number_prints_what_the_kept_table_has(uci_folder, capsys):
    arguments = ["reproduce", "ldp-figures-3-and-4", "--only", "diabetes", "--epsilon", "2", "--runs", "2"]
    assert main([*arguments, "--workers", "1", "--output", str(COMMITTED)]) == 0
    first, *rows = capsys.readouterr().out.splitlines()
    assert "accuracy,standard_error,in_the_table" in first
    assert {row.split(",")[0] for row in rows} == {"diabetes"}
    assert main([*arguments, "--redraw"]) == 2
    assert "leave --only and --epsilon out" in capsys.readouterr().err


def test_one_run_of_the_experiment_has_every_combination(uci_folder):
    rows = pd.DataFrame(ldp_naive_bayes.run_once("diabetes", (2.0,), 1))
    assert rows["accuracy"].between(0, 1).all()
    private = rows[rows["epsilon"] > 0]
    assert len(private) == len(ldp_naive_bayes.INPUTS) * (2 * len(ldp_naive_bayes.METHODS) - 1)
    raw = private[(private["inputs"] == "raw") & (private["accounting"] == "per question")]
    assert set(raw["total_epsilon"]) == {2.0 * 9}
    assert set(private.loc[private["accounting"] == "total", "total_epsilon"]) == {2.0}


def test_an_unknown_figure_is_told_in_one_line_and_there_is_nothing_to_draw_again_without_a_table(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "figure-99"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["reproduce", ldp_naive_bayes.NUMERIC.name, "--redraw", "--output", str(tmp_path)]) == 1
    assert "ldp-figures-3-and-4.csv: cannot be read" in capsys.readouterr().err
