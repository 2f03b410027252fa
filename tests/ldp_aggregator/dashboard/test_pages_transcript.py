"""Every word and number of the pages about two of everything, and the pictures' digests, against a transcript of them.

``transcript.txt`` stands beside this file. Where a change of it is meant, the failure names the new one to put there.
"""

import hashlib
import html
import re
from datetime import datetime, timedelta, timezone
from difflib import unified_diff
from pathlib import Path

from two_of_all import ANSWERS, AT, DRAFTS, answered, shared

from ldp_aggregator.service.publishing import draft_evaluation
from ldp_aggregator.store import SqliteStore
from ldp_protocols import Campaign

STORED = Path(__file__).with_name("transcript.txt")
PAGES = """
/
/live
/campaigns/FIRST
/campaigns/FIRST?feature=1&lied=5
/campaigns/FIRST/model
/campaigns/FIRST/health
/campaigns/SECOND/health
/campaigns/SECOND/privacy?batch=250
/campaigns/FIRST/privacy?batch=9000
/campaigns/SECOND/settings
/campaigns/SECOND/live
/campaigns/SURVEY
/campaigns/SERIES
/campaigns/SERIES/privacy
/campaigns/NODES
/campaigns/NODES/privacy
/campaigns/ROUND
/campaigns/ROUND/model
/campaigns/FIRST?feature=99
/campaigns/SURVEY/model
/campaigns/FIRST/model.json?version=0
/federation
/tokens
"""
FORMS = (
    ("/campaigns/FIRST/train", {"anyway": "yes"}),
    ("/campaigns/SURVEY/train", {}),
    ("/campaigns/ROUND/choose", {}),
    ("/campaigns/SECOND/close", {}),
    ("/campaigns/SECOND/close", {"sure": "yes"}),
    ("/campaigns/SECOND/seal", {"sure": "yes"}),
    ("/tokens", {"name": "north", "scope": "node"}),
    ("/tokens", {"name": "new", "scope": "emperor"}),
    ("/tokens/revoke", {"name": "south", "sure": "yes"}),
    ("/tokens/revoke", {"name": "south", "sure": "yes"}),
)


def drawn(picture):
    """A picture by its digest, but for those that depend on the time."""
    text = picture.group()
    return " (a curve) " if "Reports" in text else f" (picture {hashlib.sha256(text.encode()).hexdigest()[:8]}) "


def field(tag):
    """A field by its name and what stands in it."""
    name, value = (re.search(rf'\b{one}="([^"]*)"|$', tag.group())[1] for one in ("name", "value"))
    return f" {{{name}={value or ''}}} "


def words(page):
    """A page as a person reads it: a line for each row, heading, paragraph and button; links and fields are named."""
    page = re.sub(r"<(script|style|head|header)\b.*?</\1>", "", page, flags=re.DOTALL)
    page = re.sub(r"<svg.*?</svg>", drawn, page, flags=re.DOTALL)
    page = re.sub(r'<input[^>]*name="form_token"[^>]*>', "", page)
    page = re.sub(r'<a [^>]*href="([^"]*)"[^>]*>', r"[\1] ", page)
    page = re.sub(r"<input\b[^>]*>", field, page)
    page = re.sub(r"\s+", " ", page)
    page = re.sub(r"</t[dh]>", " | ", page)
    page = re.sub(
        r"</?(?:p|h\d|tr|li|div|section|button|label|dt|dd|form|table|summary|nav|header|option)\b[^>]*>", "\n", page
    )
    lines = (" ".join(line.split()) for line in html.unescape(re.sub(r"<[^>]+>", " ", page)).splitlines())
    return "\n".join(line for line in lines if line.strip("| "))


async def test_the_pages_say_what_the_transcript_has(dashboard, tmp_path):
    store, ids = dashboard.store, {}
    then = SqliteStore(tmp_path / "store.sqlite3", clock=lambda: AT)
    for name, draft in DRAFTS.items():
        campaign = Campaign.compile({key: one for key, one in draft.items() if one is not None})
        await then.create_campaign(campaign, federated=name == "nodes")
        ids[name.upper()] = campaign.id
    for name, devices, batch in ANSWERS:
        await answered(then, Campaign.parse(await store.document(ids[name.upper()])), devices, batch)
    await shared(then, Campaign.parse(await store.document(ids["NODES"])))
    asked = Campaign.compile(await draft_evaluation(store, [ids["FIRST"], ids["SECOND"]]))
    await then.create_campaign(asked)
    await answered(then, asked, 600)
    await then.close()
    ids["ROUND"] = asked.id
    said = []

    async def look(pages):
        for page in pages.split():
            status, text = await dashboard.get(re.sub("[A-Z]{5,}", lambda name: ids[name.group()], page))
            said.append(f"GET {page} {status}\n{words(text)}")

    await look(PAGES)
    for form, fields in FORMS:
        name = re.search("[A-Z]{5,}|$", form).group()
        status, text, location = await dashboard.send(form.replace(name, ids[name]) if name else form, fields)
        said.append(f"POST {form} {fields} {status} {location}\n{words(text)}")
    await look("/ /campaigns/FIRST/model /campaigns/ROUND /tokens")
    for name in ids:
        async with dashboard.session.get(f"{dashboard.public}/c/{ids[name]}") as answer:
            said.append(f"people's page of {name} {answer.status}\n{words(await answer.text())}")
    text = "\n\n".join(said) + "\n"
    for name, one in ids.items():
        text = text.replace(one, f"<{name}>").replace(one[:8], f"<{name[:6]}>")
    for day in (datetime.now(timezone.utc) + timedelta(days=number) for number in (-1, 0, 1)):
        text = re.sub(rf"{day:%Y-%m-%d}(?:[T ][\d:.]+Z?(?: UTC)?)?", "TIME", text)
    text = re.sub(r"since \d\d:\d\d", "since TIME", re.sub(r"127\.0\.0\.1:\d+", "HERE", text))
    fresh = tmp_path / "transcript.txt"
    fresh.write_text(text, encoding="utf-8")
    change = unified_diff(STORED.read_text("utf-8").splitlines(), text.splitlines(), "stored", "now", lineterm="", n=1)
    assert list(change) == [], f"if that is meant, it stands in {fresh}"
