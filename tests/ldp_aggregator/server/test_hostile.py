"""Clients that are slow, half open, too many or not speaking HTTP: they get their answer, and nobody else waits."""

import asyncio
import time

import pytest
from cells import cells_of
from raw_http import NOWHERE, exchange, problem_of, request_of

NOT_HTTP = {
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03hello\r\n\r\n",
    "unknown version": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a length that is no number": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    "length and chunks": (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
}


@pytest.mark.parametrize("name", NOT_HTTP)
async def test_bytes_that_are_no_request_get_a_problem_document(server, name):
    status, code = problem_of(await exchange(server, NOT_HTTP[name]))
    assert (status, code) == (400, "malformed-request")


async def test_headers_that_trickle_in_are_cut_off_and_their_time_begins_anew_with_each_request(serving):
    async with serving(limits={"header_seconds": 0.2}) as server:
        started = time.monotonic()
        for beginning in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n"):
            assert await exchange(server, beginning) == b""
        assert time.monotonic() - started < 5
        line = await server.dial()
        for _ in range(2):
            assert (await line.ask(NOWHERE)).status == 404
            await asyncio.sleep(0.4)  # An idle connection is not a slow one.
        line.send(b"GET /nowhere HTTP/1.1\r\nX: ")
        started = time.monotonic()
        while not line.has_ended and time.monotonic() - started < 5:
            line.send(b"x")
            await asyncio.sleep(0.02)
        assert line.has_ended
        assert await line.rest() == b""


async def test_a_body_that_does_not_arrive_is_refused_in_time(serving):
    async with serving(limits={"body_seconds": 0.1}) as server:
        campaign = await server.publish()
        assert problem_of(await exchange(server, request_of(campaign, 1)[:-1])) == (408, "body-timeout")
        assert not any(await cells_of(server.store, campaign))


async def test_slow_and_half_open_clients_do_not_stop_others(server):
    campaign = await server.publish()
    for position, line in enumerate(await server.dials(60)):
        line.send(request_of(campaign, 1)[: position * 4])
    started = time.monotonic()
    for number in range(2, 32):
        assert (await server.upload(campaign, [number]))[0] == 200
    assert time.monotonic() - started < 9  # No stalled one was dropped yet: that is after 10.


async def test_a_client_that_hangs_up_does_not_cancel_the_commit(serving, gated):
    async with serving(gated) as server:
        campaign, line = await server.publish(), await server.dial()
        line.send(request_of(campaign, 5))
        await gated.begun.wait()
        line.cut()
        staying = asyncio.create_task(server.upload(campaign, [6]))
        gated.gate.set()
        assert (await staying)[0] == 200
        assert await cells_of(gated, campaign, 8) == [0] * 5 + [1, 1, 0]
