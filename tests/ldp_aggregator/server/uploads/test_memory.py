"""One budget for what clients send and what they do not read. Every test runs on asyncio's own loop and on uvloop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from urllib.parse import urlsplit

import pytest
from raw_http import connect, exchange, problem_of, request_head

from ldp_aggregator.server.sockets.connections import Memory
from protocols import encode_upload

BUDGET = 1 << 20


async def deaf(server, data):
    """A client that sends and does not read. Returns its socket."""
    address = urlsplit(server.public)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, (address.hostname, address.port))
    await loop.sock_sendall(client, data)
    return client


async def hung_up_on(client, seconds=10):
    """The server ends the connection; what was sent before is read first."""
    loop = asyncio.get_running_loop()
    try:
        while await asyncio.wait_for(loop.sock_recv(client, 1 << 16), seconds):
            pass
    except ConnectionError:
        return True
    except asyncio.TimeoutError:
        return False
    return True


async def test_what_is_sent_ahead_stays_within_the_budget(serving, gated, ready, request_of, budgets, next_answer):
    async with serving(gated, limits={"queue_bytes": BUDGET}) as server:
        campaign = await ready(server)
        ahead = b"".join(request_of(campaign, number % 60) for number in range(1000))
        opened = [await connect(server) for _ in range(40)]
        for _, writer in opened:
            writer.write(ahead)
        await asyncio.sleep(0.5)
        assert 0 < budgets[0].held <= BUDGET
        assert budgets[0].peak <= BUDGET
        gated.gate.set()
        honest = await exchange(server, request_of(campaign, 61, Connection="close"))
        assert honest[9:12] in (b"200", b"503")
        for _, writer in opened:
            writer.transport.abort()


async def test_a_body_without_room_is_told_to_come_back(serving, ready, budgets):
    async with serving(limits={"queue_bytes": 1 << 17, "body_bytes": 1 << 20}) as server:
        campaign = await ready(server)
        head = request_head(campaign, 1 << 19, Authorization=f"Bearer {server.tokens['relay']}")
        reader, writer = await connect(server)
        writer.write(head)
        await asyncio.sleep(0.1)
        for _ in range(64):
            writer.write(b"x" * (1 << 13))
            await asyncio.sleep(0.005)
        answer = await asyncio.wait_for(reader.read(), 10)
        assert problem_of(answer) == (503, "overloaded")
        assert b"Retry-After" in answer
        writer.close()
        at_once = await exchange(server, head + b"x" * (1 << 19))
        assert problem_of(at_once) == (503, "overloaded")
        assert budgets[0].peak <= 1 << 17


async def test_answers_that_nobody_reads_stay_within_the_budget(serving, ready, make_campaign, request_of, budgets):
    async with serving(limits={"queue_bytes": BUDGET, "answer_seconds": 60}) as server:
        large = make_campaign(20_000)
        await server.store.create_campaign(large)
        small = await ready(server)
        document = f"GET /v1/campaigns/{large.id} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        readers = [await deaf(server, document * 200) for _ in range(30)]
        for _ in range(500):
            if budgets[0].held:
                break
            await asyncio.sleep(0.02)
        assert 0 < budgets[0].held <= BUDGET
        for number in range(5):
            assert (await exchange(server, request_of(small, number, Connection="close")))[9:12] == b"200"
        assert 0 < budgets[0].held <= BUDGET
        for client in readers:
            client.close()


async def test_an_upload_takes_the_room_of_who_does_not_read(serving, make_campaign, ready, request_of, budgets):
    async with serving(limits={"queue_bytes": 1 << 19, "answer_seconds": 60}) as server:
        large = make_campaign(20_000)
        await server.store.create_campaign(large)
        small = await ready(server)
        document = f"GET /v1/campaigns/{large.id} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        client = await deaf(server, document * 100)
        for _ in range(100):
            if budgets[0].held > 1 << 15:
                break
            await asyncio.sleep(0.02)
        unread = budgets[0].held
        assert unread > 1 << 14
        budgets[0].take((1 << 19) - unread)
        assert (await exchange(server, request_of(small, 1, Connection="close")))[9:12] == b"200"
        assert await hung_up_on(client)
        budgets[0].give((1 << 19) - unread)
        client.close()


async def test_who_does_not_read_is_dropped_in_time(serving, make_campaign, next_answer):
    async with serving(limits={"answer_seconds": 0.4}) as server:
        large = make_campaign(20_000)
        await server.store.create_campaign(large)
        document = f"GET /v1/campaigns/{large.id} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        client = await deaf(server, document * 100)
        await asyncio.sleep(1.2)
        assert await hung_up_on(client)
        client.close()
        reader, writer = await connect(server)
        for _ in range(3):
            writer.write(document)
            assert (await next_answer(reader))[1] == large.document
            await asyncio.sleep(0.5)
        writer.close()


async def test_who_reads_drop_by_drop_is_dropped_in_time(serving, make_campaign):
    async with serving(limits={"answer_seconds": 0.5}) as server:
        large = make_campaign(30_000)
        await server.store.create_campaign(large)
        document = f"GET /v1/campaigns/{large.id} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        client = await deaf(server, document * 100)
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):
            for _ in range(30):
                if not await asyncio.wait_for(loop.sock_recv(client, 512), 5):
                    break
                await asyncio.sleep(0.05)
        assert await hung_up_on(client)
        client.close()


async def test_a_head_that_never_ends_is_refused(serving):
    async with serving(limits={"header_bytes": 1024}) as server:
        line = b"X-Line: " + b"y" * 500 + b"\r\n"
        answer = await exchange(server, b"GET / HTTP/1.1\r\nHost: x\r\n" + line * 20)
        assert problem_of(answer) == (431, "headers-too-large")
        answer = await exchange(server, b"GET / HTTP/1.1\r\nHost: x\r\n" + line * 20 + b"\r\n")
        assert problem_of(answer) == (431, "headers-too-large")


async def test_clients_that_leave_in_the_middle_leave_nothing_behind(serving, gated, ready, request_of, budgets):
    async with serving(gated) as server:
        campaign = await ready(server)
        whole = request_of(campaign, 1) + request_of(campaign, 2)
        for length in range(1, len(whole), 7):
            _, writer = await connect(server)
            writer.write(whole[:length])
            await writer.drain()
            writer.transport.abort()
        await asyncio.sleep(0.3)
        gated.gate.set()
        for _ in range(100):
            if not budgets[0].held:
                break
            await asyncio.sleep(0.02)
        assert budgets[0].held == 0
        assert max((await server.store.tally(campaign.id)).counts[0].tolist()) == 1


@pytest.mark.parametrize("unread", [60, 100])
def test_room_is_made_by_who_has_not_read_for_longest(unread):
    class Reader:
        def __init__(self):
            self.gone = 0

        def cut(self):
            self.gone += 1

    memory = Memory(100)
    first, second = Reader(), Reader()
    memory.wait_for(first, 40)
    memory.wait_for(second, 50)
    assert (first.gone, second.gone, memory.held) == (0, 0, 90)
    assert memory.take(10)
    assert not memory.take(91)
    assert (first.gone, second.gone, memory.held) == (1, 1, 10)
    memory.give(10)
    memory.wait_for(first, unread + 1)
    assert (memory.held, first.gone) == ((unread + 1, 1) if unread < 100 else (0, 2))


async def test_a_relay_may_send_what_a_device_may_not(server, ready, make_report, request_of):
    campaign = await ready(server)
    many = encode_upload([make_report(campaign, number) for number in range(40)])
    assert (await server.upload(campaign, many))[1]["code"] == "too-many-reports"
    assert (await server.upload(campaign, b"x" * 9000))[1]["code"] == "body-too-large"
    status, problem = await server.upload(campaign, many, Authorization="Bearer ldp_nobodys")
    assert (status, problem["code"]) == (401, "wrong-token")
    status, problem = await server.upload(campaign, many, **server.bearer("collector"))
    assert (status, problem["code"]) == (403, "wrong-scope")
    assert int((await server.store.tally(campaign.id)).n.sum()) == 1
    assert (await server.upload(campaign, many, **server.bearer("relay")))[0] == 200
    one = encode_upload([make_report(campaign, 50)])
    assert (await server.upload(campaign, one, Authorization="Bearer ldp_nobodys"))[0] == 200
