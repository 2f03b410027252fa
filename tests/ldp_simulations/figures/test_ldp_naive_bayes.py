"""Figure 2: its table holds what was measured once."""

from pathlib import Path

import pytest

from ldp_simulations.benchmarks import draft_of, people_of
from ldp_simulations.figures.ldp_naive_bayes import (
    AS_DRAWN,
    CHECKED_DATA,
    CHOICES,
    DESIGN,
    DISCRETE,
    DISCRETE_EPSILONS,
    MECHANISMS,
)
from ldp_simulations.studies.trials import Setting, run_trial, summarise
from ldp_simulations.tables import Source

THETA = 0.25


def test_each_choice_asks_another_campaign_or_reads_it_otherwise(uci_folder):
    asked = [(str(choice.draft(CHECKED_DATA)), choice.design) for choice in (AS_DRAWN, *CHOICES)]
    assert len(set(asked)) == len(asked)
    weights = [{feature.get("weight") for feature in choice.draft(CHECKED_DATA)["features"]} for choice in CHOICES]
    values = {len(feature["values"]) for feature in AS_DRAWN.draft(CHECKED_DATA)["features"]}
    assert {feature.get("weight") for feature in AS_DRAWN.draft(CHECKED_DATA)["features"]} == {None}
    assert weights == [{None}, {None}, {None}, values]


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
    assert DISCRETE_EPSILONS[0] == 0.5
    for mechanism in ("de", "sue", "oue"):
        assert 0.87 <= mushroom_scores[mechanism, True] <= 0.92
    assert mushroom_scores["the", True] >= 0.86
    # The paper has SHE worst; here DE lies beside it, as the page says and explains.
    assert mushroom_scores["she", True] < mushroom_scores["oue", True]


@pytest.mark.usefixtures("uci_folder")
def test_mushroom_with_one_question_a_device_is_lower_by_what_the_total_loss_saves(mushroom_scores):
    """As the committed table has it, within 0.07: three standard errors (a run's deviation is up to 0.1)."""
    table = DISCRETE.read(Path(__file__).parents[3] / "docs" / "figures")
    table = table[(table["dataset"] == CHECKED_DATA) & (table["choice"] == AS_DRAWN.name) & (table["epsilon"] == 0.5)]
    measured = table[~table["per_question"]].set_index("mechanism")["accuracy"]
    for mechanism in ("de", "sue", "oue"):
        assert 0.72 <= measured[mechanism] <= 0.80
        assert mushroom_scores[mechanism, False] == pytest.approx(measured[mechanism], abs=0.07)
        assert mushroom_scores[mechanism, False] < mushroom_scores[mechanism, True] - 0.05
