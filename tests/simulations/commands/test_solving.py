"""``plan`` from what is wanted to what it takes, from a shell's point of view."""

import json

import pandas as pd
import pytest
from buyers import run, write_draft
from drafts import draft, text

LATE = draft(text("age", "young", "old"), label={"name": "late", "classes": ["no", "yes"]})


@pytest.fixture
def schema(tmp_path):
    return write_draft(tmp_path / "draft.json", LATE)


@pytest.fixture
def table(tmp_path):
    path, ages = tmp_path / "people.csv", ["young", "old"] * 200
    pd.DataFrame({"age": ages, "late": ["yes" if age == "old" else "no" for age in ages]}).to_csv(path, index=False)
    return path


@pytest.fixture
def plan(capsys, schema, monkeypatch):
    """What ``plan`` ends with and says of the draft, after few simulations."""
    monkeypatch.setattr("simulations.commands.plan.REPEATS", 2)
    return lambda *flags: run(capsys, "plan", "--schema", schema, *flags)


def test_a_published_epsilon_gives_the_largest_local_one(plan):
    wanted = ("--devices", 10_000, "--published-epsilon", 0.05)
    told = json.loads(plan(*wanted, "--json")[1])
    assert told["solution"]["solved"] == "epsilon"
    assert told["epsilon"] == told["solution"]["epsilon"] > 0.5
    assert told["published"]["epsilon"] <= 0.05 < told["published"]["epsilon"] * 1.02
    code, shown, _ = plan(*wanted)
    assert code == 0
    assert f"the largest epsilon is {told['epsilon']:g}" in shown
    assert "to who sees only what is published" in shown
    assert "published once" in shown


def test_a_published_epsilon_gives_the_fewest_devices_where_none_are_given(plan):
    told = json.loads(plan("--published-epsilon", 0.02, "--json")[1])
    assert told["solution"]["solved"] == "devices"
    assert told["epsilon"] == 1.0
    assert told["published"]["epsilon"] <= 0.02
    more = json.loads(plan("--published-epsilon", 0.02, "--colluding", 1000, "--json")[1])
    assert more["devices"] == pytest.approx(told["devices"] + 1000, rel=2e-3)


def test_an_accuracy_gives_devices_or_the_least_epsilon(plan, table):
    flags = ("--pilot", table, "--accuracy", 0.95, "--json")
    devices = json.loads(plan(*flags)[1])["solution"]
    assert devices["solved"] == "devices"
    assert devices["epsilon"] == 1.0
    epsilon = json.loads(plan(*flags, "--devices", 2000)[1])["solution"]
    assert epsilon["solved"] == "epsilon"
    assert 0 < epsilon["epsilon"] < 4


def test_what_nothing_reaches_is_said_in_one_line(plan, table):
    for flags, problem in (
        (("--published-epsilon", "1e-9"), "no number of devices"),
        (("--published-epsilon", "1e-9", "--devices", "10"), "at least 1e-5"),
        (("--accuracy", "0.9"), "needs --pilot"),
        (("--accuracy", "0.99", "--pilot", table, "--devices", "1"), "do not reach"),
        (("--published-epsilon", "0.1", "--devices", "10", "--epsilon", "1"), "leave out"),
    ):
        code, out, err = plan(*flags)
        wrong = any(part in problem for part in ("needs", "leave out"))
        assert (code, out) == (2 if wrong else 1, "")
        assert problem in err
        assert err.count("\n") == 1
