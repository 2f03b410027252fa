"""``population``: every device through the real client over HTTP, against an aggregator of its own or a running one."""

import json
import os
import pty
import subprocess
import termios
from contextlib import suppress

import buyers
import pytest
from buyers import run, write_draft, write_table
from drafts import number

import ldp_simulations.experiment
from ldp_simulations.commands.tables import TOKEN_VARIABLE
from ldp_simulations.experiment import serving

FAILED = 1


DRAFT = {**buyers.DRAFT, "features": [buyers.DRAFT["features"][0], number("size", high=60, bins=3, missing=True)]}


@pytest.fixture(autouse=True)
def _aggregators_are_forked(forked_programs, monkeypatch):
    monkeypatch.setattr(ldp_simulations.experiment, "_PROGRAM", ("ldp-aggregator",))


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "people.csv")


@pytest.fixture
def schema(tmp_path):
    return write_draft(tmp_path / "draft.json", DRAFT)


def test_devices_answer_once_each_whatever_gets_lost_on_the_way(table, schema, capsys):
    flags = ["--data", table, "--schema", schema, "--devices", 150, "--seed", 4, "--json"]
    code, out, err = run(capsys, "population", *flags, "--lost-answers", 0.3)
    assert (code, err) == (0, "")
    figures = json.loads(out)
    counted = {"devices": 150, "accepted": 150, "refused": {}, "people": 96, "held_out": 24, "resampled": True}
    assert figures.items() >= counted.items()
    assert figures["retries"] > 10
    assert figures["bytes_per_report"] > 26
    assert figures["seconds"] > 0
    assert figures["accuracy"]["non_private"] == 1.0
    assert figures["accuracy"]["private"] > figures["accuracy"]["majority"]


def test_lying_devices_are_counted_as_any_other_and_pull_the_model_towards_their_class(table, schema, capsys):
    flags = ["--data", table, "--schema", schema, "--devices", 200, "--seed", 5, "--json"]
    told = [run(capsys, "population", *flags, *lie) for lie in ((), ("--liars", 0.5, "--target", "no"))]
    assert [code for code, _, _ in told] == [0, 0]
    honest, poisoned = (json.loads(out) for _, out, _ in told)
    assert (poisoned["devices"], poisoned["accepted"], poisoned["refused"], honest["liars"]) == (200, 200, {}, 0)
    assert abs(poisoned["liars"] - 100) < 5 * 50**0.5
    assert poisoned["predicted_shares"]["no"] >= honest["predicted_shares"]["no"]
    assert sum(poisoned["predicted_shares"].values()) == pytest.approx(1)


def test_a_running_aggregator_is_used_and_left_running(table, schema, tmp_path, capsys, monkeypatch):
    with serving(tmp_path / "data") as (url, admin_url):
        flags = ["--data", table, "--schema", schema, "--devices", 40]
        server = ["--url", url, "--admin-url", admin_url, "--aggregator-data", tmp_path / "data"]
        code, out, _ = run(capsys, "population", *flags, *server)
        assert code == 0
        assert "reports accepted  40" in out
        assert "loss of a device  at most 3 in total" in out
        code, out, _ = run(capsys, "population", *flags, *server, "--epsilon", 2, "--json")
        assert code == 0
        assert json.loads(out)["epsilon"] == 2
        monkeypatch.setenv(TOKEN_VARIABLE, "ldp_wrong")
        code, _, err = run(capsys, "population", *flags, *server[:4])
        assert code == FAILED
        assert "401" in err


def test_progress_is_for_a_terminal_and_a_pipe_gets_none(table, schema):
    words = ["ldp-simulate", "population", "--data", str(table), "--schema", str(schema)]
    words += ["--devices", "5"]
    piped = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "devices:" not in piped.stderr
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    told = bytearray()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=theirs) as running:
        os.close(theirs)
        with suppress(OSError):  # So Linux tells that nobody writes any more; elsewhere nothing is read then.
            while piece := os.read(ours, 1 << 12):
                told += piece
    os.close(ours)
    assert (running.returncode, b"devices:" in told) == (0, True)
