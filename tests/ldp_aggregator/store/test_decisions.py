"""Decisions of a store that a database would hide: groups of uploads, and how a failure is told."""

import errno
import sqlite3
import ssl
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from cells import cell_campaign, cell_report, submission

from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.store import Outcome, StoreError
from ldp_aggregator.store.clocks import Moment
from ldp_aggregator.store.contract import Life, Standing, kind_of
from ldp_aggregator.store.decisions import (
    CampaignRow,
    Settlement,
    bar_of,
    gather,
    gather_by_campaign,
    goes_by_time,
    is_known,
    standing,
    vouched_part,
)

ID_BYTES = 16
REFUSED = ((bytes(ID_BYTES), "wrong-width"),)


@pytest.mark.parametrize(
    ("each", "known"),
    [
        ([], False),
        ([Outcome()], False),
        ([Outcome(duplicates=1)], True),
        ([Outcome(rejected=REFUSED)], True),
        ([Outcome(), Outcome(rejected=REFUSED)], True),
        ([Outcome(counted=1), Outcome(duplicates=2)], False),
        ([Outcome(counted=1, rejected=REFUSED)], False),
    ],
)
def test_what_is_known_is_nothing_new_and_something_that_was_there_before(each, known):
    assert is_known({"one": each[:1], "two": each[1:]}) is known


def test_a_group_is_taken_apart_in_the_order_in_which_everybody_locks_campaigns():
    uploads = [submission(cell_campaign(title=f"number {number}"), [number]) for number in range(5)]
    assert list(gather_by_campaign(uploads)) == sorted(upload.campaign.id for upload in uploads)


SAID = "what a client said"


def with_code(error, **codes):
    for name, value in codes.items():
        setattr(error, name, value)
    return error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, SAID), "OSError ENOSPC"),
        (ValueError(SAID), "ValueError"),
        (with_code(sqlite3.OperationalError(SAID), sqlite_errorname="SQLITE_FULL"), "OperationalError SQLITE_FULL"),
        (with_code(RuntimeError(SAID), sqlstate="53300"), "RuntimeError 53300"),
        (with_code(ssl.SSLError(SAID), reason="CERTIFICATE_EXPIRED"), "SSLError CERTIFICATE_EXPIRED"),
        (with_code(RuntimeError(SAID), reason=SAID), "RuntimeError"),
        (with_code(RuntimeError(SAID), reason="lower_case"), "RuntimeError"),
        (with_code(RuntimeError(SAID), reason="A" * 61), "RuntimeError"),
        (with_code(RuntimeError(SAID), reason=7), "RuntimeError"),
        (StoreError(SAID, "damaged-run"), "StoreError damaged-run"),
    ],
)
def test_a_failure_is_told_by_its_class_and_its_code(error, told):
    assert kind_of(error) == told


def test_so_are_its_causes_up_to_four():
    error = OSError(errno.EIO, SAID)
    for _ in range(5):
        outer = StoreError(SAID)
        outer.__cause__, error = error, outer
    assert kind_of(error) == " from ".join(["StoreError store-unavailable"] * 4)
    cut = error.__cause__.__cause__.__cause__.__cause__
    assert kind_of(cut) == "StoreError store-unavailable from OSError EIO"


@pytest.mark.parametrize(
    ("before", "counted", "vouched", "added"),
    [
        (Arrivals(10, 10), 5, 5, 3),
        (Arrivals(10, 9), 5, 5, 5),
        (Arrivals(10, 10), 5, 4, 4),
        (Arrivals(10, 9), 5, 4, 4),
    ],
)
def test_revealed_reports_are_taken_off_where_all_came_vouched_for_and_something_no_longer_is(
    before, counted, vouched, added
):
    settlement = Settlement({}, counted, (), vouched, 300, revealed=2)
    assert vouched_part(settlement, before) == added


def test_a_refused_report_is_told_with_its_place_in_its_upload():
    """Two uploads that mix in the batch, whose second has a report that no device sends between sound ones."""
    campaign = cell_campaign()
    uploads = [submission(campaign, members) for members in ([1, 2, 3], [4, (5, 255), 6, (7, 254)])]
    first, second = gather(campaign, uploads).settle({}).outcomes
    assert (first.places, second.places, second.counted) == ((), (1, 3), 2)


@pytest.mark.parametrize("end", [7, 15])
def test_ids_that_differ_in_the_last_bit_of_a_half_are_two(end):
    campaign = cell_campaign()
    one = cell_report(campaign, 1, 1)
    ids = [bytearray(b"\xff" * 16), bytearray(b"\xff" * 16)]
    ids[1][end] ^= 1
    [outcome] = (
        gather(campaign, [submission(campaign, [replace(one, id=bytes(name)) for name in ids])]).settle({}).outcomes
    )
    assert (outcome.counted, outcome.duplicates) == (2, 0)


def test_what_the_uploads_of_a_group_say_of_their_batches_is_added_up():
    campaign = cell_campaign()
    own = [submission(campaign, [number]) for number in (0, 1)]
    relayed = [
        replace(submission(campaign, range(first, first + 2)), batch=batch) for first, batch in ((2, 7), (4, 5), (6, 9))
    ]
    old = gather(campaign, own)
    seen = {record[:ID_BYTES].tobytes(): b"another!" for record in old.candidates}
    group = gather(campaign, [*own, *relayed])
    known = {
        at: seen[one] for at, record in enumerate(group.candidates) if (one := record[:ID_BYTES].tobytes()) in seen
    }
    settled = group.settle(known)
    assert (settled.counted, settled.vouched, settled.least_batch, settled.revealed) == (6, 6, 5, 2)


def test_who_was_refused_is_nobodys_crowd():
    """Of a batch of seven, one report of four that no device sends: three may hide with the three that came apart."""
    campaign = cell_campaign()
    (upload,) = [replace(submission(campaign, [1, (2, 255), 3, 4]), batch=7)]
    settled = gather(campaign, [upload]).settle({})
    assert (settled.counted, settled.vouched, settled.least_batch) == (3, 3, 6)


CAMPAIGN = cell_campaign()
NEW, OTHER = (cell_report(CAMPAIGN, number).id for number in (2, 3))
NOBODY = np.zeros(0, dtype=np.int64)


@pytest.mark.parametrize(
    ("bar", "told"),
    [
        (
            "campaign-closing",
            Outcome(duplicates=1, rejected=((NEW, "campaign-closing"), (OTHER, "conflicting-report"))),
        ),
        ("clock-unsettled", Outcome(refused="clock-unsettled")),
    ],
)
def test_of_an_upload_that_is_known_in_part_the_rest_is_told_but_where_nothing_can_be_said_it_comes_again_whole(
    bar, told
):
    """Of three reports one is known, one is new, and one is another answer under a known id."""
    known = gather(CAMPAIGN, [submission(CAMPAIGN, [1, (3, 9)])]).candidates
    digests = {one[:ID_BYTES].tobytes(): one[ID_BYTES:].tobytes() for one in known}
    group = gather(CAMPAIGN, [submission(CAMPAIGN, [1, 2, 3])])
    ids = [one[:ID_BYTES].tobytes() for one in group.candidates]
    held = {place: digests[one] for place, one in enumerate(ids) if one in digests}
    assert group.settle(held, NOBODY, bar).outcomes == (told,)
    alone = gather(CAMPAIGN, [submission(CAMPAIGN, [2])])
    assert alone.settle({}, NOBODY, bar).outcomes == (Outcome(refused=bar),), "and one of which nothing is, as a whole"


NOON = datetime(2026, 1, 10, 12, tzinfo=timezone.utc)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NEVER = Life(None, None, None)


def row_of(life, most=None):
    return CampaignRow(1, "A" * 43, "t", NOON, life, most, None)


@pytest.mark.parametrize(
    ("life", "word", "end"),
    [
        (NEVER, "open", None),
        (Life(NOON + HOUR, None, None), "not-yet", None),
        (Life(NOON, NOON + HOUR, None), "open", NOON + HOUR),
        (Life(None, NOON, None), "closing", NOON),
        (Life(None, NOON + HOUR, NOON - HOUR), "closing", NOON - HOUR),
        (Life(None, NOON - HOUR, NOON - DAY), "closed", NOON - DAY),
        (Life(None, None, NOON, NOON), "closed", NOON),
    ],
)
def test_how_a_campaign_stands_and_when_it_ends_and_that_it_is_full_whatever_else_it_is(life, word, end):
    for most, counted, told in ((None, 7, word), (8, 7, word), (7, 7, "full"), (7, 8, "full")):
        assert standing(row_of(life, most), counted, Moment(NOON)) == Standing(told, end)


def test_a_clock_that_jumped_says_nothing_of_what_goes_by_it_and_hides_no_closing():
    jumped = Moment(NOON, settled=False)
    for life in (Life(NOON - DAY, None, None), Life(None, NOON + DAY, None)):
        with pytest.raises(StoreError) as refused:
            standing(row_of(life), 0, jumped)
        assert refused.value.code == "clock-unsettled"
    assert standing(row_of(NEVER), 0, jumped).word == "open"
    assert standing(row_of(Life(None, NOON, NOON - HOUR)), 0, jumped).word == "closing"
    plain = cell_campaign()
    series = cell_campaign(windows={"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": 20})
    ended = cell_campaign(closes="2026-01-20T00:00:00Z")
    for campaign, moment, bar in (
        (plain, jumped, None),
        (series, jumped, "clock-unsettled"),
        (series, Moment(NOON), None),
    ):
        assert bar_of(row_of(NEVER), campaign, moment) == bar
    assert bar_of(row_of(Life(None, None, NOON)), series, jumped) == "campaign-closing"
    assert [goes_by_time(one) for one in (plain, series, ended)] == [False, True, True]
