"""The numbers on the pages about the whole server, each from its own source."""

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import drafts
import numpy as np
import pytest

from ldp_aggregator import Tally
from ldp_aggregator.dashboard import overview
from ldp_aggregator.dashboard.page_sources import Readings
from ldp_aggregator.dashboard.pages import PageError
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES
from ldp_aggregator.service import words
from ldp_aggregator.service.rights import make_token
from ldp_protocols import Campaign

READINGS = Readings(
    counted=11,
    duplicates=2,
    refused={"conflicting-report": 3},
    commits={0.001: 4, 0.25: 9, 1.0: 10},
    commit_seconds=2.0,
    commit_count=10,
    queue_bytes=1234,
    queue_seconds=0.5,
    store_errors=4,
    requests={("/a", "GET", "200"): 5, ("/b", "POST", "200"): 7, ("/b", "POST", "404"): 6},
    refusals={"malformed-upload": 8},
    campaigns={},
    failing=(),
)
VISIT = SimpleNamespace(common=lambda: {"session": None, "form_token": "", "path": "/health"})


async def health(readings=READINGS, *, queue_age=0.25, is_well=True):
    titles = {code: kind.title for code, kind in PROBLEMS.items()}
    sources = SimpleNamespace(
        readings=lambda: readings,
        is_well=lambda: is_well,
        queue_age=lambda: queue_age,
        report_codes=REPORT_CODES,
        upload_codes=titles,
    )
    return (await overview.get_health(VISIT, sources)).text


async def test_the_page_of_health_has_every_number_of_this_process_in_its_place():
    text = await health()
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", re.sub("\u00a0", " ", text))
    assert dict(found) == {
        "Commits": "10",
        "Mean commit": "200 ms",
        "Half of them within": "250 ms",
        "99 % of them within": "1 000 ms",
        "Queue at the last commit": "1 234 bytes",
        "Longest wait in the queue now": "500 ms",
        "Failures of the store": "4",
        "Reports counted": "11",
        "Sent again, counted once": "2",
    }
    assert re.findall(r'<tr><td>(\d+)</td><td class="num">(\d+)</td></tr>', text) == [("200", "12"), ("404", "6")]
    reports, requests = text.split('id="refused-requests"')
    assert "<code>conflicting-report</code>" in reports
    assert words.sentence(REPORT_CODES["conflicting-report"]) in reports
    assert "<code>malformed-upload</code>" in requests
    assert words.sentence(PROBLEMS["malformed-upload"].title) in requests


@pytest.mark.parametrize(("then", "now", "told"), [(0.5, 0.25, "500 ms"), (0.25, 0.5, "500 ms"), (0, 0, "0 ms")])
async def test_the_longest_wait_is_the_longer_one_of_the_last_commit_and_of_now(then, now, told):
    text = await health(replace(READINGS, queue_seconds=then), queue_age=now)
    assert f"<dt>Longest wait in the queue now</dt><dd>{told}</dd>" in text.replace("\u00a0", " ")


async def test_before_anything_was_written_no_time_is_told_and_a_store_that_fails_is():
    nothing = replace(READINGS, commit_count=0, commits={}, commit_seconds=0.0, requests={})
    text = await health(nothing, is_well=False)
    assert "<dt>Mean commit</dt><dd>–</dd>" in text
    assert "Nothing was answered yet." in text
    assert "The last write to the store failed" in text
    assert "The last write to the store failed" not in await health()


def visit(**query):
    return SimpleNamespace(query=query, session=None, common=lambda: {"session": None, "form_token": "", "path": "/"})


def store(campaigns=(), tokens=()):
    async def listed(found):
        return list(found)

    return SimpleNamespace(campaigns=lambda: listed(campaigns), tokens=lambda: listed(tokens))


async def test_an_event_tells_reports_of_a_campaign_and_shares_of_a_federated_one():
    states = [
        SimpleNamespace(id="a", federated=False, reports=5, shares=0),
        SimpleNamespace(id="b", federated=True, reports=0, shares=3),
    ]
    answer = await overview.get_live(visit(), SimpleNamespace(store=store(states)))
    assert json.loads(answer.text.partition("data: ")[2]) == {"reports": {"a": 5, "b": 3}}


async def test_the_first_page_has_what_was_counted_and_what_was_sent_again_and_each_page_a_dozen(monkeypatch):
    async def entry(state, sources, readings):
        raise LookupError(state.id)

    monkeypatch.setattr(overview, "_entry", entry)
    history = SimpleNamespace(since=None)
    told = {"readings": lambda: READINGS, "report_codes": REPORT_CODES, "history": history}
    text = (await overview.get_overview(visit(), SimpleNamespace(store=store(), **told))).text
    assert "11 reports counted, 2 sent again" in re.sub("\u00a0", " ", text)
    for number, last in ((12, 1), (13, 2), (24, 2), (25, 3)):
        sources = SimpleNamespace(store=store([SimpleNamespace(id=place) for place in range(number)]), **told)
        with pytest.raises(PageError, match=f"has {last} pages"):
            await overview.get_overview(visit(page=str(last + 1)), sources)
        with pytest.raises(LookupError) as first:
            await overview.get_overview(visit(page=str(last)), sources)
        assert first.value.args == (number - 1 - 12 * (last - 1),), "the newest first"


async def test_so_many_tokens_are_shown_those_in_use_first_and_then_the_latest():
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    made = [make_token(f"token{n:03d}", "admin", at + timedelta(n))[1] for n in range(overview.MOST_TOKENS + 1)]
    made[200] = replace(made[200], revoked=at)
    for number, left in ((200, None), (201, 1)):
        some = made[201 - number :]
        text = (await overview.get_tokens(visit(), SimpleNamespace(store=store(tokens=some)))).text
        shown = list(dict.fromkeys(re.findall(r"token\d{3}", text)))
        in_order = [*(f"token{n:03d}" for n in reversed(range(201 - number, 200))), "token200"]
        assert shown == in_order[:200]
        found = re.search(r"(\d+) more", text)
        assert (found and int(found[1])) == left


@pytest.mark.parametrize(("answers", "devices"), [("one", 70), ("all", 40)])
def test_who_answers_all_groups_is_one_device(answers, devices):
    """Of the groups of the classes and of two features the one that most devices answered."""
    label = {"name": "y", "classes": ["a", "b"]}
    asked = drafts.draft(drafts.text("u", "0", "1"), drafts.text("v", "0", "1"), label=label)
    campaign = Campaign.compile({**asked, "privacy": {"epsilon": 4.0, "answers": answers}})
    tally = Tally(campaign)
    for question, n in zip(campaign.questions, (10, 40, 20), strict=True):
        tally.add(question.index, n, np.zeros(question.domain_size, dtype=np.int64))
    assert overview.devices_of(campaign, tally) == devices


def test_between_releases_no_precision_is_told_that_was_reached():
    label = {"name": "y", "classes": ["a", "b"]}
    for more, told in (({}, True), ({"release_every": 50}, False)):
        asked = drafts.draft(drafts.text("u", "0", "1"), label=label)
        campaign = Campaign.compile({**asked, "privacy": {"epsilon": 4.0, **more}})
        tally = Tally(campaign)
        for question in campaign.questions:
            tally.add(question.index, 40, np.full(question.domain_size, 10, dtype=np.int64))
        found = overview._precision(campaign, tally)
        assert [(one.n, one.reached is not None) for one in found] == [(40, told)] * len(campaign.questions)
