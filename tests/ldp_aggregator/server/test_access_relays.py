"""A relay's word: believed from a relay's token, and stated where it holds for every report."""

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from cells import cell_report

from ldp_aggregator.guarantees import relay_guarantee
from ldp_aggregator.server.intake import vouched_batch


@pytest.fixture
async def campaign(server):
    return await server.publish(1024)


@pytest.fixture
def vouch(server):
    """Status and code of what a relay uploads as part of a batch of this size."""

    async def send(campaign, members, batch, token=None):
        headers = (server.bearer("relay") if token is None else token) | {"LDP-Relay-Batch": str(batch)}
        status, answer = await server.upload(campaign, members, **headers)
        return status, answer.get("code")

    return send


@pytest.fixture
def told(server, campaign):
    """The ``relayed`` block of the estimates."""

    async def ask():
        url = f"{server.public}/v1/campaigns/{campaign.id}/estimates"
        return (await server.ask("GET", url, "collector")).json["relayed"]

    return ask


async def test_the_guarantee_behind_a_relay_is_stated_until_a_report_comes_otherwise(server, campaign, vouch, told):
    assert (await told())["why_not"] == "no report was counted yet"
    for numbers, batch in ((range(400), 1000), (range(400, 800), 300)):
        assert await vouch(campaign, numbers, batch) == (200, None)
    found = await told()
    assert (found["least_batch"], found["otherwise"], found["why_not"]) == (300, 0, None)
    assert found["guarantee"] == json.loads(json.dumps(relay_guarantee(campaign, 300).to_json()))
    assert 0 < found["guarantee"]["epsilon"] < 1
    assert (await server.upload(campaign, [900]))[0] == 200
    found = await told()
    assert (found["guarantee"], found["otherwise"]) == (None, 1)
    assert found["why_not"].startswith("at least 1 of 801 reports came otherwise")


async def test_a_batch_is_a_number_and_hides_no_more_than_answered_or_than_an_upload_holds(campaign, vouch, told):
    for wrong in ("0", "-5", "1e3", "1000.0", "", "9" * 17, "٣", str(2**53 + 1)):
        assert await vouch(campaign, [1], wrong) == (400, "malformed-request"), wrong
    assert (await told())["why_not"] == "no report was counted yet"
    assert await vouch(campaign, range(50), 1_000_000) == (200, None)
    assert (await told())["guarantee"]["reports"] == 50
    assert await vouch(campaign, [50], 10_000_000) == (200, None)
    assert (await told())["least_batch"] == 1


async def test_in_a_series_a_device_of_a_batch_hides_among_those_of_its_own_window(server, vouch):
    """Each says in the open which window it is of."""
    today = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    first = (today - timedelta(days=1)).isoformat().replace("+00:00", "Z")
    series = await server.publish(1024, windows={"from": first, "length": "P1D", "count": 3})
    reports = [replace(cell_report(series, number), question=int(number >= 30)) for number in range(40)]
    assert await vouch(series, reports, 40) == (200, None)
    assert (await server.store.state(series.id)).arrivals.least_batch == 10


async def test_two_campaigns_each_have_the_least_batch_of_their_own(server, campaign, vouch):
    other = await server.publish(1024, title="another")
    assert await vouch(campaign, range(200), 200) == (200, None)
    assert await vouch(other, range(20), 20) == (200, None)
    assert (await server.upload(other, [900]))[0] == 200
    states = [(await server.store.state(one.id)).arrivals for one in (campaign, other)]
    assert [(one.reports, one.vouched, one.least_batch) for one in states] == [(200, 200, 200), (21, 20, 20)]


async def test_without_a_relays_token_the_header_is_nobodys_word_and_with_another_one_nothing_is_counted(
    server, campaign, vouch, told
):
    assert await vouch(campaign, [1], 1000, {"Authorization": "Bearer wrong"}) == (401, "wrong-token")
    assert await vouch(campaign, [1], 1000, server.bearer("collector")) == (403, "wrong-scope")
    assert (await told())["why_not"] == "no report was counted yet"
    assert await vouch(campaign, [1], 1000, {}) == (200, None)
    assert (await told())["why_not"] == "none of 1 reports came in a batch that a relay vouched for"
    assert (await server.upload(campaign, [2], **server.bearer("relay")))[0] == 200, "a relay may vouch for nothing"
    assert (await told())["guarantee"] is None


@pytest.mark.parametrize("batch", [1, 2**53])
def test_the_least_and_the_largest_batch_are_numbers_as_any_other(batch):
    assert vouched_batch({"LDP-Relay-Batch": str(batch)}) == batch
    assert vouched_batch({}) is None


async def test_a_devices_token_vouches_for_no_batch_also_where_it_opens_the_campaign(server, vouch):
    campaign = await server.publish(1024, uploads_need="device")
    assert await vouch(campaign, [1], 5, server.bearer("device")) == (403, "wrong-scope")
    assert await vouch(campaign, [1], 5) == (200, None)
    arrivals = (await server.store.state(campaign.id)).arrivals
    assert (arrivals.reports, arrivals.vouched, arrivals.least_batch) == (1, 1, 1)
