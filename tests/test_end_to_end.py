"""The demonstration from a shell, and what a relay vouches for, across processes; the tutorial runs in ``pages``."""

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from buyers import write_table
from drafts import draft, text
from served import SECONDS, Served

from ldp_client import Device

pytestmark = pytest.mark.usefixtures("forked_programs")

DEMO = ["ldp-simulate", "demo"]
LATE = {"name": "late", "classes": ["yes", "no"]}
RELAYED = draft(text("age", "young", "old", missing=True), label=LATE, privacy={"epsilon": 1.0, "answers": "all"})
BATCH = 6


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    with made.daemon:
        yield made


def test_the_demonstration_runs_trains_and_leaves_nothing_behind(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [*DEMO, "--devices", "300", "--json", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=environment)
    figures = json.loads(done.stdout)
    assert (figures["devices"], figures["accepted"], figures["refused"]) == (300, 300, {})
    assert (figures["people"], figures["held_out"], figures["resampled"]) == (455, 114, False)
    assert (figures["epsilon"], figures["answers_per_device"]) == (2, 1)
    assert 0 < figures["realised_epsilon"] <= 2
    assert figures["on_a_device"]["right"] == round(figures["accuracy"]["private"] * 114)
    # 300 devices at epsilon 2: far above the majority class, below the 455 records themselves.
    assert figures["accuracy"]["majority"] + 0.1 < figures["accuracy"]["private"]
    assert list(tmp_path.iterdir()) == []
    told = [line.split("s  ", 1)[1].strip() for line in done.stderr.splitlines()]
    assert told[0] == "an aggregator starts, in a temporary folder"
    assert [line.split()[0] for line in told if "the model is right for" in line] == ["100", "300"]


def test_the_demonstration_takes_a_table_of_your_own_and_says_what_must_be_replaced(tmp_path):
    table = str(write_table(tmp_path / "people.csv"))
    command = [*DEMO, "--data", table, "--label", "sold", "--devices", "100", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "96 of its people are resampled to 100 devices" in done.stdout
    _, accuracies = done.stdout.split("  Accuracy on the 24 people held out\n")
    for told in ("always yes", "learned from the devices' reports", "the same, learned without privacy"):
        assert re.search(rf"^    [01]\.\d{{3}} ± 0\.\d{{3}}  {told}", accuracies, re.MULTILINE), told
    assert "the bounds of size (0 to 60)" in done.stderr
    assert "the 2 values of colour" in done.stderr


def test_the_demonstration_stays_when_asked_until_it_is_told_to_stop(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [*DEMO, "--devices", "60", "--seed", "3", "--keep"]
    demo = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        lines = iter(demo.stderr.readline, "")
        dashboard = next(line.split()[-1] for line in lines if "dashboard" in line)
        token = next(line.split()[-1] for line in lines if "opens with" in line)
        public = next(line.split()[-1] for line in lines if "Public page" in line)
        assert token.startswith("ldp_")
        for address, shown in ((dashboard, "Sign in"), (public, "Noise lab")):
            with urllib.request.urlopen(address, timeout=60) as page:
                assert shown in page.read().decode()
    finally:
        demo.terminate()
        demo.communicate(timeout=60)
    assert demo.returncode == 0
    assert list(tmp_path.iterdir()) == []


def contribute(url: str, campaign: str, storage: Path) -> None:
    with Device(storage, max_total_epsilon=10) as device:
        joined = device.campaign(url, campaign, max_epsilon=10)
        joined.grant()
        joined.fetch()
        joined.contribute({"age": "old"}, "yes")
        assert device.run_once(SECONDS)


def test_what_a_relay_vouches_for_is_stated_until_a_device_goes_round_it(served, tmp_path):
    campaign = served.create(RELAYED)
    with served.relay(campaign, tmp_path, BATCH) as url:
        for number in range(2 * BATCH):
            contribute(url, campaign, tmp_path / f"device{number}.db")
            if number + 1 in (BATCH, 2 * BATCH):
                shown = served.shown(campaign, 2 * (number + 1))
    told = shown["relayed"]
    assert (told["reports"], told["least_batch"], told["otherwise"]) == (4 * BATCH, BATCH, 0)
    assert told["guarantee"]["reports"] == BATCH
    collector = served.ask("token", "create", "--scope", "collector")
    ask = urllib.request.Request(
        f"{served.daemon.public}/v1/campaigns/{campaign}/estimates", headers={"Authorization": f"Bearer {collector}"}
    )
    with urllib.request.urlopen(ask, timeout=SECONDS) as answer:
        assert json.loads(answer.read())["relayed"] == told
    trained = served.ask("train", campaign, "--anyway", "--explain")
    assert "Who runs the server is, of one device, at most " in trained
    assert "the relay does not collude" in trained
    contribute(served.daemon.public, campaign, tmp_path / "direct.db")
    assert served.shown(campaign, 4 * BATCH + 2)["relayed"]["otherwise"] == 2
    trained = served.ask("train", campaign, "--anyway")
    assert "sure: at least 2 of 26 reports came otherwise" in trained
