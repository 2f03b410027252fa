"""The asyncio driver, with and without the app's aiohttp session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from ldp_client import Client
from ldp_client.aio import AsyncDriver
from ldp_client.testing import Answer, FakeServer
from protocols import Campaign

RECORD = {"age": "young"}


@pytest.fixture(params=["thread executor", "aiohttp"])
async def session(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    if request.param == "thread executor":
        yield None
        return
    async with aiohttp.ClientSession() as made:
        yield made


@pytest.fixture
def client(make_client: Callable[..., Client]) -> Client:
    return make_client(clock=time, limits={"backoff_base": 0.01, "largest_answer": 10_000})


async def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.005)
    return True


async def test_run_once_delivers_and_retries(
    client: Client, server: FakeServer, campaign: Campaign, session: Any
) -> None:
    answers = [Answer(503), Answer(drop=True, commit=True), Answer(302, headers={"Location": "/elsewhere"})]
    server.answer_with = lambda number: answers[number] if number < len(answers) else None
    driver = AsyncDriver(client, session=session)
    receipt = await driver.contribute(RECORD, "yes")
    assert await driver.run_once(10)
    assert (await driver.status()).sent == 1
    assert receipt.epsilon == campaign.realised_epsilon
    assert len(set(server.uploads)) == 1
    assert server.counted(campaign.id) == 1


async def test_a_background_task_delivers_what_is_contributed(
    client: Client, server: FakeServer, campaign: Campaign, session: Any
) -> None:
    async with AsyncDriver(client, session=session, first_delay=0.0) as driver:
        await asyncio.sleep(0.02)
        await driver.contribute(RECORD, "yes")
        assert await eventually(lambda: server.counted(campaign.id) == 1)
        assert await eventually(lambda: client.status().sent == 1)


async def test_the_event_loop_goes_on_while_a_send_hangs_and_close_gives_it_up(
    client: Client, server: FakeServer, session: Any
) -> None:
    def slow(_: int) -> Answer:
        time.sleep(0.3)
        return Answer(503)

    server.answer_with = slow
    driver = AsyncDriver(client, session=session, first_delay=0.0)
    await driver.contribute(RECORD, "yes")
    driver.start()
    assert await eventually(lambda: len(server.uploads) == 1)
    started = time.monotonic()
    await asyncio.sleep(0.01)
    await driver.close()
    assert time.monotonic() - started < 0.2
    assert client.status().queued == 1


async def test_an_answer_that_is_too_long_is_a_failure_like_others(
    client: Client, server: FakeServer, session: Any
) -> None:
    server.answer_with = lambda _: Answer(200, body=b"x" * 20_000)
    driver = AsyncDriver(client, session=session)
    await driver.contribute(RECORD, "yes")
    assert not await driver.run_once(3)
    assert (await driver.status()).problem == "answer-too-long"


async def test_a_server_that_is_gone_is_a_failure_like_others(
    make_client: Callable[..., Client], campaign: Campaign, session: Any
) -> None:
    client = make_client(url="http://127.0.0.1:9", clock=time)
    client.load_campaign(campaign.document)
    driver = AsyncDriver(client, session=session)
    await driver.contribute(RECORD, "yes")
    assert not await driver.run_once(1)
    assert (await driver.status()).problem == "unreachable"


async def test_predict_waits_for_the_model_without_blocking(
    client: Client, server: FakeServer, campaign: Campaign, model: str
) -> None:
    server.publish_model(campaign.id, model)
    assert await AsyncDriver(client).predict({"age": "old"}) == "no"
