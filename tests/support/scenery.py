"""A server with everything on it that pages can show, made as people make it: by forms, devices and nodes."""

import json
import urllib.request
from dataclasses import replace

import numpy as np
import pandas as pd
from browsing import answer, send
from credit_draft import DRAFT
from drafts import draft, number, text

from ldp_aggregator.dashboard.campaigns import TABS
from ldp_aggregator.node_statistics import MEDIA_TYPE as SHARE_TYPE
from ldp_aggregator.trainers import node_statistics
from ldp_client import perturb
from ldp_protocols import Campaign, encode_upload

OPEN = {**DRAFT, "closes": None, "study": "credit", "privacy": {"epsilon": 4.0}}
HOSPITALS = draft(
    *(number("age", 0, 100, missing=True), text("ward", "a", "b", "c", missing=True)),
    title="Four hospitals",
    purpose="who falls ill, learned from wards that share no record",
    label={"name": "ill", "classes": ["yes", "no"]},
    privacy={"epsilon": 2},
)


def scenery(browser, aggregator, devices):
    """The addresses of all pages, by a name for each. Signs in, and leaves somewhere."""
    browser.sign_in(aggregator)
    empty = aggregator.publish({**OPEN, "title": "Nobody has answered yet"})
    campaign = aggregator.publish(OPEN)
    answer(aggregator, campaign, devices)
    refuse(aggregator, campaign)
    evaluation = evaluated(browser, aggregator, campaign, devices)
    federated = federation(browser, aggregator)
    closed = aggregator.publish({**OPEN, "title": "It is over"})
    answer(aggregator, closed, 3)
    browser.open(f"{aggregator.admin_url}/campaigns/{closed.id}/settings")
    browser.click('form[action$="/close"] input[type=checkbox]')
    browser.click('form[action$="/close"] button')
    browser.wait(lambda: browser.text(".badge") == "closed")
    admin, public = f"{aggregator.admin_url}/campaigns", f"{aggregator.url}/c"
    return {
        "start": f"{aggregator.url}/",
        "list": f"{aggregator.admin_url}/",
        "new": f"{admin}/new",
        "campaign": f"{admin}/{campaign.id}?lied=1",
        "feature": f"{admin}/{campaign.id}?feature=0",
        **{tab: f"{admin}/{campaign.id}/{tab}" for tab in TABS[1:]},
        "empty": f"{admin}/{empty.id}",
        "evaluation": f"{admin}/{evaluation.id}",
        "federated": f"{admin}/{federated.id}",
        "closed": f"{admin}/{closed.id}",
        "federation": f"{aggregator.admin_url}/federation",
        "health": f"{aggregator.admin_url}/health",
        "tokens": f"{aggregator.admin_url}/tokens",
        "missing": f"{admin}/nothing",
        "public": f"{public}/{campaign.id}",
        "public-federated": f"{public}/{federated.id}",
        "public-closed": f"{public}/{closed.id}",
    }


def refuse(aggregator, campaign):
    """One report whose id was counted with another answer, and one upload that is none."""
    record = {"age": "young", "income": 3, "hours": 4}
    (first,) = perturb(campaign, record, "yes")
    second = first
    while second.payload == first.payload:
        second = replace(perturb(campaign, record, "yes")[0], id=first.id)
    for body in (encode_upload([first], campaign), encode_upload([second], campaign), b"this is no upload"):
        send(f"{aggregator.url}/v1/campaigns/{campaign.id}/reports", body)


def evaluated(browser, aggregator, campaign, devices):
    """An evaluation round of what a campaign has learned, drafted and published by forms, and its answers."""
    browser.open(f"{aggregator.admin_url}/campaigns/{campaign.id}/model")
    browser.click('form[action$="/train"] input[name="anyway"]')
    browser.click('form[action$="/train"] button')
    browser.wait(lambda: "Version 1 of the model is published" in browser.text())
    browser.click('.answers form[action$="/round"] button')
    browser.wait(lambda: "This is a campaign" in browser.text("#verdict"))
    browser.click("button[value=publish]")
    browser.wait(lambda: browser.text("h1").startswith("How good is the model?"))
    found = browser.driver.current_url.rsplit("/", 1)[1]
    with urllib.request.urlopen(f"{aggregator.url}/v1/campaigns/{found}") as document:
        asked = Campaign.parse(document.read(), found)
    answer(aggregator, asked, devices)
    browser.open(f"{aggregator.admin_url}/campaigns/{asked.id}/model")
    browser.click('form[action$="/choose"] button')
    browser.wait(lambda: "of the model is published" in browser.text())
    return asked


def federation(browser, aggregator):
    """A campaign of nodes of which two have sent a share, one of them again."""
    address = f"{aggregator.admin_url}/admin/v1/campaigns?federated=true"
    made = send(address, json.dumps(HOSPITALS).encode(), "application/json", aggregator.token)
    campaign = Campaign.compile(HOSPITALS)
    assert json.loads(made)["id"] == campaign.id
    tokens = {}
    for seed, node in enumerate(("north", "south", "north")):
        if node not in tokens:
            browser.open(f"{aggregator.admin_url}/tokens")
            browser.fill("#name", node)
            browser.driver.execute_script("document.querySelector('#scope').value = 'node'")
            browser.click('form[action="/tokens"] button')
            browser.wait(lambda: browser.text("#made-token").startswith("ldp_"))
            tokens[node] = browser.text("#made-token")
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"age": rng.uniform(0, 100, 50), "ward": rng.choice(["a", "b", "c"], 50)})
        share = node_statistics(campaign, frame, pd.Series(rng.choice(["yes", "no"], 50)))
        url = f"{aggregator.url}/v1/campaigns/{campaign.id}/statistics"
        send(url, share, SHARE_TYPE, tokens[node])
    return campaign
