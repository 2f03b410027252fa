"""The audit of the bundled file, from outside: lines in, bytes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldp_aggregator.audit import audit, command_client, command_stopwatch
from ldp_aggregator.cli.audit import single_question

LINES = Path(__file__).resolve().parents[2] / "javascript" / "test" / "lines.mjs"


@pytest.mark.parametrize(
    ("mechanism", "domain", "trials"),
    [
        ("ss", 4, 300),
        pytest.param("ss", 4, 20_000, marks=pytest.mark.long),
        pytest.param("oue", 3, 20_000, marks=pytest.mark.long),
    ],
)
def test_the_audit_passes_the_bundled_file(mechanism, domain, trials, node):
    """Its coins are the system's: a sound client fails with probability ``wrong``."""
    command = [node, str(LINES)]
    document, client, stopwatch = (
        single_question(mechanism, domain, 2.0),
        command_client(command),
        command_stopwatch(command),
    )
    found = audit(document, client, trials, at_once=True, stopwatch=stopwatch, wrong=1e-7)
    assert found.findings == ()
    assert 1 < found.lower_bound <= 2
