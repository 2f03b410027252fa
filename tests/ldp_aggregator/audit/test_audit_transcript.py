"""What audits of planted leaks say, word by word, and how a verdict is told, against a transcript.

``transcript.txt`` stands beside this file. Where a change of it is meant, the failure names the new one to put there.
Of what is chosen among many events only the code stands in it: two machines may choose differently among equals.
"""

from difflib import unified_diff
from pathlib import Path

import leaking_answers
import leaking_around
import numpy as np
import pytest
from audited_campaigns import campaign
from sound_clients import Vectorised

from ldp_aggregator.audit import audit
from ldp_aggregator.audit.asking import asked_again
from ldp_aggregator.audit.asking.black_box import Person
from ldp_aggregator.audit.power import Floor
from ldp_aggregator.audit.searching.events import ALONE, BLOCK, COMPANY, SIDE, WHOLE, Event
from ldp_aggregator.audit.verdict import BEFORE, BESIDE, IMPOSSIBLE, LOSS, SHARE, Audit, Finding, markdown
from ldp_aggregator.cli.audit import _tell

STORED = Path(__file__).with_name("transcript.txt")
CHOSEN = {LOSS, IMPOSSIBLE, SHARE, BESIDE, BEFORE}
LEAKS = leaking_answers.LEAKING | leaking_around.LEAKING
TRIALS = {
    "list-not-shuffled": 40,
    "ids-count-by-class": 40,
    "seeded-with-15-bits": 40,
    "secrets-and-coins-from-a-constant-seed": 40,
    "class-in-the-version": 4,
    "trailing-byte-by-class": 4,
    "recoverable-twister": 60,
    "coins-shared-by-neighbours": 80,
    "noise-from-the-id": 160,
    "fresh-noise-under-the-same-id": 20,
    "stored-for-one-class": 20,
    "fresh-noise-at-the-third-send": 20,
    "study-answered-twice": 20,
}


def lines_of(name, client, document, trials):
    found = audit(document, client, trials, rng=np.random.default_rng(1))
    told = found.to_json()
    yield f"{name}: {trials} trials of {told['people']} people, {told['drawn']} drawn; {told['uploads']} uploads"
    yield f"  claim {found.claim:g}, stated {found.stated:.6g}, passed {told['passed']}"
    yield f"  {', '.join(sorted({one.code for one in found.findings})) or 'nothing'}"
    yield from (f"  {one.code}: {one.text}" for one in found.findings if one.code not in CHOSEN)
    yield from (f"  {text}" for text in found.floor.sentences()[1:])


def verdict():
    """One of every kind of event, with numbers that are all different."""
    one, other = Person({"f0": "1"}, "c0"), Person({"f0": "2"}, "c1")
    events = (
        Event("first", WHOLE, 1.0, (0,), one, other, 61, 101, 23, 109).bounded(0.01),
        Event("second", BLOCK, 0.5, (1,), one, None, 31, 51, 3, 59).bounded(0.01),
        Event("third", SIDE, 0.0, (0, 1), other, one, 41, 71, 33, 79).bounded(0.01),
        Event("fourth", COMPANY, 0.0, (1,), other, other, 11, 21, 5, 29).bounded(0.01),
        Event("fifth", ALONE, 1.0, (), one, other, 40, 48, 8, 48, guessed=True, people=3).bounded(0.01),
        Event("sixth", WHOLE, 1.0, (), one, None, 9, 17, 4, 19, guessed=True, people=5).bounded(0.01),
    )
    findings = (Finding(LOSS, "a loss"), Finding("seed-guessed", "a seed"), Finding(LOSS, "another"))
    return Audit(1.0, 1.25, 77, (one, other, one), 1, 345, events, findings, Floor(1.5, 0.031, 0.0042, 0.00123))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_audits_of_planted_leaks_say_what_the_transcript_has(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(asked_again, "LIVES", 4)
    lines = list(lines_of("sound", Vectorised(1), campaign(3, 3, label=1), 40))
    for name, trials in TRIALS.items():
        lines += lines_of(name, LEAKS[name].client(), LEAKS[name].document, trials)
    made = verdict()
    _tell(made)
    lines += ["", *map(str, made.events), "", capsys.readouterr().out, markdown(made, campaign(3), "the client")]
    fresh = tmp_path / "transcript.txt"
    fresh.write_text("\n".join(lines), encoding="utf-8")
    now = fresh.read_text("utf-8").splitlines()
    change = unified_diff(STORED.read_text("utf-8").splitlines(), now, "stored", "now", lineterm="", n=1)
    assert list(change) == [], f"if that is meant, it stands in {fresh}"
