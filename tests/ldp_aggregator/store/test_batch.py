"""Laying out a group of uploads and settling it, without any database."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ldp_aggregator import Tally
from ldp_aggregator.store.batch import RECORD_BYTES, gather, gather_by_campaign, in_order
from ldp_aggregator.store.contract import Outcome
from protocols import Campaign, Report
from protocols.wire import ID_BYTES


@pytest.fixture
def campaign(make_campaign):
    return make_campaign()


def ids_of(batch):
    return [record[:ID_BYTES].tobytes() for record in batch.candidates]


def test_candidates_are_distinct_ids_in_order(campaign, make_submission, make_report):
    numbers = random.Random(1).choices(range(40), k=200)
    batch = gather(campaign, [make_submission(campaign, [make_report(campaign, number)]) for number in numbers])
    assert batch.candidates.shape == (len(set(numbers)), RECORD_BYTES)
    assert ids_of(batch) == sorted({make_report(campaign, number).id for number in numbers})


def test_ids_are_ordered_as_bytes_not_as_numbers_of_the_machine(campaign, make_submission):
    ids = [bytes([255]) + bytes(15), bytes(15) + b"\xff", bytes(8) + b"\x01" + bytes(7), bytes(16)]
    batch = gather(campaign, [make_submission(campaign, [Report(0, id_, b"\0")]) for id_ in ids])
    assert ids_of(batch) == sorted(ids)


def test_what_the_store_holds_already_decides_who_is_a_duplicate(campaign, make_submission, make_report):
    same, other, new = make_report(campaign, 1), make_report(campaign, 2), make_report(campaign, 3)
    batch = gather(campaign, [make_submission(campaign, [report]) for report in (same, other, new)])
    records = {record[:ID_BYTES].tobytes(): record[ID_BYTES:].tobytes() for record in batch.candidates}
    known = {ids_of(batch).index(same.id): records[same.id], ids_of(batch).index(other.id): b"differs!"}
    settlement = batch.settle(known)
    assert settlement.outcomes == (
        Outcome(duplicates=1),
        Outcome(rejected=((other.id, "conflicting-report"),)),
        Outcome(counted=1),
    )
    assert settlement.counted == 1
    assert settlement.sums[0][0] == 1
    assert settlement.sums[0][1].tolist() == [0, 0, 0, 1] + [0] * 60


def test_a_retry_beside_a_conflict_is_judged_by_what_is_stored(campaign, make_submission, make_report):
    first, second = make_report(campaign, 1, cell=5), make_report(campaign, 1, cell=6)
    stored = gather(campaign, [make_submission(campaign, [second])]).candidates[0, ID_BYTES:].tobytes()
    batch = gather(campaign, [make_submission(campaign, [report]) for report in (first, second)])
    settlement = batch.settle({0: stored})
    assert settlement.outcomes == (Outcome(rejected=((first.id, "conflicting-report"),)), Outcome(duplicates=1))
    assert settlement.sums == {}


def test_the_earliest_uploads_get_the_last_places(campaign, make_submission, make_report):
    uploads = [make_submission(campaign, [make_report(campaign, number)]) for number in range(10)]
    batch = gather(campaign, uploads)
    chosen = batch.earliest({}, 4)
    assert {ids_of(batch)[position] for position in chosen} == {make_report(campaign, n).id for n in range(4)}
    settlement = batch.settle({}, chosen)
    assert [outcome.counted for outcome in settlement.outcomes] == [1] * 4 + [0] * 6
    assert {code for outcome in settlement.outcomes for _, code in outcome.rejected} == {"campaign-closed"}


def test_settling_equals_counting_report_by_report(make_submission):
    campaign = Campaign.compile(
        {
            "version": 1,
            "title": "Two",
            "label": {"name": "label", "classes": ["yes", "no"]},
            "features": [{"name": "feature", "kind": "categorical", "values": ["a", "b", "c"]}],
            "privacy": {"epsilon": 1.0, "discrete": "oue"},
        }
    )
    dice = random.Random(3)
    reports = [
        Report(q, dice.randbytes(16), bytes([dice.randrange(1 << (2 if q == 0 else 6))]))
        for q in (dice.randrange(2) for _ in range(500))
    ]
    batch = gather(campaign, [make_submission(campaign, reports[start : start + 7]) for start in range(0, 500, 7)])
    expected = Tally(campaign)
    for report in reports:
        bits = np.unpackbits(np.frombuffer(report.payload, np.uint8), bitorder="little")
        expected.add(report.question, 1, bits[: campaign.questions[report.question].domain_size].astype(np.int64))
    actual = Tally(campaign)
    for question, (n, counts) in batch.settle({}).sums.items():
        actual.add(question, n, counts)
    assert actual == expected


def test_uploads_are_grouped_by_campaign_and_answered_in_their_own_order(make_campaign, make_submission, make_report):
    first, second = make_campaign(), make_campaign(title="other")
    uploads = [
        make_submission(c, [make_report(c, n)])
        for c, n in ((first, 1), (second, 2), (first, 3), (second, 4), (first, 5))
    ]
    batches = gather_by_campaign(uploads)
    assert list(batches) == sorted((first.id, second.id))
    assert batches[first.id].submissions == (uploads[0], uploads[2], uploads[4])
    answers = {first.id: [Outcome(1), Outcome(3), Outcome(5)], second.id: [Outcome(2), Outcome(4)]}
    assert [outcome.counted for outcome in in_order(uploads, answers)] == [1, 2, 3, 4, 5]
