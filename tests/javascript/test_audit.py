"""The audit of the bundled file, from outside: lines in, bytes out."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from ldp_aggregator.cli.program import run

LINES = Path(__file__).resolve().parents[2] / "javascript" / "test" / "lines.mjs"


@pytest.mark.parametrize("trials", ["300", pytest.param("20000", marks=pytest.mark.long)])
@pytest.mark.parametrize(("mechanism", "domain"), [("ss", "4"), ("oue", "3")])
def test_the_audit_passes_the_bundled_file(mechanism, domain, trials, capsys, node):
    asked = ["--mechanism", mechanism, "--domain", domain, "--epsilon", "2", "--trials", trials]
    code = run(["audit", *asked, "--json", "--command", shlex.join([node, str(LINES)])])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["findings"]) == (0, [])
    assert 1 < told["lower_bound"] <= 2
