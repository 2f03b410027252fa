"""The asyncio driver: the device's own transport in a thread of its own, and no session of the app's."""

import asyncio
import subprocess
import sys
import threading
import time
from unittest.mock import Mock

import pytest
from records import RECORD

from ldp_client import ConsentError
from ldp_client.aio import AsyncDriver
from ldp_client.testing import Answer

_HANGING = """
import asyncio, sys
from ldp_client import Device
from ldp_client.aio import AsyncDriver
from ldp_client.delivery import sender
sender.CLOSE_TIMEOUT = 0.2
async def main():
    device = Device(sys.argv[3], max_total_epsilon=4)
    part = device.campaign(sys.argv[1], sys.argv[2], max_epsilon=4)
    async with AsyncDriver(device, first_delay=0.0) as driver:
        await driver.call(part.grant)
        await driver.call(part.contribute, {"age": "young"}, "yes")
        print("contributed", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print("closed", flush=True)
asyncio.run(main())
print("ended", flush=True)
"""


@pytest.fixture
def made(join, monkeypatch):
    monkeypatch.setattr("ldp_client.device.CLOSE_TIMEOUT", 0.2)
    monkeypatch.setattr("ldp_client.network.aggregator.LARGEST_ANSWER", 10_000)
    return join(clock=time, limits={"backoff_base": 0.01})


@pytest.fixture
def becomes(eventually):
    """The same for the event loop's own thread, which goes on meanwhile."""
    return lambda holds: asyncio.to_thread(eventually, holds)


async def test_everything_that_blocks_can_be_awaited(join, server, campaign, model):
    server.publish_model(campaign.id, model)
    device, part = join(granted=False)
    driver = AsyncDriver(device)
    with pytest.raises(ConsentError):
        await driver.call(part.contribute, RECORD, "yes")
    assert await driver.call(part.refusal) is None
    await driver.call(part.grant, timeout=5)
    receipt = await driver.call(part.contribute, RECORD, "yes")
    assert receipt.epsilon == campaign.realised_epsilon
    assert (await driver.call(part.classifier)).predict({"age": "old"}) == "no"
    assert (await driver.call(part.withdraw)).refunded == receipt.epsilon


async def test_the_event_loop_goes_on_while_a_send_hangs_and_close_gives_it_up(made, server, becomes):
    leave = threading.Event()
    server.answer_with = lambda _: leave.wait(20) and None
    device, part = made
    driver = AsyncDriver(device, first_delay=0.0)
    await driver.call(part.contribute, RECORD, "yes")
    driver.start()
    running = asyncio.ensure_future(driver.run_once(20))
    assert await becomes(lambda: len(server.uploads) == 1)
    await driver.close()
    assert not leave.is_set()
    assert part.status().queued == 1
    leave.set()
    assert isinstance(await running, bool)
    assert len(server.uploads) == 1


async def test_a_task_that_is_cancelled_sends_nothing_further(made, server, becomes, threads_of):
    server.answer_with = lambda _: Answer(503)
    device, part = made
    driver = AsyncDriver(device)
    await driver.call(part.contribute, RECORD, "yes")
    running = asyncio.ensure_future(driver.run_once(60))
    assert await becomes(lambda: len(server.uploads) >= 2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await becomes(lambda: not threads_of("ldp-client-call"))


async def test_who_cancels_or_closes_cuts_what_is_being_sent():
    """Nobody waits for a server that does not answer: the connection ends, and so does its thread."""
    device, begun, cut = Mock(), threading.Event(), threading.Event()
    device.run_once.side_effect = lambda *given, **named: (begun.set(), cut.wait(10))[1]
    device._install.sender.flight.cancel.side_effect = cut.set
    driver = AsyncDriver(device, first_delay=3.0)
    sending = asyncio.create_task(driver.run_once(5, first_delay=2.0))
    assert await asyncio.to_thread(begun.wait, 10)
    assert device.run_once.call_args.kwargs["first_delay"] == 2.0
    is_over = device.run_once.call_args.kwargs["stop"]
    assert not is_over()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert (cut.is_set(), is_over()) == (True, True)
    cut.clear()
    begun.clear()
    sending = asyncio.create_task(driver.run_once(5))
    assert await asyncio.to_thread(begun.wait, 10)
    await driver.close()
    device.close.assert_called_once_with(0.0)
    assert await asyncio.wait_for(sending, 10)
    assert device.run_once.call_args.kwargs["stop"](), "a closed driver begins nothing more"
    driver.start()
    device.start.assert_called_once_with(first_delay=3.0)
    assert not device.run_once.call_args.kwargs["stop"](), "until it is started again"


@pytest.mark.parametrize("raises", [None, ConsentError()])
async def test_a_call_that_was_cancelled_ends_unheard(raises):
    """Its thread, which keeps no program alive, goes on, and its result or error is for nobody."""
    loop, complaints = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    begun, leave, threads = threading.Event(), threading.Event(), []

    def slow():
        threads.append(threading.current_thread())
        begun.set()
        leave.wait(10)
        if raises:
            raise raises

    calling = asyncio.create_task(AsyncDriver(Mock()).call(slow))
    assert await asyncio.to_thread(begun.wait, 10)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    leave.set()
    await asyncio.to_thread(threads[0].join, 10)
    await asyncio.sleep(0)
    assert (threads[0].daemon, complaints) == (True, [])


def test_a_call_that_outlives_its_event_loop_ends_without_a_word(monkeypatch):
    complaints, threads, leave = [], [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", complaints.append)

    def slow():
        threads.append(threading.current_thread())
        leave.wait(10)

    async def gives_up():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(AsyncDriver(Mock()).call(slow), 0.01)

    asyncio.run(gives_up())
    leave.set()
    threads[0].join(10)
    assert complaints == []


def test_asyncio_run_ends_although_a_send_hangs(server, campaign, tmp_path, eventually):
    """The server answers only after the program has ended: a program that waited for it would wait for ever."""
    ended = threading.Event()
    server.answer_with = lambda _: ended.wait(60) and None
    arguments = [sys.executable, "-c", _HANGING, server.url, campaign.id, str(tmp_path / "device.db")]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "contributed\n"
    assert eventually(lambda: server.uploads)
    try:
        told, _ = process.communicate("go\n", timeout=50)
    finally:
        process.kill()
        ended.set()
    assert told == "closed\nended\n"
    assert len(server.uploads) == 1
