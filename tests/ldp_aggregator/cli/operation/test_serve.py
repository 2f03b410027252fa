"""The whole flow across processes, with the documented commands: serve, create, contribute, train, predict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request

import pytest
from daemon import Daemon

from ldp_client.answering import perturb
from protocols import Campaign, encode_upload
from protocols.wire import MEDIA_TYPE

DRAFT = {
    "version": 1,
    "title": "Weather",
    "label": {"name": "rain", "classes": ["yes", "no"]},
    "features": [{"name": "sky", "kind": "categorical", "values": ["clouds", "blue"]}],
    "privacy": {"epsilon": 4.0},
}


@pytest.fixture
def command(tmp_path):
    def run(*arguments):
        result = subprocess.run(
            [sys.executable, "-m", "ldp_aggregator", *map(str, arguments), "--data", str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
        )
        return result.stdout

    return run


def test_devices_answer_a_running_server_and_get_a_model_that_predicts(command, tmp_path):
    from ldp_aggregator import NaiveBayes

    draft = tmp_path / "draft.json"
    draft.write_text(json.dumps(DRAFT))
    with Daemon(tmp_path) as daemon:
        campaign_id = command("campaign", "create", draft).strip()
        url = f"{daemon.public}/v1/campaigns/{campaign_id}"
        with urllib.request.urlopen(url) as answer:
            campaign = Campaign.parse(answer.read(), campaign_id)
        token = command("token", "create", "--scope", "relay", "--name", "all of them").split()[0]
        people = [({"sky": "clouds"}, "yes"), ({"sky": "blue"}, "no")] * 400
        reports = [report for record, label in people for report in perturb(campaign, record, label)]
        for start in range(0, len(reports), 100):
            request = urllib.request.Request(
                f"{url}/reports",
                encode_upload(reports[start : start + 100]),
                {"Content-Type": MEDIA_TYPE, "Authorization": f"Bearer {token}"},
            )
            with urllib.request.urlopen(request) as answer:
                assert json.loads(answer.read()) == {"rejected": []}
        assert command("train", campaign_id).startswith("model version 1 from 800 reports is published\n")
        with urllib.request.urlopen(f"{url}/model") as answer:
            model = NaiveBayes.from_json(answer.read())
        assert daemon.stop() == 0
    pandas = pytest.importorskip("pandas")
    assert list(model.predict(pandas.DataFrame({"sky": ["clouds", "blue"]}))) == ["yes", "no"]
    assert "800" in command("campaign", "list")


def test_a_taken_port_fails_in_one_line(tmp_path):
    with Daemon(tmp_path) as daemon:
        port = daemon.public.rpartition(":")[2]
        result = subprocess.run(
            [
                sys.executable,
                "-m",
                "ldp_aggregator",
                "serve",
                "--listen",
                f"127.0.0.1:{port}",
                "--listen-admin",
                "0",
            ],
            env=os.environ | {"LDP_AGGREGATOR_DATA": str(tmp_path / "other")},
            capture_output=True,
            text=True,
        )
    assert result.returncode == 1
    assert result.stderr.startswith("ldp-aggregator: cannot listen: ")
    assert result.stderr.count("\n") == 1
