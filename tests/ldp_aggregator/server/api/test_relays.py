"""A relay's word: believed from a relay's token, and stated where it holds for every report."""

from __future__ import annotations

import json

import pytest

from ldp_aggregator.learning.published import relay_guarantee

BATCH = "LDP-Relay-Batch"


@pytest.fixture
async def campaign(server, make_campaign):
    made = make_campaign(1024)
    await server.store.create_campaign(made)
    return made


@pytest.fixture
def told(server, campaign):
    """The ``relayed`` block of the estimates."""

    async def ask():
        url = f"{server.public}/v1/campaigns/{campaign.id}/estimates"
        async with server.session.get(url, headers=server.bearer("collector")) as answer:
            return (await answer.json())["relayed"]

    return ask


async def test_the_guarantee_behind_a_relay_is_stated_until_a_report_comes_otherwise(
    server, campaign, make_report, told
):
    assert (await told())["why_not"] == "no report was counted yet"
    relay = server.bearer("relay")
    batches = ((0, 400, "1000"), (400, 800, "300"))
    for first, end, batch in batches:
        reports = [make_report(campaign, number) for number in range(first, end)]
        assert (await server.upload(campaign, reports, **relay, **{BATCH: batch}))[0] == 200
    found = await told()
    assert (found["least_batch"], found["otherwise"], found["why_not"]) == (300, 0, None)
    assert found["guarantee"] == json.loads(json.dumps(relay_guarantee(campaign, 300).to_json()))
    assert 0 < found["guarantee"]["epsilon"] < 1
    assert (await server.upload(campaign, [make_report(campaign, 900)]))[0] == 200
    found = await told()
    assert (found["guarantee"], found["otherwise"]) == (None, 1)
    assert found["why_not"].startswith("at least 1 of 801 reports came otherwise")


async def test_a_batch_hides_no_more_than_answered(server, campaign, make_report, told):
    reports = [make_report(campaign, number) for number in range(50)]
    await server.upload(campaign, reports, **server.bearer("relay"), **{BATCH: "1000000"})
    assert (await told())["guarantee"]["reports"] == 50


async def test_a_batch_in_several_uploads_hides_no_more_than_in_one(server, make_campaign, make_report):
    """600 of its 1000 were known: the batch hides 400 in one upload; in four, each of them hides what is new in it."""
    relay, found = server.bearer("relay"), []
    for uploads in (1, 4):
        campaign = make_campaign(1024, title=f"in {uploads}")
        await server.store.create_campaign(campaign)
        reports = [make_report(campaign, number) for number in range(1000)]
        for member in range(uploads):  # As many of the known ones in each.
            known = reports[600 * member // uploads : 600 * (member + 1) // uploads]
            assert (await server.upload(campaign, known, **relay, **{BATCH: "600"}))[0] == 200
        for member in range(uploads):
            known = reports[600 * member // uploads : 600 * (member + 1) // uploads]
            new = reports[600 + 400 * member // uploads : 600 + 400 * (member + 1) // uploads]
            assert (await server.upload(campaign, known + new, **relay, **{BATCH: "1000"}))[0] == 200
        found.append((await server.store.state(campaign.id)).arrivals.least_batch)
    assert found == [400, 100]


async def test_an_upload_is_believed_to_hide_no_more_than_it_holds(server, campaign, make_report, told):
    batch = {BATCH: "10000000"}
    assert (await server.upload(campaign, [make_report(campaign, 1)], **server.bearer("relay"), **batch))[0] == 200
    assert (await told())["least_batch"] == 1


async def test_without_a_token_the_header_is_nobodys_word(server, campaign, make_report, told):
    assert (await server.upload(campaign, [make_report(campaign, 1)], **{BATCH: "1000"}))[0] == 200
    assert (await told())["why_not"] == "none of 1 reports came in a batch that a relay vouched for"


async def test_a_relay_that_vouches_for_nothing_is_told_apart(server, campaign, make_report, told):
    assert (await server.upload(campaign, [make_report(campaign, 1)], **server.bearer("relay")))[0] == 200
    assert (await told())["guarantee"] is None


@pytest.mark.parametrize(("token", "code"), [("wrong", "wrong-token"), ("collector", "wrong-scope")])
async def test_with_a_token_that_is_no_relays_nothing_is_counted(server, campaign, make_report, told, token, code):
    shown = {"Authorization": "Bearer wrong"} if token == "wrong" else server.bearer(token)
    _, answer = await server.upload(campaign, [make_report(campaign, 1)], **shown, **{BATCH: "1000"})
    assert answer["code"] == code
    assert (await told())["why_not"] == "no report was counted yet"


@pytest.mark.parametrize("text", ["0", "-5", "1e3", "1000.0", "", "9" * 17, "٣", str(2**53 + 1)])
async def test_a_number_that_is_none_is_refused(server, campaign, make_report, text):
    status, answer = await server.upload(
        campaign, [make_report(campaign, 1)], **server.bearer("relay"), **{BATCH: text}
    )
    assert (status, answer["code"]) == (400, "malformed-request")
    assert (await server.store.state(campaign.id)).reports == 0


async def test_a_model_tells_it_of_each_campaign(server, campaign, make_campaign, make_report):
    other = make_campaign(1024, title="Other")
    await server.store.create_campaign(other)
    reports = [make_report(campaign, number) for number in range(200)]
    await server.upload(campaign, reports, **server.bearer("relay"), **{BATCH: "200"})
    await server.upload(other, reports)
    trained = {}
    for one in (campaign, other):
        async with server.session.post(
            f"{server.admin}/admin/v1/campaigns/{one.id}/train?anyway=true", headers=server.bearer("admin")
        ) as answer:
            assert answer.status == 200
        async with server.session.get(f"{server.public}/v1/campaigns/{one.id}/model") as answer:
            trained[one.id] = (await answer.json())["training"]
    [behind], [direct] = (trained[one.id]["relayed"] for one in (campaign, other))
    assert (behind["campaign"], behind["guarantee"]["reports"]) == (campaign.id, 200)
    assert (direct["campaign"], direct["guarantee"], direct["otherwise"]) == (other.id, None, 200)
    assert trained[campaign.id]["counted_twice"] == {"known": 0, "at_most": 0}
