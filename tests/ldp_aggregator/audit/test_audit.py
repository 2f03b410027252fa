"""The audit's parts: the command asks, keeps and tells, a broken client is told from a leaking one."""

import json
import re
import shlex
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from audited_campaigns import campaign, question
from drafts import draft, text
from leaking_answers import LEAKING

from ldp_aggregator.audit import Person, audit, command_client
from ldp_aggregator.audit.asking.asked_again import another
from ldp_aggregator.audit.asking.observations import read_tables
from ldp_aggregator.audit.repeats import ids_of
from ldp_aggregator.audit.verdict import CHECKS
from ldp_aggregator.cli.audit import REFERENCE
from ldp_aggregator.cli.program import parse, run
from ldp_client.lines import answers
from ldp_protocols import Campaign
from ldp_protocols.drafting import make_sign
from ldp_protocols.mechanisms import DISCRETE, MOMENTS

SEVERAL = campaign(3, 3, label=1)
PHONE = Person({"f0": "1", "f1": "2"}, "c0", "phone")


def test_the_reference_client_answers_lines_and_repeats_itself_on_retries():
    person = Person({"f0": "1", "f1": "2"}, "c0")
    asked = [PHONE, Person({"f0": "0"}, "c1", "phone"), person, person]
    (first,), (second,), (fresh,), (other,) = command_client(REFERENCE)(SEVERAL, asked, None)
    assert first == second
    assert fresh != other
    assert len({len(sent) for sent in (first, fresh, other)}) == 1


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print('x')", "not an upload in hexadecimal"),
        ("print('00')", "answered 1 of"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import sys; [print('!capped') for line in sys.stdin]", "refuses everybody: capped"),
        ("import sys; [print('00') for line in sys.stdin]", "not an upload: 00"),
    ],
)
def test_a_broken_client_and_one_that_does_not_exist_are_told_from_a_leaking_one(program, problem):
    with pytest.raises(ChildProcessError, match=problem):
        audit(SEVERAL, command_client([sys.executable, "-c", program]), 5)
    with pytest.raises(ChildProcessError, match="cannot be started"):
        command_client(["no-such-program-anywhere"])(SEVERAL, [], None)


def test_a_program_without_storage_forgets_and_one_with_storage_survives_being_killed(tmp_path):
    changed, ask = Person({"f0": "0", "f1": "0"}, "c1", "phone"), command_client(REFERENCE)
    kept = ask(SEVERAL, [PHONE], tmp_path)
    assert kept == ask(SEVERAL, [changed], tmp_path)
    assert ask(SEVERAL, [PHONE], None) != ask(SEVERAL, [PHONE], None)
    other = ask(another(SEVERAL), [PHONE], tmp_path)
    assert set(ids_of(read_tables(kept))).isdisjoint(ids_of(read_tables(other))), "in another campaign are other ids"


def test_the_result_says_what_was_asked_and_seen():
    leak = LEAKING["rare-value-in-the-clear"]
    told = audit(leak.document, leak.client(), 400, rng=np.random.default_rng(1)).to_json()
    assert json.loads(json.dumps(told)) == told
    assert max(event["bound"] or 0 for event in told["events"]) == told["lower_bound"] > told["claim"] == 1.0
    assert told["findings"][0]["code"] in ("loss-above-claim", "impossible-report")
    assert "under" in told["findings"][0]["text"]
    assert told["floor"]["delta_one"] < 0.1  # Some 18 of the 200 uploads of a person that test.
    assert told["unseen"]


@pytest.mark.long  # starts sixty Pythons
def test_the_command_passes_the_reference_client_on_a_document_of_ones_own(capsys, tmp_path):
    """A sound client fails one audit in 1,000 at the most, two of two one time in a million."""
    page, document = tmp_path / "audit.md", tmp_path / "document.json"
    document.write_text(question("oue", 4, 2.0), encoding="utf-8")
    asked = ["--document", str(document), "--trials", "250", "--json"]
    for _ in range(2):
        code = run(["audit", *asked, "--markdown", str(page)])
        told = json.loads(capsys.readouterr().out)
        if code == 0:
            break
    assert (code, told["findings"]) == (0, [])
    assert 1 < told["lower_bound"] <= 2
    written = page.read_text(encoding="utf-8")
    assert "The audit found nothing." in written
    assert f"| loss at least (confidence 99.9 %) | {told['lower_bound']:.4g}" in written
    assert all(f"| `{code}` |" in written for code in CHECKS)


TRUTH = """
import json, os, sys
for line in sys.stdin:
    answer = "01"[json.loads(line)["label"] == "c0"]
    between = os.urandom(6) + b"\\n\\n" + os.urandom(8)  # A head of a request ends so, too.
    print("9201919300c410" + between.hex() + "c4010" + answer, flush=True)
"""


def test_the_command_fails_a_client_that_sends_the_truth(capsys, tmp_path):
    program = tmp_path / "leaking.py"
    program.write_text(TRUTH)
    command = shlex.join([sys.executable, "-I", "-S", str(program)])
    assert run(["audit", "--mechanism", "de", "--domain", "2", "--trials", "100", "--command", command]) == 1
    told = capsys.readouterr().out
    assert "impossible-report" in told
    assert "retry-differs" in told  # it keeps nothing
    assert "FAILED" in told
    assert "what is said to be sent is no request" in told  # and answers every line alike


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
    assert f"{2 / (2 * float(onebit.p) - 1):.1f} / D with `onebit`" in PAGE
    assert f"{2 * laplace.bound / 2**laplace.grid:.0f} / n with `laplace`" in PAGE
    table = PAGE[PAGE.index("| estimate | per liar |") : PAGE.index("p and q are")]
    assert set(re.findall(r"`(\w+)`", table)) >= {*DISCRETE, *MOMENTS, "sign"}
