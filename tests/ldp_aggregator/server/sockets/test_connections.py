"""More connections than a listener takes: idle ones make room, the rest are told so, and other listeners never notice.
Clients that are slow, half open or not speaking HTTP get their answer, and nobody else waits.

Every test runs on asyncio's own loop and on uvloop, whose transports are other classes.
"""

import asyncio
import contextlib
import ssl
import time
from dataclasses import dataclass

import pytest
from cells import cells_of
from forking import holds_in_a_child, needs_fork
from raw_http import ELSEWHERE, NOWHERE, becomes, dial, exchange, problem_of, request_head, request_of

from ldp_aggregator.server.metrics import DoorMetrics
from ldp_aggregator.server.sockets import connections as connections_module
from ldp_aggregator.server.sockets import listener as tls_door
from ldp_aggregator.server.sockets.connections import Connections
from ldp_aggregator.service.settings import Limits

resource = pytest.importorskip("resource")

ONCE = NOWHERE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


@pytest.fixture
def public(monkeypatch):
    """The connections of the public listener, of the server that is made next."""
    made = []
    make = Connections.__init__

    def noted(self, *given):
        make(self, *given)
        made.append(self)

    monkeypatch.setattr(Connections, "__init__", noted)

    class Public:
        @property
        def open(self):
            return list(made[0]._open)

    return Public()


async def busy(server, gated, public, number):
    """Connections whose uploads are all there and wait for their commit, ``number`` of them."""
    campaign = await server.publish()
    opened = await server.dials(number)
    for count, line in enumerate(opened):
        line.send(request_of(campaign, count))
    await gated.begun.wait()
    await becomes(lambda: [one.is_waiting for one in public.open], [False] * number)
    return opened


async def test_one_connection_too_many_reads_that_it_is_and_other_listeners_never_notice(
    serving, gated, public, monkeypatch
):
    async with serving(gated, limits={"connections": 3}) as server:
        opened = await busy(server, gated, public, 3)
        answers = [await exchange(server, NOWHERE) for _ in range(20)]
        assert {problem_of(answer) for answer in answers} == {(429, "too-many-connections")}
        assert all(b"Retry-After: " in answer for answer in answers)
        assert 'ldp_refusals_total{code="too-many-connections"} 20.0' in await server.metrics()
        body = b"x" * (1 << 20)
        answer = await exchange(server, request_head(await server.publish(), len(body)), body)
        assert problem_of(answer) == (429, "too-many-connections"), "also who sends a large body first"
        monkeypatch.setattr(connections_module, "MOST_REFUSALS", 2)
        for line in (await server.dials(10))[2:]:
            assert await line.rest() == b"", "refusals are bounded, too"
        gated.gate.set()
        assert [(await line.reply()).status for line in opened] == [200] * 3


@dataclass(eq=False)
class Client:
    """A connection that remembers how it went."""

    name: str
    is_waiting: bool
    is_stranger: bool
    gone: str = ""

    @property
    def is_answering(self):
        return not self.is_waiting

    is_idle = False

    def cut(self):
        self.gone = "cut"

    def give_way(self):
        self.gone = "told"

    def look(self, now):
        """Its time is not over."""


WAITING, STRANGER, KNOWN = ("waiting", True, True), ("stranger", False, True), ("known", False, False)
SLOW = ("slow", True, False)


@pytest.mark.parametrize(
    ("listener", "there", "goes", "how"),
    [
        ("public", [STRANGER, WAITING, SLOW], "waiting", "told"),
        ("public", [SLOW, STRANGER, WAITING], "waiting", "told"),
        ("public", [STRANGER, SLOW, KNOWN], "slow", "told"),
        ("public", [STRANGER, KNOWN, KNOWN], None, ""),
        ("admin", [STRANGER, WAITING, SLOW], "waiting", "told"),
        ("admin", [SLOW, STRANGER, KNOWN], "stranger", "cut"),
        ("admin", [KNOWN, SLOW, KNOWN], "slow", "told"),
        ("admin", [KNOWN, KNOWN, KNOWN], None, ""),
    ],
)
async def test_who_goes_where_all_places_are_taken(listener, there, goes, how):
    """Who has us wait, strangers first; of operators' listeners strangers that wait for us, too."""
    connections = Connections(Limits(connections=3), DoorMetrics(), listener)
    clients = [Client(*one) for one in there]
    assert all(connections.admit(one) for one in clients)
    late = Client("late", True, True)
    assert connections.admit(late) is (goes is not None)
    assert [(one.name, one.gone) for one in clients if one.gone] == ([(goes, how)] if goes else [])
    for one in (*clients, late):
        connections.remove(one)
    connections._look()  # Nobody is left to look at, so that the watch ends.


async def test_who_has_shown_a_relays_token_is_no_stranger_for_as_long_as_the_connection_lasts(public, serving):
    async with serving() as server:
        campaign, line = await server.publish(), await server.dial()
        strangers = []
        for number, headers in enumerate(({}, server.bearer("relay"), {})):
            assert (await line.ask(request_of(campaign, number, **headers))).status == 200
            strangers += [one.is_stranger for one in public.open]
        assert strangers == [True, False, False]


async def test_at_the_limit_the_longest_idle_connection_makes_room(serving):
    async with serving(limits={"connections": 2}) as server:
        first, second = await server.dials(2)
        for idle in (first, second, first):  # The first one was used last.
            assert (await idle.ask(NOWHERE)).status == 404
        newcomer = await server.dial()
        assert (await newcomer.ask(NOWHERE)).status == 404
        assert await second.rest() == b"", "the longest idle one was closed"
        for line in (first, newcomer):
            assert (await line.ask(NOWHERE)).status == 404


BEGUN = {
    "head": lambda campaign: NOWHERE[:-2],
    "body": lambda campaign: request_of(campaign, 1)[:-1],
    "body for aiohttp": lambda campaign: request_of(campaign, 1, **ELSEWHERE)[:-1],
    "head for aiohttp": lambda campaign: NOWHERE + NOWHERE[:-2],
}


@pytest.mark.parametrize("begun", BEGUN)
async def test_where_all_wait_for_the_rest_the_one_that_has_waited_longest_is_told_to_come_back(serving, public, begun):
    async with serving(limits={"connections": 3}) as server:
        campaign = await server.publish()
        slow = await server.dials(3)
        for number, line in enumerate(slow):
            line.send(BEGUN[begun](campaign))
            await becomes(lambda number=number: sum(not one.is_idle for one in public.open), number + 1)
        for number in range(2, 5):
            assert (await exchange(server, request_of(campaign, number, Connection="close"))).startswith(
                b"HTTP/1.1 200"
            )
        told = (await slow[0].rest()).rpartition(b"HTTP/1.1 ")[2]
        assert told.startswith(b"503 ")
        assert b'"overloaded"' in told
        assert b"\r\nRetry-After: " in told
        assert [line.has_ended for line in slow[1:]] == [False, False], "one place is enough for who goes again"


async def test_room_comes_back_when_a_connection_ends_and_those_that_say_nothing_take_none(serving, gated, public):
    async with serving(gated, limits={"connections": 1}) as server:
        [line] = await busy(server, gated, public, 1)
        assert problem_of(await exchange(server, NOWHERE))[0] == 429
        gated.gate.set()
        assert (await line.reply()).status == 200
        assert problem_of(await exchange(server, ONCE))[0] == 404
        await server.dials(40)
        assert problem_of(await exchange(server, ONCE))[0] == 404


@contextlib.asynccontextmanager
async def serving_tls(serving, certificate):
    """Gives a server, and whether a client that comes after the others is served before their time is over."""
    path = certificate(2)
    context = ssl.create_default_context(cafile=str(path))
    context.check_hostname = False
    async with serving(tls_certificate=path, tls_key=path.with_name("key.pem")) as server:

        async def serves():
            return (await (await server.dial(ssl=context)).ask(NOWHERE)).status == 404

        yield server, serves


async def test_a_client_that_never_shakes_hands_is_cut_off(serving, certificate, monkeypatch):
    monkeypatch.setattr(tls_door, "HANDSHAKE_SECONDS", 0.1)
    async with serving_tls(serving, certificate) as (server, serves):
        for line in await server.dials(20):
            assert await line.rest() == b""
        monkeypatch.setattr(tls_door, "HANDSHAKE_SECONDS", 600)
        assert await serves()


@pytest.mark.parametrize("greeting", [b"", b"\x16\x03\x01\x02\x00"], ids=["silent", "shaking hands"])
async def test_where_all_places_are_taken_before_a_handshake_is_done_the_oldest_goes(
    serving, certificate, monkeypatch, greeting
):
    monkeypatch.setattr(tls_door, "MOST_HANDSHAKES" if greeting else "MOST_SILENT", 3)
    monkeypatch.setattr(tls_door, "HANDSHAKE_SECONDS", 600)
    async with serving_tls(serving, certificate) as (server, serves):
        slow = await server.dials(10)
        for line in slow:
            line.send(greeting)
        await becomes(lambda: sum(line.has_ended for line in slow) >= 7)
        assert await serves()


async def test_what_is_not_tls_ends_at_the_door_and_a_stop_ends_handshakes_too(serving, certificate):
    async with serving_tls(serving, certificate) as (server, serves):
        for line in await server.dials(3):
            line.send(NOWHERE)
            assert b"HTTP" not in await line.rest()
        silent = await dial(server.public)
        assert await serves()
    assert await silent.rest() == b""
    silent.writer.close()


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


@needs_fork
@pytest.mark.parametrize(("soft", "hard", "raised"), [(20, 50, 20), (-200, 50, 0), (-200, 0, 0), (-200, -100, -100)])
def test_the_limit_of_open_files_is_raised_as_far_as_it_is_needed_and_allowed(caplog, soft, hard, raised):
    wanted = tls_door.most_descriptors(100)

    def raises():
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted + soft, wanted + hard))
        tls_door.raise_limit(100)
        warnings = ["the limit is 1224, connections takes 1324"] if raised < 0 else []
        assert [record.reason for record in caplog.records] == warnings
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0] == wanted + raised

    assert holds_in_a_child(raises)
