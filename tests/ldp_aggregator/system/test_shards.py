"""Real servers on a store in several databases: one database is away, or dies, or a slot goes elsewhere."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from cells import cell_report
from daemon import Daemon
from postgres import away, databases
from uploader import post

from protocols import encode_upload

from .conftest import Kept


@pytest.fixture
def addresses(postgres):
    return asyncio.run(databases(postgres.address, 2))


@pytest.fixture
def kept(addresses, tmp_path):
    return Kept(tmp_path, " ".join(addresses))


def slots_of(kept, shard):
    """The first bytes of the ids that database ``shard`` has."""
    found = kept.run(lambda store: store.slots())
    return {slot.number for slot in found.slots if slot.shard == shard}


def test_while_a_database_is_away_reports_of_the_others_are_counted_and_its_own_come_again(kept, addresses):
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
            async with away(addresses, 1):
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
