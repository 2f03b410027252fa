"""Devices, a relay and an aggregator, each as it is run: what the relay vouches for arrives, and is stated."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from daemon import Daemon
from drafts import draft, text

from ldp_client import Device

pytestmark = pytest.mark.usefixtures("forked_programs")

LABEL = {"name": "late", "classes": ["yes", "no"]}
DRAFT = draft(text("age", "young", "old", missing=True), label=LABEL, privacy={"epsilon": 1.0, "answers": "all"})
BATCH = 6
SECONDS = 60


def command(data: Path, *arguments: object) -> str:
    line = ["ldp-aggregator", *map(str, arguments), "--data", str(data)]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=SECONDS).stdout


def contribute(url: str, campaign: str, storage: Path) -> None:
    with Device(storage, max_total_epsilon=10) as device:
        joined = device.campaign(url, campaign, max_epsilon=10)
        joined.grant()
        joined.fetch()
        joined.contribute({"age": "old"}, "yes")
        assert device.run_once(SECONDS)


def wait_for(reports: int, data: Path, campaign: str) -> dict:
    deadline = time.monotonic() + SECONDS
    while True:
        shown = json.loads(command(data, "campaign", "show", campaign, "--json"))
        if shown["reports"] == reports or time.monotonic() > deadline:
            return shown
        time.sleep(0.2)


def test_what_a_relay_vouches_for_is_stated_until_a_device_goes_round_it(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "draft.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    with Daemon(data) as daemon:
        campaign = command(data, "campaign", "create", tmp_path / "draft.json").strip()
        token = tmp_path / "relay.token"
        token.write_text(command(data, "token", "create", "--scope", "relay"), encoding="ascii")
        line = ["ldp-client", "relay", daemon.public, campaign, "--port", "0", "--gather", "0"]
        line += ["--storage", str(tmp_path / "relay.db"), "--least-batch", str(BATCH), "--token-file", str(token)]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as relay:
            try:
                url = "http://" + re.search(r"relaying on (\S+)", relay.stdout.readline())[1]
                for number in range(2 * BATCH):
                    contribute(url, campaign, tmp_path / f"device{number}.db")
                    if number + 1 in (BATCH, 2 * BATCH):
                        shown = wait_for(2 * (number + 1), data, campaign)
            finally:
                relay.terminate()
        told = shown["relayed"]
        assert (told["reports"], told["least_batch"], told["otherwise"]) == (4 * BATCH, BATCH, 0)
        assert told["guarantee"]["reports"] == BATCH
        collector = command(data, "token", "create", "--scope", "collector").strip()
        ask = urllib.request.Request(
            f"{daemon.public}/v1/campaigns/{campaign}/estimates", headers={"Authorization": f"Bearer {collector}"}
        )
        with urllib.request.urlopen(ask, timeout=SECONDS) as answer:
            assert json.loads(answer.read())["relayed"] == told
        trained = command(data, "train", campaign, "--anyway")
        assert "to who runs the server: epsilon = " in trained
        assert "the relay does not collude" in trained
        contribute(daemon.public, campaign, tmp_path / "direct.db")
        assert wait_for(4 * BATCH + 2, data, campaign)["relayed"]["otherwise"] == 2
        trained = command(data, "train", campaign, "--anyway")
        assert "nothing beyond the local guarantee: at least 2 of 26 reports came otherwise" in trained
