"""Splits of repeated cross-validation: whole, the same in every process, resumable."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from drafts import number

from ldp_aggregator.trainers import GlobalSensitivityNB
from simulations.figures import trainers
from simulations.figures.figure import Execution
from simulations.figures.trainers import FOLDS, Data, Split, cross_validate, data_of, split_of, summarise
from simulations.tables.frames import Table


@pytest.fixture(scope="module")
def data() -> Data:
    """Two classes, three to one, and a number that tells them apart nine times of ten."""
    rng = np.random.default_rng(3)
    right = rng.random(400) < 0.9
    labels = np.where(np.arange(400) % 4 == 0, "yes", "no")
    x = np.where((labels == "yes") == right, 8.0, 2.0) + rng.normal(0, 0.5, 400)
    schema = {"label": {"name": "class", "classes": ["yes", "no"]}, "features": [number("x", high=10)]}
    return Data("small", schema, Table(pd.DataFrame({"x": x}), pd.Series(labels)))


def test_every_row_is_held_out_once_in_each_repeat_and_no_two_fits_have_one_seed(data):
    for repeat in range(2):
        splits = [split_of(data, repeat * FOLDS + fold) for fold in range(FOLDS)]
        held_out = pd.concat([split.held_out.frame for split in splits])
        assert sorted(held_out["x"]) == sorted(data.people.frame["x"])
        assert all(len(split.training) + len(split.held_out) == len(data.people) for split in splits)
    assert split_of(data, 0).held_out.frame["x"].tolist() != split_of(data, FOLDS).held_out.frame["x"].tolist()
    splits = [split_of(data, place) for place in (0, 1)]
    plain, majority = splits[0].references()  # The model without noise, and the most frequent class.
    assert plain["accuracy"] == pytest.approx(0.9, abs=0.1)
    assert majority["accuracy"] == 0.75
    assert len({split.seed(fit) for split in splits for fit in range(100)}) == 200


def test_a_fit_says_its_accuracy_and_what_it_guarantees(data):
    split = split_of(data, 1)
    sound = split.fit(GlobalSensitivityNB(data.schema, epsilon=100.0, random_state=1), trainer="global", epsilon=100.0)
    assert sound["accuracy"] == pytest.approx(0.9, abs=0.1)
    assert (sound["data"], sound["trainer"], sound["guaranteed_epsilon"]) == ("small", "global", 100.0)
    trainer = GlobalSensitivityNB(data.schema, epsilon=1.0, variant="published", random_state=1)
    assert split.fit(trainer, trainer="global")["guaranteed_epsilon"] > 1


def test_texts_become_categories_and_mean_the_same(uci_folder):
    adult = data_of("adult")
    assert adult.people.frame["sex"].dtype == "category"
    assert set(adult.people.frame["sex"].unique()) == {"Male", "Female"}
    assert (adult.is_numeric, adult.has_numbers) == (False, True)
    assert data_of("adult-numeric").is_numeric
    assert not data_of("mushroom").has_numbers


def test_finished_splits_are_not_measured_again(data, monkeypatch, tmp_path):
    def count_rows(split: Split):
        return [split.row(len(split.held_out) / 100, trainer="rows")]

    monkeypatch.setattr(trainers, "data_of", lambda _name: data)
    execution = Execution(runs=2, journal=tmp_path / "journal", workers=1)
    rows = cross_validate(execution, ["small"], count_rows, "rows")
    assert [row["split"] for row in rows] == list(range(2 * FOLDS))
    # What a trial would do now would fail: None is no function.
    again = cross_validate(execution, ["small"], None, "rows")
    pd.testing.assert_frame_equal(summarise(again), summarise(rows))
    (line,) = summarise(rows).to_dict("records")
    assert (line["data"], line["trainer"], line["splits"]) == ("small", "rows", 2 * FOLDS)
    assert (line["accuracy"], line["standard_error"]) == pytest.approx((0.4, 0.0))
    with pytest.raises(TypeError):
        cross_validate(execution, ["small"], None, "others")
