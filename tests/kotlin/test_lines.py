"""The Kotlin client as a program of lines, and the audit of it."""

import json
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from drafts import draft, text

from ldp_aggregator.audit import audit, command_client, command_stopwatch
from ldp_aggregator.cli.audit import single_question
from protocols import Campaign, decode_upload

VECTORS = Path(__file__).resolve().parents[2] / "protocols" / "vectors"


def test_a_line_that_must_be_refused_is_answered_with_its_code_and_the_next_one_is_answered_too(program):
    campaign = Campaign.compile(draft(text("u", "1", "2", missing=True)))
    document, record = campaign.document.decode(), {"u": "1"}
    lines = [
        {"document": document, "record": record, "label": "perhaps"},
        {"record": record, "label": "a"},
        {"record": [], "label": "a"},
        {"document": "{}", "record": record, "label": "a"},
        {"document": document.replace('"epsilon":1', '"epsilon":0.5'), "record": record, "label": "a"},
        {"record": record, "label": "b", "device": "1"},
        {"record": {}, "odd": {"u": "unreadable"}, "label": "a", "device": "1"},
    ]
    asked = "".join(json.dumps(line) + "\n" for line in lines)
    command = [*program, "lines"]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=60, check=True)
    answered = done.stdout.splitlines()
    codes = [answer for answer in answered if answer.startswith("!")]
    assert codes == ["!undeclared-label", "!not-a-record", "!invalid-document", "!loss-above-epsilon"]
    assert answered[5] == answered[6], "a device is asked again, and sends the same bytes"
    for answer in (answered[1], answered[5]):
        (block,) = decode_upload(bytes.fromhex(answer), campaign)
        assert block.count == 1


def test_a_device_of_a_series_answers_in_its_window_and_in_no_other(program):
    cases = json.loads((VECTORS / "documents.json").read_text(encoding="utf-8"))["accepted"]
    document = next(case["document"] for case in cases if case["name"] == "series")
    campaign = Campaign.parse(document.encode())
    line = {"document": document, "record": {"colour": "green"}, "label": "yes", "device": "1"}
    days = [campaign.windows.opens(window) + timedelta(hours=1) for window in range(campaign.windows.count)]
    asked = "".join(json.dumps({**line, "now": f"{day:%Y-%m-%dT%H:%M:%SZ}"}) + "\n" for day in days)
    done = subprocess.run([*program, "lines"], input=asked, capture_output=True, text=True, timeout=60, check=True)
    answered = done.stdout.splitlines()
    window = answered.count("!window-not-open")
    assert answered[:window] == ["!window-not-open"] * window
    # What never arrives is sent again, until it is given up.
    assert set(answered[window:]) - {""} == {answered[window]}
    (block,) = decode_upload(bytes.fromhex(answered[window]), campaign)
    assert block.question // len(campaign.questions) == window


@pytest.mark.parametrize(
    ("mechanism", "domain", "trials"),
    [
        pytest.param("ss", 4, 300, marks=pytest.mark.long),
        pytest.param("ss", 4, 20_000, marks=pytest.mark.long),
        pytest.param("oue", 3, 20_000, marks=pytest.mark.long),
    ],
)
def test_the_audit_passes_the_jar(mechanism, domain, trials, program):
    """Its coins are the system's: a sound client fails with probability ``wrong``."""
    command = [*program, "lines"]
    document, stopwatch = single_question(mechanism, domain, 2.0), command_stopwatch(command)
    found = audit(document, command_client(command), trials, at_once=True, stopwatch=stopwatch, wrong=1e-7)
    assert found.findings == ()
    assert 1 < found.lower_bound <= 2
