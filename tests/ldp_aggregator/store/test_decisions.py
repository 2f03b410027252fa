"""Decisions of a store that a database would hide: groups of uploads, and how a failure is told."""

import errno
import sqlite3
import ssl
from dataclasses import replace

import pytest
from cells import cell_campaign, cell_report, submission

from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.store import StoreError
from ldp_aggregator.store.contract import kind_of
from ldp_aggregator.store.decisions import (
    Settlement,
    gather,
    gather_by_campaign,
    vouched_part,
)

ID_BYTES = 16


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
