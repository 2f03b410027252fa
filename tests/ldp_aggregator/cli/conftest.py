"""A command of the aggregator, run in this process."""

import json

import pytest
from drafts import draft, text

from ldp_aggregator.__main__ import main


@pytest.fixture(autouse=True)
def data(monkeypatch, tmp_path):
    """The data folder that the environment names, in the test's own; no other setting from outside."""
    monkeypatch.setenv("LDP_AGGREGATOR_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def run(capsys):
    """Exit code, standard output and standard error of a command."""

    def run_command(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(str(stop.code))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command


@pytest.fixture
def refused(run):
    """The one line in which a command says why it fails."""

    def fail(*arguments, expected=1):
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (expected, "", 1), (arguments, err)
        return err

    return fail


@pytest.fixture
def weather(run, tmp_path):
    """A function that makes a campaign; its id."""
    label, privacy = {"name": "rain", "classes": ["yes", "no"]}, {"epsilon": 4.0}

    def make(*more):
        path = tmp_path / "weather.json"
        path.write_text(json.dumps(draft(text("sky", "clouds", "blue", missing=True), label=label, privacy=privacy)))
        return run("campaign", "create", path, *more)[1].strip()

    return make
