"""Everything but an upload is aiohttp's for good, under the same times, and operators always get in.

Every test runs on asyncio's own loop and on uvloop.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from raw_http import connect, problem_of, request_head

from ldp_aggregator import server as server_package
from protocols import encode_upload

SLOW_FORM = (
    b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 100\r\n\r\ntoken="
)
SECONDS = 10
"""No test waits so long unless it fails."""


async def ask(reader, writer):
    """A whole exchange on a connection that stays open."""
    writer.write(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
    return (await next_answer(reader))[0]


async def next_answer(reader):
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS)
    return head, await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head)[1]))


async def dial(url):
    return await connect(SimpleNamespace(public=url))


def test_no_private_name_of_aiohttp_is_touched():
    """aiohttp may change what begins with an underscore, and modules that its documentation does not name."""
    found = []
    for path in Path(server_package.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "aiohttp" not in text:
            continue
        foreign = re.findall(r"(?:request|response|handler|runner|server|content|app)\._[a-z]\w*", text)
        modules = re.findall(r"(?:from|import) aiohttp\.\w+", text)
        bases = re.findall(r"class \w+\([^)]*(?:RequestHandler|web\.)[^)]*\)", text)
        found += [(path.name, name) for name in (*foreign, *modules, *bases)]
    assert found == []


async def test_a_form_that_stops_is_refused_in_time(serving):
    async with serving(limits={"body_seconds": 0.3}) as server:
        reader, writer = await dial(server.admin)
        writer.write(SLOW_FORM)
        answer = await asyncio.wait_for(reader.read(), SECONDS)
        assert problem_of(answer) == (408, "body-timeout")
        writer.close()


async def test_who_leaves_within_a_form_is_no_error_of_the_server(server, caplog):
    for _ in range(3):
        _, writer = await dial(server.admin)
        writer.write(SLOW_FORM)
        await asyncio.sleep(0.1)
        writer.transport.abort()
    await asyncio.sleep(0.1)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_whoever_has_a_token_gets_in_where_others_hold_all_places(serving):
    async with serving(limits={"connections": 5, "body_seconds": 600}) as server:
        opened = [await dial(server.admin) for _ in range(12)]
        for _, writer in opened:
            writer.write(SLOW_FORM)
        await asyncio.sleep(0.2)
        for _ in range(3):
            async with server.session.get(
                server.admin + "/admin/v1/campaigns", headers=server.bearer("admin")
            ) as answer:
                assert answer.status == 200
        for _, writer in opened:
            writer.close()


async def test_an_operator_who_is_slow_to_speak_is_not_the_first_to_go(serving):
    """Until he is heard his connection is idle, and all others are not."""
    async with serving(limits={"connections": 5, "body_seconds": 600}) as server:
        opened = [await dial(server.admin) for _ in range(5)]
        for _, writer in opened:
            writer.write(SLOW_FORM)
        await asyncio.sleep(0.2)
        reader, operator = await dial(server.admin)
        opened += [await dial(server.admin) for _ in range(3)]
        await asyncio.sleep(0.1)
        token = server.tokens["admin"]
        operator.write(f"GET /admin/v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        assert b"200" in await asyncio.wait_for(reader.readline(), SECONDS)
        for _, writer in (*opened, (reader, operator)):
            writer.close()


async def test_who_has_shown_a_token_is_not_pushed_out(serving):
    async with serving(limits={"connections": 3, "body_seconds": 600}) as server:
        reader, writer = await dial(server.admin)
        token = server.tokens["admin"]
        ask = f"GET /admin/v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        writer.write(ask)
        assert b"200" in await asyncio.wait_for(reader.readline(), SECONDS)
        writer.write(SLOW_FORM)  # It is as busy as the others are.
        await asyncio.sleep(0.1)
        opened = [await dial(server.admin) for _ in range(12)]
        for _, other in opened:
            other.write(SLOW_FORM)
        await asyncio.sleep(0.2)
        writer.write(b"x" * 94)
        rest = await asyncio.wait_for(reader.readuntil(b"401 "), SECONDS)
        assert rest
        for _, other in (*opened, (reader, writer)):
            other.close()


async def test_those_who_do_not_read_hold_no_place_of_an_operator(serving):
    async with serving(limits={"connections": 4, "answer_seconds": 600}) as server:
        deaf = [await dial(server.admin) for _ in range(8)]
        asset = b"GET /assets/ldp-bayes-client.min.js HTTP/1.1\r\nHost: x\r\n\r\n"
        for reader, writer in deaf:
            reader._transport.pause_reading()
            writer.write(asset * 200)
        await asyncio.sleep(0.3)
        async with server.session.get(server.admin + "/admin/v1/campaigns", headers=server.bearer("admin")) as answer:
            assert answer.status == 200
        for _, writer in deaf:
            writer.transport.abort()


async def test_uploads_on_a_connection_that_is_aiohttps_follow_the_same_rules(server, make_campaign, make_report):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    many = encode_upload([make_report(campaign, number) for number in range(9)])
    sound = encode_upload([make_report(campaign, 1)])
    answers = []
    for first in (b"", f"GET /v1/campaigns/{campaign.id} HTTP/1.1\r\nHost: x\r\n\r\n".encode()):
        reader, writer = await connect(server)
        if first:
            writer.write(first)
            await next_answer(reader)
        told = []
        for body in (many, sound, sound[:-1]):
            writer.write(request_head(campaign, len(body)) + body)
            head, content = await next_answer(reader)
            told.append((re.sub(rb"Date: [^\r]*", b"", head), content))
        writer.write(request_head(campaign, 1 << 20))
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS)
        told.append(head[9:12])
        answers.append(told)
        writer.close()
    assert answers[0] == answers[1]
    assert [head[9:12] for head, _ in answers[0][:3]] == [b"413", b"200", b"400"]
    assert answers[0][3] == b"413"


async def test_a_next_head_that_trickles_in_is_cut_off(serving):
    async with serving(limits={"header_seconds": 0.3}) as server:
        reader, writer = await connect(server)
        assert b"404" in await ask(reader, writer)
        ended = asyncio.create_task(reader.read())
        writer.write(b"GET /nowhere HTTP/1.1\r\nX: ")
        started = time.monotonic()
        while not ended.done() and time.monotonic() - started < SECONDS:
            writer.write(b"x")
            await asyncio.sleep(0.02)
        writer.close()
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(ended, 0) == b""


async def test_what_is_no_request_ends_a_connection_that_is_aiohttps(server):
    reader, writer = await connect(server)
    assert b"404" in await ask(reader, writer)
    writer.write(b"no request\r\n\r\n")
    assert b" 400 " in await asyncio.wait_for(reader.read(), SECONDS)
    writer.close()


async def test_who_says_all_at_once_is_answered(server):
    reader, writer = await connect(server)
    writer.write(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
    writer.write_eof()
    assert problem_of(await asyncio.wait_for(reader.read(), SECONDS)) == (404, "not-found")
    writer.close()


async def test_the_rest_of_a_body_is_not_awaited_from_who_has_said_all(server, make_campaign, make_report):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    body = encode_upload([make_report(campaign, 1)])
    upload = request_head(campaign, len(body), Origin="https://other.example") + body
    reader, writer = await connect(server)
    writer.write(upload + upload[:-5])
    writer.write_eof()
    answers = await asyncio.wait_for(reader.read(), SECONDS)
    # uvloop says more than once that there is no more, and the connection ends without another word.
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) in ([b"200", b"408"], [b"200"])
    writer.close()


async def test_a_stop_does_not_wait_for_idle_connections(serving):
    async with serving(limits={"drain_seconds": 20}) as server:
        opened = [await connect(server) for _ in range(3)]
        for one in opened[1:]:
            assert b"404" in await ask(*one)
        started = time.monotonic()
    assert time.monotonic() - started < SECONDS
    for _, writer in opened:
        writer.close()


@pytest.mark.parametrize("ending", [b"\r\n", b""])
async def test_a_line_behind_a_body_is_no_request(server, make_campaign, make_report, ending):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    reader, writer = await connect(server)
    for number in range(3):
        body = encode_upload([make_report(campaign, number)])
        writer.write(request_head(campaign, len(body)) + body + ending)
        assert (await next_answer(reader))[0].startswith(b"HTTP/1.1 200")
    writer.close()
