"""The end of a campaign on every store: at once for uploads, taken back for a day, for good when it is sealed."""

import asyncio
import contextlib
from datetime import timedelta

import asyncpg
import pytest
from cells import SteppedClock, count, publish, submission

from ldp_aggregator.server.housekeeping import close_due
from ldp_aggregator.store import Outcome, StoreError
from ldp_aggregator.store.clocks import Moment
from ldp_aggregator.store.contract import Standing

GRACE = timedelta(days=1)


DAY = GRACE.total_seconds()


@pytest.fixture
async def counted(store, clock):
    """A campaign that ends in a minute, with ten reports; ``send(first, end)`` uploads more."""
    campaign = await publish(store, closes=clock.after(60))

    async def send(first, end):
        return await count(store, campaign, range(first, end))

    await send(0, 10)
    return campaign, send


async def test_a_campaign_that_is_over_is_closed_a_day_after_that_was_seen(store, counted, clock):
    campaign, send = counted
    clock.step(60)
    assert (await send(10, 11)).refused == "campaign-closing"
    state = await store.state(campaign.id)
    assert (state.status(clock()), state.life.closed) == ("closed", None)
    for seconds in (0, 1, DAY - 2):
        clock.step(seconds)
        assert (await close_due(store, await store.moment())).ids == ()
    clock.step(1)
    assert (await close_due(store, await store.moment())).ids == (campaign.id,)
    assert (await store.state(campaign.id)).life.closed == clock()
    clock.step(DAY - 1)
    assert (await send(10, 11)).refused == "campaign-closing"
    clock.step(1)
    assert (await send(10, 11)).refused == "campaign-closed"
    assert await send(0, 10) == Outcome(duplicates=10)


async def test_a_clock_that_is_years_ahead_ends_nothing_while_a_right_one_runs(store, clock):
    """Both look every hour, for three days. As found: one instance eleven years ahead closed a campaign
    for the right one, and its ids were gone.
    """
    campaign = await publish(store, closes=clock.after(4 * DAY))
    for number in range(3 * 24):
        for ahead in (4000 * DAY, -4000 * DAY):
            clock.step(ahead)
            assert (await close_due(store, await store.moment())).ids == ()
            if number % 24 == 0:
                refused = "campaign-closing" if ahead > 0 else None
                assert (await count(store, campaign, [number // 24])).refused == refused
        clock.step(3600)
    assert (await store.state(campaign.id)).life.closed is None
    assert await count(store, campaign, [0, 1, 2, 3]) == Outcome(counted=1, duplicates=3)


async def test_a_closing_is_taken_back_and_nothing_counts_twice(store, counted, clock):
    campaign, send = counted
    closed = await store.close_campaign(campaign.id)
    assert (closed.reports, closed.status(clock())) == (10, "closed")
    clock.step(10)
    assert (await store.close_campaign(campaign.id)).life == closed.life, "it was closed when it was closed first"
    late = await send(0, 12)
    assert (late.refused, late.duplicates, [code for _, code in late.rejected]) == (None, 10, ["campaign-closing"] * 2)
    for _ in range(2):
        reopened = await store.reopen_campaign(campaign.id)
        assert (reopened.life.closed, reopened.status(clock())) == (None, "open")
    assert await send(0, 12) == Outcome(counted=2, duplicates=10)


async def test_a_clock_that_was_wrong_for_a_while_ends_nothing_for_good(store, counted, clock):
    campaign, send = counted
    clock.step(100 * DAY)
    assert (await send(10, 11)).refused == "campaign-closing"
    await close_due(store, await store.moment())
    clock.step(-100 * DAY)
    assert await send(10, 11) == Outcome(counted=1)
    await close_due(store, await store.moment())
    assert (await store.state(campaign.id)).over_since is None
    clock.step(100 * DAY)
    await close_due(store, await store.moment())
    clock.step(DAY)
    assert (await close_due(store, await store.moment())).ids == (campaign.id,)
    clock.step(-101 * DAY)
    assert (await send(11, 12)).refused == "campaign-closing"
    assert (await close_due(store, await store.moment())).ids == ()
    assert await send(0, 12) == Outcome(counted=1, duplicates=11), "what was closed in the future was taken back"


async def test_an_end_that_was_first_seen_in_what_is_the_future_now_is_seen_anew(store, counted, clock):
    """A clock that was months ahead delays the closing by no more than a day."""
    campaign, _ = counted
    for seconds in (100 * DAY, -90 * DAY, DAY - 1):
        clock.step(seconds)
        assert (await close_due(store, await store.moment())).ids == ()
    clock.step(1)
    assert (await close_due(store, await store.moment())).ids == (campaign.id,)


async def test_an_operators_closing_holds_whatever_the_clock_was(store, counted, clock):
    campaign, send = counted
    clock.step(100 * DAY)
    await store.close_campaign(campaign.id)
    clock.step(-100 * DAY)
    await close_due(store, await store.moment())
    assert (await store.state(campaign.id)).life.closed == clock()
    assert (await send(11, 12)).refused == "campaign-closing"


async def test_an_operators_closing_holds_also_where_the_clock_had_seen_the_end(store, counted, clock):
    campaign, send = counted
    clock.step(100 * DAY)
    await close_due(store, await store.moment())
    await store.close_campaign(campaign.id)
    clock.step(-100 * DAY)
    await close_due(store, await store.moment())
    assert (await store.state(campaign.id)).life.closed == clock()
    assert (await send(11, 12)).refused == "campaign-closing"


async def test_a_campaign_that_was_taken_back_has_another_day_before_it_is_closed_again(store, counted, clock):
    campaign, _ = counted
    for seconds in (60, DAY):
        clock.step(seconds)
        await close_due(store, await store.moment())
    assert (await store.state(campaign.id)).life.closed is not None
    assert (await store.reopen_campaign(campaign.id)).over_since is None
    for seconds in (0, DAY - 1):
        clock.step(seconds)
        assert (await close_due(store, await store.moment())).ids == ()
    clock.step(1)
    assert (await close_due(store, await store.moment())).ids == (campaign.id,)


async def test_a_full_campaign_refuses_what_is_new_as_a_whole_and_beside_what_it_knows_report_by_report(store):
    campaign = await publish(store, max_reports=2)
    assert await count(store, campaign, [1]) == Outcome(counted=1)
    second = await count(store, campaign, [2, 3])
    assert (second.counted, [code for _, code in second.rejected]) == (1, ["campaign-closing"])
    assert await count(store, campaign, [3, 4]) == Outcome(refused="campaign-closing")
    known = await count(store, campaign, [1, 4])
    assert (known.refused, known.duplicates, [code for _, code in known.rejected]) == (None, 1, ["campaign-closing"])
    assert (await store.state(campaign.id)).reports == 2


async def test_ids_stay_until_a_campaign_is_sealed_which_takes_a_day_or_a_word(store, counted, clock):
    campaign, _ = counted
    with pytest.raises(StoreError, match="was not closed") as unclosed:
        await store.seal_campaign(campaign.id, at_once=True)
    await store.close_campaign(campaign.id)
    clock.step(DAY - 1)
    with pytest.raises(StoreError, match=r"can be sealed from 2026-01-02T00:00:00Z on") as early:
        await store.seal_campaign(campaign.id)
    assert (await store.state(campaign.id)).life.sealed is None
    clock.step(1)
    sealed = await store.seal_campaign(campaign.id)
    assert sealed.life.sealed == clock()
    clock.step(5)
    assert (await store.seal_campaign(campaign.id)).life.sealed == sealed.life.sealed
    with pytest.raises(StoreError, match="is sealed") as late:
        await store.reopen_campaign(campaign.id)
    codes = [refused.value.code for refused in (unclosed, early, late)]
    assert codes == ["campaign-not-closed", "too-early-to-seal", "campaign-sealed"]
    assert (await store.tally(campaign.id)).n.tolist() == [10]


@pytest.mark.parametrize("sealed", [False, True])
async def test_a_deleted_campaign_is_gone_and_never_comes_back(store, counted, clock, sealed):
    campaign, send = counted
    other = await publish(store, title="Other")
    await count(store, other, range(5))
    for one in (campaign, other):
        await store.publish_model(one.id, "{}")
    with pytest.raises(StoreError, match="was not closed") as refused:
        await store.delete_campaign(campaign.id)
    assert refused.value.code == "campaign-not-closed"
    await store.close_campaign(campaign.id)
    if sealed:
        assert (await store.seal_campaign(campaign.id, at_once=True)).life.sealed == clock()
    await store.delete_campaign(campaign.id)
    assert (await send(0, 3)).refused == "campaign-deleted"
    assert await store.standing(campaign.id) == Standing("deleted")
    for ask in (store.document, store.state, store.tally, store.model, store.delete_campaign):
        with pytest.raises(StoreError, match="was deleted at"):
            await ask(campaign.id)
    with pytest.raises(StoreError, match=r"was deleted at 2026-01-01T00:00:00Z") as again:
        await store.create_campaign(campaign)
    assert again.value.code == "campaign-deleted"
    assert [state.id for state in await store.campaigns()] == [other.id]
    assert ((await store.state(other.id)).reports, (await store.model(other.id)).version) == (5, 1)


async def test_on_postgresql_the_time_is_the_databases(database, opened, monkeypatch):
    """An instance whose own clock is years ahead counts, and closes nothing."""
    ahead = SteppedClock()
    ahead.step(50 * 365 * DAY)
    monkeypatch.setattr("ldp_aggregator.store.contract.utc_now", ahead)
    store = await opened("data", database=database)
    campaign = await publish(store, closes="2060-01-01T00:00:00Z")
    assert (await close_due(store, Moment(ahead()))).ids == ()
    assert (await store.state(campaign.id)).over_since is None
    assert await count(store, campaign, [1]) == Outcome(counted=1)
    assert (await store.state(campaign.id)).created < ahead()


@contextlib.asynccontextmanager
async def transaction_that(database, statement):
    """Somebody else's, open as long as the block."""
    other = await asyncpg.connect(database)
    held = other.transaction()
    await held.start()
    await other.execute(statement)
    yield
    await held.rollback()
    await other.close()


async def test_a_reader_of_the_ids_stalls_neither_closing_nor_anybodys_uploads(database, instances):
    """``pg_dump`` holds such a lock on every table until it ends."""
    first, second = [await publish(instances[0], title=title) for title in ("first", "second")]
    async with transaction_that(database, "LOCK TABLE ldp_aggregator.ids IN ACCESS SHARE MODE"):
        await asyncio.wait_for(instances[0].close_campaign(first.id), 10)
        sealing = asyncio.create_task(instances[0].seal_campaign(first.id, at_once=True))
        uploads = [submission(campaign, [1]) for campaign in (first, second)]
        while not sealing.done():
            refused, counted = await asyncio.wait_for(instances[1].count(uploads), 10)
            assert (refused.refused, counted.refused) in (("campaign-closing", None), ("campaign-closed", None))
        assert (await sealing).life.sealed is not None
        await asyncio.wait_for(instances[0].delete_campaign(first.id), 10)
    assert (await instances[1].tally(second.id)).n.tolist() == [1]


async def test_who_holds_the_lock_of_a_campaign_holds_up_no_other(database, opened, monkeypatch):
    monkeypatch.setattr("ldp_aggregator.store.postgres_sessions.LOCK_SECONDS", 0.2)
    store = await opened("data", database=database)
    uploads = [submission(await publish(store, title=title), [1]) for title in ("first", "second")]
    held = "SELECT 1 FROM ldp_aggregator.campaigns WHERE number = 1 FOR UPDATE"
    async with transaction_that(database, held):
        outcomes = await asyncio.wait_for(store.count(uploads), 20)
    assert [(outcome.refused, outcome.counted) for outcome in outcomes] == [("store-unavailable", 0), (None, 1)]
    assert [outcome.counted for outcome in await store.count(uploads)] == [1, 0]
