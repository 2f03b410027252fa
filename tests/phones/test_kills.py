"""A process that delivers to a real aggregator, killed at random instants: one report each, nothing twice."""

import asyncio
import random
import subprocess
import time

import pytest
from daemon import Daemon
from drafts import draft, text

from ldp_aggregator.store import open_store
from protocols import Campaign


async def with_store(folder, work):
    store = await open_store(folder, None)
    try:
        return await work(store)
    finally:
        await store.close()


@pytest.mark.parametrize("devices", [10, pytest.param(100, marks=pytest.mark.long)])
def test_whoever_is_killed_at_a_random_instant_reports_once(devices, program, tmp_path):
    campaign = Campaign.compile(draft(text("u", "1", "2")))
    asyncio.run(with_store(tmp_path, lambda store: store.create_campaign(campaign)))
    rng = random.Random("kills")
    killed, said = 0, []
    with Daemon(tmp_path) as daemon:
        life = 1.0
        for device in range(devices):
            command = [*program, "deliver", daemon.public, campaign.id, str(tmp_path / f"device {device}")]
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
    assert len(set(said)) == devices
    tally = asyncio.run(with_store(tmp_path, lambda store: store.tally(campaign.id)))
    assert sum(tally.n.tolist()) == devices


def test_processes_of_one_storage_report_once_between_them(program, tmp_path):
    campaign = Campaign.compile(draft(text("u", "1", "2")))
    asyncio.run(with_store(tmp_path, lambda store: store.create_campaign(campaign)))
    with Daemon(tmp_path) as daemon:
        command = [*program, "deliver", daemon.public, campaign.id, str(tmp_path / "device")]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        said = {process.communicate(timeout=120)[0].strip() for process in running}
    assert len(said) == 1
    assert said.pop().lower().startswith("arrived true [")
    tally = asyncio.run(with_store(tmp_path, lambda store: store.tally(campaign.id)))
    assert sum(tally.n.tolist()) == 1
