"""The study of honest accuracy: what a trial holds."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from crowds import GATEWAY, ISSUER, PROMISE

from ldp_aggregator.learning.training import Decoding, learn
from ldp_aggregator.trainers.reading import TableError
from ldp_protocols import Campaign
from ldp_simulations.columns import Columns
from ldp_simulations.fidelities import simulate_counts
from ldp_simulations.figures import figure, honest_accuracy
from ldp_simulations.figures.honest_accuracy import (
    BASE,
    DATASETS,
    DEFAULT,
    DEVICES,
    EVALUATED,
    HONEST_ACCURACY,
    VARIANTS,
    run_trial,
    scores,
    summarise,
    summary,
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


def test_the_figure_is_of_the_decoder_as_it_is():
    """Whoever changes what is believed runs `ldp-simulate reproduce honest-accuracy` again, and reads what it says."""
    folder = Path(__file__).parents[3] / "docs" / "figures"
    assert HONEST_ACCURACY.code(folder).read_text(encoding="ascii").strip() == HONEST_ACCURACY.fingerprint()


def test_a_fingerprint_is_of_the_code_and_not_of_its_words():
    def of(source):
        module = ModuleType("made")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(figure.inspect, "getsource", lambda _: source)
            return replace(HONEST_ACCURACY, measured_of=(module,)).fingerprint()

    plain = 'CUT = 0.5\ndef f(x):\n    return "a"\n'
    assert of(plain) == of(
        '"""About."""\nCUT = 0.5  # Half.\n"""Halves."""\n\ndef f(x):\n    """Say."""\n    return "a"\n'
    )
    assert len({of(plain), of(plain.replace("0.5", "0.6")), of(plain.replace("a", "b"))}) == 3


def test_a_page_says_on_how_many_tables_it_is_better_and_where_it_costs():
    rows = [
        {**row(variant, seed, 0.8 + gain * (variant != BASE)), "dataset": name}
        for name, gain in (("car", 0.03), ("skin", 0.01), ("oil_spill", -0.02))
        for variant in VARIANTS
        for seed in (0, 1)
    ]
    said = summary(summarise(rows))
    assert "better than the base on 2 of 3 tables, by 0.007 on average" in said
    assert "Of the tables that no constant was chosen on: on 0 of 1, by -0.020" in said
    assert "| car | +0.030 | 1 of 1 | +0.030 | +0.030 ± 0.000 (epsilon 1, 1,000 devices) |" in said
    assert "* oil_spill, epsilon 1, 1,000 devices: -0.020 ± 0.000" in said


def test_the_score_of_a_person_is_that_of_naive_bayes():
    table = np.array([[0.7, 0.2], [0.3, 0.8]])
    found = scores(np.array([0.6, 0.4]), [table], np.array([[0], [1]]))
    assert np.exp(found) == pytest.approx(np.array([[0.42, 0.08], [0.18, 0.32]]))
    assert np.exp(scores(np.array([0.6, 0.4]), [table], np.array([[-1]]))) == pytest.approx(np.array([[0.6, 0.4]]))


@pytest.mark.usefixtures("uci_folder")
def test_a_trial_has_a_row_for_every_setting_and_the_same_seed_gives_the_same():
    first = run_trial("seeds", (1.0,), 1)
    assert len(first) == len(DEVICES) * len(VARIANTS)
    assert {one["variant"] for one in first} == {BASE, DEFAULT, EVALUATED}
    assert first == run_trial("seeds", (1.0,), 1)
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
    monkeypatch.setattr(honest_accuracy, "DEVICES", (1_000,))
    run_trial("seeds", (1.0,), 1)
    (most,) = learned_from
    assert most == round(0.8 * len(columns))
    assert held_out - {most} == {len(columns) - most}


def test_the_overview_of_the_pages_is_drawn_from_the_table_to_the_byte_with_the_most_to_learn_first(tmp_path):
    folder = Path(__file__).parents[3] / "docs" / "figures"
    (overview,) = HONEST_ACCURACY.overviews
    table = HONEST_ACCURACY.read(folder)
    overview.draw(table, tmp_path / "drawn.svg")
    assert (tmp_path / "drawn.svg").read_bytes() == (folder / f"honest-accuracy{overview.name}.svg").read_bytes()
    to_learn = [ceiling - majority for _, majority, ceiling, _ in overview.rows(table)]
    assert to_learn == sorted(to_learn, reverse=True)
    assert len(to_learn) == len(DATASETS)
    # Its message, on average of the tables.
    reached = np.mean([accuracies[1] - majority for _, majority, _, accuracies in overview.rows(table)])
    assert reached / np.mean(to_learn) == pytest.approx(0.75, abs=0.02)
    with pytest.raises(TableError, match="cannot be written"):
        overview.draw(table, tmp_path / "none" / "drawn.svg")


@pytest.mark.long  # seventeen tables, eight splits of each
def test_a_model_of_a_crowd_of_twenty_thousand_is_about_as_accurate_as_one_without_noise():
    """The sentence of docs/how-to/crowd.md and choose.md: (1, 1e-9), at most 4 locally."""
    gaps = []
    for name in DATASETS:
        draft = {**honest_accuracy.draft_for(name, 1.0), "gateway": GATEWAY, "issuer": ISSUER}
        campaign = Campaign.compile({**draft, "privacy": {"crowd": PROMISE, "most_local": 4}})
        columns, values = honest_accuracy._people(name)
        for seed in range(8):
            order = np.random.default_rng([seed, 0]).permutation(len(columns))
            cut = round(0.8 * len(order))
            trained, held = order[:cut], order[cut : cut + 4000]
            classes, truth, k = columns.classes[trained], columns.classes[held], columns.class_count
            people = Columns(campaign, classes, {one: column[trained] for one, column in columns.features.items()})
            model = learn([(campaign, simulate_counts(people, np.random.default_rng([seed, 7]), 20_000))], Decoding())
            tables = [np.array(one.table) for one in model.model.likelihoods]
            crowd = scores(np.array(model.model.prior), tables, values[held]).argmax(axis=1)
            exact = [
                np.bincount((values[trained, place] + 1) * k + classes, minlength=(feature.size + 1) * k)
                for place, feature in enumerate(columns.campaign.asked)
            ]
            counts = [one.reshape(-1, k)[1:] + 1.0 for one in exact]
            prior = np.bincount(classes, minlength=k) / len(classes)
            without = scores(prior, [one / one.sum(axis=0) for one in counts], values[held]).argmax(axis=1)
            gaps.append(np.mean(crowd == truth) - np.mean(without == truth))
    assert len(gaps) == 17 * 8
    assert np.mean(gaps) > -0.01
