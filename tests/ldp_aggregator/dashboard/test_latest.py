"""Numbers of pages: newer ones are worked out once, and nobody waits long for them while there are earlier ones."""

import asyncio
import threading

import pytest

from ldp_aggregator.dashboard import campaign_facts, latest
from ldp_aggregator.dashboard.latest import MOST_KEPT, Latest


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(latest, "PATIENCE", 0.0)
    monkeypatch.setattr(latest, "LATER", 0.0)


class Work:
    """What is asked to work something out: it ends when it is let, and counts how often it began."""

    def __init__(self, value):
        self.value, self.begun, self.may_end = value, 0, asyncio.Event()

    async def __call__(self):
        self.begun += 1
        await self.may_end.wait()
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def done(value):
    work = Work(value)
    work.may_end.set()
    return work


async def test_the_first_is_waited_for_and_worked_out_once_for_all_who_ask(impatient):
    numbers, work = Latest(), Work("one")
    asking = [asyncio.create_task(numbers.soon("key", 1, work)) for _ in range(5)]
    await asyncio.sleep(0.05)
    assert not any(one.done() for one in asking)
    work.may_end.set()
    assert await asyncio.gather(*asking) == ["one"] * 5
    assert await numbers.soon("key", 1, work) == "one"
    assert work.begun == 1


async def test_an_earlier_one_is_shown_while_a_newer_is_worked_out_and_then_the_newer(impatient):
    numbers, newer = Latest(), Work("two")
    await numbers.soon("key", 1, done("one"))
    assert [await numbers.soon("key", 2, newer) for _ in range(3)] == ["one"] * 3
    newer.may_end.set()
    await asyncio.sleep(0.01)
    assert await numbers.soon("key", 2, newer) == "two"
    assert newer.begun == 1


async def test_short_work_is_waited_for_and_long_work_begins_after_the_page(monkeypatch):
    monkeypatch.setattr(latest, "LATER", 0.2)
    numbers = Latest()
    await numbers.soon("short", 1, done("one"))
    monkeypatch.setattr(latest, "PATIENCE", 60.0)
    assert await numbers.soon("short", 2, done("two")) == "two"
    monkeypatch.setattr(latest, "PATIENCE", 0.01)

    async def long():
        await asyncio.sleep(0.05)
        return "one"

    await numbers.soon("long", 1, long)
    newer = done("two")
    assert await numbers.soon("long", 2, newer) == "one"
    await asyncio.sleep(0.05)
    assert newer.begun == 0
    assert await numbers.exact("long", 2, newer) == "two"


async def test_who_needs_this_version_gets_this_version():
    numbers, first = Latest(), Work("one")
    early = asyncio.create_task(numbers.exact("key", 1, first))
    await asyncio.sleep(0)
    late = asyncio.create_task(numbers.exact("key", 2, done("two")))
    first.may_end.set()
    assert (await early, await late) == ("one", "two")


async def test_a_failure_is_told_to_who_waits_and_what_there_was_stays(impatient):
    numbers = Latest()
    with pytest.raises(ValueError, match="cannot"):
        await numbers.soon("key", 1, done(ValueError("cannot")))
    await numbers.soon("key", 1, done("one"))
    failing = Work(ValueError("cannot"))
    assert await numbers.soon("key", 2, failing) == "one"
    failing.may_end.set()
    await asyncio.sleep(0.01)
    assert numbers.has("key", 1)
    assert not numbers.has("key", 2)
    with pytest.raises(ValueError, match="cannot"):
        await numbers.exact("key", 2, failing)
    assert failing.begun == 2, "it is tried again"


async def test_who_hangs_up_leaves_the_work_to_the_others():
    numbers, work = Latest(), Work("one")
    first, second = (asyncio.create_task(numbers.exact("key", 1, work)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    work.may_end.set()
    assert await second == "one"


async def test_those_asked_for_last_are_kept():
    numbers = Latest()
    for place in range(MOST_KEPT):
        await numbers.exact(place, 1, done(place))
    assert await numbers.exact(0, 1, done("another")) == 0
    await numbers.exact(MOST_KEPT, 1, done(MOST_KEPT))
    assert numbers.has(0, 1)
    assert not numbers.has(1, 1)


async def test_a_page_shows_the_last_figures_as_of_their_time_while_newer_ones_are_worked_out(
    dashboard, monkeypatch, impatient
):
    campaign = await dashboard.publish(people=300)
    first = await dashboard.page(campaign)
    assert "Newer figures" not in first
    await dashboard.get("/")  # There are last figures of the list, too.
    may_end = threading.Event()
    work_out = campaign_facts.Numbers.work_out

    def slow(self, *, learned):
        may_end.wait(30)
        work_out(self, learned=learned)

    monkeypatch.setattr(campaign_facts.Numbers, "work_out", slow)
    await dashboard.answer(campaign, 500)
    for tab in ("", "/model", "/health", "/privacy", "/settings"):
        page = (await dashboard.get(f"/campaigns/{campaign.id}{tab}"))[1]
        assert "300 answers. Newer figures are being worked out" in page.replace("\u00a0", " ")
    assert "500" in (await dashboard.get("/"))[1], "the list tells what was counted"
    may_end.set()
    for _ in range(200):
        page = await dashboard.page(campaign)
        if "Newer figures" not in page:
            break
        await asyncio.sleep(0.05)
    assert "Newer figures" not in page


async def test_looking_at_the_list_has_the_pages_of_its_campaigns_worked_out(dashboard, monkeypatch):
    campaigns = [await dashboard.publish(people=50, title=f"Campaign {place}") for place in range(2)]
    await dashboard.publish(title="Nobody answered")
    seen, work_out = [], campaign_facts.Numbers.work_out

    def noted(self, *, learned):
        work_out(self, learned=learned)
        if learned:
            seen.append(self.campaign.id)

    monkeypatch.setattr(campaign_facts.Numbers, "work_out", noted)
    await dashboard.get("/")
    for _ in range(200):
        if len(seen) == 2:
            break
        await asyncio.sleep(0.05)
    assert set(seen) == {one.id for one in campaigns}
    await dashboard.get("/")
    await dashboard.page(campaigns[0])
    assert len(seen) == 2, "once"
