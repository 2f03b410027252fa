"""A server that archives: what it answered for is in the archive, whatever became of the server."""

from __future__ import annotations

import asyncio

import pytest

from ldp_aggregator.archive.keeping import Archive
from ldp_aggregator.archive.places import open_place
from ldp_aggregator.archive.recount import recount
from ldp_aggregator.service.archiving import counts_of
from ldp_aggregator.service.settings import Settings, SettingsError
from ldp_aggregator.store import SqliteStore
from protocols import encode_upload


async def test_uploads_of_both_ways_are_archived_before_they_are_answered(
    serving, make_campaign, make_report, tmp_path
):
    campaign = make_campaign()
    folder = str(tmp_path / "archive")
    async with serving(archive=folder) as server:
        await server.store.create_campaign(campaign)
        url = f"{server.public}/v1/campaigns/{campaign.id}/reports"

        async def post(number, **headers):
            headers |= {"Content-Type": "application/vnd.ldp-bayes.reports+msgpack"}
            body = encode_upload([make_report(campaign, number)])
            async with server.session.post(url, data=body, headers=headers) as answer:
                assert answer.status == 200

        await asyncio.gather(*(post(number) for number in range(30)))
        await asyncio.gather(*(post(number, Origin="https://app.example.org") for number in range(20, 50)))
        await post(3)
        found = recount(folder, campaign.id)
        assert found.tally == await server.store.tally(campaign.id)
        assert (found.reports, found.conflicts) == (50, ())


async def test_what_a_server_left_pending_is_counted_when_the_next_one_starts(
    serving, make_campaign, make_submission, make_report, tmp_path
):
    campaign = make_campaign()
    folder = str(tmp_path / "archive")
    store = SqliteStore(tmp_path / "kept.sqlite3")
    await store.create_campaign(campaign)
    Archive(open_place(folder)).write([make_submission(campaign, [make_report(campaign, one) for one in range(7)])])
    async with serving(store=store, archive=folder):
        assert (await store.state(campaign.id)).reports == 7
        assert recount(folder, campaign.id).tally == await store.tally(campaign.id)
    await store.close()


async def test_an_archive_that_nothing_here_opens_stops_the_start_and_says_why(server, tmp_path, monkeypatch):
    settings = Settings(data=tmp_path, archive="nosuch://bucket/reports")
    with pytest.raises(Exception, match="nosuch"):
        await counts_of(server.store, settings)
    monkeypatch.setitem(__import__("sys").modules, "ldp_aggregator.archive.keeping", None)
    with pytest.raises(SettingsError, match=r"pip install 'ldp-bayes\[archive\]'"):
        await counts_of(server.store, Settings(data=tmp_path, archive=str(tmp_path)))
