"""``ldp-aggregator campaign verify`` and ``show``: what a campaign asks, and whether it keeps its promise."""

import json
import re
from pathlib import Path

import pytest
import tomllib

from ldp_aggregator.cli.program import run
from ldp_aggregator.mechanisms import verify_thoroughly
from ldp_aggregator.service.publishing import compile_draft
from protocols import Campaign
from protocols.document.verification import NEGLIGIBLE_GAP

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "campaign.toml"


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "document.json"
    path.write_bytes(compile_draft(EXAMPLE.read_bytes(), toml=True).document)
    return path


def test_a_person_reads_that_the_promise_is_kept(document, capsys):
    assert run(["campaign", "verify", str(document)]) == 0
    told = capsys.readouterr().out
    assert "The promise of epsilon 2 is kept." in told
    assert "NO" not in told


def test_a_program_reads_the_same(document, capsys):
    assert run(["campaign", "verify", str(document), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["holds"] is True
    assert 2 - 1e-9 < told["realised_epsilon"] <= 2


def test_a_document_that_promises_too_much_is_told_and_fails(document, capsys):
    value = json.loads(document.read_bytes())
    for question in value["questions"]:
        question["epsilon"] = 1.0
    document.write_text(json.dumps(value))
    assert run(["campaign", "verify", str(document)]) == 1
    assert "loses up to" in capsys.readouterr().err


def test_a_document_that_is_not_the_campaign_asked_for_is_refused(document, capsys):
    assert run(["campaign", "verify", str(document), "--id", "A" * 43]) == 1
    assert "SHA-256" in capsys.readouterr().err


def test_the_gap_of_every_question_is_printed_and_a_wide_one_is_explained(tmp_path, capsys):
    path = tmp_path / "document.json"
    draft = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    draft["privacy"] |= {"epsilon": 1.0, "discrete": "the", "answers": "one"}
    campaign = Campaign.compile(draft)
    path.write_bytes(campaign.document)
    assert run(["campaign", "verify", str(path)]) == 0
    told = capsys.readouterr().out
    for check in verify_thoroughly(campaign).questions:
        (row,) = (line for line in told.splitlines() if re.match(rf"{check.question.index} ", line))
        assert f"{float(check.gap):.2g}" in row.split()
        explained = f"question {check.question.index} stays {float(check.gap):.2g} below its epsilon" in told
        assert explained == (check.gap >= NEGLIGIBLE_GAP) == (check.question.mechanism.name == "the")


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
