"""The upload state machine, as a pure function."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client import Policy, TransportError
from ldp_client.delivery.schedule import Delivery, Outcome, Settled, batch, judge, schedule, size_of, wait
from ldp_client.network.transport import PROBLEM_TYPE, UNREADABLE_CODE, Response
from ldp_client.policy import POISON_STATUSES, RETRYABLE_STATUSES, SPLIT_STATUSES, TERMINAL_STATUSES
from ldp_protocols import Report

DUE = 0.0
EXPIRY_TRIES = 10
RETRY_AFTER_LONGEST = 6 * 3600.0


NOW = 1_800_000_000.0
POLICY = Policy()
ARRIVED = Settled(Outcome.ARRIVED)
REPORTS = tuple(Report(0, bytes([number]) * 16, b"\x01") for number in range(8))
SUCCESS = Response(200, {}, b'{"rejected": []}')


def problem(status, code="some-code", **headers):
    return Response(status, {"content-type": PROBLEM_TYPE, **headers}, json.dumps({"code": code}).encode())


def verdict_on(answer, count=1, *, delivery=None, jitter=0.5):
    task = batch(Delivery(queued=count), REPORTS[:count], POLICY)
    return judge(delivery or Delivery(queued=count), task, answer, NOW, jitter, POLICY)


def test_the_sets_of_statuses_do_not_overlap():
    sets = [RETRYABLE_STATUSES, SPLIT_STATUSES, POISON_STATUSES, TERMINAL_STATUSES]
    assert sum(map(len, sets)) == len(frozenset().union(*sets))


def test_a_batch_keeps_to_the_limits_on_count_and_bytes():
    by_count = replace(POLICY, most_reports_per_upload=3)
    task = batch(Delivery(), REPORTS, by_count)
    assert task.reports == REPORTS[:3]
    by_bytes = replace(POLICY, most_bytes_per_upload=2 * size_of(REPORTS[0]))
    task = batch(Delivery(), REPORTS, by_bytes)
    assert task.reports == REPORTS[:2]
    assert len(task.body) <= by_bytes.most_bytes_per_upload
    assert batch(Delivery(), REPORTS, replace(POLICY, most_bytes_per_upload=1)).reports == REPORTS[:1]


def test_a_first_send_is_spread_over_the_first_delay_unless_the_host_asks_without_one_and_waits_for_its_time():
    assert schedule(Delivery(), NOW, 600, 0.25, POLICY).schedule == NOW + 150
    assert schedule(Delivery(), NOW, 0, 0.25, POLICY).schedule == DUE
    assert schedule(Delivery(schedule=NOW + 500), NOW, 0, 0.5, POLICY).schedule == NOW
    assert schedule(Delivery(attempts=1, schedule=NOW + 500), NOW, 0, 0.5, POLICY).schedule == NOW + 500
    assert wait(Delivery(schedule=NOW + 5), NOW) == 5.0
    assert wait(Delivery(schedule=NOW - 5), NOW) == 0.0
    assert wait(Delivery(schedule=DUE), NOW) == wait(Delivery(schedule=None), NOW) == 0.0


def test_a_clock_set_back_brings_the_next_try_near():
    planned = schedule(Delivery(attempts=1, schedule=NOW + 86_400 * 365), NOW, 0, 0.5, POLICY)
    assert planned.schedule == NOW + POLICY.longest_wait
    assert schedule(Delivery(schedule=NOW + 86_400), NOW, 600, 0.5, POLICY).schedule == NOW + 600


def test_a_success_settles_every_report_and_drops_a_rejected_one_with_its_reason_or_a_fixed_one_where_that_is_none():
    verdict = verdict_on(SUCCESS, 3)
    assert verdict.settled == {report.id: ARRIVED for report in REPORTS[:3]}
    assert verdict.delivery.attempts == 0
    assert verdict.problem is None
    rejected = [[REPORTS[1].id.hex(), "padding-bits-set"], ["ff" * 16, "not-ours"], [REPORTS[2].id.hex(), "a\x1b[2J"]]
    verdict = verdict_on(Response(200, {}, json.dumps({"rejected": rejected}).encode()), 3)
    refused = [Settled(Outcome.REFUSED, code) for code in ("padding-bits-set", UNREADABLE_CODE)]
    assert [verdict.settled[report.id] for report in REPORTS[:3]] == [ARRIVED, *refused]


@pytest.mark.parametrize(
    "body", [b"", b"<html>Log in to the hotel", b"{}", b"[]", b'{"rejected": {"ab": 1}}', b'{"rejected": [[1, 2]]}']
)
def test_a_success_that_is_not_the_aggregators_is_no_success(body):
    verdict = verdict_on(Response(200, {}, body))
    assert not verdict.settled
    assert verdict.delivery.attempts == 1


OTHERS_PAGE = [
    Response(status, {"content-type": "text/html"}, b"<html>")
    for status in sorted(TERMINAL_STATUSES | POISON_STATUSES | SPLIT_STATUSES)
]
"""What would end or split a batch, if the aggregator said so."""


@pytest.mark.parametrize(
    "answer",
    [
        *(kind(status) for status in (*sorted(RETRYABLE_STATUSES), 301, 418, 511, 599) for kind in (Response, problem)),
        *(TransportError("timeout"), *OTHERS_PAGE),
    ],
    ids=str,
)
def test_a_retryable_or_unknown_answer_or_somebody_elses_page_keeps_every_report(answer):
    verdict = verdict_on(answer)
    assert verdict.settled == {}
    assert verdict.delivery.attempts == 1
    assert verdict.problem


def test_a_deleted_campaign_drops_the_reports_at_once():
    verdict = verdict_on(problem(410, "campaign-deleted"), 2)
    assert verdict.settled == {report.id: Settled(Outcome.REFUSED, "campaign-deleted") for report in REPORTS[:2]}


def rejection(code):
    """A success that takes none of the reports."""
    return Response(200, {}, json.dumps({"rejected": [[report.id.hex(), code] for report in REPORTS[:2]]}).encode())


DAY = 86400
FINAL = [
    *(problem(status, "campaign-closed") for status in (404, 409, 451)),
    *(rejection(code) for code in ("campaign-closed", "campaign-full", "window-over")),
]


def heard(*answers):
    """What becomes of two reports whose server gives these answers, each so many seconds after the first."""
    delivery = Delivery(expires=NOW)
    for at, answer in answers:
        task = batch(delivery, REPORTS[:2], POLICY)
        assert not delivery.has_expired(NOW + at), "it waits for its second word"
        verdict = judge(delivery, task, answer, NOW + at, 0.5, POLICY)
        delivery = verdict.delivery
        assert verdict.settled or not delivery.has_expired(NOW + at), "it waits for its second word"
    return verdict


@pytest.mark.parametrize("final", FINAL, ids=str)
def test_a_final_word_counts_once_it_was_heard_twice_a_day_apart(final):
    day = [(hour * 3600, final) for hour in range(24)]
    verdict = heard(*day)
    assert not verdict.settled
    assert verdict.problem in ("campaign-closed", "campaign-full", "window-over")
    assert verdict.delivery.schedule <= NOW + 23 * 3600 + 6 * 3600, "it is asked some four times a day"
    dropped = heard(*day, (DAY, final)).settled
    assert {one.outcome for one in dropped.values()} == {Outcome.REFUSED}
    assert len(dropped) == 2
    silence = (DAY // 2, TransportError("unreachable"))
    assert heard((0, final), silence, (DAY, final)).settled, "silence takes nothing back"


@pytest.mark.parametrize("final", FINAL, ids=str)
@pytest.mark.parametrize("other", [problem(409, "campaign-closing"), problem(503), Response(502, {}, b"")], ids=str)
def test_any_other_answer_between_takes_it_back(final, other):
    assert not heard((0, final), (DAY // 2, other), (DAY, final), (2 * DAY - 1, final)).settled
    assert heard((0, final), (DAY // 2, other), (DAY, final), (2 * DAY, final)).settled


@pytest.mark.parametrize("final", FINAL, ids=str)
def test_a_clock_that_goes_back_hears_the_first_word_anew(final):
    assert not heard((0, final), (-400 * DAY, final), (-400 * DAY + DAY - 1, final)).settled
    assert heard((0, final), (-400 * DAY, final), (-399 * DAY, final)).settled


@pytest.mark.parametrize(
    "code",
    ["campaign-not-open", "campaign-closing", "clock-unsettled", "window-not-open", "unknown-campaign", "not-found"],
)
def test_a_campaign_that_may_take_it_another_time_is_retried(code):
    for at in (0, DAY, 40 * DAY):
        verdict = heard((0, problem(409, code)), (at, problem(409, code)))
        assert not verdict.settled
        assert verdict.problem == code
    assert not heard((0, rejection(code)), (2 * DAY, rejection(code))).settled


@pytest.mark.parametrize("status", sorted(SPLIT_STATUSES | POISON_STATUSES))
def test_a_refused_batch_is_halved_until_one_report_is_left_which_is_quarantined(status):
    delivery, sizes = Delivery(), []
    while True:
        task = batch(delivery, REPORTS, POLICY)
        sizes.append(len(task.reports))
        verdict = judge(delivery, task, problem(status, "bad"), NOW, 0.5, POLICY)
        delivery = verdict.delivery
        if verdict.settled:
            break
    assert sizes == [8, 4, 2, 1]
    assert verdict.settled == {REPORTS[0].id: Settled(Outcome.QUARANTINED, "bad")}


@given(attempts=st.integers(0, 200), jitter=st.floats(0, 1, exclude_max=True))
def test_backoff_is_full_jitter_below_an_exponential_window_with_a_cap(attempts, jitter):
    verdict = verdict_on(problem(503), delivery=Delivery(attempts=attempts), jitter=jitter)
    window = min(POLICY.backoff_longest, POLICY.backoff_base * 2.0**attempts)
    assert verdict.delivery.schedule == NOW + jitter * window
    assert verdict.delivery.attempts == attempts + 1


@pytest.mark.parametrize(
    ("text", "floor"),
    [
        *(("120", 120.0), ("999999999", RETRY_AFTER_LONGEST), ("Mon, 01 Jan 2001 00:01:30 GMT", 90.0)),
        *((none, 0.0) for none in ("-5", "", "soon", "1.5", "٣", "Mon, 99 Jan 2001 00:00:00 GMT")),
    ],
)
def test_retry_after_is_a_floor_up_to_its_cap_and_as_a_date_measured_on_the_servers_clock(text, floor):
    headers = {"retry-after": text, **({"date": "Mon, 01 Jan 2001 00:00:00 GMT"} if "GMT" in text else {})}
    assert verdict_on(problem(503, **headers), jitter=0.0).delivery.schedule == NOW + floor


def test_a_search_for_poison_widens_and_a_size_limit_recovers_when_the_way_has_been_repaired():
    """Twelve refusals by a proxy with a wrong limit must not cost one request per report for life."""
    delivery, waiting = Delivery(), [Report(0, bytes([n]) * 16, b"\x01") for n in range(200)]
    task = batch(Delivery(search_limit=2), REPORTS, POLICY)
    assert judge(Delivery(search_limit=2), task, SUCCESS, NOW, 0.5, POLICY).delivery.search_limit == 4
    while delivery.size_limit != 1:
        delivery = judge(delivery, batch(delivery, waiting, POLICY), problem(413), NOW, 0.5, POLICY).delivery
    successes = 0
    while delivery.size_limit is not None:
        delivery = judge(delivery, batch(delivery, waiting, POLICY), SUCCESS, NOW, 0.5, POLICY).delivery
        successes += 1
    assert successes < 100


def test_a_limit_that_stays_costs_few_refusals():
    """A server takes 100 at a time for good: the search for more fails less than every fourth time."""
    delivery, waiting = Delivery(size_limit=100), [Report(0, bytes([n]) * 16, b"\x01") for n in range(200)]
    refusals = 0
    for _ in range(200):
        task = batch(delivery, waiting, POLICY)
        refused = len(task.reports) > 100
        refusals += refused
        delivery = judge(delivery, task, problem(413) if refused else SUCCESS, NOW, 0.5, POLICY).delivery
    assert refusals < 50


def test_a_report_expires_by_time_and_tries_together():
    old = Delivery(queued=1, expires=NOW - 1)
    assert not old.has_expired(NOW)
    assert replace(old, attempts=EXPIRY_TRIES).has_expired(NOW)
    assert not replace(old, attempts=EXPIRY_TRIES, expires=NOW + 1).has_expired(NOW)


def test_an_empty_queue_remembers_what_was_and_what_the_way_allows_and_nothing_of_the_reports_that_left():
    counted = {"sent": 3, "retries": 5, "dropped": {"expired": 1}, "quarantined": {"bad": 2}}
    of_the_way = {"size_limit": 7, "upload_bytes": 600, "paused": True}
    of_reports = {"attempts": 9, "schedule": NOW, "expires": NOW, "search_limit": 2, "refused_at": NOW}
    before = Delivery(**counted, **of_the_way, **of_reports, queued=2, queued_bytes=99)
    assert before.emptied() == Delivery(**counted, **of_the_way)


def test_poison_among_many_costs_few_uploads():
    waiting, delivery, uploads = [Report(0, bytes([n]) * 16, b"\x01") for n in range(64)], Delivery(), 0
    poison = waiting[37].id
    while waiting:
        task = batch(delivery, waiting, POLICY)
        uploads += 1
        poisoned = poison in {report.id for report in task.reports}
        answer = problem(400, "malformed-upload") if poisoned else SUCCESS
        verdict = judge(delivery, task, answer, NOW, 0.5, POLICY)
        delivery, gone = verdict.delivery, verdict.settled
        assert (gone.get(poison) == Settled(Outcome.QUARANTINED, "malformed-upload")) == (poison in gone)
        waiting = [report for report in waiting if report.id not in gone]
    assert uploads < 25
