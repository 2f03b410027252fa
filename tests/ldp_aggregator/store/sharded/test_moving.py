"""Slots on their way from one database to another: while reports come, and interrupted at every step."""

from __future__ import annotations

import asyncio

import pytest
from postgres import databases

from ldp_aggregator.store import StoreError, open_store
from ldp_aggregator.store.sharded import moving
from ldp_aggregator.store.sharded.moving import move_slot
from ldp_aggregator.store.sharded.opening import add_shard

REPORTS = 600


@pytest.fixture
async def fed(instances, make_campaign, make_submission, make_report):
    """A campaign, its reports and the slots they are in; ``send(store, reports)`` and a closed one beside."""
    campaign = make_campaign(2048)
    await instances[0].create_campaign(campaign)
    reports = [make_report(campaign, number) for number in range(REPORTS)]
    await instances[0].count([make_submission(campaign, reports)])

    async def send(store, some):
        [outcome] = await store.count([make_submission(campaign, some)])
        return outcome

    return campaign, reports, send


def of_slot(reports, slot):
    return [report for report in reports if report.id[0] == slot]


async def places(store, slot):
    query = "SELECT count(*) FROM ids WHERE get_byte(id, 0) = $1"
    return [await store.shard(n).do(lambda db: db.fetchval(query, slot)) for n in store._map.shards]


async def test_reports_of_a_moved_slot_are_known_where_it_went_and_to_whoever_has_the_old_map(instances, fed):
    campaign, reports, send = fed
    slot = reports[0].id[0]
    source = (await instances[0].slots()).slots[slot].shard
    target = (source + 1) % 3
    number = len(of_slot(reports, slot))
    assert await move_slot(instances[0], slot, target) == number
    held = await places(instances[0], slot)
    assert held[target] == number == sum(held)
    old = instances[1]._map.version
    outcome = await send(instances[1], reports)  # It has not heard of the move.
    assert (outcome.counted, outcome.duplicates) == (0, REPORTS)
    assert instances[1]._map.version > old
    assert await instances[1].audit() == []
    assert await move_slot(instances[1], slot, source) == number
    assert (await send(instances[0], reports)).duplicates == REPORTS
    assert (await instances[0].tally(campaign.id)).counts[0].sum() == REPORTS
    assert await instances[0].audit() == []
    assert await move_slot(instances[0], slot, source) == 0


@pytest.mark.parametrize("step", ["_fence", "_copy", "_arrive", "_clean"])
@pytest.mark.parametrize("way", ["completed", "undone"])
async def test_a_move_that_is_interrupted_anywhere_is_completed_or_undone(instances, fed, monkeypatch, step, way):
    campaign, reports, send = fed
    slot = next(report.id[0] for report in reports if len(of_slot(reports, report.id[0])) > 2)
    source = (await instances[0].slots()).slots[slot].shard
    target = (source + 1) % 3
    monkeypatch.setattr(moving, "PIECE", 1)

    class KilledError(Exception):
        pass

    calls = []

    async def killed(*given, **more):
        """In the second piece of its work, where it has pieces."""
        calls.append(given)
        if step != "_copy" or len(calls) > 1:
            raise KilledError
        return await whole_step(*given, **more)

    name = "_store" if step == "_copy" else step
    whole_step = getattr(moving, name)
    if step == "_clean":  # The first call finds nothing to do.

        async def killed(store, found):
            if found.cleaning is not None:
                raise KilledError

    monkeypatch.setattr(moving, name, killed)
    with pytest.raises(KilledError):
        await move_slot(instances[0], slot, target)
    monkeypatch.setattr(moving, name, whole_step)
    findings = await instances[1].audit()
    assert [finding.problem.startswith(f"slot {slot} is on its way") for finding in findings] == [True]
    if step != "_clean":
        assert (await send(instances[1], of_slot(reports, slot))).refused == "store-unavailable"
    others = [report for report in reports if report.id[0] != slot]
    assert (await send(instances[1], others)).duplicates == len(others)
    aim = target if way == "completed" else source
    await move_slot(instances[1], slot, aim)
    held = await places(instances[0], slot)
    assert held[aim] == len(of_slot(reports, slot)) == sum(held)
    assert await instances[0].audit() == []
    for store in instances:
        assert (await send(store, reports)).duplicates == REPORTS
    assert (await instances[0].tally(campaign.id)).counts[0].tolist()[: REPORTS + 1] == [1] * REPORTS + [0]


async def test_uploads_go_on_while_slots_are_moved_and_count_once(instances, fed, make_report):
    campaign, _, send = fed
    more = [make_report(campaign, number) for number in range(REPORTS, REPORTS + 300)]
    done = asyncio.Event()
    refused = 0

    async def feed(store, reports):
        nonlocal refused
        waiting = list(reports)
        while waiting:
            outcome = await send(store, waiting[:1])
            if outcome.refused:
                assert outcome.refused == "store-unavailable"
                refused += 1
                waiting.append(waiting.pop(0))
            else:
                waiting.pop(0)
        done.set()

    feeding = [asyncio.create_task(feed(instances[0], more[:200])), asyncio.create_task(feed(instances[1], more[100:]))]
    for slot in (0, 100, 200, 255):
        found = (await instances[0].slots()).slots[slot]
        await move_slot(instances[0], slot, (found.shard + 1) % 3)
    await asyncio.gather(*feeding)
    assert (await instances[0].tally(campaign.id)).counts[0].tolist()[: REPORTS + 301] == [1] * (REPORTS + 300) + [0]
    assert await instances[0].audit() == []


async def test_ids_where_their_slot_is_not_are_told(instances, fed):
    _, reports, _ = fed
    store = instances[0]
    source = (await store.slots()).slots[reports[0].id[0]].shard
    row = await store.shard(source).do(lambda db: db.fetchrow("SELECT id, digest FROM ids ORDER BY id LIMIT 1"))
    other = store.shard((source + 1) % 3)
    await other.do(lambda db: db.execute("INSERT INTO ids VALUES (1, $1, $2)", *row))
    problems = [finding.problem for finding in await store.audit()]
    assert any("which is not its" in problem for problem in problems)
    assert any("ids are stored" in problem for problem in problems)


async def test_ids_that_arrived_and_did_not_leave_are_told(instances, fed):
    """Each database agrees with itself, and every id is where its slot is."""
    store = instances[0]
    slot = next(slot.number for slot in (await store.slots()).slots if slot.shard == 1)
    stray = bytes([slot]) + b"stray".ljust(15, b"-")
    await store.others[1].do(lambda db: db.execute("UPDATE campaigns SET moved = moved + 1"))
    await store.others[1].do(lambda db: db.execute("INSERT INTO ids VALUES (1, $1, $2)", stray, bytes(8)))
    [finding] = await store.audit()
    assert finding.problem.startswith("1 more ids arrived")


async def test_a_store_in_one_database_grows_into_two_and_old_processes_stop_counting(
    postgres, tmp_path, make_campaign, make_submission, make_report
):
    first, second = await databases(postgres.address, 2)
    alone = await open_store(tmp_path, first)
    campaign, closed = make_campaign(2048), make_campaign(title="closed")
    for one in (campaign, closed):
        await alone.create_campaign(one)
    reports = [make_report(campaign, number) for number in range(300)]
    await alone.count([make_submission(campaign, reports[:200])])
    await alone.close_campaign(closed.id)
    assert await add_shard(alone, second) == 1
    await alone.count([make_submission(campaign, reports[200:250])])  # Nothing has moved yet.
    both = await open_store(tmp_path, f"{first} {second}")
    assert await both.audit() == []
    for slot in range(0, 256, 16):
        await move_slot(both, slot, 1)
    with pytest.raises(StoreError, match="in several databases by now"):
        await alone.count([make_submission(campaign, reports)])
    [outcome] = await both.count([make_submission(campaign, reports)])
    assert (outcome.counted, outcome.duplicates) == (50, 250)
    assert (await both.tally(campaign.id)).counts[0].tolist()[:301] == [1] * 300 + [0]
    assert await both.audit() == []
    for store in (alone, both):
        await store.close()
