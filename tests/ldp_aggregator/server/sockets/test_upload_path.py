"""Uploads that never become a request object are answered as all others are, in their order, whatever comes between;
and a socket that fails in an unexpected way fails alone.

Every test runs on asyncio's own loop and on uvloop.
"""

import asyncio
import re
import socket
from struct import pack

import pytest
from cells import cell_report, cells_of, reports_of
from raw_http import ELSEWHERE, NOWHERE, Reply, becomes, document_of, exchange, request_head, request_of

from ldp_aggregator.server.intake import Intake
from ldp_aggregator.server.sockets.upload_path import ClientConnection
from ldp_protocols import encode_upload


@pytest.fixture(autouse=True)
def taken(monkeypatch):
    """Count the uploads that took the short way."""
    seen = []
    welcome = ClientConnection._welcome

    def watched(self, terms, intake):
        seen.append(terms)
        welcome(self, terms, intake)

    monkeypatch.setattr(ClientConnection, "_welcome", watched)
    return seen


async def counted(server, campaign):
    """Cells with a report."""
    counts = await cells_of(server.store, campaign)
    assert max(counts) <= 1
    return [cell for cell, n in enumerate(counts) if n]


async def test_both_ways_give_the_same_answer(server, taken):
    campaign, closed = await server.publish(), await server.publish(title="closed")
    await server.store.close_campaign(closed.id)
    await server.upload(campaign, [63])
    asked = ([1], [(2, 64)], [(63, 5)], range(9))
    sound, cell, other, many = (encode_upload(reports_of(campaign, one), campaign) for one in asked)
    bodies = (sound, sound, cell, other, many, b"no upload", sound[:-1], sound + b"\0")
    cases = [(campaign, body) for body in bodies] + [(closed, sound)]
    statuses = []
    for asked, body in cases:
        for closing in ({}, {"Connection": "close"}):
            answers = []
            for headers in ({}, ELSEWHERE):
                line = await server.dial()
                reply = await line.ask(request_of(asked, body, **closing, **headers))
                answers.append((re.sub(rb"(?:Date|Retry-After): [^\r]*", b"", reply.head), reply.body))
                if closing:
                    assert await line.rest() == b""
            assert answers[0] == answers[1]
        statuses.append(reply.status)
    assert statuses == [200, 200, 200, 200, 413, 400, 400, 400, 409]
    assert len(taken) == 2 * len(cases) + 1


async def test_requests_of_all_kinds_take_turns_on_one_connection(server, taken):
    campaign = await server.publish()
    turns = [
        (document_of(campaign), 200),
        (request_of(campaign, 1), 200),
        (b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 404),
        (request_of(campaign, 2, **ELSEWHERE), 200),
        (request_of(campaign, 3), 200),
        (document_of(campaign), 200),
    ]
    line = await server.dial()
    for data, status in turns:
        assert (await line.ask(data)).status == status
    line.send(*(data for data, _ in turns * 3))
    assert [(await line.reply()).status for _ in turns * 3] == [status for _, status in turns * 3]
    assert await counted(server, campaign) == [1, 2, 3]
    assert len(taken) == 0, "aiohttp has the connection from its first other request on"


async def test_uploads_may_be_sent_ahead_or_arrive_byte_by_byte(server, taken):
    campaign, line = await server.publish(), await server.dial()
    line.send(*(request_of(campaign, number) for number in range(60)))
    assert [(await line.reply()).status for _ in range(60)] == [200] * 60
    data = request_of(campaign, 60) + request_of(campaign, 61)
    for position in range(len(data)):
        line.send(data[position : position + 1])
        await line.writer.drain()
        await asyncio.sleep(0)
    assert [(await line.reply()).status for _ in range(2)] == [200, 200]
    assert await counted(server, campaign) == list(range(62))
    assert len(taken) == 62


@pytest.mark.parametrize("hidden", ["Transfer-Encoding: chunked", "Content-Length: 4", "X: y\r\n z"])
async def test_a_request_inside_another_is_never_taken(server, hidden):
    """The body of one request, as a proxy may see it, is not the next request of ours."""
    campaign = await server.publish()
    inner = request_of(campaign, 5)
    outer = request_head(campaign, len(inner) + 5)[:-2] + hidden.encode() + b"\r\n\r\n0\r\n\r\n"
    answer = await exchange(server, outer, inner)
    assert answer[9:12] in (b"400", b"411")
    assert answer.count(b"HTTP/1.") == 1
    assert await counted(server, campaign) == []


async def test_neither_a_body_that_was_refused_before_it_came_nor_the_rest_of_a_head_is_a_request(server):
    campaign = await server.publish()
    line, other = await server.dials(2)
    reply = await line.ask(request_head(campaign, 1 << 20))
    assert (reply.status, b"Connection: close" in reply.head) == (413, True)
    line.send(request_of(campaign, 5))
    assert await line.rest() == b""
    assert (await other.ask(NOWHERE, b"GET /nowhere HTTP/1.1\r\nX: ")).status == 404, "its rest comes later"
    assert (await other.ask(request_of(campaign, 5))).status in (400, 404)
    assert await counted(server, campaign) == []


async def test_who_has_shut_his_side_still_gets_the_answer(serving, gated):
    async with serving(gated) as server:
        campaign, line = await server.publish(), await server.dial()
        line.send(*(request_of(campaign, number) for number in range(3)))
        line.writer.write_eof()
        await gated.begun.wait()
        gated.gate.set()
        assert (await line.rest()).count(b"HTTP/1.1 200") == 3


async def test_a_body_sent_after_an_answer_ends_nobody_elses(server):
    """A relay's upload asks first, an old client speaks HTTP/1.0, one sends chunks: aiohttp answers as ever."""
    campaign, line = await server.publish(), await server.dial()
    head, body = request_of(campaign, 1, Expect="100-continue").split(b"\r\n\r\n", 1)
    assert (await line.ask(head, b"\r\n\r\n")).status == 100
    assert (await line.ask(body)).status == 200
    assert (await line.ask(request_of(campaign, 2))).status == 200
    old = request_of(campaign, 3).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    assert (await exchange(server, old)).startswith(b"HTTP/1.0 200")
    assert await counted(server, campaign) == [1, 2, 3]


async def waiting(server, budgets, uploads):
    """Connections each of which has an upload in the queue, behind one that is being committed."""
    lines = await server.dials(len(uploads))
    for line, upload in zip(lines, uploads, strict=True):
        held = budgets[0].used
        line.send(upload)
        await becomes(lambda held=held: budgets[0].used > held)
    return lines


async def test_one_bad_upload_of_a_group_fails_alone(serving, gated, budgets):
    async with serving(gated) as server:
        campaign = await server.publish()
        bad = cell_report(campaign, 9, cell=64)
        uploads = [request_of(campaign, one) for one in (0, *range(8), b"no upload at all", bad, 0)]
        _, *lines = await waiting(server, budgets, uploads)
        gated.gate.set()
        replies = [await line.reply() for line in lines]
        assert [reply.status for reply in replies] == [200] * 8 + [400] + [200] * 2
        told = f'{{"rejected": [["{bad.id.hex()}", "index-out-of-range"]]}}'.encode()
        assert [reply.body for reply in replies[9:]] == [told, b'{"rejected": []}']
        assert await counted(server, campaign) == list(range(8))


async def test_a_stop_answers_what_is_in_the_queue(serving, gated, budgets):
    async with serving(gated, limits={"drain_seconds": 10}) as server:
        campaign = await server.publish()
        lines = await waiting(server, budgets, [request_of(campaign, 4), request_of(campaign, 5, **ELSEWHERE)])
        lines.append(await server.dial())
        server.lines.clear()  # They outlive the server.
        asyncio.get_running_loop().call_later(0.1, gated.gate.set)
    for line in lines[:2]:
        answer = Reply(*(await line.rest()).split(b"\r\n\r\n"))
        assert (answer.status, b"connection: close" in answer.head.lower()) == (200, True)
    assert await lines[2].rest() == b"", "an idle one is just ended"
    for line in lines:
        line.writer.close()
    assert await cells_of(gated, campaign, 7) == [0] * 4 + [1, 1, 0]


async def test_what_waits_for_its_commit_takes_its_room_until_then_though_its_client_has_gone(
    serving, gated, budgets, monkeypatch
):
    """Else whoever sends and hangs up, again and again, fills the memory beyond its budget."""
    lost, ends = [], ClientConnection.connection_lost
    monkeypatch.setattr(ClientConnection, "connection_lost", lambda self, exc: (ends(self, exc), lost.append(self)))
    async with serving(gated, limits={"drain_seconds": 1}) as server:
        campaign = await server.publish()
        lines = await waiting(server, budgets, [request_of(campaign, number) for number in range(3)])
        held = budgets[0].used
        for line in lines:  # Not just his side of it: who only shuts that waits for his answer.
            line.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
            line.cut()
        await becomes(lambda: len(lost), 3)
        assert budgets[0].used == held
        gated.gate.set()
        await becomes(lambda: budgets[0].used, 0)
        assert await counted(server, campaign) == [0, 1, 2]


async def test_about_an_upload_whose_client_has_hung_up_nobody_is_asked_any_further(server, monkeypatch):
    """An operator's check of it would go on, and the upload would count in its campaign's rate."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def terms(*given):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            over.set()

    monkeypatch.setattr(Intake, "cached_bounds", lambda *given, **more: None)
    monkeypatch.setattr(Intake, "bounds", terms)
    line = await server.dial()
    line.send(request_head(await server.publish(), 100))
    await becomes(begun.is_set)
    line.cut()
    await becomes(over.is_set)


def fail_once(monkeypatch, name):
    """Let this method of one connection raise."""
    works, failed = getattr(ClientConnection, name), []

    def fails_once(self, *given):
        if not failed:
            failed.append(self)
            raise ValueError("secret text")
        works(self, *given)

    monkeypatch.setattr(ClientConnection, name, fails_once)


async def test_a_connection_whose_answer_cannot_be_written_harms_no_other(serving, gated, budgets, monkeypatch):
    async with serving(gated) as server:
        campaign = await server.publish()
        lines = await waiting(server, budgets, [request_of(campaign, number) for number in range(5)])
        fail_once(monkeypatch, "_done")
        gated.gate.set()
        assert [(await line.reply()).status for line in lines] == [200] * 5
        assert (await (await server.dial()).ask(request_of(campaign, 9))).status == 200


async def test_a_connection_that_cannot_be_looked_at_does_not_stop_the_watch(serving, monkeypatch):
    fail_once(monkeypatch, "look")
    async with serving(limits={"header_seconds": 0.2}) as server:
        for _ in range(2):  # The first is cut for the failure, the second because its time is up.
            assert await (await server.dial()).rest() == b""
