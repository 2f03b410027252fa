"""Uploads and the dashboard: what a campaign refused is on its page by code, and no upload waits for a page."""

import asyncio
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import ldp_aggregator.dashboard
from ldp_aggregator.dashboard.overview import points_of
from ldp_aggregator.dashboard.page_sources import UNEXPLAINED, History, Readings, refused_by, thinned
from ldp_aggregator.server.metrics import REPORT, UPLOAD, Metrics
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES
from ldp_aggregator.service import words
from ldp_client import perturb
from ldp_protocols import encode_upload

MOST_CAMPAIGNS = 1000


# The second kind is answered by aiohttp; the first takes the short way once the campaign is known to be open.
on_both_ways = pytest.mark.parametrize(
    "headers", [{}, {"Origin": "https://app.example.org"}], ids=["short way", "long way"]
)
RECORD = {"age": "young", "income": 3, "hours": 4}


def row(code, told, sentence):
    return f'<td class="wide">{words.sentence(sentence)}</td><td class="num">{told}</td><td><code>{code}</code></td>'


def conflicting(campaign):
    """An answer, and another one under its id."""
    (first,) = perturb(campaign, RECORD, "yes")
    second = first
    while (second.question, second.payload) == (first.question, first.payload):
        second = replace(perturb(campaign, RECORD, "yes")[0], id=first.id)
    return encode_upload([first], campaign), encode_upload([second], campaign)


@on_both_ways
async def test_a_campaign_shows_what_it_refused_with_the_sentence_of_each_code(dashboard, headers):
    campaign, other = await dashboard.publish(), await dashboard.publish(title="Another one")
    first, second = conflicting(campaign)
    assert [await dashboard.upload(campaign, body, **headers) for body in (first, second, second)] == [200] * 3
    assert [await dashboard.upload(campaign, b"no upload", **headers) for _ in range(3)] == [400] * 3
    assert await dashboard.upload(campaign, encode_upload(perturb(campaign, RECORD, "no"), campaign), **headers) == 200
    text = await dashboard.page(campaign, "/health")
    assert row("conflicting-report", "2\u00a0reports", REPORT_CODES["conflicting-report"]) in text
    assert row("malformed-upload", "3\u00a0uploads", PROBLEMS["malformed-upload"].title) in text
    for told in (text, (await dashboard.get("/"))[1]):
        assert "2\u00a0contradictions" in told
    text = await dashboard.page(other, "/health")
    assert "conflicting-report" not in text
    assert "Nothing was refused." in text
    await dashboard.store.close_campaign(other.id)
    late = encode_upload(perturb(other, RECORD, "yes"), campaign)
    assert [await dashboard.upload(other, late, **headers) for _ in range(2)] == [409, 409]
    told = row("campaign-closing", "2\u00a0uploads", PROBLEMS["campaign-closing"].title)
    assert told in await dashboard.page(other, "/health"), (
        "what comes too late is told of as uploads and not as reports"
    )


async def test_what_names_no_campaign_is_counted_for_none_and_so_many_campaigns_at_most_are_told_apart(dashboard):
    campaign = await dashboard.publish()
    for name in ("A" * 43, "x"):
        async with dashboard.session.post(f"{dashboard.public}/v1/campaigns/{name}/reports", data=b"") as answer:
            assert answer.status == 404
    async with dashboard.session.get(f"{dashboard.operations}/metrics") as answer:
        assert "ldp_campaign_refusals_total{" not in await answer.text()
    assert "Nothing was refused." in await dashboard.page(campaign, "/health")
    metrics = Metrics()
    for number in range(MOST_CAMPAIGNS + 5):
        metrics.count_refused(f"campaign {number}", UPLOAD, "malformed-upload")
    metrics.count_refused("campaign 0", UPLOAD, "malformed-upload")
    readings = metrics.readings()
    assert len(readings.campaigns) == MOST_CAMPAIGNS
    assert readings.campaigns["campaign 0"] == {(UPLOAD, "malformed-upload"): 2}


@pytest.mark.parametrize(
    ("points", "most", "kept"),
    [(0, 4, []), (3, 4, [0, 1, 2]), (4, 4, [0, 1, 2, 3]), (10, 4, [0, 3, 6, 9]), (11, 4, [1, 4, 7, 10]), (9, 1, [8])],
)
def test_of_a_curve_so_many_points_are_drawn_at_the_most_and_always_the_last(points, most, kept):
    assert [number for _, number in thinned([(None, number) for number in range(points)], most)] == kept


def test_samples_become_rarer_the_further_they_reach_back():
    history = History()
    for number in range(1000):
        history.note(number, {"a": number} if number % 2 else {"a": number, "b": number})
    kept = [number for _, number in history.of("a")]
    assert (history.since, kept[0], len(kept)) == (0, 0, len(set(kept)))
    assert 120 <= len(kept) < 240
    assert kept[-1] > 990
    assert {number for _, number in history.of("b")} == {number for number in kept if number % 2 == 0}
    assert history.of("c") == []


@pytest.mark.parametrize(
    ("samples", "created", "points"),
    [
        ((10, 20), 15, [(15, 0), (20, 5), (30, 7)]),
        ((10, 20), 10, [(10, 0), (20, 5), (30, 7)]),
        ((10, 20), 9, [(20, 5), (30, 7)]),
        ((), 15, [(30, 7)]),
    ],
    ids=["made since", "made at once", "made before", "nothing yet"],
)
def test_a_curve_goes_from_nothing_where_the_campaign_was_made_since_by_way_of_its_samples_until_now(
    samples, created, points
):
    """Before that nobody has looked: what was counted then is no rise from 0."""
    history = History()
    for at in samples:
        history.note(at, {"another": 3} if at == 10 else {"this": 5, "another": 4})
    state = SimpleNamespace(id="this", created=created, reports=7)
    assert points_of(state, SimpleNamespace(history=history, clock=lambda: 30)) == points


def test_the_time_of_a_share_of_the_commits_is_the_bound_of_the_bucket_in_which_it_ends():
    commits = {0.01: 8, 0.001: 5, 1.0: 10}
    readings = Readings(0, 0, {}, commits, 2.0, 10, 0, 0.0, 0, {}, {}, {}, ())
    assert [readings.commit_quantile(share) for share in (0.1, 0.5, 0.51, 0.8, 0.81, 1.0)] == [
        *(0.001, 0.001, 0.01, 0.01, 1.0, 1.0)
    ]
    assert readings.mean_commit_seconds == 0.2
    nothing = replace(readings, commits={0.001: 0}, commit_count=0)
    assert (nothing.commit_quantile(0.5), nothing.mean_commit_seconds) == (None, None)


def test_every_code_that_can_refuse_has_a_sentence():
    metrics = Metrics()
    for code in REPORT_CODES:
        metrics.count_refused("c", REPORT, code)
    for code in PROBLEMS:
        metrics.count_refused("c", UPLOAD, code)
    titles = {code: kind.title for code, kind in PROBLEMS.items()}
    found = refused_by(metrics.readings(), "c", REPORT_CODES, titles)
    assert len(found) == len(REPORT_CODES) + len(PROBLEMS)
    assert UNEXPLAINED not in {one.sentence for one in found}
    same = {one.what: one.sentence for one in found if one.code == "campaign-closed"}
    assert same == {REPORT: REPORT_CODES["campaign-closed"], UPLOAD: titles["campaign-closed"]}


FOLDER = str(Path(ldp_aggregator.dashboard.__file__).parent)


@contextmanager
def traced(ran):
    """Notes which files' functions are called, here and in threads that begin meanwhile."""

    def note(frame, event, _argument):
        if event == "call":
            ran.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@on_both_ways
async def test_no_line_of_the_dashboard_runs_while_an_upload_is_answered(dashboards, headers):
    ran: set[str] = set()
    # From the start on, so that the threads that the store writes in are seen, too.
    with traced(ran):
        async with dashboards() as dashboard:
            campaign = await dashboard.publish(people=3)
            assert (await dashboard.get(f"/campaigns/{campaign.id}"))[0] == 200
            assert of_dashboard(ran), "what is looked for below would be found"
            # Its samples are taken twice a minute, whatever devices send, and could fall among the uploads.
            (history,) = (task for task in asyncio.all_tasks() if task.get_name() == "history")
            history.cancel()
            await asyncio.wait([history])
            ran.clear()
            for _ in range(5):
                body = encode_upload(perturb(campaign, RECORD, "no"), campaign)
                assert await dashboard.upload(campaign, body, **headers) == 200
            assert await dashboard.upload(campaign, b"no upload", **headers) == 400
            seen = set(ran)
            assert any("/ldp_aggregator/server/" in name for name in seen)
            assert any("/ldp_aggregator/store/sqlite/" in name for name in seen)
            assert of_dashboard(seen) == []


def of_dashboard(files):
    return sorted(name for name in files if name.startswith(FOLDER))
