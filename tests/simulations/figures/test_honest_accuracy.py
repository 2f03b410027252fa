"""The study of honest accuracy: ratios of devices, what a trial holds, and the page from a table."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from protocols.document.questions import LABEL, MARGINAL, PAIR, XOR
from simulations.figures import honest_rounds
from simulations.figures.honest_accuracy import (
    BASE,
    BELIEVED,
    DEVICES,
    VARIANTS,
    WEIGHED,
    Variant,
    campaign_of,
    run_trial,
    summarise,
)
from simulations.figures.honest_rounds import ASKED, TWO_ROUNDS, VOTED, VOTES
from simulations.figures.pages.honest_accuracy import WANTED, missed
from simulations.figures.pages.ratios import ratio


def curve(variant, accuracies):
    return [
        {"dataset": "car", "epsilon": 1.0, "devices": devices, "variant": variant, "accuracy": accuracy}
        for devices, accuracy in accuracies.items()
    ]


TABLE = pd.DataFrame(
    curve(BASE, {1_000: 0.6, 10_000: 0.7, 100_000: 0.8, 1_000_000: 0.8}) + curve(WEIGHED, {1_000: 0.6, 10_000: 0.75})
)


def test_a_ratio_is_what_the_base_needs_over_what_was_asked():
    assert ratio(TABLE, "car", 1.0, 10_000) == pytest.approx(math.sqrt(10))
    assert ratio(TABLE, "car", 1.0, 1_000) == pytest.approx(1)


def test_a_ratio_is_infinite_where_the_base_never_gets_there_and_nan_where_it_was_never_so_bad():
    for accuracy, tell in ((0.9, math.isinf), (0.5, math.isnan)):
        table = pd.DataFrame(curve(BASE, {1_000: 0.6, 10_000: 0.7}) + curve(WEIGHED, {1_000: accuracy}))
        assert tell(ratio(table, "car", 1.0, 1_000))


def test_a_wanted_value_is_missed_where_the_accuracy_is_more_than_two_standard_errors_below_it():
    settings = ((0.5, 80_000), (1.0, 20_000), (1.0, 80_000), (1.0, 320_000), (2.0, 80_000))
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
        for (epsilon, devices), wanted in zip(settings, values, strict=True)
    )
    assert [one[:3] for one in missed(table)] == [("car", 2.0, 80_000)]


def test_a_trial_tries_every_variant_on_the_same_reports_and_repeats_itself(uci_table):
    uci_table("car")  # Skips where the tables are not.
    few = tuple(Variant(one.name, one.learn, (5_000,)) for one in VARIANTS if one.name in (BASE, BELIEVED, WEIGHED))
    rows = run_trial("car", few, 3)
    assert rows == run_trial("car", few, 3)
    assert [row["variant"] for row in rows[:3]] == [BASE, BELIEVED, WEIGHED]
    assert len(rows) == 9
    told = [row for row in rows if "low" in row]
    assert {row["variant"] for row in told} == {WEIGHED}
    assert all(0 <= row["low"] <= row["high"] <= 1 and row["published"] in (0, 1) for row in told)
    summary = summarise([*rows, *run_trial("car", few, 4)])
    assert (summary["splits"] == 2).all()
    assert (summary.loc[summary["variant"] == BASE, "above_base"] == 0).all()
    assert set(summary["devices"]) <= set(DEVICES)


def test_where_bits_are_to_be_asked_they_are(uci_table):
    uci_table("chess_krvkp")  # Skips where the tables are not.
    kinds = {xor: {one.kind for one in campaign_of("chess_krvkp", 0.5, xor=xor).questions} for xor in (False, True)}
    assert kinds == {False: {PAIR}, True: {LABEL, PAIR, XOR, MARGINAL}}  # One feature has three values.


def test_bits_rounds_and_votes_are_tried_on_every_split_and_a_vote_never_leaves_the_candidates(uci_table):
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
