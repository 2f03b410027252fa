"""The clients for phones as programs of lines: the same bytes as Python's, one window of a series, and the audit.

No outcome of random campaigns is a matter of chance: seeds are fixed, and every single difference fails.
"""

import pytest
from differential import compare
from line_programs import answers_every_line, passes_the_audit
from series_clients import answers_once_in_a_life

FEW, MANY, AT_ONCE = 300, 10_000, 500


def test_a_line_that_must_be_refused_is_answered_with_its_code_and_the_next_one_is_answered_too(program):
    answers_every_line([*program, "lines"])


def test_in_a_series_a_device_sends_once_in_its_life_in_the_window_that_its_report_names(program):
    answers_once_in_a_life([*program, "lines"])


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
