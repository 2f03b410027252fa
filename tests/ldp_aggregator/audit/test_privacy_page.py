"""What docs/privacy.md and docs/audit.md say is so."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from drafts import draft, text

from ldp_aggregator.cli.program import parse, run
from ldp_client.testing.lines import answers
from protocols import Campaign
from protocols.drafting.compiling import make_sign
from protocols.mechanisms import DISCRETE, MOMENTS

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "privacy.md").read_text(encoding="utf-8")
AUDIT = (DOCS / "audit.md").read_text(encoding="utf-8")


def test_its_commands_are_commands_and_the_help_names_the_audit(capsys):
    for line in re.findall(r"`ldp-aggregator (.*?)`", PAGE):
        assert parse(line.split()).command
    with pytest.raises(SystemExit):
        run(["audit", "--help"])
    assert "lower bound" in capsys.readouterr().out


def test_its_lines_are_answered():
    label = {"name": "y", "classes": ["yes", "no"]}
    document = Campaign.compile(draft(text("age", "young", "old"), label=label)).document.decode()
    lines = re.search(r"```text\n(.*?)```", AUDIT, re.DOTALL)[1].splitlines()
    lines[0] = lines[0].replace(re.search(r'"document": (".*?\.\.\.}")', lines[0])[1], json.dumps(document))
    first, *again = answers([*lines, lines[-1], '{"record": {}, "label": "maybe"}'])
    assert len(bytes.fromhex(first)) > 20
    assert again[-3] == again[-2]
    assert again[-1] == "!undeclared-label"
    with pytest.raises(ValueError, match="needs a document"):
        next(answers(['{"record": {}, "label": "yes"}']))


def test_its_numbers_are_the_ones_computed_and_every_mechanism_has_its_bound_for_liars():
    assert f"({float(DISCRETE['the'].make(8, Fraction(1)).loss()):.3f} at epsilon 1)" in PAGE
    oue = DISCRETE["oue"].make(8, Fraction(1))
    gap = float(oue.p - oue.q)
    assert f"p - q\nis {gap:.2f} for `oue`: 1 % of liars move a frequency by up to {0.01 / gap:.3f}" in PAGE
    sign = make_sign(2, Fraction(1))
    onebit, laplace = (MOMENTS[name].make(2, Fraction(1)) for name in ("onebit", "laplace"))
    assert f"{2 / float(sign.p - sign.q):.1f} / n with `sign`" in PAGE
    assert f"by {2 / (2 * float(onebit.p) - 1):.1f} / D" in PAGE
    assert f"by {2 * laplace.bound / 2**laplace.grid:.0f} / n with `laplace`" in PAGE
    table = PAGE[PAGE.index("| estimate | per liar |") : PAGE.index("p and q are the mechanism's")]
    assert set(re.findall(r"`(\w+)`", table)) >= {*DISCRETE, *MOMENTS, "sign"}
