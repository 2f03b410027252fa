"""Clients that are slow, half open, too many or not speaking HTTP: they get their answer, and nobody else waits."""

from __future__ import annotations

import asyncio
import time

import pytest
from raw_http import connect, exchange, problem_of, request_head

from protocols import encode_upload
from protocols.wire import MEDIA_TYPE


@pytest.fixture
async def campaign(server, make_campaign):
    published = make_campaign()
    await server.store.create_campaign(published)
    return published


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


async def test_a_header_that_is_too_long_is_refused(serving):
    async with serving(limits={"header_bytes": 2048}) as server:
        answer = await exchange(server, b"GET / HTTP/1.1\r\nHost: x\r\nCookie: " + b"x" * 5000 + b"\r\n\r\n")
        assert problem_of(answer) == (431, "headers-too-large")


async def test_headers_that_trickle_in_are_cut_off(serving):
    async with serving(limits={"header_seconds": 0.3}) as server:
        started = time.monotonic()
        for beginning in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n"):
            assert await exchange(server, beginning) == b""
        assert time.monotonic() - started < 5


async def test_the_header_time_begins_anew_with_each_request(serving):
    async with serving(limits={"header_seconds": 0.4}) as server:
        reader, writer = await connect(server)
        for _ in range(2):
            writer.write(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"404" in head
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
            await asyncio.sleep(0.6)  # An idle connection is not a slow one.
        writer.write(b"GET /nowhere HT")
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()


async def test_a_body_that_does_not_arrive_is_refused_in_time(serving, make_campaign):
    async with serving(limits={"body_seconds": 0.3}) as server:
        campaign = make_campaign()
        await server.store.create_campaign(campaign)
        answer = await exchange(server, request_head(campaign, 100) + b"\x92")
        assert problem_of(answer) == (408, "body-timeout")


async def test_a_body_that_is_cut_short_counts_nothing(server, campaign, make_report):
    body = encode_upload([make_report(campaign, 1)])
    _, writer = await connect(server)
    writer.write(request_head(campaign, len(body)) + body[:-1])
    await writer.drain()
    writer.close()
    assert await server.upload(campaign, [make_report(campaign, 2)]) == (200, {"rejected": []})
    assert (await server.store.tally(campaign.id)).counts[0].tolist()[:4] == [0, 0, 1, 0]


async def test_a_client_that_leaves_within_its_body_is_no_error_of_the_server(server, campaign, make_report, caplog):
    body = encode_upload([make_report(campaign, 1)])
    _, writer = await connect(server)
    writer.write(request_head(campaign, len(body)))
    await asyncio.sleep(0.05)
    writer.write(body[:-1])
    await asyncio.sleep(0.05)
    writer.transport.abort()
    assert await server.upload(campaign, [make_report(campaign, 2)]) == (200, {"rejected": []})
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_slow_and_half_open_clients_do_not_stop_others(server, campaign, make_report):
    body = encode_upload([make_report(campaign, 1)])
    stalled = [await connect(server) for _ in range(60)]
    for position, (_, writer) in enumerate(stalled):
        writer.write((request_head(campaign, len(body)) + body[:-1])[: position * 4])
    started = time.monotonic()
    for number in range(2, 32):
        assert (await server.upload(campaign, [make_report(campaign, number)]))[0] == 200
    assert time.monotonic() - started < 9  # no stalled one was dropped yet: that is after 10
    for _, writer in stalled:
        writer.close()


async def test_a_full_queue_answers_503_and_takes_more_once_there_is_room(serving, gated, make_campaign, make_report):
    campaign = make_campaign()
    await gated.create_campaign(campaign)
    size = len(encode_upload([make_report(campaign, 0)]))
    async with serving(gated, limits={"queue_bytes": 1024}) as server:
        fits = 1024 // size
        waiting = [asyncio.create_task(server.upload(campaign, [make_report(campaign, n)])) for n in range(fits)]
        await asyncio.sleep(0.3)
        url = f"{server.public}/v1/campaigns/{campaign.id}/reports"
        body = encode_upload([make_report(campaign, 60)])
        async with server.session.post(url, data=body, headers={"Content-Type": MEDIA_TYPE}) as answer:
            assert (answer.status, (await answer.json(content_type=None))["code"]) == (503, "overloaded")
            assert int(answer.headers["Retry-After"]) >= 1
        gated.gate.set()
        assert {status for status, _ in await asyncio.gather(*waiting)} == {200}
        assert (await server.upload(campaign, [make_report(campaign, 60)]))[0] == 200
        assert int((await gated.tally(campaign.id)).n.sum()) == fits + 1


async def test_a_failed_commit_is_a_503_for_every_waiter_and_counts_nothing(serving, gated, make_campaign, make_report):
    campaign = make_campaign()
    await gated.create_campaign(campaign)
    async with serving(gated) as server:
        gated.failing = True
        waiting = [asyncio.create_task(server.upload(campaign, [make_report(campaign, n)])) for n in range(10)]
        await asyncio.sleep(0.2)
        gated.gate.set()
        answers = await asyncio.gather(*waiting)
        assert {(status, problem["code"]) for status, problem in answers} == {(503, "store-unavailable")}
        assert int((await gated.tally(campaign.id)).n.sum()) == 0
        async with server.session.get(server.operations + "/metrics") as answer:
            assert "ldp_store_errors_total" in await answer.text()
        gated.failing = False
        assert (await server.upload(campaign, [make_report(campaign, 1)]))[0] == 200


async def test_a_client_that_hangs_up_does_not_cancel_the_commit(serving, gated, make_campaign, make_report):
    campaign = make_campaign()
    await gated.create_campaign(campaign)
    async with serving(gated) as server:
        body = encode_upload([make_report(campaign, 5)])
        _, writer = await connect(server)
        writer.write(request_head(campaign, len(body)) + body)
        await writer.drain()
        await asyncio.sleep(0.2)
        writer.transport.abort()
        staying = asyncio.create_task(server.upload(campaign, [make_report(campaign, 6)]))
        await asyncio.sleep(0.1)
        gated.gate.set()
        assert (await staying)[0] == 200
        assert (await gated.tally(campaign.id)).counts[0].tolist()[4:8] == [0, 1, 1, 0]
