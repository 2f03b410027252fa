"""Reports in several databases: what one of them would have counted, under retries, failures and old maps."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
from postgres import away

from ldp_aggregator.store import Outcome, SqliteStore, StoreError
from ldp_aggregator.store.sharded.dividing import divide, join, whole
from ldp_aggregator.store.sharded.slot_map import SLOTS


def slot_of(report):
    return report.id[0]


async def test_the_sum_of_the_databases_is_what_one_counts_whoever_is_asked_again(
    instances, tmp_path, make_campaign, make_submission, make_report
):
    campaign = make_campaign(4096)
    alone = SqliteStore(tmp_path / "alone.sqlite3")
    for store in (instances[0], alone):
        await store.create_campaign(campaign)
    reports = [make_report(campaign, number) for number in range(1200)]
    uploads = [reports[:700], *([report] for report in reports[600:750]), reports[700:]]

    async def feed(store, seed):
        for upload in random.Random(seed).sample(uploads, len(uploads)):
            await store.count([make_submission(campaign, upload)])

    await asyncio.gather(*(feed(store, seed) for seed, store in enumerate(instances)))
    await feed(alone, 0)
    assert await instances[1].tally(campaign.id) == await alone.tally(campaign.id)
    assert (await instances[0].state(campaign.id)).reports == 1200
    each = [len(await store.do(lambda db: db.fetch("SELECT 1 FROM ids"))) for store in shards(instances[0])]
    assert sum(each) == 1200
    assert min(each) > 300
    assert await instances[0].audit() == []
    await alone.close()


def shards(store):
    return [store.shard(number) for number in (0, 1, 2)]


async def test_an_answer_names_the_reports_that_one_store_would_name(
    store, tmp_path, make_campaign, make_submission, make_report
):
    campaign = make_campaign(1024)
    alone = SqliteStore(tmp_path / "alone.sqlite3")
    known = make_submission(campaign, [make_report(campaign, number) for number in range(0, 200, 3)])
    changed = dict.fromkeys(range(0, 200, 7), 1000) | dict.fromkeys(range(1, 200, 9), 1024)
    mixed = make_submission(
        campaign, [make_report(campaign, number, cell=changed.get(number, number)) for number in range(200)]
    )
    answers = []
    for one in (store, alone):
        await one.create_campaign(campaign)
        answers.append([*await one.count([known]), *await one.count([mixed, known, mixed])])
    assert answers[0] == answers[1]
    assert [outcome.places for outcome in answers[0]] == [outcome.places for outcome in answers[1]]
    assert answers[0][1].counted
    assert answers[0][1].duplicates
    assert {code for _, code in answers[0][1].rejected} == {"conflicting-report", "index-out-of-range"}
    await alone.close()


@pytest.mark.parametrize("repeated", [0, 1, 30, 99])
async def test_a_batch_hides_in_several_databases_whom_it_hides_in_one(
    store, tmp_path, make_campaign, make_submission, make_report, repeated
):
    campaign = make_campaign(1024)
    alone = SqliteStore(tmp_path / "alone.sqlite3")
    before = [make_report(campaign, number) for number in range(repeated)]
    batch = replace(make_submission(campaign, [make_report(campaign, number) for number in range(100)]), batch=120)
    for one in (store, alone):
        await one.create_campaign(campaign)
        if repeated:
            await one.count([make_submission(campaign, before)])
        await one.count([batch])
    assert (await store.state(campaign.id)).arrivals == (await alone.state(campaign.id)).arrivals
    assert await store.audit() == []
    await alone.close()


async def test_a_database_that_is_away_keeps_no_other_and_its_reports_come_again(
    instances, addresses, make_campaign, make_submission, make_report
):
    campaign = make_campaign(1024)
    await instances[0].create_campaign(campaign)
    reports = [make_report(campaign, number) for number in range(400)]
    await instances[0].count([make_submission(campaign, reports[:10])])
    missing = {slot.number for slot in (await instances[0].slots()).slots if slot.shard == 2}
    there = [report for report in reports if slot_of(report) not in missing]
    gone = [report for report in reports if slot_of(report) in missing]
    uploads = [make_submission(campaign, one) for one in ([there[20]], [gone[20]], reports)]
    async with away(addresses, 2):
        outcomes = await instances[0].count(uploads)
        assert [outcome.refused for outcome in outcomes] == [None, "store-unavailable", "store-unavailable"]
        [outcome] = await instances[0].count(uploads[1:2])
        assert (outcome.refused, outcome.counted) == ("store-unavailable", 0)
        await instances[0].check()
        assert (await instances[0].terms(campaign.id)).uploads_need is None
        with pytest.raises(StoreError, match="database 2 of the store"):
            await instances[0].tally(campaign.id)
    again = await instances[1].count([uploads[2]])
    assert again[0].counted + again[0].duplicates == 400
    assert (await instances[0].tally(campaign.id)).counts[0].tolist()[:401] == [1] * 400 + [0]
    assert await instances[0].audit() == []


async def test_a_campaign_that_has_not_reached_a_database_is_brought_there_by_its_first_report(
    instances, make_campaign, make_submission, make_report
):
    campaign = make_campaign()
    await instances[0].create_campaign(campaign)
    await instances[0].others[2].do(lambda db: db.execute("DELETE FROM campaigns"))
    upload = make_submission(campaign, [make_report(campaign, number) for number in range(60)])
    assert await instances[1].count([upload]) == [Outcome(counted=60)]
    assert await instances[1].audit() == []


async def test_nothing_is_counted_of_what_is_not_open_or_unknown(store, make_campaign, make_submission, make_report):
    waiting = make_campaign(opens="2090-01-01T00:00:00Z")
    await store.create_campaign(waiting)
    uploads = [make_submission(one, [make_report(one, n) for n in range(9)]) for one in (waiting, make_campaign())]
    assert [outcome.refused for outcome in await store.count(uploads)] == ["campaign-not-open", "unknown-campaign"]
    assert await store.put_share(waiting.id, "a", b"share") is not None  # Still undecided: it is not open.


def test_parts_are_the_upload_and_their_answers_its_answer(make_campaign, make_submission, make_report):
    """Pure: every report is in one part, with its place."""
    import numpy as np

    campaign = make_campaign()
    submission = make_submission(campaign, [make_report(campaign, number) for number in range(50)])
    places = (np.arange(SLOTS) % 3).astype(np.int16)
    parts = list(divide(whole(0, submission), places))
    ids = submission.blocks[0].ids
    seen = {}
    for shard, part in parts:
        own = part.submission.blocks[0].ids
        for row, place in enumerate(part.positions.tolist()):
            assert own[16 * row : 16 * row + 16] == ids[16 * place : 16 * place + 16]
            assert own[16 * row] % 3 == shard
            seen[place] = shard
    assert sorted(seen) == list(range(50))
    closed = [
        (part, Outcome(refused="campaign-closed") if shard == 1 else Outcome(part.submission.reports))
        for shard, part in parts
    ]
    answer = join(closed)
    assert answer.counted + len(answer.rejected) == 50
    assert {seen[place] for place in answer.places} == {1}
    assert join([(part, Outcome(refused="campaign-closed")) for _, part in parts]).refused == "campaign-closed"
    away = {0: Outcome(parts[0][1].submission.reports), 1: Outcome(refused="campaign-closed")}
    partly = join([(part, away.get(shard, Outcome(refused="store-unavailable"))) for shard, part in parts])
    assert (partly.refused, partly.counted) == ("store-unavailable", away[0].counted)
    assert {seen[place] for place in partly.absent} == {2}
    assert {seen[place] for place in partly.places} == {1}
    assert sorted((*partly.absent, *partly.places, *parts[0][1].positions.tolist())) == list(range(50))
