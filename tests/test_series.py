"""A series through the real client, HTTP and the store: everybody who is on answers once, in the one window drawn."""

import asyncio
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from cells import SteppedClock
from drafts import draft, text

from ldp_aggregator.server.process import running
from ldp_aggregator.server.sockets.listener import Listeners
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import open_store
from ldp_client import Device, MemoryStorage
from ldp_client.draw import draw_window
from ldp_client.ledger import read_installation
from ldp_client.testing import FakeClock
from ldp_protocols import Campaign
from ldp_simulations.devices import POLICY, Network

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
DAY = timedelta(days=1)
PATIENCE = 60.0
"""Of a device whose answer the server takes now; another one looks once, and again at its next start."""


class Person:
    """A device that is on now and then; every start reads what the last one has stored.

    ``world`` has the right time, as the server has; its own clock is ``ahead`` of it, and its waiting takes no time.
    """

    def __init__(self, number, url, campaign, world, network):
        self.storage, self.url, self.campaign = MemoryStorage(), url, campaign
        self.sky = "clouds" if number % 3 else "blue"
        self.ahead = DAY * (number % 10 == 1) - DAY / 3 * (number % 10 == 2)
        self.is_off = number % 10 == 3
        self.world, self.network = world, network
        _, part = self.start()
        part.grant()
        with self.storage.transaction(write=False) as transaction:
            self.window = draw_window(campaign, read_installation(transaction).secret)

    def start(self):
        device = Device(
            self.storage,
            max_total_epsilon=1,
            clock=FakeClock((self.world() + self.ahead).timestamp()),
            transport=self.network,
            policy=POLICY,
        )
        part = device.campaign(self.url, self.campaign.id, max_epsilon=1)
        part.load(self.campaign.document)
        return device, part

    def live(self, window):
        """One start of the app, in this window by the right time; returns what it was to do."""
        if self.is_off and window == self.window:
            return "off"
        device, part = self.start()
        step = part.next_step().step
        if step == "contribute":
            part.contribute({"sky": self.sky}, "yes" if self.sky == "clouds" else "no")
        device.run_once(0.2 if self.ahead > timedelta(0) else PATIENCE)
        return step


@pytest.mark.parametrize(
    ("windows", "devices"), [(3, 90), pytest.param(12, 24_000, marks=pytest.mark.long)], ids=["few", "many"]
)
async def test_everybody_who_is_on_answers_once_whatever_clocks_networks_and_restarts_do(tmp_path, windows, devices):
    world, network = SteppedClock(), Network(lost_answers=0.2, seed=1)
    world.now = START - DAY / 2
    campaign = Campaign.compile(
        draft(
            text("sky", "clouds", "blue", missing=True),
            label={"name": "rain", "classes": ["yes", "no"]},
            privacy={"epsilon": 1.0},
            windows={"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": windows},
        )
    )
    store = await open_store(tmp_path, clock=world)
    await store.create_campaign(campaign)
    settings = Settings(data=tmp_path, listen="127.0.0.1:0", listen_admin="0", listen_operations="0")
    listeners = Listeners.bind(settings)
    url, done = listeners.addresses(settings).public, Counter()
    async with running(settings, listeners, store=store):
        with ThreadPoolExecutor(16) as threads:
            loop = asyncio.get_running_loop()

            async def everybody(work, people):
                return await asyncio.gather(*(loop.run_in_executor(threads, work, one) for one in people))

            world.now = START
            people = await everybody(lambda number: Person(number, url, campaign, world, network), range(devices))
            for window in range(-1, windows + 1):
                world.now = START + (window + 0.5) * DAY
                seen = random.Random(window)
                near = [one for one in people if abs(one.window - window) <= 1 or seen.random() < 0.05]
                done.update(await everybody(lambda one, window=window: one.live(window), near))
    tally, expected = await store.tally(campaign.id), Counter(one.window for one in people if not one.is_off)
    problems = await store.check()
    await store.close()
    assert problems == []
    assert done["contribute"] == sum(expected.values())
    assert [int(one.n.sum()) for one in tally.windows] == [expected[window] for window in range(windows)]
    assert done["off"] == devices // 10
    for one in people:
        _, part = one.start()
        # One whose clock was ahead looked once at each start: it may not have heard that its answer arrived, or, trying
        # again a week after its window, that it was refused then. It was counted all the same, as the tally shows.
        unheard = {"arrived", "on-its-way", "refused"}
        fates = {None} if one.is_off else unheard if one.ahead > timedelta(0) else {"arrived"}
        assert part.status().fate in fates
        assert part.next_step().step == "nothing"
