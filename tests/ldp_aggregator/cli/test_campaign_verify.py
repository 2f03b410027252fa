"""``ldp-aggregator campaign verify`` and ``show``: what a campaign asks, and whether it keeps its promise."""

import json
import re
import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from drafts import draft, number, text

from ldp_aggregator.mechanisms import verify_thoroughly
from ldp_aggregator.service.drafts import compile_draft
from ldp_protocols import Campaign

NEGLIGIBLE_GAP = Fraction(1, 10**9)


EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "campaign.toml"


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "document.json"
    path.write_bytes(compile_draft(EXAMPLE.read_bytes(), toml=True).document)
    return path


def test_a_person_reads_that_the_promise_is_kept_and_a_program_the_same(run, document):
    code, told, _ = run("campaign", "verify", document)
    assert (code, "The promise of epsilon 2 is kept." in told, "NO" in told) == (0, True, False)
    code, out, _ = run("campaign", "verify", document, "--json")
    told = json.loads(out)
    assert (code, told["holds"]) == (0, True)
    assert 2 - 1e-9 < told["realised_epsilon"] <= 2


def test_a_document_that_promises_too_much_or_is_not_the_one_asked_for_is_refused(run, document):
    code, _, err = run("campaign", "verify", document, "--id", "A" * 43)
    assert (code, "SHA-256" in err) == (1, True)
    value = json.loads(document.read_bytes())
    for question in value["questions"]:
        question["epsilon"] = 1.0
    document.write_text(json.dumps(value))
    code, _, err = run("campaign", "verify", document)
    assert (code, "loses up to" in err) == (1, True)


def test_the_gap_of_every_question_is_printed_and_a_wide_one_is_explained(run, tmp_path):
    path = tmp_path / "document.json"
    draft = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    draft["privacy"] |= {"epsilon": 1.0, "discrete": "the", "answers": "one"}
    campaign = Campaign.compile(draft)
    path.write_bytes(campaign.document)
    code, told, _ = run("campaign", "verify", path)
    assert code == 0
    for check in verify_thoroughly(campaign).questions:
        (row,) = (line for line in told.splitlines() if re.match(rf"{check.question.index} ", line))
        assert f"{float(check.gap):.2g}" in row.split()
        explained = f"question {check.question.index} stays {float(check.gap):.2g} below its epsilon" in told
        assert explained == (check.gap >= NEGLIGIBLE_GAP) == (check.question.mechanism.name == "the")


def test_a_broken_promise_is_told_in_words_and_by_the_exit_code(run, document, monkeypatch):
    """No document that is read breaks it: here its proof finds that a question loses more than it says."""
    thoroughly = verify_thoroughly

    def found(campaign):
        told = thoroughly(campaign)
        last = told.questions[-1]
        worse = replace(last, worst=replace(last.worst, exponent=last.worst.exponent + 1))
        return replace(told, questions=(*told.questions[:-1], worse))

    monkeypatch.setattr("ldp_aggregator.cli.campaign.verify_thoroughly", found)
    code, told, _ = run("campaign", "verify", document)
    assert (code, "The promise of epsilon 2 IS BROKEN." in told, told.count(" NO\n")) == (1, True, 1)
    code, told, _ = run("campaign", "verify", document, "--json")
    assert (code, json.loads(told)["holds"]) == (1, False)


@pytest.mark.parametrize(
    ("answers", "says"), [("one", "(the worst question it can draw)"), ("all", "(the sum over what it answers)")]
)
def test_the_loss_of_a_device_is_that_of_what_it_answers(run, tmp_path, answers, says):
    path = tmp_path / "document.json"
    path.write_bytes(Campaign.compile(draft(text("u", "p", "q"), privacy={"epsilon": 1, "answers": answers})).document)
    assert says in run("campaign", "verify", path)[1]


def test_of_a_campaign_that_fixes_its_releases_the_crowd_is_known(run, tmp_path):
    path = tmp_path / "document.json"
    privacy = {"epsilon": 1, "discrete": "de", "release_every": 500}
    path.write_bytes(Campaign.compile(draft(text("u", "p", "q"), privacy=privacy)).document)
    told = json.loads(run("campaign", "verify", path, "--json")[1])
    assert [one["reports"] for one in told["published"]] == [500]


def test_which_share_of_the_devices_answers_a_question_is_told(run, tmp_path):
    features = number("age", 0, 100, missing=True), text("u", "p", "q"), text("w", "r", "s")
    path = tmp_path / "draft.json"

    def shares(*features, **privacy):
        path.write_text(json.dumps(draft(*features, privacy={"epsilon": 3, **privacy})))
        shown = run("campaign", "show", run("campaign", "create", path)[1].strip())[1]
        return [line.split()[-1] for line in shown.splitlines()[-5:] if line]

    assert shares(*features) == ["20.0%"] * 5
    assert shares(*features[1:], answers="all")[-3:] == ["100.0%"] * 3
