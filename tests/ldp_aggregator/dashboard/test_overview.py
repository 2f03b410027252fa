"""The numbers on the pages about the whole server, each from its own source."""

import json
import re
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from ldp_aggregator.dashboard import overview
from ldp_aggregator.dashboard.page_sources import Readings
from ldp_aggregator.dashboard.pages import PageError
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES
from ldp_aggregator.service import words
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.verdicts import ACT, FINE, NOTE, WATCH, Verdict

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
    version="1.2.3",
    started=time.time() - 3 * 86400 - 60,
)
VISIT = SimpleNamespace(common=lambda: {"session": None, "form_token": "", "path": "/health"})


async def health(readings=READINGS, *, queue_age=0.25, is_well=True):
    titles = {code: kind.title for code, kind in PROBLEMS.items()}
    sources = SimpleNamespace(
        store=store(),
        readings=lambda: readings,
        is_well=lambda: is_well,
        queue_age=lambda: queue_age,
        report_codes=REPORT_CODES,
        upload_codes=titles,
    )
    return (await overview.get_health(VISIT, sources)).text


def facts(text):
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text.replace("\u00a0", " "))
    return {re.sub(r" ?<span class=\"mood (\w+)\">\w+</span>", r" [\1]", name).strip(): told for name, told in found}


async def test_the_page_of_health_has_every_number_of_this_process_in_its_place():
    text = await health()
    found = facts(text)
    assert found.pop("Clock").endswith(" UTC")
    assert found == {
        "Version": "1.2.3",
        "Running for": "3 days",
        "Last backup [watch]": "none yet",
        "Damaged campaigns [fine]": "0 campaigns",
        "Commits": "10",
        "Mean commit": "200 ms",
        "Half of them within": "250 ms",
        "99 % of them within": "1,000 ms",
        "Queue at the last commit": "1,234 bytes",
        "Longest wait in the queue now": "500 ms",
        "Failures of the store": "4",
        "Reports counted": "11",
        "Sent again, counted once": "2",
    }
    answers = re.findall(r'<tr><td>([^<]+)</td><td class="num">(\d+)</td></tr>', text)
    assert answers == [("answered", "12"), ("refused: the client’s fault", "6")]
    reports, requests = text.split('id="refused-requests"')
    assert "<code>conflicting-report</code>" in reports
    assert words.sentence(REPORT_CODES["conflicting-report"]) in reports
    assert "<code>malformed-upload</code>" in requests
    assert words.sentence(PROBLEMS["malformed-upload"].title) in requests


async def test_the_page_of_health_knows_what_status_knows():
    now = time.time()
    told = {
        ("ldp_free_bytes", ""): 5e8,
        ("ldp_store_bytes", "runs"): 2e6,
        ("ldp_store_bytes", "wal"): 1e6,
        ("ldp_last_backup_timestamp_seconds", ""): now - 7300,
        ("ldp_certificate_expires_timestamp_seconds", ""): now - 5,
        ("ldp_directory_expires_timestamp_seconds", "key"): now + 30 * 86400,
        ("ldp_gateway_key_missing", "k" * 43): 1.0,
        ("ldp_damaged_campaigns", ""): 1.0,
    }
    text = await health(replace(READINGS, told=told))
    found = facts(text)
    assert found["Disk [act]"] == "3.0 MB used, 500.0 MB free"
    assert found["Last backup"] == "2 hours ago"
    assert found["Certificate [act]"].startswith("ends 20")
    assert found["Publisher’s directory [fine]"].startswith("ends 20")
    assert found["Gateway keys [act]"] == "1 campaign without a key"
    assert found["Damaged campaigns [act]"] == "1 campaign"
    assert "The certificate has ended." in text
    assert "Runbook: diskfull" in text
    assert "Nothing is known to be wrong" not in text


@pytest.mark.parametrize(("then", "now", "told"), [(0.5, 0.25, "500 ms"), (0.25, 0.5, "500 ms"), (0, 0, "0 ms")])
async def test_the_longest_wait_is_the_longer_one_of_the_last_commit_and_of_now(then, now, told):
    text = await health(replace(READINGS, queue_seconds=then), queue_age=now)
    assert facts(text)["Longest wait in the queue now"] == told


async def test_before_anything_was_written_no_time_is_told_and_a_store_that_fails_is():
    nothing = replace(READINGS, commit_count=0, commits={}, commit_seconds=0.0, requests={})
    text = await health(nothing, is_well=False)
    assert "<dt>Mean commit</dt><dd>–</dd>" in text
    assert "Nothing was answered yet." in text
    assert "The last write to the store failed." in text
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


def state(number, mood=NOTE, status="open"):
    asks = Verdict(mood, f"asks {mood}")
    made = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(number)
    named = SimpleNamespace(
        id=f"id{number}", title=f"Campaign {number}.", created=made, federated=False, reports=number
    )
    return overview.Entry(named, status, Verdict(NOTE, "Not measured"), asks)


async def listed(monkeypatch, entries, **query):
    monkeypatch.setattr(overview, "warm", lambda *_: None)

    async def entry(one, *_, **__):
        return next(found for found in entries if found.state is one)

    monkeypatch.setattr(overview, "_entry", entry)
    history = SimpleNamespace(since=None)
    told = {"readings": lambda: READINGS, "is_well": lambda: True, "history": history}
    sources = SimpleNamespace(store=store([one.state for one in entries]), **told)
    return (await overview.get_overview(visit(**query), sources)).text


async def test_what_needs_somebody_comes_first_and_what_is_closed_last(monkeypatch):
    kinds = [(FINE, "open"), (ACT, "closed"), (NOTE, "open"), (WATCH, "open"), (ACT, "open"), (NOTE, "waiting")]
    entries = [state(place, mood, status) for place, (mood, status) in enumerate(kinds)]
    text = await listed(monkeypatch, entries)
    shown = list(dict.fromkeys(re.findall(r"Campaign \d", text)))
    assert shown == [f"Campaign {place}" for place in (4, 3, 5, 2, 0, 1)], "else the newest first"
    assert "3\u00a0campaigns of 6 need somebody." in text
    assert "Nothing needs anybody now." in await listed(monkeypatch, entries[:1])
    assert "1\u00a0campaign of 2 needs somebody." in await listed(monkeypatch, entries[:2])


async def test_each_page_has_so_many_campaigns(monkeypatch):
    for number, last in ((25, 1), (26, 2), (50, 2), (51, 3)):
        entries = [state(place) for place in range(number)]
        with pytest.raises(PageError, match=f"has {last}\u00a0page"):
            await listed(monkeypatch, entries, page=str(last + 1))
        shown = re.findall(r"Campaign (\d+)", await listed(monkeypatch, entries, page=str(last)))
        assert "0" in shown, "the oldest"
        assert len(set(shown)) == number - 25 * (last - 1)


def test_a_pace_is_told_by_the_day_where_one_was_seen():
    at = datetime(2026, 1, 1, 7, 30, tzinfo=timezone.utc)
    assert overview._pace([(at, 5), (at + timedelta(days=2), 2_468)]) == "about 1,300 a day"
    assert overview._pace([(at, 5), (at + timedelta(hours=2), 2_468)]) == "2,463 since 07:30"
    assert overview._pace([(at, 5), (at + timedelta(days=2), 5)]) == ""


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
