"""The night's run goes on after a failure, tells what failed, and has commands that there are."""

import re
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def nightly(monkeypatch, tmp_path):
    """The script as a module, which writes elsewhere."""
    loader = SourceFileLoader("nightly", str(ROOT / ".ci" / "nightly"))
    module = module_from_spec(spec_from_loader("nightly", loader))
    monkeypatch.setitem(sys.modules, "nightly", module)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "TABLE", tmp_path / "nightly.txt")
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    return module


def python(program):
    return [sys.executable, "-c", program]


def test_a_failure_is_told_and_stops_nothing(nightly, monkeypatch, capsys):
    every = [
        nightly.Step("first", python("print('fine')")),
        nightly.Step("second", python("print('3 failed'); exit(2)")),
        nightly.Step("third", python("exit(5)"), skipped=5),
        nightly.Step("fourth", python("import time; time.sleep(60)"), most_hours=0.2 / 3600),
        nightly.Step("fifth", python("print('fine, too')")),
    ]
    monkeypatch.setattr(nightly, "steps", lambda seed: every)
    monkeypatch.setattr(sys, "argv", ["nightly", "--seed", "7"])
    assert nightly.main() == 1
    table = nightly.TABLE.read_text(encoding="utf-8")
    told = [re.sub(r" +[\d.]+ min +", " ", line).rstrip() for line in table.splitlines()]
    told[4] = told[4].removesuffix("KeyboardInterrupt").rstrip()  # Where it had begun, which takes a moment.
    assert told == [
        "seed 7",
        "first passed        fine",
        "second FAILED (2)    3 failed",
        "third skipped",
        "fourth FAILED (took too long)",
        "fifth passed        fine, too",
        "2 of 5 steps failed; what they said is in logs",
    ]
    assert table in capsys.readouterr().out


def test_only_the_steps_that_are_named_run(nightly, monkeypatch):
    every = [nightly.Step(name, python(f"print('{name}')")) for name in ("one", "two", "three")]
    monkeypatch.setattr(nightly, "steps", lambda seed: every)
    monkeypatch.setattr(sys, "argv", ["nightly", "two"])
    assert nightly.main() == 0
    assert [path.name for path in nightly.LOGS.iterdir()] == ["two.log"]
    monkeypatch.setattr(sys, "argv", ["nightly", "four"])
    with pytest.raises(SystemExit):
        nightly.main()


def test_every_step_is_of_something_that_is_there(nightly):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for step in nightly.steps(1):
        program, *words = step.command
        if program == "make":
            name, *variables = words
            assert re.search(rf"^{name}:", makefile, re.MULTILINE), step
            assert all(re.search(rf"^{of.partition('=')[0]} \?=", makefile, re.MULTILINE) for of in variables), step
        for word in (program, *words):
            place = word.removeprefix("--ignore=")
            if place.startswith(("tests", "benchmarks", "deploy")):
                assert (ROOT / place).exists(), step
