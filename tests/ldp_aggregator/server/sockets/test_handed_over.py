"""Everything but an upload is aiohttp's for good, under the same times, and operators always get in.

Every test runs on asyncio's own loop and on uvloop.
"""

import asyncio
import re
import time
from pathlib import Path

import pytest
from raw_http import NOWHERE, SECONDS, exchange, problem_of, request_of

from ldp_aggregator import server as server_package
from ldp_aggregator.server.sockets.handed_over import RequestHandler

SLOW_FORM = (
    b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 100\r\n\r\ntoken="
)
LIST = "/admin/v1/campaigns"


def list_of(server):
    return (
        f"GET {LIST} HTTP/1.1\r\nHost: x\r\nAuthorization: {server.bearer('admin')['Authorization']}\r\n\r\n".encode()
    )


async def crowd(server, number, data=SLOW_FORM):
    """So many clients of the admin listener that say this."""
    lines = await server.dials(number, server.admin)
    for line in lines:
        line.send(data)
    await asyncio.sleep(0.1)
    return lines


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
    assert found == [("handed_over.py", "class RequestHandler(web.RequestHandler)")]
    assert [name for name in vars(RequestHandler) if not name.startswith("__")] == ["handle_error"]


async def test_a_form_that_stops_is_refused_in_time(serving):
    async with serving(limits={"body_seconds": 0.1}) as server:
        [line] = await crowd(server, 1)
        assert (await line.reply()).problem == (408, "body-timeout")


async def test_who_leaves_within_a_form_is_no_error_of_the_server(server, caplog):
    for line in await crowd(server, 3):
        line.cut()
    assert (await server.ask("GET", LIST, "admin")).status == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_whoever_has_a_token_gets_in_where_others_hold_all_places_and_is_not_pushed_out(serving):
    async with serving(limits={"connections": 3, "body_seconds": 600}) as server:
        await crowd(server, 12)
        for _ in range(3):
            assert (await server.ask("GET", LIST, "admin")).status == 200
        operator = await server.dial(server.admin)
        assert (await operator.ask(list_of(server))).status == 200
        operator.send(SLOW_FORM)  # It is as busy as the others are.
        await crowd(server, 12)
        assert (await operator.ask(b"x" * 94)).status == 401


async def test_an_operator_who_is_slow_to_speak_is_not_the_first_to_go(serving):
    """Until he is heard his connection is idle, and all others are not."""
    async with serving(limits={"connections": 5, "body_seconds": 600}) as server:
        await crowd(server, 5)
        operator = await server.dial(server.admin)
        await crowd(server, 3, b"")
        assert (await operator.ask(list_of(server))).status == 200


async def test_those_who_do_not_read_hold_no_place_of_an_operator(serving):
    async with serving(limits={"connections": 4, "answer_seconds": 600}) as server:
        deaf = await server.dials(8, server.admin)
        for line in deaf:
            line.stop_reading()
            line.send(b"GET /assets/ldp-bayes-client.min.js HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
        await asyncio.sleep(0.2)
        assert (await server.ask("GET", LIST, "admin")).status == 200
        for line in deaf:
            line.cut()


async def test_who_says_all_at_once_is_answered_and_what_is_no_request_ends_a_connection_whoevers_it_is(server):
    line, short = await server.dials(2)
    short.send(NOWHERE)
    short.writer.write_eof()
    assert (await short.reply()).problem == (404, "not-found")
    assert (await line.ask(NOWHERE)).status == 404
    assert problem_of(await exchange(server, b"\x16\x03\x01\x02\x00")) == (400, "malformed-request")


NO_REQUESTS = {
    b"no request\r\n\r\n": (400, "malformed-request"),
    b"\x00\x01": (400, "malformed-request"),
    b"GET / HTTP/9.9\r\nHost: x\r\n\r\n": (400, "malformed-request"),
    b"GET / HTTP/1.1\nHost: x\n\n": (400, "malformed-request"),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": (400, "malformed-request"),
    b"GET / HTTP/1.1\r\n\r\n": (400, "malformed-request"),
    b"GET http://[/ HTTP/1.1\r\nHost: x\r\n\r\n": (400, "malformed-request"),
    b"GET / HTTP/1.1\r\nHost: x\r\nSec-WebSocket-Key1: x\r\n\r\n": (400, "malformed-request"),
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n": (404, "not-found"),
    b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n": (404, "not-found"),
    b"GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n": (417, "unmet-expectation"),
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n": (400, "malformed-request"),
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n": (431, "headers-too-large"),
}


@pytest.mark.parametrize("listener", ["public", "admin"])
async def test_what_is_no_request_is_refused_in_words_of_ours_at_once_and_after_others_and_is_counted(server, listener):
    """The last words on a connection; none repeats what was sent, or says by whom it was refused."""
    for data, refusal in NO_REQUESTS.items():
        for before in (b"", NOWHERE, NOWHERE * 2):
            line = await server.dial(getattr(server, listener))
            line.send(before, data)
            answers = (await line.rest()).split(b"HTTP/1.")[1:]
            assert len(answers) == before.count(b"GET") + 1
            last = b"HTTP/1." + answers[-1]
            assert problem_of(last) == refusal, data
            assert b"\r\nServer: ldp-aggregator\r\n" in last
            assert b"\r\nX-Content-Type-Options: nosniff\r\n" in last
            assert b"aiohttp" not in last
    refused = re.findall(r'ldp_refusals_total{code="malformed-request"} (\d+)', await server.metrics())
    malformed = sum(code == "malformed-request" for _, code in NO_REQUESTS.values())
    assert refused == [str(3 * malformed)]


async def test_a_request_that_asks_for_another_protocol_is_answered_and_is_the_last_one(server):
    campaign = await server.publish()
    for upgrading in (
        request_of(campaign, 1, Upgrade="h2c", Connection="Upgrade"),
        NOWHERE[:-2] + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ):
        line = await server.dial()
        line.send(upgrading, NOWHERE)
        answers = await line.rest()
        assert answers.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in answers.lower()


async def test_the_rest_of_a_body_is_not_awaited_from_who_has_said_all(server):
    upload = request_of(await server.publish(), 1, Origin="https://other.example")
    line = await server.dial()
    line.send(upload + upload[:-5])
    line.writer.write_eof()
    # uvloop says more than once that there is no more, and the connection ends without another word.
    assert re.findall(rb"HTTP/1.1 (\d+)", await line.rest()) in ([b"200", b"408"], [b"200"])


async def test_a_stop_does_not_wait_for_idle_connections(serving):
    async with serving(limits={"drain_seconds": 20}) as server:
        opened = await server.dials(3)
        for line in opened[1:]:
            assert (await line.ask(NOWHERE)).status == 404
        server.lines.clear()  # They stay.
        started = time.monotonic()
    assert time.monotonic() - started < SECONDS
    for line in opened:
        line.writer.close()


@pytest.mark.parametrize("ending", [b"\r\n", b""])
async def test_a_line_behind_a_body_is_no_request(server, ending):
    campaign, line = await server.publish(), await server.dial()
    for number in range(3):
        assert (await line.ask(request_of(campaign, number), ending)).status == 200
