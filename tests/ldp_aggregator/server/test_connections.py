"""More connections than a listener takes: idle ones make room, the rest are told so, and other listeners never notice.

Every test runs on asyncio's own loop and on uvloop, whose transports are other classes.
"""

import contextlib
import ssl

import pytest
from raw_http import NOWHERE, becomes, dial, exchange, problem_of, request_head

from ldp_aggregator.server.process import running
from ldp_aggregator.server.sockets import connections as connections_module
from ldp_aggregator.server.sockets import listener as tls_door
from ldp_aggregator.server.sockets.listener import Listeners, load_tls
from ldp_aggregator.service.settings import Settings

ONCE = NOWHERE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


async def busy(server, number):
    """Open connections that are in the middle of a request, ``number`` of them."""
    campaign = await server.publish()
    opened = await server.dials(number)
    for line in opened:
        # The head has arrived once the server asks for the rest, which never comes.
        assert (await line.ask(request_head(campaign, 100, Expect="100-continue"))).status == 100
    return opened


async def test_one_connection_too_many_reads_that_it_is_and_other_listeners_never_notice(serving):
    async with serving(limits={"connections": 3}) as server:
        await busy(server, 3)
        answers = [await exchange(server, NOWHERE) for _ in range(20)]
        assert {problem_of(answer) for answer in answers} == {(429, "too-many-connections")}
        assert all(b"Retry-After: " in answer for answer in answers)
        assert 'ldp_refusals_total{code="too-many-connections"} 20.0' in await server.metrics()
        body = b"x" * (1 << 20)
        answer = await exchange(server, request_head(await server.publish(), len(body)), body)
        assert problem_of(answer) == (429, "too-many-connections"), "also who sends a large body first"


async def test_at_the_limit_the_longest_idle_connection_makes_room(serving):
    async with serving(limits={"connections": 3}) as server:
        await busy(server, 1)
        first, second = await server.dials(2)
        for idle in (first, second, first):  # The first one was used last.
            assert (await idle.ask(NOWHERE)).status == 404
        newcomer = await server.dial()
        assert (await newcomer.ask(NOWHERE)).status == 404
        assert await second.rest() == b"", "the longest idle one was closed"
        for line in (first, newcomer):
            assert (await line.ask(NOWHERE)).status == 404


async def test_room_comes_back_when_a_connection_ends_and_those_that_say_nothing_take_none(serving):
    async with serving(limits={"connections": 1}) as server:
        [line] = await busy(server, 1)
        assert problem_of(await exchange(server, NOWHERE))[0] == 429
        line.writer.close()
        codes = []
        while 404 not in codes:  # The server learns of it a little later.
            codes.append(problem_of(await exchange(server, ONCE))[0])
            assert len(codes) < 100
        await server.dials(40)
        assert problem_of(await exchange(server, ONCE))[0] == 404


async def test_refusals_are_bounded_too(serving, monkeypatch):
    monkeypatch.setattr(connections_module, "MOST_REFUSALS", 2)
    async with serving(limits={"connections": 1}) as server:
        await busy(server, 1)
        waiting = await server.dials(10)
        for line in waiting[2:]:
            assert await line.rest() == b""


@contextlib.asynccontextmanager
async def serving_tls(folder, certificate):
    """Gives ``connect(tls)``, which connects to the public listener."""
    tls = {"tls_certificate": certificate(2), "tls_key": folder / "key.pem"}
    settings = Settings(data=folder, listen="127.0.0.1:0", listen_admin="0", listen_operations="0", **tls)
    listeners = Listeners.bind(settings)
    url = listeners.addresses(settings).public
    context = ssl.create_default_context(cafile=str(tls["tls_certificate"]))
    context.check_hostname = False
    opened = []

    async def connect(*, tls):
        opened.append(await dial(url, ssl=context if tls else None))
        return opened[-1]

    connect.url = url
    async with running(settings, listeners, tls=load_tls(settings)):
        yield connect
        for line in opened:
            line.writer.close()


async def served(connect):
    """A client that comes after the others is served, long before any of them has run out of time."""
    return (await (await connect(tls=True)).ask(NOWHERE)).status == 404


async def test_a_client_that_never_shakes_hands_is_cut_off(tmp_path, certificate, monkeypatch):
    monkeypatch.setattr(tls_door, "HANDSHAKE_SECONDS", 0.1)
    async with serving_tls(tmp_path, certificate) as connect:
        for line in [await connect(tls=False) for _ in range(20)]:
            assert await line.rest() == b""
        monkeypatch.setattr(tls_door, "HANDSHAKE_SECONDS", 600)
        assert await served(connect)


@pytest.mark.parametrize("greeting", [b"", b"\x16\x03\x01\x02\x00"], ids=["silent", "shaking hands"])
async def test_where_all_places_are_taken_before_a_handshake_is_done_the_oldest_goes(
    tmp_path, certificate, monkeypatch, greeting
):
    monkeypatch.setattr(tls_door, "MOST_HANDSHAKES" if greeting else "MOST_SILENT", 3)
    monkeypatch.setattr(tls_door, "HANDSHAKE_SECONDS", 600)
    async with serving_tls(tmp_path, certificate) as connect:
        slow = [await connect(tls=False) for _ in range(10)]
        for line in slow:
            line.send(greeting)
        await becomes(lambda: sum(line.has_ended for line in slow) >= 7)
        assert await served(connect)


async def test_what_is_not_tls_ends_at_the_door_and_a_stop_ends_handshakes_too(tmp_path, certificate):
    async with serving_tls(tmp_path, certificate) as connect:
        for _ in range(3):
            line = await connect(tls=False)
            line.send(NOWHERE)
            assert b"HTTP" not in await line.rest()
        silent = await dial(connect.url)
        assert await served(connect)
    assert await silent.rest() == b""
    silent.writer.close()
