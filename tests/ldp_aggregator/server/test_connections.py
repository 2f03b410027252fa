"""More connections than a listener takes: idle ones make room, the rest are told so, and other listeners never notice.

Every test runs on asyncio's own loop and on uvloop, whose transports are other classes.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import subprocess
from urllib.parse import urlsplit

import pytest
from raw_http import connect, exchange, problem_of, request_head

from ldp_aggregator.server.process import running
from ldp_aggregator.server.sockets import connections as connections_module
from ldp_aggregator.server.sockets import listener as tls_door
from ldp_aggregator.server.sockets.listener import Listeners, load_tls
from ldp_aggregator.service.settings import Settings
from protocols import encode_upload

ASK = b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
SECONDS = 10
"""No test waits so long unless it fails."""


async def ask(reader, writer):
    """A whole exchange on a connection that stays open."""
    writer.write(ASK)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS)
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
    await reader.readexactly(int(length))
    return head


@pytest.fixture
def busy(make_campaign):
    """Open connections that are in the middle of a request, ``number`` of them, on a server."""

    async def make(server, number):
        campaign = make_campaign()
        await server.store.create_campaign(campaign)
        opened = []
        for _ in range(number):
            reader, writer = await connect(server)
            writer.write(request_head(campaign, 100, Expect="100-continue"))
            # The head has arrived once the server asks for the rest, which never comes.
            assert b"100" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS)
            opened.append((reader, writer))
        return opened

    return make


async def test_one_connection_too_many_reads_that_it_is(serving, busy):
    async with serving(limits={"connections": 3}) as server:
        opened = await busy(server, 3)
        answers = [await exchange(server, ASK) for _ in range(20)]
        assert {problem_of(answer) for answer in answers} == {(429, "too-many-connections")}
        assert all(b"Retry-After: " in answer for answer in answers)
        async with server.session.get(server.operations + "/metrics") as answer:
            text = await answer.text()
        assert f'ldp_refusals_total{{code="too-many-connections"}} {float(len(answers))}' in text
        for _, writer in opened:
            writer.close()


async def test_a_refusal_is_read_by_a_client_that_sends_a_large_body_first(serving, busy, make_campaign):
    async with serving(limits={"connections": 1}) as server:
        [(_, writer)] = await busy(server, 1)
        body = b"x" * (1 << 20)
        answer = await exchange(server, request_head(make_campaign(), len(body)) + body)
        assert problem_of(answer) == (429, "too-many-connections")
        writer.close()


async def test_at_the_limit_the_longest_idle_connection_makes_room(serving, busy):
    async with serving(limits={"connections": 3}) as server:
        [working] = await busy(server, 1)
        first, second = await connect(server), await connect(server)
        for idle in (first, second, first):  # The first one was used last.
            assert b"404" in await ask(*idle)
        newcomer = await connect(server)
        assert b"404" in await ask(*newcomer)
        assert await asyncio.wait_for(second[0].read(), SECONDS) == b"", "the longest idle one was closed"
        assert b"404" in await ask(*first)
        assert b"404" in await ask(*newcomer)
        for _, writer in (working, first, second, newcomer):
            writer.close()


async def test_connections_that_say_nothing_cannot_keep_others_out(serving):
    async with serving(limits={"connections": 5}) as server:
        silent = [await connect(server) for _ in range(40)]
        assert b"404" in await exchange(server, ASK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        for _, writer in silent:
            writer.close()


async def test_room_comes_back_when_a_connection_ends(serving, busy):
    async with serving(limits={"connections": 1}) as server:
        [(_, writer)] = await busy(server, 1)
        assert problem_of(await exchange(server, ASK))[0] == 429
        writer.close()
        for _ in range(100):  # The server learns of it a little later.
            answer = await exchange(server, ASK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            if problem_of(answer)[0] == 404:
                return
            await asyncio.sleep(0.05)
        pytest.fail("the room did not come back")


async def test_refusals_are_bounded_too(serving, busy, monkeypatch):
    monkeypatch.setattr(connections_module, "MOST_REFUSALS", 2)
    async with serving(limits={"connections": 1}) as server:
        [(_, writer)] = await busy(server, 1)
        waiting = [await connect(server) for _ in range(2)]
        await asyncio.sleep(0.1)
        reader, cut = await connect(server)
        cut.write(ASK)
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), SECONDS) == b""
        for _, open_one in [*waiting, (reader, cut)]:
            open_one.close()
        writer.close()


async def test_a_full_public_listener_leaves_the_admin_listener_alone(serving, busy):
    async with serving(limits={"connections": 2}) as server:
        opened = await busy(server, 2)
        async with server.session.get(server.operations + "/healthz") as answer:
            assert answer.status == 200
        for _, writer in opened:
            writer.close()


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=server "
        f"-keyout {tmp_path}/key.pem -out {tmp_path}/certificate.pem",
        shell=True,
        check=True,
        capture_output=True,
    )
    return {"tls_certificate": tmp_path / "certificate.pem", "tls_key": tmp_path / "key.pem"}


@contextlib.asynccontextmanager
async def serving_tls(folder, certificate):
    """Gives ``dial(tls)``, which connects to the public listener."""
    settings = Settings(data=folder, listen="127.0.0.1:0", listen_admin="0", listen_operations="0", **certificate)
    listeners = Listeners.bind(settings)
    address = urlsplit(listeners.addresses(settings).public)
    context = ssl.create_default_context(cafile=str(certificate["tls_certificate"]))
    context.check_hostname = False

    async def dial(*, tls):
        return await asyncio.open_connection(address.hostname, address.port, ssl=context if tls else None)

    async with running(settings, listeners, tls=load_tls(settings)):
        yield dial


async def test_a_client_that_never_shakes_hands_is_cut_off(tmp_path, certificate, monkeypatch):
    monkeypatch.setattr(tls_door, "HANDSHAKE_SECONDS", 0.3)
    async with serving_tls(tmp_path, certificate) as dial:
        silent = [await dial(tls=False) for _ in range(20)]
        for reader, writer in silent:
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), SECONDS) == b""
            writer.close()
        reader, writer = await dial(tls=True)
        assert b"404" in await ask(reader, writer)
        writer.close()


async def served_behind(dial, attackers):
    """A client that comes after the others is served, long before any of them has run out of time."""
    async with contextlib.AsyncExitStack() as stack:
        for _, writer in attackers:
            stack.callback(writer.close)
        reader, writer = await asyncio.wait_for(dial(tls=True), SECONDS)
        stack.callback(writer.close)
        return b"404" in await ask(reader, writer)


async def test_where_all_places_are_silent_the_oldest_goes(tmp_path, certificate, monkeypatch):
    monkeypatch.setattr(tls_door, "MOST_SILENT", 3)
    monkeypatch.setattr(tls_door, "HANDSHAKE_SECONDS", 600)
    async with serving_tls(tmp_path, certificate) as dial:
        silent = [await dial(tls=False) for _ in range(10)]
        for reader, _ in silent[:7]:
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), SECONDS) == b""
        assert await served_behind(dial, silent)


async def test_where_all_places_shake_hands_the_oldest_goes(tmp_path, certificate, monkeypatch):
    monkeypatch.setattr(tls_door, "MOST_HANDSHAKES", 3)
    monkeypatch.setattr(tls_door, "HANDSHAKE_SECONDS", 600)
    async with serving_tls(tmp_path, certificate) as dial:
        slow = [await dial(tls=False) for _ in range(10)]
        for _, writer in slow:
            writer.write(b"\x16\x03\x01\x02\x00")  # The beginning of a greeting, and no more.
        await asyncio.sleep(0.2)
        assert await served_behind(dial, slow)
        assert sum(reader.at_eof() or reader.exception() is not None for reader, _ in slow) >= 7


async def test_what_is_not_tls_ends_at_the_door_and_the_next_client_is_served(tmp_path, certificate):
    async with serving_tls(tmp_path, certificate) as dial:
        for _ in range(3):
            reader, writer = await dial(tls=False)
            writer.write(ASK)
            with contextlib.suppress(ConnectionResetError):
                assert b"HTTP" not in await asyncio.wait_for(reader.read(), SECONDS)
            writer.close()
        reader, writer = await dial(tls=True)
        assert b"404" in await ask(reader, writer)
        writer.close()


async def test_a_stop_ends_handshakes_too(tmp_path, certificate):
    async with serving_tls(tmp_path, certificate) as dial:
        reader, writer = await dial(tls=False)
        await asyncio.sleep(0.1)
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), SECONDS) == b""
    writer.close()


async def test_a_small_upload_needs_one_connection_and_one_write(serving, make_campaign, make_report):
    async with serving(limits={"connections": 1}) as server:
        campaign = make_campaign()
        await server.store.create_campaign(campaign)
        body = encode_upload([make_report(campaign, 1)])
        answer = await exchange(server, request_head(campaign, len(body), Connection="close") + body)
        assert answer.startswith(b"HTTP/1.1 200")
