"""Evaluation rounds from the dashboard: drafted, published, answered by devices, and the model published."""

from __future__ import annotations

import html
import json
import re

import pytest
from exact_coins import SeededCoins

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
    coins = SeededCoins(campaign.id)
    reports = [report for number in numbers for report in perturb(campaign, *person(number), coins=coins)]
    await dashboard.store.count([Submission(campaign, decode_upload(encode_upload(reports), campaign))])


async def drafted(dashboard, campaign):
    """The draft in the form that the button answers with."""
    status, text, _ = await dashboard.send(f"/campaigns/{campaign.id}/round", {})
    assert status == 200, text
    assert "This is a campaign" in text
    return html.unescape(DRAFT_FIELD.search(text)[1])


async def test_an_evaluation_is_drafted_answered_drawn_and_its_model_published(dashboard):
    first = await dashboard.publish(features=FEATURES, study="s", privacy={"epsilon": 3.0})
    await count(dashboard, first, range(6_000))
    assert (await dashboard.send(f"/campaigns/{first.id}/train", {}))[0] == 303
    draft = await drafted(dashboard, first)
    status, _, onward = await dashboard.send("/campaigns/new", {"draft": draft, "action": "publish"})
    assert status == 303
    asked = Campaign.compile(draft)
    assert onward == f"/campaigns/{asked.id}"
    assert "fewer than 100 answers tell nothing" in (await dashboard.get(onward))[1]

    await count(dashboard, asked, range(6_000))
    text = (await dashboard.get(onward))[1]
    assert "Accuracy " in text
    for title in ("Recall and precision", "ROC curve", "Calibration"):
        assert f'aria-label="Table of {title}"' in text
    assert f'href="/campaigns/{first.id}"' in text

    assert (await dashboard.send(f"{onward}/choose", {}))[0] == 303
    evaluated = json.loads((await dashboard.store.model(first.id)).document)["training"]["evaluated"]
    assert evaluated["campaign"] == asked.id
    shown = (await dashboard.get(f"/campaigns/{first.id}"))[1]
    value, low, high = (f"{100 * evaluated['accuracy'][end]:.1f}\u00a0%" for end in ("value", "low", "high"))
    assert f"{value} ({low} to {high})" in shown
    assert f'by <a href="/campaigns/{asked.id}">its round</a>' in shown
    assert (await dashboard.store.state(asked.id)).model_version == 1
    acts = [(one.act.act, one.act.campaign) for one in await dashboard.store.acts()]
    assert acts[-2:] == [("publish model", first.id), ("publish model", asked.id)]


@pytest.fixture
async def round_of(dashboard):
    """A campaign that was answered, and its evaluation round, which nobody has answered."""
    first = await dashboard.publish(features=FEATURES, study="s", privacy={"epsilon": 3.0})
    await count(dashboard, first, range(3_000))
    draft = await drafted(dashboard, first)
    await dashboard.send("/campaigns/new", {"draft": draft, "action": "publish"})
    return first, Campaign.compile(draft)


async def test_a_round_without_answers_publishes_its_model_and_says_that_too_few_answered(dashboard, round_of):
    _, asked = round_of
    assert (await dashboard.act(asked, "choose"))[0] == 303
    assert "too few answers" in await dashboard.page(asked)


async def test_a_choice_whose_campaigns_are_not_here_is_refused_in_words(dashboard, round_of):
    first, asked = round_of
    await dashboard.store.close_campaign(first.id)
    await dashboard.store.delete_campaign(first.id)
    status, text = await dashboard.act(asked, "choose")
    assert (status, first.id in text) == (409, True)
    assert (await dashboard.act(first, "choose"))[0] == 404


async def test_a_round_of_nothing_is_not_drafted_and_only_an_evaluation_round_has_a_choice(dashboard):
    campaign = await dashboard.publish(features=FEATURES)
    status, text = await dashboard.act(campaign, "round")
    assert (status, "no report has been counted yet" in text) == (409, True)
    status, text = await dashboard.act(campaign, "choose")
    assert (status, "an evaluation has" in html.unescape(text)) == (409, True)
