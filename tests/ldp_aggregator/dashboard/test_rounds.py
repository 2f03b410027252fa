"""Evaluation rounds from the dashboard: drafted, published, voted on by devices, and the choice published."""

from __future__ import annotations

import html
import json
import re

from ldp_aggregator.store import Submission
from ldp_client import perturb
from protocols import Campaign, decode_upload, encode_upload

DRAFT_FIELD = re.compile(r'<textarea id="draft"[^>]*>(.*?)</textarea>', re.DOTALL)
FEATURES = [{"name": "age", "kind": "categorical", "values": ["young", "medium", "old"], "missing": False}]


def person(number):
    """Whom the age tells the class of in four of five."""
    of_class = number % 2 if number % 5 else 1 - number % 2
    return {"age": ("young", "medium", "old")[(2 * (number % 2) + number % 3 // 2) % 3]}, ("yes", "no")[of_class]


async def count(dashboard, campaign, numbers):
    reports = [report for number in numbers for report in perturb(campaign, *person(number))]
    await dashboard.store.count([Submission(campaign, decode_upload(encode_upload(reports), campaign))])


async def drafted(dashboard, campaign, kind):
    """The draft in the form that the button answers with."""
    status, text, _ = await dashboard.send(f"/campaigns/{campaign.id}/round", {"round": kind})
    assert status == 200, text
    assert "This is a campaign" in text
    return html.unescape(DRAFT_FIELD.search(text)[1])


async def test_a_round_is_drafted_voted_on_and_its_choice_published_with_its_accuracy(dashboard):
    first = await dashboard.publish(features=FEATURES, study="s", privacy={"epsilon": 3.0})
    await count(dashboard, first, range(6_000))
    assert (await dashboard.send(f"/campaigns/{first.id}/train", {}))[0] == 303
    draft = await drafted(dashboard, first, "evaluation")
    status, _, onward = await dashboard.send("/campaigns/new", {"draft": draft, "action": "publish"})
    assert status == 303
    asked = Campaign.compile(draft)
    assert onward == f"/campaigns/{asked.id}"
    assert "unknown" in (await dashboard.get(onward))[1]

    await count(dashboard, asked, range(5_000 * len(asked.candidates) + 1_000))
    text = (await dashboard.get(onward))[1]
    for candidate in asked.candidates:
        assert f"whether {candidate.name} is right" in text
    assert f'href="/campaigns/{first.id}"' in text
    assert "(chosen)" in text

    assert (await dashboard.send(f"{onward}/choose", {}))[0] == 303
    evaluation = json.loads((await dashboard.store.model(first.id)).document)["training"]["evaluation"]
    assert evaluation["campaign"] == asked.id
    shown = (await dashboard.get(f"/campaigns/{first.id}"))[1]
    low, high = (f"{100 * evaluation[end]:.1f}\u00a0%" for end in ("low", "high"))
    assert f"{100 * evaluation['accuracy']:.1f}\u00a0% ({low} to {high})" in shown
    assert f'{evaluation["chosen"]}, chosen by <a href="/campaigns/{asked.id}">its round</a>' in shown
    assert (await dashboard.store.state(asked.id)).model_version == 1
    acts = [(one.act.act, one.act.campaign) for one in await dashboard.store.acts()]
    assert acts[-2:] == [("publish model", first.id), ("publish model", asked.id)]


async def test_a_round_of_nothing_is_not_drafted_and_says_why(dashboard):
    campaign = await dashboard.publish(features=FEATURES)
    for kind in ("evaluation", "second"):
        status, text, _ = await dashboard.send(f"/campaigns/{campaign.id}/round", {"round": kind})
        assert status == 409
        assert "no report has been counted yet" in text
    assert (await dashboard.send(f"/campaigns/{campaign.id}/round", {"round": "third"}))[0] == 400


async def test_a_second_round_is_drafted_from_what_the_first_learned(dashboard):
    campaign = await dashboard.publish(features=[*FEATURES, {**FEATURES[0], "name": "mood"}], study="s")
    reports = []
    for number in range(600):
        record, label = person(number)
        reports += perturb(campaign, {**record, "mood": "old"}, label)
    await dashboard.store.count([Submission(campaign, decode_upload(encode_upload(reports), campaign))])
    draft = json.loads(await drafted(dashboard, campaign, "second"))
    assert draft["study"] == "s"
    assert [feature["name"] for feature in draft["features"]] == ["age", "mood"]


async def test_a_round_without_votes_publishes_its_first_candidate_and_says_that_nobody_voted(dashboard):
    first = await dashboard.publish(features=FEATURES, study="s", privacy={"epsilon": 3.0})
    await count(dashboard, first, range(3_000))
    draft = await drafted(dashboard, first, "evaluation")
    await dashboard.send("/campaigns/new", {"draft": draft, "action": "publish"})
    asked = Campaign.compile(draft)
    assert (await dashboard.send(f"/campaigns/{asked.id}/choose", {}))[0] == 303
    text = (await dashboard.get(f"/campaigns/{asked.id}"))[1]
    assert "0 voters a candidate are fewer than" in text
    assert "nobody voted" in text


async def test_a_choice_whose_campaigns_are_not_here_is_refused_in_words(dashboard):
    first = await dashboard.publish(features=FEATURES, study="s", privacy={"epsilon": 3.0})
    await count(dashboard, first, range(3_000))
    draft = await drafted(dashboard, first, "evaluation")
    await dashboard.send("/campaigns/new", {"draft": draft, "action": "publish"})
    asked = Campaign.compile(draft)
    await dashboard.store.close_campaign(first.id)
    await dashboard.store.delete_campaign(first.id)
    status, text, _ = await dashboard.send(f"/campaigns/{asked.id}/choose", {})
    assert status == 409
    assert first.id in text
    status, text, _ = await dashboard.send(f"/campaigns/{first.id}/choose", {})
    assert status == 404


async def test_only_an_evaluation_round_has_a_choice(dashboard):
    campaign = await dashboard.publish(people=5)
    status, text, _ = await dashboard.send(f"/campaigns/{campaign.id}/choose", {})
    assert status == 409
    assert "an evaluation has" in html.unescape(text)
