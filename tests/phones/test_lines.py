"""The clients for phones as programs of lines: the same bytes as Python's, one window of a series, and the audit.

No outcome of random campaigns is a matter of chance: seeds are fixed, and every single difference fails.
"""

from datetime import timedelta

import pytest
from differential import compare
from line_programs import answers_every_line, ask, passes_the_audit
from vector_files import FILES

from protocols import Campaign, decode_upload

FEW, MANY, AT_ONCE = 300, 10_000, 500


def test_a_line_that_must_be_refused_is_answered_with_its_code_and_the_next_one_is_answered_too(program):
    answers_every_line([*program, "lines"])


def test_a_device_of_a_series_answers_in_its_window_and_in_no_other(program):
    document = next(case["document"] for case in FILES["documents"]["accepted"] if case["name"] == "series")
    campaign = Campaign.parse(document.encode())
    line = {"document": document, "record": {"colour": "green"}, "label": "yes", "device": "1"}
    days = [campaign.windows.opens(window) + timedelta(hours=1) for window in range(campaign.windows.count)]
    answered = ask([*program, "lines"], *({**line, "now": f"{day:%Y-%m-%dT%H:%M:%SZ}"} for day in days))
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
def test_the_audit_passes_the_client(mechanism, domain, trials, program):
    passes_the_audit([*program, "lines"], mechanism, domain, trials)


@pytest.mark.parametrize(
    ("first", "end"),
    [(0, FEW), *(pytest.param(n, n + AT_ONCE, marks=pytest.mark.long) for n in range(0, MANY, AT_ONCE))],
)
def test_random_campaigns_and_scripted_coins_give_the_same_bytes_as_python(first, end, program):
    compare([*program, "differential"], first, end)
