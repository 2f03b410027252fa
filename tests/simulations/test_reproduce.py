"""Reproducing a figure writes a table, plots and a page whose sentences follow from the table."""

from __future__ import annotations

import pandas as pd
import pytest

from simulations.__main__ import main
from simulations.figures import continuous, continuous_page


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


def test_the_page_states_each_sentence_of_the_paper_with_its_count(summary, tmp_path):
    paths = continuous_page.write(summary, tmp_path)
    assert sorted(path.suffix for path in paths) == [".csv", ".md", ".svg", ".svg"]
    page = (tmp_path / f"{continuous_page.NAME}.md").read_text()
    assert "Diabetes: confirmed, 24 of 24 comparisons, mean +0.100." in page
    assert "*Discretisation beats Gaussian at small epsilon*" in page
    assert "*Approach 1 is the worst*" in page
    assert "Means of 2 runs" in page


def test_a_sentence_that_does_not_hold_is_contradicted(summary, tmp_path):
    turned = summary.assign(accuracy=1 - summary["accuracy"])
    page = continuous_page._page(turned)
    assert "Diabetes: contradicted, 0 of 24 comparisons, mean -0.100." in page


def test_the_same_summary_writes_the_same_bytes(summary, tmp_path):
    for name in ("a", "b"):
        continuous_page.write(summary, tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


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
