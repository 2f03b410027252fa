"""The server-side examples run as they are written."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("forked_programs")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def shell(*command: object, given: str | None = None) -> str:
    done = subprocess.run([*map(str, command)], input=given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_runs_the_aggregator_and_another_reads_the_estimates(tmp_path):
    program = ["python", str(EXAMPLES / "run_aggregator.py"), str(EXAMPLES / "campaign.toml")]
    server = subprocess.Popen([*program, str(tmp_path / "data"), "0"], stdout=subprocess.PIPE, text=True)
    try:
        ready = re.fullmatch(r"devices contribute to (\S+) campaign (\S+)\n", server.stdout.readline())
        assert ready
        url, campaign = ready.groups()
        given = json.dumps({"record": {"age": "young", "income": 10_000}, "label": "yes"})
        contribute = ["ldp-client", "contribute", url, campaign]
        shell(*contribute, "--storage", tmp_path / "device.db", given=given)
        token = shell("ldp-aggregator", "token", "create", "--scope", "collector", "--data", tmp_path / "data").strip()
        read = shell("python", EXAMPLES / "read_estimates.py", url, campaign, token)
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=30) == 0
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    reports = [int(number) for number in re.findall(r": (\d+) reports by", read)]
    assert len(reports) == 3
    assert sum(reports) == 1
    assert "young and yes" in read
    assert "the label alone" in read


def test_nodes_gossip_over_http_until_all_have_the_merged_model():
    told = shell("python", EXAMPLES / "gossip_http.py", 6, 40)
    deviation = re.fullmatch(r"6 nodes, 40 rounds: no node is further than (\S+) from the merged model\n", told)
    assert 0 <= float(deviation[1]) < 1e-3
    early = ["python", str(EXAMPLES / "gossip_http.py"), "6", "2"]
    stopped = subprocess.run(early, capture_output=True, text=True, timeout=120, check=False)
    assert (stopped.returncode, "more rounds are needed" in stopped.stderr) == (1, True)


def test_a_simulated_campaign_gets_better_with_epsilon_and_never_beats_no_privacy_by_much():
    told = shell("python", EXAMPLES / "simulate_a_campaign.py")
    accuracy = [float(number) for number in re.findall(r"accuracy (\d\.\d+)", told)]
    *private, baseline, majority = accuracy
    assert len(private) == 4
    assert majority < private[-1] <= baseline + 0.01
    assert private[0] <= private[-1] + 0.01


def test_three_regions_of_which_one_is_cut_off_for_a_while_become_one_tally_exactly():
    # It kills a server, which a fork would outlive by a moment.
    told = shell(sys.executable, EXAMPLES / "regions.py", 90).splitlines()
    assert told[0] == "west is cut off: 30 devices wait; the others are summed up without it"
    assert [line.partition(" ")[2] for line in told[1:4]] == [f"{number} reports or shares" for number in (60, 60, 90)]
    assert told[4] == "90 devices in three regions: the sum is exact"
