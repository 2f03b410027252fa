"""``ldp-aggregator project``: from a public table, from a private round, and what it refuses."""

import json

import drafts
import numpy as np
import pandas as pd
import pytest
from answering import answer

from ldp_protocols import Campaign

LABEL = {"name": "class", "classes": ["a", "b"]}
FEATURES = (drafts.number("x", 0, 10, missing=True), drafts.number("y", 0, 20, missing=True))
DRAFT = drafts.draft(*FEATURES, label=LABEL, privacy={"epsilon": 4})


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


def test_a_public_table_gives_a_projection_in_the_draft(run, draft, table):
    code, out, _ = run("project", "--method", "dca", "--components", 1, table, "--draft", draft)
    assert (code, "dca with 1 of 2 components, fitted on public" in out) == (0, True)
    campaign = Campaign.compile(draft.read_text())
    assert campaign.projection.fitted_on == "public"
    assert abs(campaign.projection.matrix[0][0]) > 0.9  # x carries the class, y does not.


def test_output_bins_and_bounds_are_options_and_the_draft_can_stay(run, draft, table, tmp_path):
    target = tmp_path / "projected.json"
    arguments = ("project", "--method", "pca", "--components", 2, table, "--draft", draft)
    assert run(*arguments, "--bins", 5, "--inputs", "y,x", "--output", target)[0] == 0
    assert json.loads(draft.read_text()) == DRAFT
    projection = Campaign.compile(target.read_text()).projection
    assert [feature.name for feature in projection.inputs] == ["y", "x"]
    assert [output.bins for output in projection.outputs] == [5, 5]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_private_round_gives_a_projection_and_its_study(run, draft, data, tmp_path):
    asking = tmp_path / "round.json"
    asking.write_text(json.dumps({**DRAFT, "asks": "moments", "study": "credit"}))
    campaign_id = run("campaign", "create", asking)[1].strip()
    rng = np.random.default_rng(3)
    labels = rng.choice(["a", "b"], size=3_000).tolist()
    people = [({"x": 3 if label == "a" else 7, "y": float(rng.uniform(0, 20))}, label) for label in labels]
    answer(data, campaign_id, people)
    fit = ("project", "--method", "dca", "--components", 1, f"--round={campaign_id}", "--data", data, "--draft", draft)
    assert run(*fit)[0] == 0
    campaign = Campaign.compile(draft.read_text())
    assert (campaign.study, campaign.projection.fitted_on) == ("credit", campaign_id)
    assert abs(campaign.projection.matrix[0][0]) > 0.7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either a public table or --round"),
        (["TABLE", "--round", "x" * 43], "either a public table or --round"),
        (["absent.csv"], "absent.csv: no such file"),
        (["TABLE", "--inputs", "x,z"], "z is not a number of the draft"),
        (["TABLE", "--components", "3"], "2 inputs have 1 to 2 components, not 3"),
        (["TABLE", "--bins", "1"], "projection.outputs[0].bins"),
        (["--round", "x" * 43, "--data", "nowhere"], "there is no store"),
        (["TABLE", "--data", "nowhere"], "needs no store"),
    ],
)
def test_what_cannot_be_fitted_is_told_in_one_line_and_leaves_the_draft_alone(
    refused, draft, table, tmp_path, monkeypatch, arguments, message
):
    named = [table if argument == "TABLE" else argument for argument in arguments]
    monkeypatch.chdir(tmp_path)
    expected = 2 if "either" in message or "needs" in message else 1
    base = ("project", "--method", "pca", "--components", 1, "--draft", draft)
    assert message in refused(*base, *named, expected=expected)
    assert json.loads(draft.read_text()) == DRAFT


TOML = """
version = 1
title = "t"
label = {name = "class", classes = ["a", "b"]}
features = [{name = "x", kind = "continuous", low = 0, high = 10}]
privacy = {epsilon = 4}
"""


def test_a_toml_draft_is_read_and_the_new_one_is_json(run, refused, table, tmp_path):
    path, output = tmp_path / "draft.toml", tmp_path / "new.json"
    path.write_text(TOML)
    words = ("project", "--method", "pca", "--components", 1, table, "--draft", path)
    assert "name it with --output" in refused(*words, expected=2)
    assert run(*words, "--output", output)[0] == 0
    assert json.loads(output.read_text())["projection"]["method"] == "pca"


def test_the_inputs_of_a_round_are_its_own_and_toml_is_not_written_whatever_its_case(run, refused, draft, table):
    fit = ("project", "--method", "pca", "--components", 1, "--draft", draft)
    assert "a round's inputs are its features" in refused(*fit, "--round", "x" * 43, "--inputs", "x", expected=2)
    for name in ("d.toml", "d.TOML"):
        assert "the new draft is JSON" in refused(*fit, table, "--output", draft.parent / name, expected=2)


def test_a_class_of_a_public_table_may_be_called_as_others_call_nothing(run, draft, table):
    """A text NA is one; an empty cell alone is missing."""
    label = {"name": "class", "classes": ["NA", "b"]}
    draft.write_text(json.dumps({**DRAFT, "label": label}))
    table.write_text(table.read_text().replace(",a\n", ",NA\n"))
    assert run("project", "--method", "dca", "--components", 1, table, "--draft", draft)[0] == 0
    assert abs(Campaign.compile(draft.read_text()).projection.matrix[0][0]) > 0.9
