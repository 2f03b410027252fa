"""One budget for what clients send and what they do not read. Every test runs on asyncio's own loop and on uvloop."""

import asyncio
import contextlib
import socket
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
from cells import cells_of
from raw_http import SECONDS, becomes, document_of, exchange, problem_of, request_head, request_of

from ldp_aggregator.server.sockets.memory import Memory

BUDGET = 1 << 20


@contextlib.asynccontextmanager
async def deaf(server, data):
    """A client that sends and does not read."""
    address = urlsplit(server.public)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, (address.hostname, address.port))
        await loop.sock_sendall(client, data)
        yield client


async def hung_up_on(client):
    """The server ends the connection; what was sent before is read first."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ConnectionError):
        while await asyncio.wait_for(loop.sock_recv(client, 1 << 16), SECONDS):
            pass
    return True


async def test_what_is_sent_ahead_stays_within_the_budget(serving, gated, budgets):
    async with serving(gated, limits={"queue_bytes": BUDGET}) as server:
        campaign = await server.publish()
        ahead = b"".join(request_of(campaign, number % 60) for number in range(1000))
        lines = await server.dials(40)
        for line in lines:
            line.send(ahead)
        await becomes(lambda: budgets[0].used > BUDGET // 2)
        await asyncio.sleep(0.2)
        assert budgets[0].peak <= BUDGET
        gated.gate.set()
        honest = await exchange(server, request_of(campaign, 61, Connection="close"))
        assert honest[9:12] in (b"200", b"503")
        for line in lines:
            line.cut()


async def test_a_body_without_room_is_told_to_come_back(serving, budgets):
    async with serving(limits={"queue_bytes": 1 << 17, "body_bytes": 1 << 20}) as server:
        head = request_head(await server.publish(), 1 << 19, **server.bearer("relay"))
        line = await server.dial()
        line.send(head)
        for _ in range(64):
            line.send(b"x" * (1 << 13))
            await asyncio.sleep(0.001)
        for answer in (await line.rest(), await exchange(server, head, b"x" * (1 << 19))):
            assert problem_of(answer) == (503, "overloaded")
            assert b"Retry-After" in answer
        assert budgets[0].peak <= 1 << 17


async def test_answers_that_nobody_reads_stay_within_the_budget_and_an_upload_takes_their_room(serving, budgets):
    async with serving(limits={"queue_bytes": 1 << 19, "answer_seconds": 60}) as server:
        large, small = await server.publish(20_000), await server.publish()
        async with contextlib.AsyncExitStack() as clients:
            first, *_ = [await clients.enter_async_context(deaf(server, document_of(large) * 200)) for _ in range(30)]
            await becomes(lambda: budgets[0].used > 1 << 15)
            budgets[0].take(room := (1 << 19) - budgets[0].used)
            for number in range(5):
                assert (await exchange(server, request_of(small, number, Connection="close")))[9:12] == b"200"
            assert budgets[0].used <= 1 << 19
            assert await hung_up_on(first)
            budgets[0].give(room)


async def test_who_does_not_read_is_dropped_in_time(serving):
    async with serving(limits={"answer_seconds": 0.3}) as server:
        large = await server.publish(30_000)
        async with deaf(server, document_of(large) * 100) as silent, deaf(server, document_of(large) * 100) as slow:
            loop = asyncio.get_running_loop()
            with contextlib.suppress(ConnectionError):
                for _ in range(15):  # Drop by drop.
                    if not await asyncio.wait_for(loop.sock_recv(slow, 512), SECONDS):
                        break
                    await asyncio.sleep(0.05)
            assert await hung_up_on(silent)
            assert await hung_up_on(slow)
        line = await server.dial()
        for _ in range(3):
            assert (await line.ask(document_of(large))).body == large.document
            await asyncio.sleep(0.2)


async def test_a_head_that_never_ends_is_refused(serving):
    async with serving(limits={"header_bytes": 1024}) as server:
        lines = (b"X-Line: " + b"y" * 500 + b"\r\n") * 20
        for end in (b"", b"\r\n"):
            answer = await exchange(server, b"GET / HTTP/1.1\r\nHost: x\r\n", lines, end)
            assert problem_of(answer) == (431, "headers-too-large")


async def test_clients_that_leave_in_the_middle_leave_nothing_behind(serving, gated, budgets, caplog):
    async with serving(gated) as server:
        campaign = await server.publish()
        whole = request_of(campaign, 1) + request_of(campaign, 2)
        for length in range(1, len(whole), 7):
            line = await server.dial()
            line.send(whole[:length])
            await line.writer.drain()
            line.cut()
        await asyncio.sleep(0.2)  # The server learns of it.
        gated.gate.set()
        await becomes(lambda: budgets[0].used, 0)
        assert (await server.upload(campaign, [3]))[0] == 200
        counts = await cells_of(gated, campaign)
        assert (max(counts), sum(counts[3:])) == (1, 1)
        assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_operators_are_heard_while_there_is_no_room_for_uploads(serving, budgets):
    async with serving(limits={"queue_bytes": 1 << 16}) as server:
        campaign = await server.publish()
        assert (await server.upload(campaign, [0]))[0] == 200  # Its terms are known from here on.
        await becomes(lambda: budgets[0].used, 0)
        assert budgets[0].take(1 << 16)
        refused = await exchange(server, request_of(campaign, 1, Connection="close"))
        assert problem_of(refused) == (503, "overloaded")
        json = {"Content-Type": "application/json"}
        draft = b'{"version": 1, "title": "' + b"t" * 5000 + b'"}'
        answer = await server.ask("POST", "/admin/v1/campaigns", "admin", data=draft, headers=json)
        assert answer.refused == (400, "invalid-draft")
        for path in ("/healthz", "/readyz"):
            assert (await server.ask("GET", server.operations + path)).status == 200
        budgets[0].give(1 << 16)
        assert (await exchange(server, request_of(campaign, 1, Connection="close"))).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("unread", [60, 100])
def test_room_is_made_by_who_has_not_read_for_longest(unread):
    memory, first, second = Memory(100), Mock(), Mock()
    memory.note_unread(first, 40)
    memory.note_unread(second, 50)
    assert (first.cut.call_count, second.cut.call_count, memory.used) == (0, 0, 90)
    assert memory.take(10)
    assert not memory.take(91)
    assert (first.cut.call_count, second.cut.call_count, memory.used) == (1, 1, 10)
    memory.give(10)
    memory.note_unread(first, unread + 1)
    assert (memory.used, first.cut.call_count) == ((unread + 1, 1) if unread < 100 else (0, 2))


def test_then_by_strangers_whose_requests_have_been_incomplete_for_longest_and_never_by_who_waits_for_an_answer():
    memory, operator, first, second = Memory(100), Mock(is_stranger=False), *(Mock(is_stranger=True) for _ in range(2))
    assert memory.take(20)
    for sender, size in ((operator, 20), (first, 10), (second, 10), (first, 40)):
        memory.note_unfinished(sender, size)
    assert memory.used == 90
    memory.note_unfinished(operator, 40)
    assert [one.give_way.call_count for one in (operator, first, second)] == [0, 1, 0]
    assert memory.used == 70
    assert memory.take(80)
    assert [one.give_way.call_count for one in (operator, first, second)] == [1, 1, 1]
    assert not memory.take(1)
    assert memory.used == 100


async def test_a_relay_may_send_what_a_device_may_not(server):
    campaign = await server.publish()
    many = request_of(campaign, *range(40)).split(b"\r\n\r\n", 1)[1]
    for headers in ({}, {"Origin": "https://other.example"}):  # The second is aiohttp's.
        assert await server.refused(campaign, many, **headers) == (413, "too-many-reports")
    assert await server.refused(campaign, b"x" * 9000) == (413, "body-too-large")
    nobodys = {"Authorization": "Bearer ldp_nobodys"}
    assert await server.refused(campaign, many, **nobodys) == (401, "wrong-token")
    assert await server.refused(campaign, many, **server.bearer("collector")) == (403, "wrong-scope")
    assert not any(await cells_of(server.store, campaign))
    assert (await server.upload(campaign, many, **server.bearer("relay")))[0] == 200
    assert (await server.upload(campaign, [50], **nobodys))[0] == 200
