"""A server leaves: readiness goes first, and it serves on until the pause is over."""

from __future__ import annotations

import json
import signal
import time
import urllib.error
import urllib.request

from cells import cell_report
from daemon import Daemon
from uploader import post

from protocols import encode_upload

PATIENCE = 60


def uploads_of(campaign, numbers):
    return [encode_upload([cell_report(campaign, number)]) for number in numbers]


def fetch(url):
    """Status and code of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, json.loads(answer.read()).get("status")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())["code"]


def becomes(wanted, ask):
    deadline = time.monotonic() + PATIENCE
    while (seen := ask()) != wanted:
        assert time.monotonic() < deadline, f"{seen} and not {wanted}"
        time.sleep(0.02)


def test_readiness_goes_first_and_the_server_serves_on_until_the_pause_is_over(kept_in_file):
    campaign = kept_in_file.publish(64)
    uploads = uploads_of(campaign, range(3))
    with Daemon(kept_in_file.folder, LDP_AGGREGATOR_PAUSE_SECONDS="600") as daemon:
        assert fetch(daemon.operations + "/readyz") == (200, "ready")
        assert post(daemon.public, campaign, uploads[0])[0] == 200
        daemon.process.send_signal(signal.SIGTERM)
        becomes((503, "stopping"), lambda: fetch(daemon.operations + "/readyz"))
        assert fetch(daemon.operations + "/healthz") == (200, "ok")
        assert post(daemon.public, campaign, uploads[1])[0] == 200, "whoever was sent here still gets an answer"
        assert daemon.process.poll() is None
        assert daemon.stop() == 0, "another SIGTERM ends the pause"
    events = [json.loads(line)["event"] for line in (kept_in_file.folder / "daemon.log").read_text().splitlines()]
    assert events[-3:] == ["leaving", "stopping", "stopped"]
    assert kept_in_file.tally(campaign).n.tolist() == [2]


def test_ctrl_c_does_not_wait_for_the_pause(kept_in_file):
    with Daemon(kept_in_file.folder, LDP_AGGREGATOR_PAUSE_SECONDS="600") as daemon:
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.process.wait(PATIENCE) == 0
