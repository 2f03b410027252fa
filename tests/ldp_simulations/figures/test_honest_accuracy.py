"""The study of honest accuracy: what a trial holds."""

import numpy as np
import pytest

from ldp_simulations.fidelities import simulate_counts
from ldp_simulations.figures import honest_accuracy
from ldp_simulations.figures.honest_accuracy import (
    BASE,
    DATASETS,
    DEFAULT,
    DEVICES,
    EPSILONS,
    EVALUATED,
    VARIANTS,
    run_trial,
    scores,
    summarise,
)


def row(variant, seed, accuracy):
    place = {"seed": seed, "dataset": DATASETS[0], "epsilon": 1.0, "devices": DEVICES[0], "variant": variant}
    return {**place, "accuracy": accuracy, "majority": 0.5, "non_private": 0.9}


def test_the_gain_is_of_the_same_split():
    rows = [row(v, s, accuracy=0.5 + 0.1 * s + 0.02 * (v == DEFAULT)) for v in (BASE, DEFAULT) for s in (0, 1, 2)]
    gain = summarise(rows).set_index("variant").loc[DEFAULT]
    assert gain["above_base"] == pytest.approx(0.02)
    assert gain["above_base_error"] == pytest.approx(0, abs=1e-12)
    assert gain["splits"] == 3


def test_the_score_of_a_person_is_that_of_naive_bayes():
    table = np.array([[0.7, 0.2], [0.3, 0.8]])
    found = scores(np.array([0.6, 0.4]), [table], np.array([[0], [1]]))
    assert np.exp(found) == pytest.approx(np.array([[0.42, 0.08], [0.18, 0.32]]))


@pytest.mark.usefixtures("uci_folder")
def test_a_trial_has_a_row_for_every_setting_and_the_same_seed_gives_the_same():
    first = run_trial("seeds", 1)
    assert len(first) == len(EPSILONS) * len(DEVICES) * len(VARIANTS)
    assert {one["variant"] for one in first} == {BASE, DEFAULT, EVALUATED}
    assert first == run_trial("seeds", 1)
    assert all(0 <= one["accuracy"] <= 1 for one in first)


@pytest.mark.usefixtures("uci_folder")
def test_nobody_whom_a_trial_learns_from_is_held_out(monkeypatch):
    columns, _ = honest_accuracy._people("seeds")
    learned_from, held_out = set(), set()

    def noted(people, rng, devices):
        learned_from.add(len(people.classes))
        return simulate_counts(people, rng, devices)

    monkeypatch.setattr(honest_accuracy, "simulate_counts", noted)
    monkeypatch.setattr(honest_accuracy, "scores", lambda *given: held_out.add(len(given[2])) or scores(*given))
    monkeypatch.setattr(honest_accuracy, "EPSILONS", (1.0,))
    monkeypatch.setattr(honest_accuracy, "DEVICES", (1_000,))
    run_trial("seeds", 1)
    (most,) = learned_from
    assert most == round(0.8 * len(columns))
    assert held_out - {most} == {len(columns) - most}
