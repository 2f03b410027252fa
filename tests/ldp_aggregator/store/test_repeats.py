"""Uploads that come again, whole or in part, small and large, on every store: what is new in them counts, once."""

from __future__ import annotations

import pytest
from cells import cell_report, count, publish

from ldp_aggregator.store import Outcome
from ldp_aggregator.store.postgres.store import SMALL

SIZES = [1, 2, SMALL - 1, SMALL, SMALL + 1, 643, 3000]


@pytest.fixture
async def send(store):
    """Counts an upload of reports, given as numbers or as (number, cell)."""
    campaign = await publish(store, 4096)

    async def upload(members):
        reports = [cell_report(campaign, *(one if isinstance(one, tuple) else (one,))) for one in members]
        outcome = await count(store, campaign, reports)
        return outcome, (await store.tally(campaign.id)).counts[0], reports

    yield upload
    assert await store.check() == []


@pytest.mark.parametrize("size", SIZES)
async def test_a_whole_upload_again_changes_nothing(send, size):
    assert (await send(range(size)))[0] == Outcome(counted=size)
    for _ in range(2):
        outcome, counts, _ = await send(range(size))
        assert outcome == Outcome(duplicates=size)
        assert counts[:size].tolist() == [1] * size


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
async def test_what_is_new_in_an_upload_counts_and_another_answer_is_refused(send, size, share):
    known = list(range(0, size, round(1 / share))) if share <= 0.5 else list(range(1, size))
    changed = known[len(known) // 2]
    await send([(number, 4000 if number == changed else number) for number in known])
    outcome, counts, reports = await send(range(size))
    assert (outcome.counted, outcome.duplicates) == (size - len(known), len(known) - 1)
    assert outcome.rejected == ((reports[changed].id, "conflicting-report"),)
    assert counts.sum() == size
    assert counts[changed] == 0


async def test_a_large_upload_of_which_every_answer_is_another_is_refused_whole(send):
    await send(range(1000))
    outcome, counts, _ = await send([(number, number + 1) for number in range(1000)])
    assert (outcome.counted, outcome.duplicates, len(outcome.rejected)) == (0, 0, 1000)
    assert counts[:1001].tolist() == [1] * 1000 + [0]


async def test_a_repeated_upload_with_reports_that_no_device_sends_tells_of_those(send):
    members = [*range(1000), *((number, 5000) for number in range(1000, 1010))]
    assert (await send(members))[0].counted == 1000
    outcome, counts, _ = await send(members)
    assert (outcome.counted, outcome.duplicates) == (0, 1000)
    assert {code for _, code in outcome.rejected} == {"index-out-of-range"}
    assert counts.sum() == 1000
