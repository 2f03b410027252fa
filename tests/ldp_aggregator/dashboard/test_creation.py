"""The form that makes a campaign, federated ones, the public page of what was made, and evaluation rounds."""

import asyncio
import html
import json
import re
import threading
from unittest.mock import DEFAULT, Mock

import pytest
from drafts import number, text
from exact_coins import SeededCoins

from ldp_aggregator.dashboard import public
from ldp_aggregator.dashboard.campaigns import TABS
from ldp_aggregator.server import housekeeping
from ldp_aggregator.service.publishing import publish_trained
from ldp_aggregator.service.signing import gateway_of
from ldp_aggregator.store import Submission
from ldp_client import perturb
from ldp_protocols import Campaign, decode_upload, encode_upload


async def test_a_draft_is_checked_and_published_and_not_again_as_federated(dashboard, draft):
    written = json.dumps(draft)
    status, page, _ = await dashboard.send("/campaigns/check", {"draft": written, "devices": "5000"})
    assert status == 200
    assert "This is a campaign" in page
    assert "5,000" in page
    campaign = Campaign.compile(draft)
    form = {"draft": written, "action": "publish", "max_reports": "7"}
    for _ in range(2):
        assert await dashboard.send("/campaigns/new", form) == (303, "", f"/campaigns/{campaign.id}")
    assert (await dashboard.store.state(campaign.id)).max_reports == 7
    form = {"draft": written, "action": "publish", "federated": "yes"}
    status, page, _ = await dashboard.send("/campaigns/new", form)
    assert status == 400
    assert "was published before and not as federated" in page


async def test_a_draft_whose_gateways_key_is_not_here_is_published_on_the_word_that_another_server_has_it(
    dashboards, draft, monkeypatch
):
    monkeypatch.setattr(housekeeping, "DUE_SECONDS", 0.05)
    written = json.dumps({**draft, "gateway": gateway_of(bytes(32)).to_json()})
    form = {"draft": written, "action": "publish"}
    async with dashboards() as dashboard:
        status, page, _ = await dashboard.send("/campaigns/new", form)
        assert (status, await dashboard.store.campaigns()) == (400, [])
        assert "nobody could open its answers" in page
        assert 'name="elsewhere"' in page
        plain = Campaign.compile({**draft, "title": "in the clear"})
        await dashboard.store.create_campaign(plain)
        status, _, onward = await dashboard.send("/campaigns/new", {**form, "elsewhere": "yes"})
        assert status == 303
        lost = "is sealed to a gateway"
        for place, told in ((onward, "obody opens its answers"), ("/", lost), ("/health", lost)):
            for _ in range(200):
                if told in (page := (await dashboard.get(place))[1]):
                    break
                await asyncio.sleep(0.05)
            assert told in page
        assert "obody opens its answers" not in await dashboard.page(plain)


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"draft": ""}, "There is nothing to publish yet"),
        ({"columns": "a: x | y\nb: 0 to 1"}, "name the column to learn, one of a, b"),
        ({"columns": "a: x | y", "label": "c"}, "no line is about"),
        ({"draft": "{"}, "The draft is not a campaign yet"),
        ({"draft": "title = "}, "not TOML in UTF-8"),
        ({"draft": '{"version": 1}'}, "title"),
        ({"draft": "DRAFT", "max_reports": "-1"}, "The most reports must be a whole number"),
        ({"draft": "DRAFT", "max_reports": "5", "federated": "yes"}, "takes shares of nodes and no reports"),
        ({"columns": "a,b", "label": "b", "action": "columns"}, "a does not say what it can be"),
    ],
)
async def test_what_is_wrong_with_a_form_is_said_and_nothing_is_made(dashboard, draft, form, says):
    given = {"action": "publish", "epsilon": "1", **form}
    if given.get("draft") == "DRAFT":
        given["draft"] = json.dumps(draft)
    status, page, _ = await dashboard.send("/campaigns/new", given)
    assert status == 400
    assert says in page
    assert await dashboard.store.campaigns() == []


COLUMNS = {"columns": "x: a | b\ny: yes | no", "label": "y", "epsilon": "1"}


async def test_columns_are_published_as_they_stand_or_become_a_draft_which_counts_from_then_on(dashboard, draft):
    status, page, _ = await dashboard.send("/campaigns/check", COLUMNS)
    assert (status, "This is a campaign" in page) == (200, True)
    assert await dashboard.store.campaigns() == []
    status, _, onward = await dashboard.send("/campaigns/new", {**COLUMNS, "action": "publish"})
    assert (status, onward) == (303, f"/campaigns/{(await dashboard.store.campaigns())[0].id}")
    assert "What tells y?" in (await dashboard.get(onward))[1]
    status, page, _ = await dashboard.send("/campaigns/new", {**COLUMNS, "action": "columns"})
    assert (status, "&#34;What tells y?&#34;" in page) == (200, True)
    both = {**COLUMNS, "draft": json.dumps(draft), "action": "publish"}
    status, page, _ = await dashboard.send("/campaigns/new", {**both, "columns": "x: a", "action": "columns"})
    assert (status, both["draft"] in html.unescape(page)) == (400, True), "what was written is not lost"
    assert (await dashboard.send("/campaigns/new", both))[2] == f"/campaigns/{Campaign.compile(draft).id}"


async def test_the_form_offers_who_answers_for_a_campaign_and_the_peoples_page_shows_it(dashboard):
    told = {"operator": "Clinic <b>", "contact": "privacy@example.org", "privacy_url": "https://example.org/p?a=1&b=2"}
    form = {**COLUMNS, **told, "keep_days": "30", "action": "publish"}
    status, page, _ = await dashboard.send("/campaigns/new", {**form, "keep_days": "0"})
    assert (status, "keep_days: must be an integer from 1 to 36500" in page, 'value="Clinic &lt;b&gt;"' in page) == (
        (400, True, True)
    )
    assert (await dashboard.send("/campaigns/new", form))[0] == 303
    (state,) = await dashboard.store.campaigns()
    campaign = Campaign.parse(await dashboard.store.document(state.id))
    assert {name: getattr(campaign, name) for name in told} == told
    assert campaign.keep_days == 30
    page = await dashboard.people_page(state)
    assert "Who answers for it" in page
    assert "Clinic &lt;b&gt;" in page
    assert 'href="https://example.org/p?a=1&amp;b=2"' in page
    assert "30 days after the end" in " ".join(page.split())
    await dashboard.send("/campaigns/new", {**COLUMNS, "title": "of nobody", "action": "publish"})
    (other,) = [one for one in await dashboard.store.campaigns() if one.id != state.id]
    assert "Who answers for it" not in await dashboard.people_page(other)


async def test_a_federated_campaign_has_pages_without_reports(dashboard, draft):
    form = {"draft": json.dumps(draft), "action": "publish", "federated": "yes"}
    _, _, onward = await dashboard.send("/campaigns/new", form)
    for path in ("/", onward, "/federation"):
        assert (await dashboard.get(path))[0] == 200
    assert (await dashboard.get(f"{onward}/model.json"))[0] == 404
    assert "No node has sent a share yet" in (await dashboard.get(onward))[1]
    page = await dashboard.people_page(Campaign.compile(draft))
    assert "Devices are not asked." in page
    assert "Devices that take part are being asked" not in page
    assert "over all devices" not in page
    assert f"ε = {draft['privacy']['epsilon']:.2f}, differential privacy" in page


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {"epsilon": 1.0, "answers": "all"}},
        {"privacy": {"epsilon": 1.0, "discrete": "oue", "continuous": "laplace"}},
        {"privacy": {"epsilon": 1.0, "discrete": "she", "continuous": "onebit"}},
        {"privacy": {"epsilon": 1.0, "release_every": 50}},
        {"opens": "2090-01-01T00:00:00Z", "closes": "2091-01-01T00:00:00Z"},
        {"asks": "moments", "study": "s", "features": [number("income", missing=True), number("hours", missing=True)]},
    ],
    ids=["all", "oue-laplace", "she-onebit", "releases", "waiting", "moments"],
)
async def test_every_kind_of_campaign_has_its_pages(dashboard, draft, changes):
    if "continuous" in changes.get("privacy", {}):  # Noisy sums are of complete features.
        changes = {**changes, "features": [{**feature, "missing": False} for feature in draft["features"]]}
    campaign = await dashboard.publish(people=0 if "opens" in changes else 40, **changes)
    page = f"/campaigns/{campaign.id}"
    tabs = (f"{page}/{tab}" for tab in TABS)
    for path in ("/", page, f"{page}?lied=2", f"{page}/live", *tabs):
        status, shown = await dashboard.get(path)
        assert (status, "Cannot be read" in shown) == (200, False), shown
    assert campaign.title in await dashboard.people_page(campaign)


async def test_the_public_page_is_open_to_everybody_and_says_values_in_their_order_and_nothing_that_was_counted(
    dashboard,
):
    campaign = await dashboard.publish()
    before = await dashboard.people_page(campaign)
    await dashboard.answer(campaign, 13)
    assert await dashboard.people_page(campaign) == before
    for path in (f"/c/{'A' * 43}", "/tokens"):
        async with dashboard.session.get(dashboard.public + path) as answer:
            assert answer.status == 404
    for ordered in (False, True):
        feature = text("age", "young", "medium", "old", missing=True, ordered=ordered)
        page = await dashboard.people_page(await dashboard.publish(features=[feature]))
        assert ("<td>one of young, medium, old, in this order</td>" in page) is ordered


async def test_a_public_page_that_could_not_be_drawn_is_drawn_anew(dashboard, monkeypatch):
    url, statuses = f"{dashboard.public}/c/{(await dashboard.publish()).id}", []
    draw = Mock(side_effect=[OSError("once"), DEFAULT], wraps=public._draw)
    monkeypatch.setattr(public, "_draw", draw)
    for _ in range(2):
        async with dashboard.session.get(url) as answer:
            statuses.append(answer.status)
    assert statuses == [500, 200]


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


DRAFT_FIELD = re.compile(r'<textarea id="draft"[^>]*>(.*?)</textarea>', re.DOTALL)
FEATURES = [text("age", "young", "medium", "old")]


def person(number):
    """Whom the age tells the class of in four of five."""
    of_class = number % 2 if number % 5 else 1 - number % 2
    return {"age": ("young", "medium", "old")[(2 * (number % 2) + number % 3 // 2) % 3]}, ("yes", "no")[of_class]


async def count(dashboard, campaign, numbers):
    coins = SeededCoins(campaign.id)
    reports = [report for number in numbers for report in perturb(campaign, *person(number), coins=coins)]
    await dashboard.store.count([Submission(campaign, decode_upload(encode_upload(reports, campaign), campaign))])


async def published_round(dashboard, campaign):
    """The evaluation round of the draft in the form that the button answers with."""
    status, page, _ = await dashboard.send(f"/campaigns/{campaign.id}/round", {})
    assert status == 200, page
    assert "This is a campaign" in page
    draft = html.unescape(DRAFT_FIELD.search(page)[1])
    asked = Campaign.compile(draft)
    form = {"draft": draft, "action": "publish"}
    assert (await dashboard.send("/campaigns/new", form)) == (303, "", f"/campaigns/{asked.id}")
    return asked


async def test_an_evaluation_is_drafted_answered_drawn_and_its_model_published(dashboard):
    first = await dashboard.publish(features=FEATURES, study="s", privacy={"epsilon": 3.0})
    await count(dashboard, first, range(6_000))
    assert (await dashboard.send(f"/campaigns/{first.id}/train", {}))[0] == 303
    asked = await published_round(dashboard, first)
    assert "Too few answers to say how good it is: 0\u00a0answers so far." in await dashboard.page(asked)

    await count(dashboard, asked, range(6_000))
    page = await dashboard.page(asked)
    assert re.search(r"The model is right for <strong>[\d.]+\u00a0%</strong> of people \([\d.]+ to ", page)
    assert "Of 1,000 people" in page
    for title in ("Recall and precision", "ROC curve", "Calibration"):
        assert f'aria-label="Table of {title}"' in page
    model = await dashboard.page(asked, "/model")
    assert f'href="/campaigns/{first.id}/model"' in model
    assert "No model yet" not in model

    assert (await dashboard.act(asked, "choose"))[0] == 303
    evaluated = json.loads((await dashboard.store.model(first.id)).document)["training"]["evaluated"]
    assert evaluated["campaign"] == asked.id
    shown = await dashboard.page(first, "/model")
    value, low, high = (f"{100 * evaluated['accuracy'][end]:.1f}" for end in ("value", "low", "high"))
    assert f"{value}\u00a0% ({low} to {high}\u00a0%)" in shown
    assert f"{value}\u00a0% right" in shown
    assert f"{value}\u00a0% right" in (await dashboard.get("/"))[1]
    assert f'by <a href="/campaigns/{asked.id}">its round</a>' in shown
    await publish_trained(dashboard.store, [first.id], "floor", anyway=True)
    assert "An earlier model was right for" in await dashboard.page(first), "of as many reports, and another one"
    assert (await dashboard.store.state(asked.id)).model_version == 1
    acts = [(one.act.act, one.act.campaign) for one in await dashboard.store.acts()]
    assert acts[-2:] == [("publish model", first.id), ("publish model", asked.id)]


async def test_a_round_without_answers_publishes_its_model_and_one_whose_campaigns_are_not_here_is_refused(dashboard):
    first = await dashboard.publish(features=FEATURES, study="s", privacy={"epsilon": 3.0})
    await count(dashboard, first, range(3_000))
    asked = await published_round(dashboard, first)
    assert (await dashboard.act(asked, "choose"))[0] == 303
    assert "too few answers" in await dashboard.page(asked, "/model")
    await dashboard.store.close_campaign(first.id)
    await dashboard.store.delete_campaign(first.id)
    status, page = await dashboard.act(asked, "choose")
    assert (status, first.id in page) == (409, True)
    assert (await dashboard.act(first, "choose"))[0] == 410


async def test_a_round_of_nothing_is_not_drafted_and_only_an_evaluation_round_has_a_choice(dashboard):
    campaign = await dashboard.publish(features=FEATURES)
    for act, says in (("round", "no report has been counted yet"), ("choose", "an evaluation has")):
        status, page = await dashboard.act(campaign, act)
        assert (status, says in html.unescape(page)) == (409, True)
