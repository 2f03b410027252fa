"""``accuracy``, ``plan`` and ``draft`` from a shell's point of view."""

from __future__ import annotations

import json

import pytest
from buyers import run, write_draft, write_table
from evaluated import evaluation

from ldp_aggregator.learning.rounds.candidates import DEFAULT
from protocols import Campaign
from protocols.shell.exits import FAILED, WRONG_USAGE
from simulations.tables.sources import draft_of

FOUND_LATER = (
    "no column",
    "no such file",
    "cannot be",
    "not JSON",
    "not declared",
    "not a journal",
)
"""What is wrong with a table, a file or a server; everything else is the command line."""


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "people.csv")


@pytest.fixture
def schema(tmp_path):
    return write_draft(tmp_path / "draft.json")


def test_accuracy_prints_every_combination_under_its_total_loss(table, schema, tmp_path, capsys):
    flags = ["--data", table, "--schema", schema, "--mechanism", "de", "oue", "--epsilon", 1, 2, "--repeats", 3]
    plot = tmp_path / "plot.png"
    code, out, _ = run(capsys, "accuracy", *flags, "--workers", 1, "--plot", plot, "--per-question-epsilon")
    assert code == 0
    assert "its total loss is (questions) x epsilon" in out
    lines = [line.split() for line in out.splitlines() if line.startswith(("de ", "oue "))]
    assert [line[:3] for line in lines] == [["de", "1", "3"], ["de", "2", "6"], ["oue", "1", "3"], ["oue", "2", "6"]]
    assert "3 trials, 96 devices each, which answer every question" in out
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_accuracy_gives_every_trial_with_its_seed_as_json(table, schema, tmp_path, capsys):
    flags = ["--data", table, "--schema", schema, "--repeats", 2, "--seed", 7, "--devices", 500, "--workers", 1]
    code, out, _ = run(capsys, "accuracy", *flags, "--quiet", "--json")
    assert code == 0
    document = json.loads(out)
    assert document["seeds"] == [7, 8]
    assert [trial["seed"] for trial in document["trials"]] == [7, 8]
    assert document["summary"][0]["total_epsilon"] == 3.0
    code, out, _ = run(capsys, "accuracy", *flags, "--quiet", "--json", tmp_path / "a.json")
    assert (code, out) == (0, "")
    assert json.loads((tmp_path / "a.json").read_text()) == document


def test_a_plan_without_a_pilot_says_why_and_how_many(schema, capsys):
    code, out, err = run(capsys, "plan", "--schema", schema, "--devices", 30_000)
    assert (code, err) == (0, "")
    assert "30,000 devices, each with a total loss of at most 3, answer one question" in out
    assert "size (value and square)" in out
    assert "two signs by " in out
    assert out.count("least noise; ") == 3
    assert "at half the epsilon" in out


@pytest.mark.parametrize("joint", [None, True])
def test_a_plan_tells_in_words_what_is_asked_at_once_and_compares_with_half_of_epsilon(joint, tmp_path, capsys):
    """At half of it value and square are two questions, and features of two values have their own."""
    two = {"kind": "categorical", "missing": False, "values": ["p", "q"]}
    draft = {
        "version": 1,
        "title": "t",
        "label": {"name": "y", "classes": ["a", "b"]},
        "features": [
            {"name": "x", "kind": "continuous", "low": 0, "high": 1},
            {"name": "u", **two},
            {"name": "w", **two},
            {"name": "z", "kind": "categorical", "values": ["1", "2", "3"]},
        ],
        "privacy": {"epsilon": 3, "joint": joint},
    }
    schema = tmp_path / "draft.json"
    schema.write_text(json.dumps(draft))
    code, out, err = run(capsys, "plan", "--schema", schema, "--devices", 30_000)
    assert (code, err) == (0, "")
    assert not {"signs)", "(triple)", "(signs)"} & set(out.split())
    assert [line.split("  ")[0] for line in out.splitlines()[4:8]] == ["y", "x (value and square)", "u and w", "z"]
    assert "sign would have 1.47 times as much" in out
    assert "two signs by de" in out
    told = json.loads(run(capsys, "plan", "--schema", schema, "--devices", 30_000, "--json")[1])
    assert [one["cells"] for one in told["questions"]] == [2, 10, 8, 8]
    assert all(one["standard_error"] < one["standard_error_at_half_epsilon"] for one in told["questions"])


def test_a_plan_with_a_pilot_finds_the_devices_for_a_loss(table, schema, tmp_path, capsys):
    flags = ["--schema", schema, "--devices", 1_000, "--epsilon", 2, "--pilot", table, "--repeats", 2]
    plot = tmp_path / "plan.svg"
    code, out, _ = run(capsys, "plan", *flags, "--json", "--plot", plot, "--loss", 0.1)
    assert code == 0
    plan = json.loads(out)
    assert plan["epsilon"] == 2
    assert plan["pilot"]["non_private"] == 1.0
    assert plan["pilot"]["devices_for_loss"] <= 4_000
    errors = [question["standard_error"] for question in plan["questions"]]
    halves = [question["standard_error_at_half_epsilon"] for question in plan["questions"]]
    assert all(half > error for error, half in zip(errors, halves, strict=True))
    assert "<svg" in plot.read_text()
    code, out, _ = run(capsys, "plan", *flags, "--loss", 0.1)
    assert "to lose at most 0.1 against no privacy: about " in out


def test_a_plan_says_how_many_vote_for_a_wanted_standard_error(schema, capsys):
    flags = ["--schema", schema, "--devices", 30_000, "--epsilon", 1, "--accuracy-error", 0.01, "--candidates", 4]
    code, out, _ = run(capsys, "plan", *flags)
    assert code == 0
    # n Var = e / (e - 1)^2 + 1/4 = 1.1707 at an accuracy of one half.
    assert "for the accuracy of 4 models with a standard error of 0.01 each, 46,828 devices vote" in out
    assert json.loads(run(capsys, "plan", *flags, "--json")[1])["evaluation"]["devices"] == 46_828


def test_evaluating_is_simulated_from_learning_to_publishing(table, schema, tmp_path, capsys):
    flags = ["--data", table, "--schema", schema, "--devices", 40_000, "--voting", 0.1, "--repeats", 3]
    flags += ["--workers", 1, "--quiet"]
    journal = ("--journal", tmp_path / "journal")
    code, out, _ = run(capsys, "evaluate", *flags, *journal)
    assert code == 0
    assert "40,000 devices at a total epsilon of 3, 4,000 of them vote; 3 trials" in out
    assert f"won: {DEFAULT[0]} 3" in out
    assert "the round neither pays nor costs by more than chance" in out
    code, again, _ = run(capsys, "evaluate", *flags, *journal)
    assert again == out
    code, out, _ = run(capsys, "evaluate", *flags, "--second-round", "--epsilon", 1, "--json")
    document = json.loads(out)
    assert (document["epsilon"], document["trials"], len(document["rows"])) == (1, 3, 3)
    assert document["majority"] < document["published"] <= 1
    assert 0 < document["told"] < 1.1


def test_voting_is_planned_and_drafted_from_a_schema_of_an_evaluation(tmp_path, capsys):
    schema = write_draft(tmp_path / "which.json", draft_of(evaluation()))
    code, out, err = run(capsys, "plan", "--schema", schema, "--devices", 20_000)
    assert (code, err) == (0, "")
    assert "both " in out
    assert "5,000" in out


def test_a_drafted_campaign_compiles_and_its_notes_are_loud(table, tmp_path, capsys):
    code, out, err = run(capsys, "draft", "--data", table, "--label", "sold", "--epsilon", 0.5, "--bins", 3)
    assert code == 0
    assert Campaign.compile(out).privacy.epsilon == 0.5
    assert err.startswith("BEFORE ANYONE IS ASKED")
    assert "size: the bounds 0 to 60 were read off the data" in err
    code, out, _ = run(capsys, "draft", "--data", table, "--label", "sold", "--output", tmp_path / "d.json", "--json")
    assert code == 0
    assert json.loads(out)["draft"] == json.loads((tmp_path / "d.json").read_text())
    assert json.loads(out)["left_out"] == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["accuracy", "--data", "TABLE", "--schema", "SCHEMA", "--mechanism", "rappor"], "invalid choice: 'rappor'"),
        (["accuracy", "--data", "TABLE", "--schema", "SCHEMA", "--epsilon", "0"], "above 0"),
        (["accuracy", "--data", "TABLE", "--schema", "SCHEMA", "--repeats", "1"], "at least 2"),
        (["accuracy", "--data", "TABLE", "--label", "bought"], "no column 'bought'"),
        (["accuracy", "--data", "TABLE", "--schema", "SCHEMA", "--journal", "FOLDER"], "not a journal of trials"),
        (["plan", "--schema", "SCHEMA"], "give --devices"),
        (["plan", "--schema", "SCHEMA", "--devices", "9", "--candidates", "9"], "invalid choice: 9"),
        (
            ["evaluate", "--data", "TABLE", "--schema", "SCHEMA", "--devices", "100", "--candidates", "best"],
            "'best' is no candidate",
        ),
        (["plan", "--schema", "nowhere.toml", "--devices", "10"], "nowhere.toml: cannot be read"),
        (
            ["plan", "--schema", "SCHEMA", "--devices", "10", "--plot", "plan.exe"],
            "plan.exe: the plot cannot be written",
        ),
        (["draft", "--data", "TABLE", "--label", "bought"], "no column 'bought'"),
        (["draft", "--data", "TABLE", "--label", "sold", "--output", "no/such/folder.json"], "cannot be written"),
    ],
)
def test_a_mistake_is_one_clear_line_and_one_of_two_exit_codes(arguments, problem, table, schema, tmp_path, capsys):
    places = {"TABLE": table, "SCHEMA": schema, "FOLDER": tmp_path}
    code, out, err = run(capsys, *(places.get(argument, argument) for argument in arguments))
    assert code == (FAILED if any(part in problem for part in FOUND_LATER) else WRONG_USAGE)
    assert problem in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""
