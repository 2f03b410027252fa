"""The form that makes a campaign, federated ones, and the public page of what was made."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from ldp_aggregator.dashboard.handlers import public
from protocols import Campaign


async def test_a_draft_is_checked_and_published(dashboard, draft):
    text = json.dumps(draft)
    status, page, _ = await dashboard.send("/campaigns/check", {"draft": text, "devices": "5000"})
    assert status == 200
    assert "This is a campaign" in page
    assert "5\u202f000" in page
    campaign = Campaign.compile(draft)
    form = {"draft": text, "action": "publish", "max_reports": "7"}
    for _ in range(2):
        assert await dashboard.send("/campaigns/new", form) == (303, "", f"/campaigns/{campaign.id}")
    assert (await dashboard.store.state(campaign.id)).max_reports == 7


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"draft": ""}, "There is no draft yet."),
        ({"draft": "{"}, "The draft is not a campaign yet"),
        ({"draft": "title = "}, "not TOML in UTF-8"),
        ({"draft": '{"version": 1}'}, "title"),
        ({"draft": "DRAFT", "max_reports": "-1"}, "The most reports must be a whole number"),
        ({"draft": "DRAFT", "max_reports": "5", "federated": "yes"}, "takes shares of nodes and no reports"),
        ({"columns": "a,b", "label": "b", "action": "columns"}, "a does not say what it can be"),
    ],
)
async def test_what_is_wrong_with_a_form_is_said_and_nothing_is_made(dashboard, draft, form, says):
    given = {"action": "publish", **form}
    if given.get("draft") == "DRAFT":
        given["draft"] = json.dumps(draft)
    status, page, _ = await dashboard.send("/campaigns/new", given)
    assert status == 400
    assert says in page
    assert await dashboard.store.campaigns() == []


async def test_columns_are_made_into_a_draft_that_the_form_then_holds(dashboard):
    form = {"columns": "x: a | b\ny: yes | no", "label": "y", "epsilon": "1", "action": "columns"}
    status, page, _ = await dashboard.send("/campaigns/new", form)
    assert status == 200
    assert "This is a campaign" in page
    assert "What tells y?" in page
    assert await dashboard.store.campaigns() == []


async def test_a_campaign_that_takes_reports_is_not_published_again_as_federated(dashboard, draft):
    form = {"draft": json.dumps(draft), "action": "publish"}
    assert (await dashboard.send("/campaigns/new", form))[0] == 303
    status, page, _ = await dashboard.send("/campaigns/new", {**form, "federated": "yes"})
    assert status == 400
    assert "was published before and not as federated" in page


async def test_a_federated_campaign_has_pages_without_reports(dashboard, draft):
    form = {"draft": json.dumps(draft), "action": "publish", "federated": "yes"}
    _, _, onward = await dashboard.send("/campaigns/new", form)
    for path in ("/", onward, "/federation"):
        assert (await dashboard.get(path))[0] == 200
    assert (await dashboard.get(f"{onward}/model"))[0] == 404
    assert "No node has sent a share yet" in (await dashboard.get(onward))[1]
    text = await dashboard.people_page(Campaign.compile(draft))
    assert "Devices are not asked." in text
    assert "Devices that take part are being asked" not in text
    assert "over all devices" not in text
    assert f"ε = {draft['privacy']['epsilon']:.2f}, differential privacy" in text


COMPLETE = [
    {"name": "age", "kind": "categorical", "values": ["young", "medium", "old"]},
    {"name": "hours", "kind": "continuous", "low": 0, "high": 100, "missing": False},
]


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {"epsilon": 1.0, "answers": "all"}},
        {"features": COMPLETE, "privacy": {"epsilon": 1.0, "discrete": "oue", "continuous": "laplace"}},
        {"features": COMPLETE, "privacy": {"epsilon": 1.0, "discrete": "she", "continuous": "onebit"}},
        {"privacy": {"epsilon": 1.0, "release_every": 50}},
        {"opens": "2090-01-01T00:00:00Z", "closes": "2091-01-01T00:00:00Z"},
        {
            "asks": "moments",
            "study": "s",
            "features": [{"name": n, "kind": "continuous", "low": 0, "high": 1} for n in ("income", "hours")],
        },
    ],
    ids=["all", "oue-laplace", "she-onebit", "releases", "waiting", "moments"],
)
async def test_every_kind_of_campaign_has_its_pages(dashboard, draft, changes):
    if "continuous" in changes.get("privacy", {}):  # Noisy sums are of complete features.
        changes = {**changes, "features": [{**feature, "missing": False} for feature in draft["features"]]}
    campaign = await dashboard.publish(people=0 if "opens" in changes else 40, **changes)
    page = f"/campaigns/{campaign.id}"
    for path in ("/", page, f"{page}?liars=2", f"{page}/live"):
        status, text = await dashboard.get(path)
        assert (status, "cannot be read" in text) == (200, False), text
    assert campaign.title in await dashboard.people_page(campaign)


async def test_the_public_page_is_open_to_everybody_and_says_nothing_of_what_was_counted(dashboard):
    campaign = await dashboard.publish()
    before = await dashboard.people_page(campaign)
    await dashboard.answer(campaign, 13)
    assert await dashboard.people_page(campaign) == before
    for path in (f"/c/{'A' * 43}", "/tokens"):
        async with dashboard.session.get(dashboard.public + path) as answer:
            assert answer.status == 404


async def test_the_public_page_is_drawn_once_for_each_state_of_its_campaign(dashboard, monkeypatch):
    drawn = []
    render = public.render

    def counted(*arguments, **values):
        drawn.append(threading.current_thread() is threading.main_thread())
        return render(*arguments, **values)

    monkeypatch.setattr(public, "render", counted)
    campaign = await dashboard.publish()

    async def ask(**headers):
        async with dashboard.session.get(f"{dashboard.public}/c/{campaign.id}", headers=headers) as answer:
            return answer.status, answer.headers["ETag"], answer.headers["Cache-Control"], await answer.text()

    answers = await asyncio.gather(*(ask() for _ in range(8)))
    assert len(set(answers)) == 1
    status, tag, cache, _ = answers[0]
    assert (status, cache) == (200, "public, max-age=60")
    assert await ask(**{"If-None-Match": tag}) == (304, tag, cache, "")
    assert drawn == [False], "once, and in a thread"
    await dashboard.store.close_campaign(campaign.id)
    closed = await ask()
    assert closed[1] != tag
    assert len(drawn) == 2


async def test_the_public_page_says_which_values_are_in_their_order(dashboard):
    for ordered in (False, True):
        feature = {"name": "age", "kind": "categorical", "values": ["young", "medium", "old"], "ordered": ordered}
        text = await dashboard.people_page(await dashboard.publish(features=[feature]))
        assert ("<td>one of young, medium, old, in this order</td>" in text) is ordered
