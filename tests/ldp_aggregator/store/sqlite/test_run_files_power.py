"""Runs of ids after a power cut: what was acknowledged is there, and counts once however often it comes again."""

import asyncio
import itertools

import pytest
from cells import cell_campaign, cells_of, count
from power_cuts import Disk, lay_out

from ldp_aggregator.store import SqliteStore
from ldp_aggregator.store.sqlite import run_files
from ldp_aggregator.store.sqlite.database import FILE_NAME

CAMPAIGNS = [cell_campaign(1024, title=title) for title in ("first", "second")]


async def settled(store):
    """Until no run is being made."""
    await store.beat()
    while store.tidying:
        await asyncio.sleep(0.001)
        await store.beat()


@pytest.mark.parametrize("uploads", [8, pytest.param(60, marks=pytest.mark.long)])
async def test_what_was_acknowledged_survives_a_power_cut_at_every_point_and_counts_once(
    uploads, tmp_path, monkeypatch
):
    """Runs are small here, and merged by three: two campaigns, each with its own."""
    monkeypatch.setattr(run_files, "LEAST_RUN", 20)
    monkeypatch.setattr(run_files, "FAN_IN", 3)
    folder, sent = tmp_path / "data", []
    folder.mkdir()
    store = SqliteStore(folder / FILE_NAME)
    for campaign in CAMPAIGNS:
        await store.create_campaign(campaign)
    disk = Disk(folder, lambda: len(sent))
    with disk.watched(monkeypatch):
        for number in range(uploads):
            numbers = range(number * 10, number * 10 + 10)
            for campaign in CAMPAIGNS:
                assert (await count(store, campaign, numbers)).counted == 10
                sent.append((campaign, numbers))
                await settled(store)
        await store.close()
    states = list(disk.states())
    assert len(states) > uploads
    places = itertools.count()
    for told, acknowledged, files in states:
        again = SqliteStore(lay_out(files, tmp_path / f"state {next(places)}") / FILE_NAME)
        for campaign, numbers in sent[:acknowledged]:
            assert (await count(again, campaign, numbers)).duplicates == 10, told
        for campaign, numbers in sent[acknowledged:]:
            outcome = await count(again, campaign, numbers)
            assert outcome.counted + outcome.duplicates == 10, told
        for campaign in CAMPAIGNS:
            assert await cells_of(again, campaign, uploads * 10) == [1] * (uploads * 10), told
        assert await again.check() == [], told
        await again.close()
