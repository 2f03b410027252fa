"""Two questions in one answer are told in words, on a terminal; programs read their names."""

from __future__ import annotations

import json

import pytest

DRAFT = {
    "version": 1,
    "title": "t",
    "label": {"name": "y", "classes": ["a", "b"]},
    "features": [
        {"name": "age", "kind": "continuous", "low": 0, "high": 100},
        {"name": "u", "kind": "categorical", "missing": False, "values": ["p", "q"]},
        {"name": "w", "kind": "categorical", "missing": False, "values": ["r", "s"]},
    ],
    "privacy": {"epsilon": 3},
}


@pytest.fixture(autouse=True)
def store_of_its_own(tmp_path, monkeypatch):
    """The commands' store lies where they are started."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def campaign_id(run, tmp_path):
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(DRAFT), encoding="utf-8")
    return run("campaign", "create", path)[1].strip()


@pytest.mark.parametrize("command", ["estimates", "campaign show"])
def test_what_was_asked_at_once_is_told_in_words(run, campaign_id, command):
    code, out, _ = run(*command.split(), campaign_id)
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert not {"signs", "triple"} & {word for row in rows for word in row}
    kinds = [" ".join(row[1:6]) for row in rows if row[1:2] and row[1] in ("value", "two")]
    assert {kind for kind in kinds if kind.startswith("two")} == {"two features u, w de"}
    assert any(kind.startswith("value and square age de") for kind in kinds)


def test_which_share_of_the_devices_answers_a_question_is_told(run, campaign_id, tmp_path):
    def shares(identifier):
        return [line.split()[-1] for line in run("campaign", "show", identifier)[1].splitlines()[-3:]]

    assert shares(campaign_id) == ["20.0%", "40.0%", "40.0%"]
    path = tmp_path / "all.json"
    path.write_text(
        json.dumps({**DRAFT, "features": DRAFT["features"][1:], "privacy": {"epsilon": 3, "answers": "all"}})
    )
    assert shares(run("campaign", "create", path)[1].strip()) == ["100.0%"] * 3


def test_programs_read_the_names_of_the_document(run, campaign_id):
    told = json.loads(run("estimates", campaign_id, "--json")[1])
    assert [one["kind"] for one in told["questions"]] == ["label", "signs", "triple"]
    assert "signs,age" in run("estimates", campaign_id, "--csv")[1]


def test_a_draft_that_asks_for_what_cannot_be_joined_names_the_feature(run, tmp_path):
    features = [DRAFT["features"][0], {"name": "u", "kind": "categorical", "values": ["p", "q"]}]
    path = tmp_path / "draft.json"
    path.write_text(json.dumps({**DRAFT, "features": features, "privacy": {"epsilon": 3, "joint": True}}))
    code, out, err = run("campaign", "create", path)
    assert (code, out) == (1, "")
    assert "privacy.joint: " in err
    assert 'declare u "missing": false, or leave joint out' in err
