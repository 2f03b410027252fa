"""Real servers on a store in several databases: one database is away, or dies, or a slot goes elsewhere."""

from __future__ import annotations

import asyncio
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from cells import cell_report, submission
from daemon import Daemon
from postgres import away
from uploader import Uploaders, in_groups, post

from ldp_aggregator.store import SqliteStore
from ldp_aggregator.store.sharded.moving import move_slot
from protocols import encode_upload

KILLS = int(os.environ.get("LDP_BAYES_KILLS", "2"))


@pytest.fixture
def kept(kept_in_two):
    return kept_in_two


def slots_of(kept, shard):
    """The first bytes of the ids that database ``shard`` has."""
    found = kept.run(lambda store: store.slots())
    return {slot.number for slot in found.slots if slot.shard == shard}


def test_while_a_database_is_away_reports_of_the_others_are_counted_and_its_own_come_again(kept):
    """One report an upload, many at once: they are committed together, and answered each for itself. A server forgets
    after two seconds what a campaign asks of uploads, and asks again.
    """
    campaign = kept.publish(1200)
    elsewhere = slots_of(kept, 1)
    bodies = {cell: encode_upload([cell_report(campaign, cell)]) for cell in range(1200)}
    own = {cell for cell in bodies if cell_report(campaign, cell).id[0] not in elsewhere}
    with Daemon(kept.folder, **kept.environment) as daemon, ThreadPoolExecutor(32) as pool:

        def send(cells):
            cells = list(cells)
            answers = pool.map(lambda cell: post(daemon.public, campaign, bodies[cell]), cells)
            return dict(zip(cells, answers, strict=True))

        assert {status for status, _ in send(range(100)).values()} == {200}

        async def without():
            async with away(kept.database.split(), 1):
                await asyncio.to_thread(send, range(100, 500))
                await asyncio.sleep(2.5)
                return await asyncio.to_thread(send, range(500, 1200))

        answers = asyncio.run(without())
        there = {cell: answer for cell, answer in answers.items() if cell in own}
        gone = {cell: answer for cell, answer in answers.items() if cell not in own}
        assert {status for status, _ in there.values()} == {200}
        assert {(status, answer["code"]) for status, answer in gone.values()} == {(503, "store-unavailable")}
        waiting = set(bodies)
        while waiting:
            waiting -= {cell for cell, (status, _) in send(waiting).items() if status == 200}
    assert kept.tally(campaign).counts[0].tolist() == [1] * 1200
    assert kept.audit() == []


async def count_alone(path, campaign, reports):
    """The tally of one node that gets everything at once."""
    store = SqliteStore(path)
    await store.create_campaign(campaign)
    await store.count([submission(campaign, reports)])
    tally = await store.tally(campaign.id)
    await store.close()
    return tally


def test_the_databases_add_up_to_one_node_through_kills_restarts_and_slots_that_move(kept, postgres, tmp_path):
    """Uploads of one report and of many, all of them twice and each try to either instance, which are killed in turn;
    the databases die once, and slots go back and forth all the while. The same sums, bit for bit.
    """
    cells = min(1500 * max(2, KILLS // 2), 20_000)
    campaign = kept.publish(cells)
    token = kept.relay_token()
    reports = [cell_report(campaign, cell) for cell in range(cells)]
    alone = asyncio.run(count_alone(tmp_path / "alone.sqlite3", campaign, reports))
    daemons = [Daemon(kept.folder, **kept.environment) for _ in range(2)]
    dice = random.Random(7)

    def shuffled():
        mixed = dice.sample(reports, cells)
        groups = in_groups(mixed[: cells // 2], 1) + in_groups(mixed[cells // 2 :], 40)
        return [encode_upload(group) for group in dice.sample(groups, len(groups))]

    def either():
        return random.choice(daemons).public

    async def move(store):
        slot = (await store.slots()).slots[dice.randrange(256)]
        await move_slot(store, slot.number, 1 - slot.shard)

    both = [Uploaders(either, campaign, shuffled(), 4, token) for _ in range(2)]
    for kill in range(KILLS):
        time.sleep(dice.uniform(0.05, 0.5))
        acknowledged = both[0].acknowledged | both[1].acknowledged
        daemons[kill % 2].kill()
        kept.run(move)
        tally = kept.tally(campaign)
        assert tally.counts[0].max() <= 1
        assert {body for body in acknowledged if len(body) < 60} <= {
            encode_upload([reports[cell]]) for cell, count in enumerate(tally.counts[0].tolist()) if count
        }
        daemons[kill % 2] = Daemon(kept.folder, **kept.environment)
        if kill == KILLS // 2 and postgres.server is not None:
            postgres.restart()
    for uploaders in both:
        uploaders.join()
        assert uploaders.refusals == []
    assert [daemon.stop() for daemon in daemons] == [0, 0]
    assert kept.tally(campaign) == alone
    assert alone.counts[0].tolist() == [1] * cells
    assert kept.audit() == []
