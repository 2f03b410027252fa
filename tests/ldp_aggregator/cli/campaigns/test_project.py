"""``ldp-aggregator project``: from a public table, from a private round, and what it refuses."""

import json

import numpy as np
import pandas as pd
import pytest
from answering import answer

from ldp_aggregator.cli.program import run
from protocols import Campaign

DRAFT = {
    "version": 1,
    "title": "Projected",
    "label": {"name": "class", "classes": ["a", "b"]},
    "features": [
        {"name": "x", "kind": "continuous", "low": 0, "high": 10},
        {"name": "y", "kind": "continuous", "low": 0, "high": 20},
    ],
    "privacy": {"epsilon": 4},
}


@pytest.fixture
def draft(tmp_path):
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(DRAFT))
    return path


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(1)
    classes = rng.choice(["a", "b"], size=400)
    x = np.clip(rng.normal(np.where(classes == "a", 3, 7), 1), 0, 10)
    path = tmp_path / "public.csv"
    pd.DataFrame({"x": x, "y": rng.uniform(0, 20, size=400), "class": classes}).to_csv(path, index=False)
    return path


def test_a_public_table_gives_a_projection_in_the_draft(draft, table, capsys):
    assert run(["project", "--method", "dca", "--components", "1", str(table), "--draft", str(draft)]) == 0
    campaign = Campaign.compile(draft.read_text())
    assert campaign.projection.fitted_on == "public"
    assert abs(campaign.projection.matrix[0][0]) > 0.9  # x carries the class, y does not.
    assert "dca with 1 of 2 components, fitted on public" in capsys.readouterr().out


def test_output_bins_and_bounds_are_options_and_the_draft_can_stay(draft, table, tmp_path):
    target = tmp_path / "projected.json"
    arguments = ["project", "--method", "pca", "--components", "2", str(table), "--draft", str(draft)]
    assert run([*arguments, "--bins", "5", "--inputs", "y,x", "--output", str(target)]) == 0
    assert json.loads(draft.read_text()) == DRAFT
    projection = Campaign.compile(target.read_text()).projection
    assert [feature.name for feature in projection.inputs] == ["y", "x"]
    assert [output.bins for output in projection.outputs] == [5, 5]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_private_round_gives_a_projection_and_its_study(draft, tmp_path, capsys):
    data, asking = tmp_path / "data", tmp_path / "round.json"
    asking.write_text(json.dumps({**DRAFT, "asks": "moments", "study": "credit"}))
    assert run(["campaign", "create", str(asking), "--data", str(data)]) == 0
    campaign_id = capsys.readouterr().out.strip()
    rng = np.random.default_rng(3)
    labels = rng.choice(["a", "b"], size=3_000).tolist()
    people = [({"x": 3 if label == "a" else 7, "y": float(rng.uniform(0, 20))}, label) for label in labels]
    answer(data, campaign_id, people)
    fit = ["project", "--method", "dca", "--components", "1", "--round", campaign_id]
    assert run([*fit, "--data", str(data), "--draft", str(draft)]) == 0
    campaign = Campaign.compile(draft.read_text())
    assert (campaign.study, campaign.projection.fitted_on) == ("credit", campaign_id)
    assert abs(campaign.projection.matrix[0][0]) > 0.7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either a public table or --round"),
        (["TABLE", "--round", "x" * 43], "either a public table or --round"),
        (["absent.csv"], "cannot read absent.csv"),
        (["TABLE", "--inputs", "x,z"], "z is not a continuous feature"),
        (["TABLE", "--components", "3"], "2 inputs have 1 to 2 components, not 3"),
        (["TABLE", "--bins", "1"], "projection.outputs[0].bins"),
        (["--round", "x" * 43, "--data", "nowhere"], "there is no store"),
        (["TABLE", "--data", "nowhere"], "needs no store"),
    ],
)
def test_what_cannot_be_fitted_is_told_in_one_line_and_leaves_the_draft_alone(
    draft, table, tmp_path, capsys, monkeypatch, arguments, message
):
    named = [str(table) if argument == "TABLE" else argument for argument in arguments]
    base = ["project", "--method", "pca", "--components", "1", "--draft", str(draft)]
    monkeypatch.chdir(tmp_path)
    assert run([*base, *named]) == (2 if "either" in message or "needs" in message else 1)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert json.loads(draft.read_text()) == DRAFT


TOML = """
version = 1
title = "Projected"
label = {name = "class", classes = ["a", "b"]}
features = [
    {name = "x", kind = "continuous", low = 0, high = 10},
    {name = "y", kind = "continuous", low = 0, high = 20},
]
privacy = {epsilon = 4}
"""


def test_a_toml_draft_is_read_and_the_new_one_is_json(table, tmp_path, capsys):
    path, output = tmp_path / "draft.toml", tmp_path / "new.json"
    path.write_text(TOML)
    words = ["project", "--method", "pca", "--components", "1", str(table), "--draft", str(path)]
    assert run(words) == 2
    assert "name it with --output" in capsys.readouterr().err
    assert run([*words, "--output", str(output)]) == 0
    assert json.loads(output.read_text())["projection"]["method"] == "pca"
