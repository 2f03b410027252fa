"""Trials: paired, seeded, resumable, the same on one core and on two."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from buyers import DRAFT

from ldp_simulations.studies.trials import (
    Design,
    Journal,
    Setting,
    Study,
    area_of,
    fingerprint,
    non_private,
    run_study,
    run_trial,
    run_trials,
    summarise,
    summarise_study,
)
from ldp_simulations.tables import Source, Table

SETTINGS = (Setting("de", 1.0), Setting("oue", 8.0), Setting("de", 1.0, per_question=True))


@pytest.fixture
def source() -> Source:
    colours = ["red", "blue"] * 100
    frame = pd.DataFrame({"colour": colours, "size": [float(row % 60) for row in range(200)]})
    labels = pd.Series(["yes" if colour == "red" else "no" for colour in colours])
    return Source("people", Table(frame, labels), DRAFT)


def test_every_setting_states_its_true_total_loss_and_shares_the_split_and_its_references(source):
    rows = run_trial(source, SETTINGS, Design(), 2)
    assert [(row["answers"], row["total_epsilon"]) for row in rows] == [("one", 1.0), ("one", 8.0), ("all", 3.0)]
    campaign = SETTINGS[2].campaign(DRAFT)
    assert all(question.epsilon == pytest.approx(1.0) for question in campaign.questions)
    assert len({(row["majority"], row["non_private"]) for row in rows}) == 1
    assert rows[0]["non_private"] == 1.0
    assert [row["devices"] for row in rows] == [160] * 3
    assert run_trial(source, SETTINGS, Design(devices=5_000), 2)[0]["devices"] == 5_000


def test_the_area_of_a_class_is_how_often_one_of_it_is_ranked_above_another():
    colours = pd.DataFrame({"colour": ["red", "red", "blue", "blue", "blue"], "size": [30.0] * 5})
    model = non_private(Setting("de", 1.0).campaign(DRAFT), Table(colours, pd.Series(["yes", "no", "no", "no", "no"])))
    assert area_of(model, Table(colours.iloc[1:3], pd.Series(["yes", "no"])), "yes") == 1.0
    assert area_of(model, Table(colours.iloc[1:3], pd.Series(["no", "yes"])), "yes") == 0.0
    assert area_of(model, Table(colours.iloc[3:], pd.Series(["no", "yes"])), "yes") == 0.5
    assert np.isnan(area_of(model, Table(colours, pd.Series(["no"] * 5)), "yes"))


def test_a_seed_repeats_a_trial(source):
    design = Design(devices=300)
    assert run_trial(source, SETTINGS, design, 3) == run_trial(source, SETTINGS, design, 3)
    trials = [tuple(row["accuracy"] for row in run_trial(source, SETTINGS, design, seed)) for seed in range(6)]
    assert len(set(trials)) > 1


def test_a_trial_of_a_billion_devices_is_drawn_as_counts(source):
    """One by one they would take a quarter of an hour."""
    (row,) = run_trial(source, [Setting("oue", 0.125)], Design(devices=1_000_000_000), 3)
    assert (row["devices"], row["accuracy"]) == (1_000_000_000, 1.0)


def test_two_processes_give_the_rows_of_one_in_the_order_of_the_seeds(source):
    trial = partial(run_trial, source, SETTINGS, Design(devices=200))
    nothing = Journal(None, "x")
    one = run_trials(trial, [4, 2, 3], nothing, workers=1)
    assert one == run_trials(trial, [4, 2, 3], nothing, workers=2)
    assert [row["seed"] for row in one] == [4] * 3 + [2] * 3 + [3] * 3


def test_an_interrupted_experiment_goes_on_where_it_was_and_another_one_does_not_take_its_trials(source, tmp_path):
    def refuse(seed: int):
        raise AssertionError(f"trial {seed} was finished and must not run again")

    path, design = tmp_path / "trials.jsonl", Design(devices=200)
    journal = Journal(path, fingerprint(source, SETTINGS, design))
    rows = run_trials(partial(run_trial, source, SETTINGS, design), [1, 2], journal, workers=1)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"experiment": "cut sho')
    again = Journal(path, fingerprint(source, SETTINGS, design))
    assert run_trials(refuse, [1, 2], again, workers=1) == rows
    with pytest.raises(AssertionError, match="trial 3"):
        run_trials(refuse, [1, 2, 3], again, workers=1)
    again.add(3, rows[:1])
    assert Journal(path, fingerprint(source, SETTINGS, design)).finished()[3] == rows[:1]
    other = Source("other", source.people.take(np.arange(150)), DRAFT)
    names = {
        fingerprint(source, SETTINGS, design),
        fingerprint(source, SETTINGS[:2], design),
        fingerprint(source, SETTINGS, Design(devices=10)),
        fingerprint(source.with_epsilon(2.0), SETTINGS, design),
        fingerprint(other, SETTINGS, design),
    }
    assert len(names) == 5
    assert Journal(path, "another").finished() == {}


@pytest.fixture
def uneven() -> Source:
    """Five of six people are as their colour says; who they are decides how many of a handful."""
    rng = np.random.default_rng(7)
    colours = rng.choice(["red", "blue"], 300)
    as_said = rng.random(300) < 5 / 6
    labels = pd.Series(np.where((colours == "red") == as_said, "yes", "no"))
    frame = pd.DataFrame({"colour": colours, "size": rng.uniform(0, 60, 300)})
    return Source("people", Table(frame, labels), {**DRAFT, "privacy": {"epsilon": 6.0, "discrete": "de"}})


def test_a_round_is_held_to_the_accuracy_among_those_whom_it_asked(uneven):
    """Others are of another accuracy: 24 people evaluate, 60 are held out, and the intervals are far narrower than
    between these two. Of 40 intervals that cover 95 % fewer than 30 hold with a chance of 4e-6.
    """
    rows = [row for seed in range(40) for row in run_study(uneven, Study(devices=1_000_000), seed)]
    assert max(row["width"] for row in rows) < 0.02
    apart = [abs(row["published"] - row["told"]) for row in rows]
    assert np.mean(np.array(apart) > 0.02) > 0.5, "on the people held out hardly any would hold"
    assert np.mean([row["covered"] for row in rows]) >= 0.75
    assert {row["majority"] <= 0.7 < row["alone"] for row in rows} == {True}
    assert np.mean([row["told"] for row in rows]) == pytest.approx(5 / 6, abs=0.05)


def test_a_study_is_repeated_by_its_seed_and_its_round_takes_its_share_of_the_devices(uneven):
    assert run_study(uneven, Study(5_000), 3) == run_study(uneven, Study(5_000), 3)
    widths = [run_study(uneven, Study(50_000, evaluating=share), 3)[0]["width"] for share in (0.1, 0.4)]
    assert widths[1] == pytest.approx(widths[0] / 2, rel=0.3), "four times as many evaluate"


def test_a_study_has_these_numbers(uneven):
    rows = [row for seed in (3, 4) for row in run_study(uneven.with_epsilon(4.0), Study(1_500, evaluating=0.3), seed)]
    rows += run_study(uneven.with_epsilon(3.0), Study(500, evaluating=0.3), 4)
    names = ("published", "alone", "majority", "told", "width")
    assert [[row[name] and round(row[name], 3) for name in names] for row in rows] == [
        [0.85, 0.85, 0.45, 0.87, 0.08],
        [0.833, 0.833, 0.567, 0.874, 0.08],
        [0.8, 0.833, 0.567, None, None],
    ]
    assert [(row["moved"], row["covered"]) for row in rows] == [(False, True), (False, False), (False, False)]
    told = summarise_study(rows)
    assert [round(getattr(told, name), 4) for name in (*names, "gain", "gain_error", "covered", "moved")] == [
        *(0.8278, 0.8389, 0.5278, 0.8719, 0.0801, -0.0111, 0.0111, 0.3333, 0.0)
    ]
    assert told.verdict.startswith("the round neither pays nor costs")


def test_the_summary_has_means_and_standard_errors():
    shared = {"mechanism": "de", "continuous": "auto", "epsilon": 1.0, "per_question": False, "answers": "one"}
    shared |= {"total_epsilon": 1.0, "devices": 10, "majority": 0.4, "non_private": 0.9}
    rows = [{"seed": seed, **shared, "accuracy": accuracy} for seed, accuracy in enumerate((0.5, 0.7, 0.6))]
    (row,) = summarise(rows).to_dict("records")
    assert (row["trials"], row["accuracy"]) == (3, pytest.approx(0.6))
    assert row["standard_error"] == pytest.approx(0.1 / 3**0.5)
