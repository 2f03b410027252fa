"""A process that delivers to a real aggregator, killed at random instants: one report each, nothing twice."""

import random
import subprocess
import time

import pytest
from drafts import draft, text
from served import Served

DRAFT = draft(text("u", "1", "2"))


@pytest.fixture
def served(tmp_path, forked_programs):
    made = Served(tmp_path)
    with made.daemon:
        yield made


@pytest.mark.parametrize("devices", [4, pytest.param(100, marks=pytest.mark.long)])
def test_whoever_is_killed_at_a_random_instant_reports_once(devices, program, served, tmp_path):
    campaign = served.create(DRAFT)
    rng = random.Random("kills")
    killed, said = 0, []
    life = 1.0
    for device in range(devices):
        command = [*program, "deliver", served.daemon.public, campaign, str(tmp_path / f"device {device}")]
        doomed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.2, 1) * life)
        doomed.kill()
        killed += doomed.wait() != 0
        begun = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        life = time.monotonic() - begun  # of a process that nobody kills, on this machine, now
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    assert killed > devices / 4
    # A second answer would have the same id and other bytes, and the server would have refused it.
    assert all(line.lower().startswith("arrived true [") and line.count(",") == 0 for line in said), said
    assert len(set(said)) == served.shown(campaign, devices)["reports"] == devices


def test_processes_of_one_storage_report_once_between_them(program, served, tmp_path):
    campaign = served.create(DRAFT)
    command = [*program, "deliver", served.daemon.public, campaign, str(tmp_path / "device")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = {process.communicate(timeout=120)[0].strip() for process in running}
    assert len(said) == served.shown(campaign, 1)["reports"] == 1
    assert said.pop().lower().startswith("arrived true [")
