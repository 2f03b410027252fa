"""Uploads that never become a request object are answered as all others are, in their order, whatever comes between.

Every test runs on asyncio's own loop and on uvloop.
"""

from __future__ import annotations

import asyncio
import re

import pytest
from raw_http import connect, exchange, problem_of, request_head

from ldp_aggregator.server.sockets.door import Door
from protocols import encode_upload


@pytest.fixture(autouse=True)
def taken(monkeypatch):
    """Count the uploads that took the short way."""
    seen = []
    welcome = Door._welcome

    def watched(self, terms, desk):
        seen.append(terms)
        welcome(self, terms, desk)

    monkeypatch.setattr(Door, "_welcome", watched)
    return seen


async def counted(server, campaign):
    """Cells with a report, without the one that made the campaign known."""
    counts = (await server.store.tally(campaign.id)).counts[0].tolist()
    assert max(counts) == 1
    return [cell for cell, n in enumerate(counts[:63]) if n]


def undated(head):
    return re.sub(rb"Date: [^\r]*", b"Date: ", head)


async def test_both_ways_give_the_same_answer(server, ready, make_report, make_campaign, next_answer, taken):
    campaign = await ready(server)
    closed = await ready(server, title="closed")
    await server.store.close_campaign(closed.id)
    sound, cell = encode_upload([make_report(campaign, 1)]), encode_upload([make_report(campaign, 2, cell=64)])
    other = encode_upload([make_report(campaign, 63, cell=5)])
    cases = [(campaign, body) for body in (sound, sound, cell, other, b"no upload", sound[:-1], sound + b"\0")]
    for asked, body in [*cases, (closed, sound)]:
        answers = []
        for headers in (
            {},
            {"Origin": "https://other.example"},
            {"Connection": "close"},
            {"Connection": "close", "Origin": "https://other.example"},
        ):
            reader, writer = await connect(server)
            writer.write(request_head(asked, len(body), **headers) + body)
            head, content = await next_answer(reader)
            answers.append((undated(head), content))
            if "Connection" in headers:
                assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()
        assert answers[0] == answers[1]
        assert answers[2] == answers[3]
    assert len(taken) == 2 * (len(cases) + 1) + 2, "and what made the campaigns known"


async def test_requests_of_all_kinds_take_turns_on_one_connection(server, ready, request_of, next_answer, taken):
    campaign = await ready(server)
    document = f"GET /v1/campaigns/{campaign.id} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    nowhere = b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
    turns = [
        (document, b"200"),
        (request_of(campaign, 1), b"200"),
        (nowhere, b"404"),
        (request_of(campaign, 2, Origin="https://other.example"), b"200"),
        (request_of(campaign, 3), b"200"),
        (document, b"200"),
    ]
    reader, writer = await connect(server)
    for data, status in turns:
        writer.write(data)
        assert (await next_answer(reader))[0][9:12] == status
    writer.write(b"".join(data for data, _ in turns * 3))
    for _, status in turns * 3:
        assert (await next_answer(reader))[0][9:12] == status
    writer.close()
    assert await counted(server, campaign) == [1, 2, 3]
    assert len(taken) == 1, "aiohttp has the connection from its first other request on"


async def test_uploads_sent_ahead_are_all_answered(server, ready, request_of, next_answer):
    campaign = await ready(server)
    reader, writer = await connect(server)
    writer.write(b"".join(request_of(campaign, number) for number in range(60)))
    for _ in range(60):
        assert (await next_answer(reader))[0].startswith(b"HTTP/1.1 200")
    writer.close()
    assert await counted(server, campaign) == list(range(60))


async def test_an_upload_may_arrive_byte_by_byte(server, ready, request_of, next_answer, taken):
    campaign = await ready(server)
    data = request_of(campaign, 7) + request_of(campaign, 8)
    reader, writer = await connect(server)
    for position in range(len(data)):
        writer.write(data[position : position + 1])
        await writer.drain()
        await asyncio.sleep(0)
    for _ in range(2):
        assert (await next_answer(reader))[0].startswith(b"HTTP/1.1 200")
    writer.close()
    assert await counted(server, campaign) == [7, 8]
    assert len(taken) == 3


async def test_a_body_that_stops_is_refused_in_time(serving, ready, request_of):
    async with serving(limits={"body_seconds": 0.3}) as server:
        campaign = await ready(server)
        answer = await exchange(server, request_of(campaign, 1)[:-1])
        assert problem_of(answer) == (408, "body-timeout")
        assert await counted(server, campaign) == []


HIDDEN = {
    "chunks": "Transfer-Encoding: chunked",
    "another length": "Content-Length: 4",
    "a folded line": "X: y\r\n z",
}


@pytest.mark.parametrize("name", HIDDEN)
async def test_a_request_inside_another_is_never_taken(server, ready, request_of, name):
    """The body of one request, as a proxy may see it, is not the next request of ours."""
    campaign = await ready(server)
    inner = request_of(campaign, 5)
    outer = (
        f"POST /v1/campaigns/{campaign.id}/reports HTTP/1.1\r\nHost: x\r\n"
        f"Content-Type: application/vnd.ldp-bayes.reports+msgpack\r\nContent-Length: {len(inner) + 5}\r\n"
        f"{HIDDEN[name]}\r\n\r\n0\r\n\r\n"
    )
    answer = await exchange(server, outer.encode() + inner)
    assert answer[9:12] in (b"400", b"411")
    assert answer.count(b"HTTP/1.") == 1
    assert await counted(server, campaign) == []


async def test_the_rest_of_a_head_is_not_a_request(server, ready, request_of, next_answer):
    """The beginning of a request may come with the one before it."""
    campaign = await ready(server)
    reader, writer = await connect(server)
    begin = b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\nGET /nowhere HTTP/1.1\r\nX: "
    writer.write(begin)
    assert b" 404 " in (await next_answer(reader))[0]
    await asyncio.sleep(0.1)
    writer.write(request_of(campaign, 5))
    head, _ = await next_answer(reader)
    assert head[9:12] in (b"400", b"404")
    writer.close()
    assert await counted(server, campaign) == []


async def test_who_has_shut_his_side_still_gets_the_answer(serving, gated, ready, request_of):
    async with serving(gated) as server:
        server.tokens["relay"] = ""
        campaign = await ready(server)
        reader, writer = await connect(server)
        writer.write(b"".join(request_of(campaign, number) for number in range(3)))
        writer.write_eof()
        await asyncio.sleep(0.2)
        gated.gate.set()
        assert (await asyncio.wait_for(reader.read(), 10)).count(b"HTTP/1.1 200") == 3
        writer.close()


async def test_a_body_sent_after_an_answer_ends_nobody_elses(server, ready, request_of, next_answer):
    """A relay's upload asks first, an old client speaks HTTP/1.0, one sends chunks: aiohttp answers as ever."""
    campaign = await ready(server)
    whole = request_of(campaign, 1, Expect="100-continue")
    head, body = whole.split(b"\r\n\r\n", 1)
    reader, writer = await connect(server)
    writer.write(head + b"\r\n\r\n")
    assert b"100" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    writer.write(body)
    assert (await next_answer(reader))[0].startswith(b"HTTP/1.1 200")
    writer.write(request_of(campaign, 2))
    assert (await next_answer(reader))[0].startswith(b"HTTP/1.1 200")
    writer.close()
    old = request_of(campaign, 3).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    assert (await exchange(server, old)).startswith(b"HTTP/1.0 200")
    assert await counted(server, campaign) == [1, 2, 3]


async def test_a_failed_commit_refuses_every_upload_and_the_next_one_is_counted(
    serving, gated, ready, request_of, next_answer
):
    async with serving(gated) as server:
        campaign = await ready(server)
        gated.failing = True
        opened = [await connect(server) for _ in range(10)]
        for number, (_, writer) in enumerate(opened):
            writer.write(request_of(campaign, number))
        await asyncio.sleep(0.2)
        gated.gate.set()
        for reader, _ in opened:
            head, body = await next_answer(reader)
            assert problem_of(head + body) == (503, "store-unavailable")
            assert b"Retry-After" in head
        gated.failing = False
        for number, (reader, writer) in enumerate(opened):
            writer.write(request_of(campaign, number))
            assert (await next_answer(reader))[0].startswith(b"HTTP/1.1 200")
            writer.close()
        assert await counted(server, campaign) == list(range(10))


async def test_one_bad_upload_of_a_group_fails_alone(serving, gated, ready, make_report, next_answer):
    async with serving(gated) as server:
        campaign = await ready(server)
        sound = [encode_upload([make_report(campaign, number)]) for number in range(8)]
        bodies = [*sound, b"no upload at all", encode_upload([make_report(campaign, 9, cell=64)]), sound[0]]
        blocker, *opened = [await connect(server) for _ in range(len(bodies) + 1)]
        for (_, writer), body in zip([blocker, *opened], [sound[0], *bodies], strict=True):
            writer.write(request_head(campaign, len(body)) + body)
            await asyncio.sleep(0.01)
        gated.gate.set()
        answers = [(await next_answer(reader)) for reader, _ in opened]
        assert [head[9:12] for head, _ in answers] == [b"200"] * 8 + [b"400"] + [b"200"] * 2
        bad = make_report(campaign, 9).id.hex()
        assert [body for _, body in answers[9:]] == [
            b'{"rejected": [["' + bad.encode() + b'", "index-out-of-range"]]}',
            b'{"rejected": []}',
        ]
        for _, writer in (blocker, *opened):
            writer.close()
        assert await counted(server, campaign) == list(range(8))


async def test_a_stop_answers_what_is_in_the_queue(serving, gated, ready, request_of):
    async with serving(gated, limits={"drain_seconds": 10}) as server:
        campaign = await ready(server)
        reader, writer = await connect(server)
        idle, idle_writer = await connect(server)
        writer.write(request_of(campaign, 4))
        await asyncio.sleep(0.2)
        asyncio.get_running_loop().call_later(0.3, gated.gate.set)
    answer = await asyncio.wait_for(reader.read(), 10)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"Connection: close" in answer
    assert await asyncio.wait_for(idle.read(), 10) == b""
    writer.close()
    idle_writer.close()
    assert (await gated.tally(campaign.id)).counts[0].tolist()[4] == 1
