"""The queue of unsent reports and its state, transaction by transaction."""

from dataclasses import replace

import pytest

from ldp_client import MemoryStorage, Policy, StorageError
from ldp_client.delivery.queue import Outbox, listed
from ldp_client.delivery.schedule import Delivery, Outcome, Settled, Verdict
from ldp_protocols import Report

CAMPAIGN = "A" * 43
LATEST = 999_999_999_999.999
"""Seconds, in the fifteen digits of milliseconds that the index has."""
REPORTS = [Report(0, bytes([number]) * 16, bytes(10)) for number in range(3)]


@pytest.fixture
def transaction():
    with MemoryStorage().transaction(write=True) as transaction:
        yield transaction


def test_a_report_that_joins_has_heard_no_final_word(transaction):
    outbox = Outbox(CAMPAIGN)
    outbox.put(transaction, REPORTS[:1], expires=9.0)
    outbox.set_delivery(transaction, replace(outbox.delivery(transaction), refused_at=5.0))
    joined = outbox.put(transaction, REPORTS[1:2])
    assert (joined.refused_at, joined.expires, joined.queued) == (None, 9.0, 2)


def test_a_queue_takes_as_many_reports_and_bytes_as_the_policy_says_and_no_more(transaction):
    outbox = Outbox(CAMPAIGN)
    outbox.put(transaction, REPORTS)
    assert outbox.delivery(transaction).queued_bytes == 3 * (10 + 32)
    for policy in (Policy(most_queued_reports=5), Policy(most_queued_bytes=126 + 84)):
        outbox.check_room(transaction, 2, 84, policy)
        with pytest.raises(StorageError):
            outbox.check_room(transaction, 3, 85, policy)


def test_what_is_settled_leaves_once_and_is_counted_by_its_end(transaction):
    outbox = Outbox(CAMPAIGN)
    outbox.put(transaction, REPORTS)
    ends = [Settled(Outcome.ARRIVED), Settled(Outcome.REFUSED, "x"), Settled(Outcome.QUARANTINED, "y")]
    settled = {report.id: end for report, end in zip(REPORTS, ends, strict=True)}
    after = outbox.apply(transaction, Verdict(outbox.delivery(transaction), settled))
    assert (after.sent, after.dropped, after.quarantined) == (1, {"x": 1}, {"y": 1})
    assert (after.queued, after.queued_bytes, list(listed(transaction))) == (0, 0, [])
    again = outbox.apply(transaction, Verdict(outbox.delivery(transaction), settled))
    assert (again.sent, again.dropped, again.quarantined) == (1, {"x": 1}, {"y": 1})


def test_of_a_queue_that_becomes_empty_nothing_is_left_but_what_happened_and_what_uploads_may_be(transaction):
    for leave in ("settled", "cleared"):
        outbox = Outbox(CAMPAIGN, leave)
        outbox.put(transaction, REPORTS[:1], expires=9.0)
        state = {"attempts": 3, "schedule": 7.0, "search_limit": 1, "refused_at": 5.0}
        kept = {"size_limit": 4, "upload_bytes": 100, "retries": 6, "sent": 2, "paused": True}
        outbox.set_delivery(transaction, replace(outbox.delivery(transaction), **state, **kept))
        if leave == "cleared":
            assert outbox.clear(transaction) == 1
        else:
            settled = {REPORTS[0].id: Settled(Outcome.REFUSED, "x")}
            outbox.apply(transaction, Verdict(outbox.delivery(transaction), settled))
        dropped = {"x": 1} if leave == "settled" else {}
        assert outbox.delivery(transaction) == Delivery(**kept, dropped=dropped)


def test_what_became_of_a_queue_while_its_upload_was_under_way_holds(transaction):
    """It was switched off, or emptied; the verdict is on how it was before."""
    outbox = Outbox(CAMPAIGN)
    outbox.put(transaction, REPORTS)
    verdict = Verdict(replace(outbox.delivery(transaction), retries=5), {REPORTS[0].id: Settled(Outcome.ARRIVED)})
    outbox.pause(transaction, paused=True)
    after = outbox.apply(transaction, verdict)
    assert (after.paused, after.queued, after.retries) == (True, 2, 5)
    outbox.clear(transaction)
    emptied = outbox.delivery(transaction)
    assert outbox.apply(transaction, Verdict(replace(verdict.delivery, retries=9), verdict.settled)) == emptied


def test_what_left_is_noted_with_the_first_time_and_the_last_reply(transaction):
    outbox = Outbox(CAMPAIGN)
    outbox.put(transaction, REPORTS[:2])
    outbox.log(transaction, REPORTS[:1], 1.0)
    settled = {REPORTS[0].id: Settled(Outcome.QUARANTINED, "x")}
    outbox.apply(transaction, Verdict(outbox.delivery(transaction), settled))
    outbox.log(transaction, REPORTS[:2], 2.0)
    assert [(one.report, one.code, one.at) for one in outbox.sent(transaction)] == [
        (REPORTS[0], "x", 1.0),
        (REPORTS[1], "", 2.0),
    ]


def test_the_index_names_each_queue_once_where_it_is_due_and_none_that_is_empty_or_paused(transaction):
    first, second = Outbox(CAMPAIGN, "ann"), Outbox("B" * 43, "bob")
    for outbox in (first, second):
        outbox.put(transaction, REPORTS)
    for schedule, at in ((1.5, 1.5), (2000.25, 2000.25), (0.0, 0.0), (-5.0, 0.0), (None, 0.0), (1e300, LATEST)):
        first.set_delivery(transaction, replace(first.delivery(transaction), schedule=schedule, attempts=2))
        entries = {entry.place: (entry.at, entry.tried) for entry in listed(transaction)}
        assert entries == {first.place: (at, True), second.place: (0.0, False)}
    second.pause(transaction, paused=True)
    assert [entry.place for entry in listed(transaction)] == [first.place]
    assert first.clear(transaction) == 3
    second.pause(transaction, paused=False)
    assert [entry.place for entry in listed(transaction)] == [second.place]


def test_what_was_erased_meanwhile_leaves_not_even_a_count(transaction):
    outbox = Outbox(CAMPAIGN)
    verdict = Verdict(Delivery(queued=1, sent=4), {REPORTS[0].id: Settled(Outcome.ARRIVED)})
    assert outbox.apply(transaction, verdict, after_withdrawal=True) == Delivery()
    assert transaction.items("") == []
