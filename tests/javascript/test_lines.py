"""The JavaScript client as a program of lines, the audit of the bundled file by it, and the reading of a record."""

import json
import subprocess
from pathlib import Path

import pytest
from line_programs import answers_every_line, passes_the_audit
from series_clients import answers_once_in_a_life

JAVASCRIPT = Path(__file__).resolve().parents[2] / "javascript"
LINES = JAVASCRIPT / "test" / "lines.mjs"
RECORD = JAVASCRIPT / "dist" / "core.js"
SCRIPT = """
import { held, numberOf, position, textOf, valueIndex } from "RECORD";
const hostile = new Proxy({}, { get() { throw new Error("asked"); }, has() { throw new Error("asked"); } });
const nothing = [undefined, null, NaN, Symbol("1"), () => 1, [1], [], {}, new Date(0), new Number(1), new String("1"),
  /1/, new Map(), hostile];
const flag = { kind: "categorical", values: ["0", "1"] };
console.log(JSON.stringify({
  nothing: nothing.map((value) =>
    [textOf(value), Number.isNaN(numberOf(value)), position(value, ["1"]), valueIndex(flag, value)]),
  one: [1, 1n, 1.0, true, "1"].map((value) => [textOf(value), numberOf(value), valueIndex(flag, value)]),
  large: [2n ** 53n + 1n, 2 ** 53 + 2, 1e21, 10n ** 200n, 1n - 10n ** 200n].map(textOf).map((t) => t && [t.length, t]),
  held: [held(hostile, "flag"), held(null, "flag"), held(undefined, "flag"), held({ flag: 1 }, "flag")],
}));
"""
"""Reading a record: what only JavaScript can hold, and what throws, is missing or means what it means."""


def test_a_line_that_must_be_refused_is_answered_with_its_code_and_the_next_one_is_answered_too(node):
    answers_every_line([node, str(LINES)])


@pytest.mark.parametrize(
    ("mechanism", "domain", "trials"),
    [
        ("ss", 4, 100),
        pytest.param("ss", 4, 20_000, marks=pytest.mark.long),
        pytest.param("oue", 3, 20_000, marks=pytest.mark.long),
    ],
)
def test_the_audit_passes_the_bundled_file(mechanism, domain, trials, node):
    passes_the_audit([node, str(LINES)], mechanism, domain, trials)


def test_a_record_is_read_as_what_it_means_and_whatever_else_is_missing_and_throws_nothing(node):
    script = SCRIPT.replace("RECORD", RECORD.as_uri())
    command = [node, "--input-type=module", "--eval", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["nothing"]) == 14
    assert all(found == [None, True, -1, None] for found in told["nothing"])
    assert told["one"] == [["1", 1, 1]] * 5
    assert told["large"][:3] == [[16, "9007199254740993"], [16, "9007199254740994"], [22, "1" + "0" * 21]]
    assert told["large"][3:] == [None, [201, "-" + "9" * 200]]
    assert told["held"] == [None, None, None, 1]


def test_in_a_series_a_device_sends_once_in_its_life_in_the_window_that_its_report_names(node):
    answers_once_in_a_life([node, str(LINES)])


def test_a_campaign_with_a_crowd_is_answered_sealed_under_caps_that_it_needs(node):
    accepted = json.loads((JAVASCRIPT.parent / "protocols" / "vectors" / "crowd.json").read_text())["accepted"]
    (document,) = (case["document"] for case in accepted if case["name"] == "without an issuer")
    asked = {"record": {"colour": "red", "age": 41}, "label": "yes"}
    lines = [asked | {"document": document}, asked | {"device": "a", "sealed": True}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([node, LINES], input=text, capture_output=True, text=True, timeout=60, check=True)
    plain, sent = done.stdout.splitlines()
    assert bytes.fromhex(plain)[0] == 0x92
    told = [bytes.fromhex(one).split(b" ")[0] for one in sent.split()]
    assert told == [b"GET", b"POST"], "how it stands is asked of the relay, and the answer goes there"
