"""Clocks that are wrong, on every store: no final word, no closing, no deletion by one that jumped or just began."""

import threading
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from cells import cell_report, count, publish
from postgres import empty

from ldp_aggregator.server.housekeeping import close_due, delete_once
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.store import Outcome
from ldp_aggregator.store.clocks import SteadyClock

DAY = 86400
HOUR = 3600


class Hands:
    """A wall clock and the seconds that go by; ``jump`` moves the one without the other."""

    def __init__(self):
        self.wall, self.elapsed = datetime(2026, 1, 1, tzinfo=timezone.utc), 1000.0

    def go(self, seconds):
        self.elapsed += seconds
        self.jump(seconds)

    def jump(self, seconds):
        self.wall += timedelta(seconds=seconds)

    def clock(self):
        """That of a process which starts now."""
        return SteadyClock(lambda: self.wall, lambda: self.elapsed)

    def after(self, seconds):
        return (self.wall + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture(params=["sqlite", "postgres"])
async def start(request, opened, hands):
    """Start a process on the store."""
    address = request.getfixturevalue("postgres").address if request.param == "postgres" else None
    if address is not None:
        await empty(address)

    async def started():
        found = await opened("data", database=address, clock=hands.clock())
        await found.moment()
        return found

    return started


def test_a_step_of_minutes_is_believed_and_a_longer_one_for_ten_minutes_not():
    hands = Hands()
    clock = hands.clock()
    begun = clock.read()
    for seconds in (299, -299):
        hands.jump(seconds)
        assert clock.read() == replace(begun, now=hands.wall)
    for seconds in (301, -301, 400 * DAY, -400 * DAY):
        hands.go(5)
        hands.jump(seconds)
        jumped = clock.read()
        assert (jumped.settled, jumped.since, clock.is_settled) == (False, hands.wall, False)
        hands.go(599)
        assert not clock.read().settled
        hands.go(1)
        assert (clock.read().settled, clock.is_settled) == (True, True)
        assert clock.read().since == jumped.since


def test_a_past_end_is_one_that_the_process_saw_for_a_day():
    hands = Hands()
    clock, end = hands.clock(), hands.wall - timedelta(days=100)
    clock.read()
    hands.go(DAY - 1)
    assert not clock.read().is_past(end)
    hands.go(1)
    assert clock.read().is_past(end)
    hands.go(DAY)
    assert not clock.read().is_past(hands.wall - timedelta(seconds=DAY - 1))


def test_threads_that_read_at_once_see_no_jump():
    clock = SteadyClock()
    readings = []
    threads = [threading.Thread(target=lambda: readings.extend(clock.read() for _ in range(500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.settled for one in readings)


@pytest.mark.parametrize("ahead", [HOUR, 200 * DAY, 400 * DAY, -HOUR, -200 * DAY, -400 * DAY])
@pytest.mark.parametrize("lasts", [60, DAY])
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_clock_that_is_wrong_for_a_while_costs_no_report(start, hands, ahead, lasts, restarts):
    """Of a campaign that closes in half an hour's less than 200 days, and of a window; each comes until it is taken."""
    store = await start()
    plain = await publish(store, opens=hands.after(-1), closes=hands.after(100 * DAY))
    windows = {"from": hands.after(0), "length": "P1D", "count": 20}
    series = await publish(store, title="series", windows=windows)
    other = await publish(store, title="no times")
    reports = {plain: [cell_report(plain, 1)], series: [replace(cell_report(series, 1), question=0)]}
    reports |= {other: [cell_report(other, 1)]}
    hands.jump(ahead)
    if restarts:
        store = await start()
    later = {"clock-unsettled", "campaign-closing", "campaign-not-open", "window-not-open"}
    waiting = dict(reports)
    for _ in range(4):
        for campaign, upload in list(waiting.items()):
            outcome = await count(store, campaign, upload)
            if outcome.counted:
                del waiting[campaign]
            else:
                assert {outcome.refused, *(code for _, code in outcome.rejected)} - {None} <= later
        await close_due(store, await store.moment())
        await delete_once(store, Metrics(), timedelta(days=30))
        hands.go(lasts / 4)
    assert other not in waiting, "what goes by no time is counted"
    hands.jump(-ahead)
    for _ in range(2):
        await store.beat()
        hands.go(601)
    for campaign, upload in waiting.items():
        assert await count(store, campaign, upload) == Outcome(counted=1)
    for campaign, upload in reports.items():
        assert await count(store, campaign, upload) == Outcome(duplicates=1)
        await close_due(store, await store.moment())
        assert (await store.standing(campaign.id)).word == "open"


async def test_nothing_that_goes_by_time_is_counted_while_the_clock_is_not_settled(start, hands):
    """Whatever the clock says, also that it is open: it may be the clock that is wrong."""
    store = await start()
    opened = await publish(store, opens=hands.after(-10 * DAY), closes=hands.after(100 * DAY))
    only = [
        await publish(store, title=name, **{name: hands.after(day * DAY)})
        for name, day in (("opens", -9), ("closes", 9))
    ]
    series = await publish(store, title="series", windows={"from": hands.after(0), "length": "P1D", "count": 20})
    hands.jump(HOUR)
    await store.moment()
    for campaign in (opened, *only, series):
        assert await count(store, campaign, [cell_report(campaign, 1)]) == Outcome(refused="clock-unsettled")
        many = [cell_report(campaign, number, cell=1) for number in range(400)]
        assert await count(store, campaign, many) == Outcome(refused="clock-unsettled")
        assert (await store.state(campaign.id)).reports == 0


async def test_nothing_is_closed_or_deleted_by_a_clock_that_jumped(start, hands):
    store = await start()
    ending, closed = await publish(store, closes=hands.after(DAY)), await publish(store, title="closed")
    await store.close_campaign(closed.id)
    hands.go(2 * DAY)
    assert (await store.standing(closed.id)).word == "closed"
    hands.jump(400 * DAY)
    for _ in range(2):
        await close_due(store, await store.moment())
        await delete_once(store, Metrics(), timedelta(days=30))
        assert {state.id: state.over_since for state in await store.campaigns()} == {ending.id: None, closed.id: None}
        hands.go(500)
    assert (await store.standing(closed.id)).word == "closing", "a final word takes a day of this clock again"


async def test_a_jump_is_logged_once(start, hands, caplog):
    store = await start()
    hands.jump(-HOUR)
    for _ in range(3):
        await store.moment()
    [record] = [record for record in caplog.records if record.message == "the clock jumped"]
    assert record.levelname == "ERROR"
