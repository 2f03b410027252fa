"""The study of honest accuracy: ratios of devices, what a trial holds, and the page from a table."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from protocols.document.questions import LABEL, MARGINAL, PAIR, XOR
from simulations.figures import honest_rounds
from simulations.figures.honest_accuracy import (
    BASE,
    BELIEVED,
    DEFAULT,
    DEVICES,
    VARIANTS,
    WEIGHED,
    Variant,
    nearest_probabilities,
    run_trial,
    summarise,
)
from simulations.figures.honest_asking import Asked, Asking, campaign_of, people
from simulations.figures.honest_rounds import ASKED, TWO_ROUNDS, VOTED, VOTES
from simulations.figures.pages.ratios import ratio
from simulations.figures.pages.wanted import SHOWN, WANTED, missed


def curve(variant, accuracies):
    return [
        {"dataset": "car", "epsilon": 1.0, "devices": devices, "variant": variant, "accuracy": accuracy}
        for devices, accuracy in accuracies.items()
    ]


TABLE = pd.DataFrame(
    curve(BASE, {1_000: 0.6, 10_000: 0.7, 100_000: 0.8, 1_000_000: 0.8}) + curve(WEIGHED, {1_000: 0.6, 10_000: 0.75})
)


def test_a_ratio_is_what_the_base_needs_over_what_was_asked():
    assert ratio(TABLE, "car", 1.0, 10_000, WEIGHED) == pytest.approx(math.sqrt(10))
    assert ratio(TABLE, "car", 1.0, 1_000, WEIGHED) == pytest.approx(1)


def test_a_ratio_is_infinite_where_the_base_never_gets_there_and_nan_where_it_was_never_so_bad():
    for accuracy, tell in ((0.9, math.isinf), (0.5, math.isnan)):
        table = pd.DataFrame(curve(BASE, {1_000: 0.6, 10_000: 0.7}) + curve(WEIGHED, {1_000: accuracy}))
        assert tell(ratio(table, "car", 1.0, 1_000, WEIGHED))


def test_a_wanted_value_is_missed_where_the_accuracy_is_more_than_two_standard_errors_below_it():
    table = pd.DataFrame(
        {
            "dataset": name,
            "epsilon": epsilon,
            "devices": devices,
            "variant": WEIGHED,
            "accuracy": wanted - (0.019 if name == "car" else 0.0),
            "standard_error": 0.009 if (name, epsilon) == ("car", 2.0) else 0.01,
        }
        for name, values in WANTED.items()
        for (epsilon, devices), wanted in zip(SHOWN, values, strict=True)
    )
    assert missed(table) == [("car", 2.0, 80_000, WEIGHED)]


def test_a_trial_tries_every_variant_on_the_same_reports_and_repeats_itself(uci_table):
    uci_table("car")  # Skips where the tables are not.
    names = (BASE, BELIEVED, WEIGHED, DEFAULT)
    few = tuple(Variant(one.name, one.learn, (5_000,)) for one in VARIANTS if one.name in names)
    rows = run_trial("car", few, 3)
    assert rows == run_trial("car", few, 3)
    assert tuple(row["variant"] for row in rows[:4]) == names
    assert len(rows) == 12
    told = [row for row in rows if "low" in row]
    assert {row["variant"] for row in told} == {WEIGHED, DEFAULT}
    assert all(0 <= row["low"] <= row["high"] <= 1 and row["published"] in (0, 1) for row in told)
    summary = summarise([*rows, *run_trial("car", few, 4)])
    assert (summary["splits"] == 2).all()
    assert (summary.loc[summary["variant"] == BASE, "above_base"] == 0).all()
    assert set(summary["devices"]) <= set(DEVICES)


def test_the_default_asks_what_a_draft_asks_and_the_base_pairs(uci_table):
    uci_table("chess_krvkp")  # Skips where the tables are not.
    kinds = {one: {asked.kind for asked in campaign_of("chess_krvkp", 0.5, one).questions} for one in Asking}
    assert kinds[Asking.DRAFTED] == {LABEL, PAIR, XOR, MARGINAL}  # One feature has three values.
    assert kinds[Asking.CELLS] == kinds[Asking.EVERYTHING] == {PAIR}
    losses = {one: campaign_of("chess_krvkp", 0.5, one).privacy.epsilon for one in Asking}
    assert losses == {Asking.CELLS: 0.5, Asking.DRAFTED: 0.5, Asking.EVERYTHING: 0.5 * 36}


def test_the_base_of_bits_is_the_table_that_they_make(uci_table):
    uci_table("chess_krvkp")
    columns, values = people("chess_krvkp")
    asked = Asked(columns, 20_000_000, np.random.default_rng(1))
    told = {one: asked.ask(asked.as_of(one), asked.devices) for one in (Asking.CELLS, Asking.DRAFTED)}
    cells, bits = (nearest_probabilities(one, columns.class_count) for one in told.values())
    assert len(bits.tables) == len(cells.tables) == len(columns.campaign.asked)
    assert max(np.abs(one - other).max() for one, other in zip(cells.tables, bits.tables, strict=True)) < 0.03
    assert bits.accuracy(values, columns.classes) == pytest.approx(cells.accuracy(values, columns.classes), abs=0.01)


def test_rounds_and_votes_are_tried_on_every_split_and_a_vote_never_leaves_the_candidates(uci_table):
    uci_table("diabetes")  # Skips where the tables are not.
    rows = [row for group in (ASKED, VOTES) for row in run_trial("diabetes", group, 1)]
    found = {(row["variant"], row["devices"]) for row in rows}
    assert found == {(one.name, devices) for group in (ASKED, VOTES) for one in group for devices in one.devices}
    assert all(row["accuracy"] > 0.55 for row in rows if row["variant"] == VOTED)


def test_a_second_round_asks_no_feature_less_than_a_tenth_of_an_even_share(uci_table, monkeypatch):
    uci_table("australian")
    drafts = []
    compile_it = honest_rounds.Campaign.compile
    monkeypatch.setattr(honest_rounds.Campaign, "compile", lambda draft: drafts.append(draft) or compile_it(draft))
    (two_rounds,) = (one for one in ASKED if one.name == TWO_ROUNDS)
    run_trial("australian", (Variant(two_rounds.name, two_rounds.learn, (20_000,)),), 1)
    for draft in (one for one in drafts if isinstance(one, dict) and "weight" in one["features"][0]):
        weights = [feature["weight"] for feature in draft["features"]]
        assert min(weights) >= 0.0999 * sum(weights) / len(weights)
        assert max(weights) > 2 * min(weights)
