"""The project's own relay against what an aggregator takes from whom."""

from __future__ import annotations

import asyncio

import pytest

from ldp_client.policy import Policy
from ldp_client.relay import Mixing, Relay
from protocols import encode_upload

DEVICES = 20


@pytest.mark.parametrize(("scope", "requests"), [("relay", 1), (None, DEVICES)])
async def test_a_relay_delivers_everything_in_one_batch_with_a_token_and_in_small_ones_without(
    server, make_campaign, make_report, tmp_path, scope, requests
):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    token = server.tokens[scope] if scope else None

    def forward(path):
        relay = Relay(
            server.public,
            campaign.id,
            storage=path,
            mixing=Mixing(DEVICES),
            policy=Policy(allow_plain_http=True),
            token=token,
        )
        for number in range(DEVICES):
            assert relay.collect(encode_upload([make_report(campaign, number)])) == {}
        done = relay.run_once(30)
        return done, relay.delivery().queued, relay.problem

    assert await asyncio.to_thread(forward, tmp_path / "relay.db") == (True, 0, None)
    assert (await server.store.tally(campaign.id)).counts[0].tolist()[: DEVICES + 1] == [1] * DEVICES + [0]
    async with server.session.get(server.operations + "/metrics") as answer:
        lines = (await answer.text()).splitlines()
    counted = 'ldp_requests_total{method="POST",route="/v1/campaigns/{id}/reports",status="200"} '
    assert [float(line.removeprefix(counted)) for line in lines if line.startswith(counted)] == [requests]
