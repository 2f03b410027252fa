"""What pages promise is what holds: guarantees, what is kept of an answer, shares within a class, ends."""

import json
import re

import crowds
import drafts
import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.ratios import conditional_table
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.words import number
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.trainers import node_statistics
from ldp_client import perturb
from ldp_protocols import Campaign, encode_upload

RECORD = {"age": "young", "income": 3, "hours": 4}
WARDS = drafts.draft(drafts.text("ward", "a", "b"), privacy={"epsilon": 2})


async def test_the_public_page_says_whether_single_answers_are_archived(dashboards, tmp_path):
    pytest.importorskip("pyarrow")
    async with dashboards() as plain:
        campaign = await plain.publish()
        text = await plain.people_page(campaign)
        assert "check sum" in text
        assert "archive" not in text
    async with dashboards(archive=str(tmp_path / "archive")) as archiving:
        campaign = await archiving.publish()
        text = await archiving.people_page(campaign)
        assert "keeps each accepted answer one by one in an archive" in text
        federated = Campaign.compile(WARDS)
        await archiving.store.create_campaign(federated, federated=True)
        assert "archive" not in await archiving.people_page(federated)


async def test_the_public_page_says_whose_records_are_summed_also_where_a_first_share_has_just_decided_it(dashboard):
    campaign = Campaign.compile(WARDS)
    await dashboard.store.create_campaign(campaign)
    assert "over all devices together" in await dashboard.people_page(campaign)
    _, token = make_token("north", "node", utc_now())
    await dashboard.store.add_token(token)
    rows = pd.DataFrame({"ward": ["a", "b"] * 20}), pd.Series(["a", "b"] * 20)
    assert await dashboard.store.put_share(campaign.id, "north", node_statistics(campaign, *rows)) is None
    assert "over all records together" in await dashboard.people_page(campaign)


async def test_what_relays_vouched_for_is_stated_only_where_it_holds_for_every_report(dashboard):
    campaign = await dashboard.publish()
    bodies = [encode_upload(perturb(campaign, RECORD, "yes"), campaign) for _ in range(2)]
    relay = {"Authorization": f"Bearer {dashboard.tokens['relay']}", "LDP-Relay-Batch": "500"}
    assert await dashboard.upload(campaign, bodies[0], **relay) == 200
    assert "the least batch having" in await dashboard.page(campaign, "/privacy")
    assert await dashboard.upload(campaign, bodies[1]) == 200
    text = await dashboard.page(campaign, "/privacy")
    assert "the least batch having" not in text
    assert "at least 1 of 2 reports came otherwise" in text


async def test_shares_within_a_class_are_on_the_page_with_their_intervals_or_unknown_where_too_few_report(dashboard):
    campaign = await dashboard.publish(people=900)
    text = await dashboard.page(campaign)
    cells = conditional_table(estimate(campaign, await dashboard.store.tally(campaign.id)), "age").cells
    shown = cells.value.size - len(campaign.label.classes)  # Nobody lacks an age.
    for value, *ends in zip(cells.value[:shown], cells.low, cells.high, strict=False):
        told = f"{100 * value:.1f}\u00a0%".replace("-", "\u2212")
        low, high = (f"{100 * min(max(end, 0), 1):.1f}" for end in ends)
        assert f'<td class="num">{told}</td><td class="num">{low} to {high}\u00a0%</td>' in text
    text = await dashboard.page(await dashboard.publish(people=6, privacy={"epsilon": 0.5}))
    assert "Too few answers to draw anything" in text
    assert "nan" not in text


async def test_a_federated_campaigns_page_promises_what_its_model_says_of_all_shares_ever_sent(dashboard):
    campaign = Campaign.compile(WARDS)
    await dashboard.store.create_campaign(campaign, federated=True)
    page = f"/campaigns/{campaign.id}"
    assert "ε = 2.00 for the first share of a table" in (await dashboard.get(f"{page}/privacy"))[1]
    assert (await dashboard.get(f"{page}/learned"))[0] == 404
    text, token = make_token("north", "node", utc_now())
    await dashboard.store.add_token(token)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"ward": rng.choice(["a", "b"], 50)})
        share = node_statistics(campaign, frame, pd.Series(rng.choice(["a", "b"], 50)))
        assert await dashboard.store.put_share(campaign.id, "north", share) is None
    model = json.loads((await dashboard.get(f"{page}/model.json"))[1])
    stated = model["training"]["guarantee"]
    text = (await dashboard.get(f"{page}/privacy"))[1]
    assert f"ε = {stated['epsilon']:.3g}" in text
    assert stated["epsilon"] > 2
    assert "drawn by lot" not in text
    _, event = await dashboard.get(f"{page}/live")
    assert json.loads(event.partition("data: ")[2]) == {"reports": {campaign.id: 1}}
    for path in (page, "/federation"):
        assert "<td>north</td>" in (await dashboard.get(path))[1]
        assert "1\u00a0time<" in (await dashboard.get(path))[1]
        assert "the median counts" not in (await dashboard.get(path))[1]
    for place, (name, rows) in enumerate((("south", 50), ("east", 5000))):
        await dashboard.store.add_token(make_token(name, "node", utc_now())[1])
        frame = pd.DataFrame({"ward": ["a", "b"] * (rows // 2)})
        share = node_statistics(campaign, frame, frame["ward"] if place else pd.Series(["b"] * rows))
        assert await dashboard.store.put_share(campaign.id, name, share) is None
    assert "ε = 2.00; 4.00 for the rows of 1\u00a0node" in (await dashboard.get(f"{page}/privacy"))[1]
    for path in (page, "/federation"):
        text = (await dashboard.get(path))[1]
        assert re.search(r"<td>\w+ = \w[^<]*</td></tr>", text), "the parameter that is furthest from the others'"
        assert "the median counts each group alike" in text


async def test_a_curve_begins_with_the_campaign_where_that_was_made_while_the_server_looked(dashboard):
    campaign = await dashboard.publish(people=5)
    text = await dashboard.page(campaign, "/health")
    assert "<polyline" in text
    assert "reports, time in UTC" in text
    few = await dashboard.publish(people=1, title="Hardly anybody")
    assert "tells nothing yet" in await dashboard.page(few, "/health"), "a width beyond the whole range is no number"
    text = (await dashboard.get("/"))[1]
    assert 'class="spark"' in text
    assert "Collecting: about " in text


async def test_a_crowd_promises_both_numbers_on_every_page_that_has_one(dashboard):
    campaign = Campaign.compile(crowds.crowd_draft(issuer=None))
    await dashboard.store.create_campaign(campaign)
    people, operators = await dashboard.people_page(campaign), await dashboard.page(campaign, "/privacy")
    for text, odds in ((people, ("2.72 to 1", "54.6 to 1")), (operators, ("ε = 1.00, δ = 1e-09", "ε = 4.00 in all"))):
        places = [text.index(one) for one in odds]
        assert places == sorted(places)
    for words in (f"{number(20_000)} come at once", f"{number(10_000)} of them are from people who tell nobody"):
        assert words in people
    assert "The relay admits answers without a token: the relay knows its people" in operators
