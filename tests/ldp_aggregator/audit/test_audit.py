"""The audit's parts: its bounds hold, its search sees what it should, a broken client is told from a leaking one."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import sys
from pathlib import Path

import msgpack
import numpy as np
import pytest
from mutants import Copy, RealClient, question, two_features
from scipy.stats import binom

from ldp_aggregator.audit import BlackBoxError, Person, audit, command_client
from ldp_aggregator.audit.bounds import loss_bound
from ldp_aggregator.audit.observations import observe
from ldp_aggregator.audit.people import pairs
from ldp_aggregator.audit.search import find_events
from ldp_aggregator.cli import run
from ldp_aggregator.cli.audit import REFERENCE

JAVASCRIPT = Path(__file__).resolve().parents[3] / "examples" / "javascript" / "lines.mjs"


def upload(number, payload):
    return msgpack.packb([1, [[number, bytes(16), payload]]])


def test_a_bound_is_wrong_no_more_often_than_it_says():
    """Exactly, by summing over all outcomes of two binomials with ln(p / q) = ln 2."""
    trials, p, q, alpha = 60, 0.5, 0.25, 0.1
    counts = np.arange(trials + 1)
    bounds = loss_bound(counts[:, None], trials, counts[None, :], trials, alpha)
    joint = binom.pmf(counts, trials, p)[:, None] * binom.pmf(counts, trials, q)[None, :]
    wrong = joint[bounds > np.log(2)].sum()
    assert 0 < wrong <= alpha


def test_nothing_seen_proves_nothing_and_everything_seen_of_both_proves_nothing():
    assert loss_bound(0, 100, 0, 100, 0.01) == -np.inf
    assert loss_bound(100, 100, 100, 100, 0.01) < 0


def test_what_was_never_seen_of_the_other_proves_a_loss_that_grows_with_the_trials():
    few, many = (float(loss_bound(n // 2, n, 0, n, 0.01)) for n in (100, 10_000))
    assert 1 < few < many - 4


def test_the_pairs_differ_in_everything_in_one_thing_and_in_what_is_missing():
    found = pairs(json.loads(two_features()))
    whole = found[0]
    assert all(whole[0].record[name] != whole[1].record[name] for name in ("u", "v"))
    assert whole[0].label != whole[1].label
    assert any(one.record == other.record and one.label != other.label for one, other in found)
    assert any(one.record != other.record and one.label == other.label and other.record for one, other in found)
    assert any(not other.record for _, other in found)


@pytest.mark.parametrize(
    ("name", "telling"),
    [
        ("a byte", lambda rng, secret: bytes([secret, rng.randrange(256)])),
        ("the parity", lambda rng, secret: _with_parity(rng, secret)),
        ("the order", lambda rng, secret: bytes(sorted(rng.sample(range(256), 3), reverse=secret))),
        ("the length", lambda rng, secret: bytes(rng.randrange(256) for _ in range(2 + secret))),
    ],
)
def test_the_search_sees(name, telling):
    rng = random.Random(name)
    seen = [observe([upload(0, telling(rng, secret)) for _ in range(2000)]) for secret in (False, True)]
    (event, *_) = find_events(*seen)
    counts = event.count(seen[0], 1), event.count(seen[1], 1)
    assert float(loss_bound(counts[0], 1000, counts[1], 1000, 0.01)) > 2


def _with_parity(rng, secret):
    value = rng.randrange(1 << 15)
    return (2 * value + (value.bit_count() + secret) % 2).to_bytes(2, "little")


def test_the_search_finds_nothing_where_there_is_nothing():
    rng = random.Random(5)
    seen = [observe([upload(0, rng.randbytes(8)) for _ in range(4000)]) for _ in range(2)]
    for event in find_events(*seen):
        counts = event.count(seen[0], 1), event.count(seen[1], 1)
        assert float(loss_bound(counts[0], 2000, counts[1], 2000, 0.003)) < 0.1


def test_the_reference_client_answers_lines_and_repeats_itself_on_retries():
    document = two_features()
    person = Person({"u": "1", "v": "2"}, "a")
    again = [Person({"u": "1", "v": "2"}, "a", "phone"), Person({"u": "3"}, "b", "phone")]
    first, second, fresh, other = command_client(REFERENCE)(document, [*again, person, person])
    assert first == second
    assert fresh != other
    assert len({len(sent) for sent in (first, fresh, other)}) == 1


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print('x')", "not an upload in hexadecimal"),
        ("print('00')", "answered 1 of"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import sys; [print('00') for line in sys.stdin]", "not an upload: 00"),
    ],
)
def test_a_broken_client_is_told_from_a_leaking_one(program, problem):
    with pytest.raises(BlackBoxError, match=problem):
        audit(two_features(), command_client([sys.executable, "-c", program]), 5)


def test_a_command_that_does_not_exist_is_told():
    with pytest.raises(BlackBoxError, match="cannot be started"):
        command_client(["no-such-program-anywhere"])(two_features(), [])


def test_the_result_says_what_was_asked_and_seen():
    told = audit(question("de", 6, 1.0), Copy("modulo bias"), 4000).to_json()
    assert json.loads(json.dumps(told)) == told
    assert told["events"][0]["bound"] == told["lower_bound"] > told["claim"] == 1.0
    assert told["findings"][0]["code"] == "loss-above-claim"
    assert "under" in told["findings"][0]["text"]


def test_lengths_that_differ_between_questions_only_are_right():
    assert audit(question("ss", 8, 1.0), RealClient(), 500).passed


def test_the_command_passes_the_reference_client(capsys):
    code = run(["audit", "--mechanism", "oue", "--domain", "4", "--epsilon", "2", "--trials", "2000", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert told["passed"]
    assert 1.2 < told["lower_bound"] <= 2


def test_the_command_passes_the_client_in_javascript(capsys):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; the JavaScript client is audited where it is")
    command = shlex.join([node, str(JAVASCRIPT)])
    assert (
        run(["audit", "--mechanism", "ss", "--epsilon", "2", "--trials", "2000", "--json", "--command", command]) == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert 1.2 < told["lower_bound"] <= 2


LEAKING = """
import json, sys
import msgpack
for line in sys.stdin:
    asked = json.loads(line)
    print(msgpack.packb([1, [[0, bytes(16), b"\\1" if asked["label"] == "c0" else b"\\0"]]]).hex())
"""


def test_the_command_fails_a_client_that_sends_the_truth(capsys, tmp_path):
    program = tmp_path / "leaking.py"
    program.write_text(LEAKING)
    command = shlex.join([sys.executable, str(program)])
    assert run(["audit", "--mechanism", "de", "--domain", "2", "--trials", "500", "--command", command]) == 1
    told = capsys.readouterr().out
    assert "impossible-report" in told
    assert "FAILED" in told


def test_the_command_takes_a_document_of_ones_own(capsys, tmp_path):
    document = tmp_path / "document.json"
    document.write_text(two_features(), encoding="utf-8")
    assert run(["audit", "--document", str(document), "--trials", "300"]) == 0
    assert "The audit found nothing." in capsys.readouterr().out
