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


def joined(tmp_path: Path, *more: str, answers: str = "one") -> str:
    """Two features of two values, asked at once; with ``all``, numbers, each by value and square at once."""
    pair = [{**DRAFT["features"][0], "name": name} for name in ("age", "size")]
    numbers = [{"name": name, "kind": "continuous", "low": 0, "high": 1} for name in more]
    privacy = {"epsilon": 24.0, "joint": True, "answers": answers}
    path = tmp_path / "joined.json"
    path.write_text(json.dumps({**DRAFT, "features": numbers or pair, "privacy": privacy}))
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    ages = ["young", "old"] * 200
    pd.DataFrame({"age": ages, "late": ["yes" if age == "old" else "no" for age in ages]}).to_csv(path, index=False)
    return str(path)


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
    flags = ("--schema", schema, "--pilot", table, "--accuracy", "0.95", "--repeats", "2", "--json")
    devices = json.loads(plan(capsys, *flags)[1])["solution"]
    assert devices["solved"] == "devices"
    assert devices["epsilon"] == 1.0
    epsilon = json.loads(plan(capsys, *flags, "--devices", "2000")[1])["solution"]
    assert epsilon["solved"] == "epsilon"
    assert 0 < epsilon["epsilon"] < 4


@pytest.mark.parametrize(("numbers", "answers", "least"), [((), "one", 2.5), (("x", "z"), "all", 7.5)])
def test_a_draft_that_asks_two_questions_as_one_is_searched_from_where_that_can_be(
    numbers, answers, least, tmp_path, capsys
):
    flags = ("--schema", joined(tmp_path, *numbers, answers=answers), "--devices", "100000")
    code, shown, err = plan(capsys, *flags, "--published-epsilon", "0.9")
    assert (code, err) == (0, "")
    told = json.loads(plan(capsys, *flags, "--published-epsilon", "0.9", "--json")[1])
    assert told["epsilon"] > told["solution"]["searched_from"] == least
    assert told["published"]["epsilon"] <= 0.9 < told["published"]["epsilon"] * 1.02
    assert f'searched from {least:g} on, where "joint": true can be asked; leave it out to search below' in shown


def test_an_accuracy_is_searched_from_there_too(table, tmp_path, capsys):
    frame = pd.read_csv(table)
    frame.assign(size=frame["age"]).to_csv(table, index=False)
    flags = ("--schema", joined(tmp_path), "--pilot", table, "--devices", "2000", "--repeats", "2")
    code, shown, err = plan(capsys, *flags, "--accuracy", "0.95")
    assert (code, err) == (0, "")
    assert "the least epsilon is 2.5" in shown
    assert "searched from 2.5 on" in shown


def test_where_the_search_is_not_narrowed_nothing_is_said_of_it(schema, capsys):
    flags = ("--schema", schema, "--devices", "10000", "--published-epsilon", "0.05")
    assert "searched from" not in plan(capsys, *flags)[1]
    assert json.loads(plan(capsys, *flags, "--json")[1])["solution"]["searched_from"] is None


@pytest.mark.parametrize(
    ("numbers", "answers", "wish", "problem"),
    [
        (
            (),
            "one",
            ("--published-epsilon", "0.05", "--devices", "100"),
            "reveal more than that already at epsilon 2.5",
        ),
        (tuple("abcdefg"), "all", ("--published-epsilon", "0.05", "--devices", "100"), "takes an epsilon of 20"),
        (tuple("abcdefg"), "all", ("--accuracy", "0.9", "--devices", "100"), "takes an epsilon of 20"),
    ],
)
def test_where_no_epsilon_is_left_to_ask_two_questions_as_one_it_is_said(
    numbers, answers, wish, problem, table, tmp_path, capsys
):
    pilot = ("--pilot", table) if "--accuracy" in wish else ()
    if pilot:
        frame = pd.read_csv(table)
        frame.assign(**dict.fromkeys(numbers, 0.5)).to_csv(table, index=False)
    code, out, err = plan(capsys, "--schema", joined(tmp_path, *numbers, answers=answers), *wish, *pilot)
    assert (code, out) == (1, "")
    assert problem in err
    assert "leave out" in err
    assert err.count("\n") == 1


def test_what_nothing_reaches_is_said_in_one_line(schema, table, capsys):
    for flags, problem in (
        (("--published-epsilon", "1e-9"), "no number of devices"),
        (("--published-epsilon", "1e-9", "--devices", "10"), "at least 1e-5"),
        (("--accuracy", "0.9"), "needs --pilot"),
        (("--accuracy", "0.99", "--pilot", table, "--devices", "1", "--repeats", "2"), "do not reach"),
        (("--published-epsilon", "0.1", "--devices", "10", "--epsilon", "1"), "leave out"),
        ((), "give --devices"),
    ):
        code, out, err = plan(capsys, "--schema", schema, *flags)
        wrong = any(part in problem for part in ("needs", "leave out", "give"))
        assert (code, out) == (2 if wrong else 1, "")
        assert problem in err
        assert err.count("\n") == 1
