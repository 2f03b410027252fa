"""Decisions of a store that a database would hide: groups of uploads, and how a failure is told."""

import errno
import sqlite3
import ssl
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from cells import cell_campaign, cell_report, submission

from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.store import Life, StoreError
from ldp_aggregator.store.contract import kind_of
from ldp_aggregator.store.decisions import (
    CampaignRow,
    Settlement,
    gather,
    gather_by_campaign,
    vouched_part,
)
from protocols.wire import ID_BYTES

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


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
    ],
)
def test_a_failure_is_told_by_its_class_and_its_code(error, told):
    assert kind_of(error) == told


def test_so_are_its_causes_up_to_four():
    error = OSError(errno.EIO, SAID)
    for _ in range(5):
        outer = StoreError(SAID)
        outer.__cause__, error = error, outer
    assert kind_of(error) == " from ".join(["StoreError"] * 4)
    assert kind_of(error.__cause__.__cause__) == "StoreError from StoreError from StoreError from OSError EIO"


def settled(*uploads, known=()):
    """What a commit of uploads adds, each given as its batch and its reports, where a store knew reports before."""
    campaign = cell_campaign()
    batch = gather(campaign, [replace(submission(campaign, members), batch=size) for size, members in uploads])
    ids = gather(campaign, [submission(campaign, known)]).candidates.tolist() if known else ()
    digests = {bytes(record[:ID_BYTES]): bytes(record[ID_BYTES:]) for record in ids}
    places = {place: bytes(record[:ID_BYTES]) for place, record in enumerate(batch.candidates.tolist())}
    return batch.settle({place: digests[name] for place, name in places.items() if name in digests})


def test_the_least_batch_of_many_is_kept_less_what_hid_nobody_in_its_upload():
    found = settled((300, [1, 2]), (200, [3, 4]), (250, [5]))
    assert (found.counted, found.vouched, found.least_batch, found.revealed) == (5, 5, 200, 0)
    found = settled((300, [1]), (250, [2, 3, 4]), (200, [2, 3]), known=[3, 4])
    assert (found.vouched, found.least_batch) == (2, 248), "nothing is new in the last one, which says nothing"


def test_what_comes_again_outside_of_a_batch_is_revealed_in_every_upload_of_the_group_whatever_it_answers():
    found = settled((None, [1, 9]), (None, [2, (3, 5)]), (300, [4, 8]), known=[1, 2, 3, 4])
    assert (found.counted, found.vouched, found.revealed) == (2, 1, 3)


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


def test_a_campaign_tells_with_its_arrivals_what_two_merged_stores_had_both():
    merged = CampaignRow(1, "id", "title", NOW, Life(None, None, None), None, None, overlap=3, unchecked=4)
    assert merged.arrivals(10, 9, 200) == Arrivals(10, 9, 200, 3, 4)


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
