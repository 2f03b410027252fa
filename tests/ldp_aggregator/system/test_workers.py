"""Several processes behind one set of ports, one that dies among them; and how a server leaves."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from cells import cell_report
from daemon import Daemon
from uploader import Uploaders, post

from ldp_aggregator.server import workers
from ldp_aggregator.server.sockets.listener import Listeners
from ldp_aggregator.server.workers import Crew
from ldp_aggregator.service.settings import Settings
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


def test_workers_share_one_port_and_count_each_report_once(kept_in_database):
    kept = kept_in_database
    campaign = kept.publish(600)
    uploads = uploads_of(campaign, range(600))
    with Daemon(kept.folder, "--workers", "2", **kept.environment) as daemon:
        uploaders = [Uploaders(lambda: daemon.public, campaign, uploads, 4) for _ in range(2)]
        for uploader in uploaders:
            uploader.join()
            assert uploader.refusals == []
        with urllib.request.urlopen(daemon.operations + "/metrics", timeout=10) as answer:
            values = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[0] != "#")
        assert values['ldp_reports_total{outcome="counted"}'] == "600.0", "of both workers together"
        assert any(name.startswith("ldp_build_info{") for name in values)
        assert daemon.stop() == 0
    assert kept.tally(campaign).counts[0].tolist() == [1] * 600
    assert kept.check() == []


def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(kept_in_database):
    kept = kept_in_database
    campaign = kept.publish(600)
    uploads = uploads_of(campaign, range(600))
    with Daemon(kept.folder, "--workers", "2", **kept.environment) as daemon:
        children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children")
        if not children.exists():
            pytest.skip("only Linux lists the children of a process")

        def crew():
            pids = children.read_text().split()
            return {pid for pid in pids if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()}

        before = crew()
        uploaders = Uploaders(lambda: daemon.public, campaign, uploads, 4)
        os.kill(int(min(before)), signal.SIGKILL)
        becomes(2, lambda: len(crew() - {min(before)}))
        uploaders.join()
        assert uploaders.refusals == []
        assert post(daemon.public, campaign, uploads[0]) == (200, {"rejected": []})
        assert daemon.process.poll() is None
        assert daemon.stop() == 0
    log = [json.loads(line) for line in (kept.folder / "daemon.log").read_text().splitlines()]
    assert [line["worker"] for line in log if line["event"] == "a worker died and is replaced"] == [int(min(before))]
    assert kept.tally(campaign).counts[0].tolist() == [1] * 600
    assert kept.check() == []


def test_workers_that_go_on_dying_end_the_server(monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "_work", lambda *_: os._exit(3))
    monkeypatch.setattr(workers, "FIRST_DELAY_SECONDS", 0.0)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    settings = Settings(data=tmp_path, database="postgresql://x", host="127.0.0.1", port=0, admin_port=0, workers=2)
    crew = Crew(settings, Listeners(None, None, None))
    crew._spawn = multiprocessing.get_context("fork")
    crew.start()
    crew.keep()
    assert not crew.stopping, "it gave up by itself"


def test_readiness_goes_first_and_the_server_serves_on_until_the_pause_is_over(kept_in_file):
    campaign = kept_in_file.publish(64)
    uploads = uploads_of(campaign, range(3))
    with Daemon(kept_in_file.folder, LDP_AGGREGATOR_LIMITS__PAUSE_SECONDS="600") as daemon:
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


def test_workers_pause_too_and_only_another_signal_ends_it(kept_in_database):
    kept = kept_in_database
    campaign = kept.publish(64)
    uploads = uploads_of(campaign, range(20))
    with Daemon(
        kept.folder, "--workers", "2", LDP_AGGREGATOR_LIMITS__PAUSE_SECONDS="600", **kept.environment
    ) as daemon:
        daemon.process.send_signal(signal.SIGTERM)
        for _ in range(20):
            becomes((503, "stopping"), lambda: fetch(daemon.operations + "/readyz"))
        for upload in uploads:
            time.sleep(0.05)
            assert post(daemon.public, campaign, upload)[0] == 200
        assert daemon.process.poll() is None
        assert daemon.stop() == 0
    assert kept.tally(campaign).n.tolist() == [20]


def test_ctrl_c_does_not_wait_for_the_pause(kept_in_file):
    with Daemon(kept_in_file.folder, LDP_AGGREGATOR_LIMITS__PAUSE_SECONDS="600") as daemon:
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.process.wait(PATIENCE) == 0
