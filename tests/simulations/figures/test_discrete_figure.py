"""Figure 2: what its page says follows from its table, and the table holds what was measured once."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from simulations.figures.discrete import (
    AS_DRAWN,
    CHECKED,
    CHECKED_DATA,
    CHOICES,
    DATASETS,
    DESIGN,
    EPSILONS,
    MECHANISMS,
    SETTINGS,
    THETA,
)
from simulations.figures.pages import discrete as discrete_page
from simulations.studies.trials import Setting, run_trial, summarise
from simulations.tables.sources import Source
from simulations.tables.uci import draft_of, people_of


def made_up(score) -> pd.DataFrame:
    """A summary whose accuracies are ``score(dataset, mechanism, epsilon, per_question)``."""
    drawn = [(name, AS_DRAWN.name, setting) for name in DATASETS for setting in SETTINGS]
    drawn += [(CHECKED_DATA, choice.name, setting) for choice in CHOICES for setting in CHECKED]
    rows = [
        {
            "dataset": name,
            "choice": choice,
            "mechanism": setting.mechanism,
            "continuous": "auto",
            "epsilon": setting.epsilon,
            "per_question": setting.per_question,
            "total_epsilon": setting.epsilon * (9 if setting.per_question else 1),
            "devices": 1000,
            "trials": 3,
            "accuracy": score(name, setting.mechanism, setting.epsilon, setting.per_question),
            "standard_error": 0.01,
            "majority": 0.658,
            "non_private": 0.95,
        }
        for name, choice, setting in drawn
    ]
    return pd.DataFrame(rows)


def test_the_page_says_what_the_table_shows(tmp_path):
    summary = made_up(lambda name, mechanism, epsilon, each: 0.9 - 0.2 * (mechanism == "she") - 0.15 * (not each))
    page = discrete_page.make_page(summary)
    assert "confirmed for DE, SUE and OUE. With 0.5 in total: DE 0.750" in page
    assert "it is on 4 of 4 data sets: Car, Chess, Mushroom, Connect-4." in page
    assert "Always saying the most frequent class has 0.658." in page
    assert "| as drawn, per question | 0.900 | 0.900 | 0.900 | 0.700 | 0.900 | 4 |" in page
    assert "SHE is clearly below all others under *as drawn* (per question), *as drawn* (total)," in page
    assert page.count("| 0.5 | 4.5 |") == page.count("| 0.5 | 0.5 |") == len(DATASETS)
    plots = discrete_page.draw(summary, tmp_path)
    assert [path.name for path in plots] == [f"ldp-figure-2-{name}.svg" for name in ("per-question", "total")]
    assert all("<svg" in path.read_text() for path in plots)


def test_a_sentence_that_does_not_hold_is_not_confirmed():
    summary = made_up(lambda name, mechanism, epsilon, each: 0.6 + 0.01 * (mechanism == "she"))
    page = discrete_page.make_page(summary)
    assert "not confirmed for DE, SUE and OUE" in page
    assert "it is on 0 of 4 data sets." in page
    assert "SHE is clearly below all others under none of these choices." in page


def test_mushroom_has_questions_of_as_many_cells_as_the_page_says(uci_folder):
    features = AS_DRAWN.draft(CHECKED_DATA)["features"]
    assert 2 * max(len(feature["values"]) for feature in features) == discrete_page.MOST_CELLS


def test_each_choice_asks_another_campaign_or_reads_it_otherwise(uci_folder):
    asked = [(str(choice.draft(CHECKED_DATA)), choice.design) for choice in (AS_DRAWN, *CHOICES)]
    assert len(set(asked)) == len(asked)


@pytest.fixture(scope="module")
def mushroom_scores() -> dict[tuple[str, bool], float]:
    """Mean accuracies of 20 trials at epsilon 0.5, by mechanism and accounting."""
    draft = draft_of("mushroom", observed=True, theta=THETA)
    source = Source("mushroom", people_of("mushroom", draft), draft)
    settings = [Setting(name, 0.5, per_question=each) for each in (True, False) for name in MECHANISMS]
    rows = [row for seed in range(20) for row in run_trial(source, settings, DESIGN, seed)]
    return {(row["mechanism"], row["per_question"]): row["accuracy"] for row in summarise(rows).to_dict("records")}


@pytest.mark.usefixtures("uci_folder")
def test_mushroom_per_question_is_as_published(mushroom_scores):
    assert EPSILONS[0] == 0.5
    for mechanism in ("de", "sue", "oue"):
        assert 0.87 <= mushroom_scores[mechanism, True] <= 0.92
    assert mushroom_scores["the", True] >= 0.86
    # The paper has SHE worst; here DE lies beside it, as the page says and explains.
    assert mushroom_scores["she", True] < mushroom_scores["oue", True]


@pytest.mark.usefixtures("uci_folder")
def test_mushroom_with_one_question_a_device_is_lower_by_what_the_total_loss_saves(mushroom_scores):
    """As the committed table has it, within 0.07: three standard errors (a run's deviation is up to 0.1)."""
    table = discrete_page.FIGURE.read(Path(__file__).parents[3] / "docs" / "figures")
    table = table[(table["dataset"] == CHECKED_DATA) & (table["choice"] == AS_DRAWN.name) & (table["epsilon"] == 0.5)]
    measured = table[~table["per_question"]].set_index("mechanism")["accuracy"]
    for mechanism in ("de", "sue", "oue"):
        assert 0.72 <= measured[mechanism] <= 0.80
        assert mushroom_scores[mechanism, False] == pytest.approx(measured[mechanism], abs=0.07)
        assert mushroom_scores[mechanism, False] < mushroom_scores[mechanism, True] - 0.05
