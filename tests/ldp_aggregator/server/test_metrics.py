"""Metrics: what happened is counted, and nothing that could identify is a label."""

from __future__ import annotations

import asyncio
import re

import pytest
from queueing import submit
from raw_http import exchange

from ldp_aggregator.server import keeper
from ldp_aggregator.server.ingest import Ingest
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.problems import RETRY_SECONDS, retry_later
from ldp_aggregator.store import Outcome


async def scrape(server):
    async with server.session.get(server.operations + "/metrics") as answer:
        assert answer.status == 200
        text = await answer.text()
    return text, dict(re.findall(r"^(\S+(?:\{.*\})?) (\S+)$", text, re.MULTILINE))


async def scrape_until(server, holds):
    for _ in range(200):
        text, values = await scrape(server)
        if holds(values):
            return text, values
        await asyncio.sleep(0.02)
    pytest.fail(text)


async def test_requests_reports_commits_and_mutations_are_counted(server, make_campaign, make_report):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    await server.upload(campaign, [make_report(campaign, number) for number in range(4)])
    await server.upload(campaign, [make_report(campaign, 0), make_report(campaign, 9, cell=64)])
    url = f"{server.admin}/admin/v1/campaigns/{campaign.id}/close"
    async with server.session.post(url, headers=server.bearer("admin")) as answer:
        assert answer.status == 200
    _, values = await scrape(server)
    assert values['ldp_reports_total{outcome="counted"}'] == "4.0"
    assert values['ldp_reports_total{outcome="duplicate"}'] == "1.0"
    assert values['ldp_reports_total{outcome="index-out-of-range"}'] == "1.0"
    route = 'method="POST",route="/v1/campaigns/{id}/reports",status="200"'
    assert values[f"ldp_requests_total{{{route}}}"] == "2.0"
    assert values["ldp_commit_seconds_count"] == "2.0"
    assert values["ldp_group_reports_sum"] == "6.0"
    assert values['ldp_mutations_total{kind="campaign-closed"}'] == "1.0"
    assert values["ldp_store_errors_total"] == "0.0"
    assert float(values["ldp_queue_bytes"]) >= 0


async def test_no_label_names_a_path_or_a_client_and_campaigns_only_those_that_are_open(
    monkeypatch, serving, make_campaign, make_report
):
    monkeypatch.setattr(keeper, "DUE_SECONDS", 0.02)
    async with serving() as server:
        await check_labels(server, make_campaign, make_report)


async def check_labels(server, make_campaign, make_report):
    campaign, unknown = make_campaign(), make_campaign(title="Never published")
    await server.store.create_campaign(campaign)
    await server.upload(campaign, [make_report(campaign, 1)])
    await server.upload(unknown, [make_report(unknown, 1)])
    for path in ("/secret-path", f"/v1/campaigns/{campaign.id}", "/v1/campaigns/nonsense"):
        async with server.session.get(server.public + path):
            pass
    async with server.session.request("BREW", server.public + "/coffee"):
        pass
    ids = f'ldp_campaign_ids{{campaign="{campaign.id}"}}'
    text, values = await scrape_until(server, lambda values: values.get(ids) == "1.0")
    for hidden in (unknown.id, "secret-path", "nonsense", "127.0.0.1", "BREW", "coffee"):
        assert hidden not in text
    assert [line for line in values if campaign.id in line] == [ids]
    await server.store.close_campaign(campaign.id)
    await scrape_until(server, lambda values: not any(campaign.id in line for line in values))


async def test_latency_refusals_connections_age_and_build_are_told(server, make_campaign, make_report):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    await server.upload(campaign, [make_report(campaign, 1)])
    assert (await server.upload(campaign, b"garbage"))[0] == 400
    assert (await exchange(server, b"garbage\r\n\r\n")).startswith(b"HTTP/1.1 400")
    _, values = await scrape(server)
    route = 'method="POST",route="/v1/campaigns/{id}/reports"'
    assert values[f"ldp_request_seconds_count{{{route}}}"] == "2.0"
    assert values['ldp_refusals_total{code="malformed-upload"}'] == "1.0"
    assert values['ldp_refusals_total{code="malformed-request"}'] == "1.0"
    assert float(values['ldp_connections{listener="public"}']) >= 1
    assert float(values['ldp_connections{listener="operations"}']) >= 1
    assert float(values["ldp_queue_age_seconds"]) == 0
    assert any(line.startswith("ldp_build_info{") and 'python="3' in line for line in values)
    assert float(values["process_resident_memory_bytes"]) > 0


async def test_the_age_of_the_queue_is_that_of_the_upload_that_waits_longest(
    make_campaign, make_submission, make_report
):
    class Stuck:
        def __init__(self):
            self.gate = asyncio.Event()

        async def count(self, submissions):
            await self.gate.wait()
            return [Outcome(counted=1) for _ in submissions]

    store, campaign = Stuck(), make_campaign()
    ingest = Ingest(store, Metrics(), group_reports=1)
    assert ingest.queue_age == 0
    writer = asyncio.create_task(ingest.write())
    waiting = [
        asyncio.create_task(submit(ingest, make_submission(campaign, [make_report(campaign, number)])))
        for number in range(2)
    ]
    await asyncio.sleep(0.05)
    assert ingest.queue_age >= 0.04, "also of what is being committed"
    store.gate.set()
    await asyncio.gather(*waiting)
    assert ingest.queue_age == 0
    ingest.drain()
    await writer


def test_the_time_to_come_back_is_drawn():
    drawn = {retry_later("overloaded").headers["Retry-After"] for _ in range(400)}
    # Missing one of eight in 400 draws: 8 * (7/8)^400 < 1e-21.
    assert drawn == {str(seconds) for seconds in range(RETRY_SECONDS[0], RETRY_SECONDS[1] + 1)}
