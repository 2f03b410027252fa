"""What a campaign asks, told on a terminal."""

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


def test_which_share_of_the_devices_answers_a_question_is_told(run, campaign_id, tmp_path):
    def shares(identifier):
        return [line.split()[-1] for line in run("campaign", "show", identifier)[1].splitlines()[-5:]]

    assert shares(campaign_id) == ["20.0%"] * 5
    path = tmp_path / "all.json"
    path.write_text(
        json.dumps({**DRAFT, "features": DRAFT["features"][1:], "privacy": {"epsilon": 3, "answers": "all"}})
    )
    assert shares(run("campaign", "create", path)[1].strip())[-3:] == ["100.0%"] * 3
