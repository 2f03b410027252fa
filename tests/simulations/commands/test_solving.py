"""``plan`` from what is wanted to what it takes, from a shell's point of view."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from simulations.__main__ import main

DRAFT = {
    "version": 1,
    "title": "Small",
    "label": {"name": "late", "classes": ["no", "yes"]},
    "features": [{"name": "age", "kind": "categorical", "missing": False, "values": ["young", "old"]}],
    "privacy": {"epsilon": 1.0},
}


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(DRAFT))
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    ages = ["young", "old"] * 200
    pd.DataFrame({"age": ages, "late": ["yes" if age == "old" else "no" for age in ages]}).to_csv(path, index=False)
    return str(path)


@pytest.fixture(autouse=True)
def _few_simulations(monkeypatch):
    monkeypatch.setattr("simulations.commands.plan.REPEATS", 2)


def plan(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, str, str]:
    code = main(["plan", *flags])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_published_epsilon_gives_the_largest_local_one(schema, capsys):
    wanted = ("--schema", schema, "--devices", "10000", "--published-epsilon", "0.05")
    told = json.loads(plan(capsys, *wanted, "--json")[1])
    assert told["solution"]["solved"] == "epsilon"
    assert told["epsilon"] == told["solution"]["epsilon"] > 0.5
    assert told["published"]["epsilon"] <= 0.05 < told["published"]["epsilon"] * 1.02
    code, shown, _ = plan(capsys, *wanted)
    assert code == 0
    assert f"the largest epsilon is {told['epsilon']:g}" in shown
    assert "to who sees only what is published" in shown
    assert "published once" in shown


def test_a_published_epsilon_gives_the_fewest_devices_where_none_are_given(schema, capsys):
    told = json.loads(plan(capsys, "--schema", schema, "--published-epsilon", "0.02", "--json")[1])
    assert told["solution"]["solved"] == "devices"
    assert told["epsilon"] == 1.0
    assert told["published"]["epsilon"] <= 0.02
    more = json.loads(
        plan(capsys, "--schema", schema, "--published-epsilon", "0.02", "--colluding", "1000", "--json")[1]
    )
    assert more["devices"] == pytest.approx(told["devices"] + 1000, rel=2e-3)


def test_an_accuracy_gives_devices_or_the_least_epsilon(schema, table, capsys):
    flags = ("--schema", schema, "--pilot", table, "--accuracy", "0.95", "--json")
    devices = json.loads(plan(capsys, *flags)[1])["solution"]
    assert devices["solved"] == "devices"
    assert devices["epsilon"] == 1.0
    epsilon = json.loads(plan(capsys, *flags, "--devices", "2000")[1])["solution"]
    assert epsilon["solved"] == "epsilon"
    assert 0 < epsilon["epsilon"] < 4


def test_what_nothing_reaches_is_said_in_one_line(schema, table, capsys):
    for flags, problem in (
        (("--published-epsilon", "1e-9"), "no number of devices"),
        (("--published-epsilon", "1e-9", "--devices", "10"), "at least 1e-5"),
        (("--accuracy", "0.9"), "needs --pilot"),
        (("--accuracy", "0.99", "--pilot", table, "--devices", "1"), "do not reach"),
        (("--published-epsilon", "0.1", "--devices", "10", "--epsilon", "1"), "leave out"),
        ((), "give --devices"),
    ):
        code, out, err = plan(capsys, "--schema", schema, *flags)
        wrong = any(part in problem for part in ("needs", "leave out", "give"))
        assert (code, out) == (2 if wrong else 1, "")
        assert problem in err
        assert err.count("\n") == 1
