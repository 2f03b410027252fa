"""A server that archives: what it answered for is in the archive, whatever became of the server."""

import asyncio

import pytest
from cells import publish, submission

from ldp_aggregator.archive.locations import open_place
from ldp_aggregator.archive.recount import recount
from ldp_aggregator.archive.writer import Archive
from ldp_aggregator.service.publishing import counts_of
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import SqliteStore
from protocols import LdpError


async def test_uploads_of_both_ways_are_archived_before_they_are_answered(serving, tmp_path):
    folder = str(tmp_path / "archive")
    async with serving(archive=folder) as server:
        campaign = await server.publish()

        async def post(number, **headers):
            assert (await server.upload(campaign, [number], **headers))[0] == 200

        await asyncio.gather(*(post(number) for number in range(30)))
        await asyncio.gather(*(post(number, Origin="https://app.example.org") for number in range(20, 50)))
        await post(3)
        found = recount(folder, campaign.id)
        assert found.tally == await server.store.tally(campaign.id)
        assert (found.reports, found.conflicts) == (50, ())


async def test_what_a_server_left_pending_is_counted_when_the_next_one_starts(serving, tmp_path):
    folder, store = str(tmp_path / "archive"), SqliteStore(tmp_path / "kept.sqlite3")
    campaign = await publish(store)
    Archive(open_place(folder)).write([submission(campaign, range(7))])
    async with serving(store=store, archive=folder):
        assert (await store.state(campaign.id)).reports == 7
        assert recount(folder, campaign.id).tally == await store.tally(campaign.id)
    await store.close()


async def test_an_archive_that_nothing_here_opens_stops_the_start_and_says_why(server, tmp_path, monkeypatch):
    settings = Settings(data=tmp_path, archive="nosuch://bucket/reports")
    with pytest.raises(Exception, match="nosuch"):
        await counts_of(server.store, settings)
    monkeypatch.setitem(__import__("sys").modules, "ldp_aggregator.archive.writer", None)
    with pytest.raises(LdpError, match=r"pip install 'ldp-bayes\[archive\]'"):
        await counts_of(server.store, Settings(data=tmp_path, archive=str(tmp_path)))
