"""What an operator does in a browser: sign in, create, watch counts rise, train, download; and how it looks."""

import json

import pytest
from browsing import answer
from credit_draft import DRAFT

from ldp_protocols import Campaign

OPEN = {**DRAFT, "closes": None, "privacy": {"epsilon": 4.0}}


def test_an_operator_signs_in_creates_watches_trains_and_downloads(browser, aggregator):
    browser.sign_in(aggregator)
    assert "No campaign yet" in browser.text()

    browser.open(f"{aggregator.admin_url}/campaigns/new")
    browser.click("details:has(#draft) > summary")
    browser.fill("#draft", json.dumps({**OPEN, "privacy": {"epsilon": -1}}))
    browser.wait(lambda: "privacy.epsilon" in browser.text("#verdict"))
    browser.fill("#draft", json.dumps(OPEN))
    browser.wait(lambda: "This is a campaign" in browser.text("#verdict"))
    browser.click("button[value=publish]")
    browser.wait(lambda: browser.text("h1") == OPEN["title"])
    campaign = Campaign.compile(OPEN)
    assert browser.driver.current_url == f"{aggregator.admin_url}/campaigns/{campaign.id}"

    count = f'[data-reports="{campaign.id}"]'
    assert browser.text(count) == "0"
    answer(aggregator, campaign, 300)
    browser.wait(lambda: browser.text(count) == "300")
    browser.wait(lambda: browser.all("svg.plot .shape"))

    browser.click(f'a[href$="{campaign.id}/model"]')
    browser.wait(lambda: browser.all('form[action$="/train"]'))
    browser.click('form[action$="/train"] input[name="anyway"]')
    browser.click('form[action$="/train"] button')
    browser.wait(lambda: "Version 1 of the model is published" in browser.text())
    found = browser.driver.execute_async_script(
        "const done = arguments[0]; fetch(document.querySelector('a[download]').href)"
        ".then((a) => Promise.all([a.status, a.headers.get('Content-Disposition'), a.json()])).then(done, String)"
    )
    assert found[:2] == [200, 'attachment; filename="model-1.json"']
    assert found[2]["training"]["reports"] == 300
    assert browser.complaints() == []


@pytest.mark.parametrize("windows", [None, {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 52}])
def test_the_public_page_shows_what_a_device_would_send(browser, aggregator, windows):
    campaign = aggregator.publish({**OPEN, "windows": windows})
    browser.open(f"{aggregator.url}/c/{campaign.id}")
    assert browser.text("h1") == OPEN["title"]
    button = "[data-lab] button"
    browser.wait(lambda: browser.one(button).is_enabled())
    before = list(browser.requested())
    browser.click(button)
    browser.wait(lambda: "The whole upload has" in browser.text("[data-result]"))
    assert ("its window" in browser.text("[data-result]")) == (windows is not None)
    browser.click("[data-lab] button[value=again]")
    browser.wait(lambda: "1,000 devices" in browser.text("[data-result]"))
    assert browser.requested() == before
    assert browser.complaints() == []
    assert browser.violations() == []
