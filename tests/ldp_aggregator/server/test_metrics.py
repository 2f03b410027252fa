"""Metrics: what happened is counted, and nothing that could identify is a label."""

from __future__ import annotations

import re


async def scrape(server):
    async with server.session.get(server.operations + "/metrics") as answer:
        assert answer.status == 200
        text = await answer.text()
    return text, dict(re.findall(r"^(\S+(?:\{.*\})?) (\S+)$", text, re.MULTILINE))


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


async def test_no_label_names_a_campaign_a_path_or_a_client(server, make_campaign, make_report):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    await server.upload(campaign, [make_report(campaign, 1)])
    for path in ("/secret-path", f"/v1/campaigns/{campaign.id}", "/v1/campaigns/nonsense"):
        async with server.session.get(server.public + path):
            pass
    async with server.session.request("BREW", server.public + "/coffee"):
        pass
    text, _ = await scrape(server)
    for hidden in (campaign.id, "secret-path", "nonsense", "127.0.0.1", "BREW", "coffee"):
        assert hidden not in text
