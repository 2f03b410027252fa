"""An exchange takes the seconds it was given, whatever it spends them on, and stops when it is told to."""

import itertools
import os
import socket
import ssl
import sys
import threading
import time
from functools import partial

import pytest
from forking import holds_in_a_child, needs_fork
from holding import code_of
from sockets import Raw, Scripted, exactly, until_blank_line

from ldp_client import TransportError
from ldp_client.network import stdlib
from ldp_client.network.stdlib import HttpTransport
from ldp_client.network.transport import Cancellation, Request

GENEROUS = 5.0
"""Seconds within which what takes a fraction of one has ended, also on a busy machine."""

SERVED = b"HTTP/1.1 204 No Content\r\n\r\n"
TLS = b"\x16\x03\x03\x3f\xff"
"""The head of a record of TLS that is always about to be complete."""


@pytest.fixture
def transport():
    return HttpTransport(proxies={})


@pytest.fixture
def stuck(monkeypatch, eventually):
    """A resolver that answers nobody before the test is over; the names it was asked for."""
    asked = []
    over = threading.Event()

    def getaddrinfo(host, *_, **__):
        asked.append(host)
        over.wait(60)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    fresh = stdlib.Lookups()
    monkeypatch.setattr(stdlib, "LOOKUPS", fresh)
    yield asked
    over.set()
    eventually(lambda: not fresh._under_way)


@pytest.fixture
def silent():
    """A port where connections stay half open: the backlog is full and the next SYN is answered by nobody."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(listener.getsockname())
    time.sleep(0.05)
    yield listener.getsockname()[1]
    for filler in fillers:
        filler.close()
    listener.close()


def test_who_asks_for_the_same_name_shares_the_answer_and_threads_are_bounded(transport, stuck, threads_of):
    names = [f"host-{number}.example.org" for number in range(7)] * 2
    codes = []

    def send(name):
        codes.append(code_of(lambda: transport.send(Request("GET", f"http://{name}/", {}), 0.2)))

    threads = [threading.Thread(target=send, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == ["timeout"] * len(names)
    asked = [name for name in stuck if name in names]  # An earlier test's background thread may look names up, too.
    assert threads_of("ldp-client-lookup") >= len(asked) == len(set(asked)) == stdlib.MOST_LOOKUPS


def test_dead_addresses_leave_time_for_one_that_is_not_and_four_take_the_time_of_one_exchange(
    transport, silent, monkeypatch
):
    def leads_to(*ports):
        found = [(socket.AF_INET, None, None, None, ("127.0.0.1", port)) for port in ports]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    with Raw(SERVED) as server:
        leads_to(silent, 9, silent, server.port)
        assert transport.send(Request("GET", "http://collect.example.org/", {}), 1.0).status == 204
    given = []

    class Noting(socket.socket):
        def connect(self, address):
            if address[1] == silent:  # An earlier test's background thread may be sending to another one still.
                given.append(self.gettimeout() or 1e9)
            super().connect(address)

    leads_to(silent, silent, silent, silent)
    monkeypatch.setattr(socket, "socket", Noting)
    assert code_of(lambda: transport.send(Request("GET", "http://collect.example.org/", {}), 0.2)) == "timeout"
    assert len(given) == 4
    assert given[0] <= 0.05
    assert sum(given) <= 0.2


@pytest.fixture
def stopped(eventually):
    """What cancel() said, and how the exchange ended, once it had come as far as ``ready``."""

    def told(transport, url, ready):
        cancellation, ended = Cancellation(), []
        exchange = partial(transport.send, Request("POST", url, {}, b"the report"), 60, cancellation)
        send = threading.Thread(target=lambda: ended.append(code_of(exchange)))
        send.start()
        assert eventually(ready)
        time.sleep(0.02)
        said = cancellation.cancel()
        send.join(GENEROUS)
        assert not send.is_alive()
        return said, ended[0]

    return told


def test_cancelling_ends_the_wait_for_a_name(transport, stuck, stopped):
    assert stopped(transport, "http://collect.example.org/", lambda: bool(stuck)) == (True, "cancelled")


def test_cancelling_ends_the_wait_for_a_connection_a_tls_handshake_or_a_proxy(transport, silent, stopped):
    assert stopped(transport, f"http://127.0.0.1:{silent}/", lambda: True) == (True, "cancelled")
    with Raw(close=False) as server:
        proxied = [HttpTransport(proxies={"all": server.url.replace("http", kind)}) for kind in ("http", "socks5h")]
        waiting = [(transport, server.url.replace("http", "https"))]
        for through, url in [*waiting, *((each, "https://collect.example.org/") for each in proxied)]:
            server.heard.clear()
            assert stopped(through, url, lambda: bool(server.heard)) == (True, "cancelled")
            assert b"the report" not in b"".join(server.heard)


def test_no_byte_leaves_after_a_cancellation_that_said_so(transport):
    """Cancelled before every line of the client's that sends: what cancel() told is what the server saw."""
    seen = []

    def script(connection):
        seen.append(until_blank_line(connection) + exactly(connection, len(b"the report")))
        connection.sendall(SERVED)

    told = []
    codes = []
    with Scripted(script) as server:
        for number in itertools.count():
            cancellation = Cancellation()
            request = Request("POST", f"http://127.0.0.1:{server.port}/{number}", {}, b"the report")

            def cancel(cancellation=cancellation):
                told.append(cancellation.cancel())

            def send(request=request, cancellation=cancellation):
                try:
                    transport.send(request, 20, cancellation)
                except TransportError as error:
                    codes.append(error.code)

            if not _before_line(number, send, cancel):
                break
    sent = b"".join(seen)
    assert len(told) == number
    assert [b"POST /%d HTTP" % each in sent for each in range(number)] == [not stopped for stopped in told]
    assert codes == ["cancelled"] * sum(told)
    assert 0 < sum(told) < number


def _before_line(number, call, act):
    """Runs ``call``, and on another thread ``act`` before the ``number``-th line that it runs of the client's code.
    Whether there was such a line.
    """
    left = number
    actor = threading.Thread(target=act)

    def trace(frame, event, _):
        nonlocal left
        if "ldp_client" not in frame.f_code.co_filename:
            return None
        if event == "line":
            if left == 0:
                actor.start()
                # Not longer: where this thread holds the lock that the actor wants, the actor has to wait for it.
                actor.join(0.02)
            left -= 1
        return trace

    def run():
        sys.settrace(trace)
        call()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if left >= 0:
        return False
    actor.join()
    return True


def test_what_is_registered_after_a_cancellation_is_closed_at_once():
    closed = []
    cancellation = Cancellation()
    cancellation.on_cancel(lambda: closed.append(1))
    cancellation.on_cancel(lambda: 1 / 0)
    assert cancellation.cancel()
    assert cancellation.cancel()
    cancellation.on_cancel(lambda: closed.append(2))
    assert closed == [1, 2]
    with pytest.raises(TransportError, match="stopped"):
        cancellation.begin_body()


@needs_fork
def test_a_child_looks_names_up_although_its_parent_was_doing_so(transport, monkeypatch, eventually):
    over = threading.Event()
    parent = os.getpid()

    def getaddrinfo(*_, **__):
        if os.getpid() == parent:
            over.wait(60)
        return [(socket.AF_INET, None, None, None, ("127.0.0.1", server.port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with Raw(SERVED) as server:
        request = Request("GET", "http://collect.example.org/", {})
        waiting = threading.Thread(target=lambda: transport.send(request, 60))
        waiting.start()
        assert eventually(lambda: bool(stdlib.LOOKUPS._under_way))
        is_served = holds_in_a_child(lambda: transport.send(request, 20).status == 204)
        over.set()
        waiting.join()
    assert is_served


@pytest.mark.parametrize(
    ("url", "proxies", "said"),
    [
        ("https://127.0.0.1:{port}/", {}, TLS),
        ("https://collect.example.org", {"https": "http://127.0.0.1:{port}"}, b""),
        ("http://127.0.0.1:{port}/", {}, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"),
        ("http://127.0.0.1:{port}/", {}, b"HTTP/1.1 200 OK\r\nName: "),
    ],
    ids=["handshake", "proxy", "body", "head"],
)
def test_what_drips_without_end_takes_the_time_of_one_exchange(url, proxies, said):
    """One byte now and then does not extend it; the drip ends long after the seconds, and by itself."""
    over = threading.Event()

    def script(connection):
        connection.sendall(said)
        drops = 250
        while drops and not over.wait(0.02):
            connection.sendall(b"H")
            drops -= 1

    with Scripted(script) as server:
        proxies = {scheme: address.format(port=server.port) for scheme, address in proxies.items()}
        request = Request("GET", url.format(port=server.port), {})
        assert code_of(lambda: HttpTransport(proxies=proxies).send(request, 0.2)) == "timeout"
        over.set()


def test_the_systems_certificates_are_what_tls_trusts(transport):
    assert transport._tls().verify_mode == ssl.CERT_REQUIRED
    assert transport._tls().check_hostname


def test_who_asks_for_two_ports_or_two_names_at_once_gets_the_answer_to_each(transport, monkeypatch, eventually):
    monkeypatch.setattr(stdlib, "LOOKUPS", fresh := stdlib.Lookups())
    over = threading.Event()

    def getaddrinfo(host, port, *_, **__):
        over.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(stdlib, "proxy_bypass", lambda host: over.wait(60) and host == "a.example")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    proxies, found = stdlib.Proxies(None), {}

    def ask(name, question):
        found[name] = question(stdlib.Patience(GENEROUS, None))

    places = [("a.example", 1), ("a.example", 2)]
    questions = {place: partial(stdlib.addresses, *place) for place in places}
    questions |= {host: partial(proxies.proxy, "http", host) for host in ("a.example", "b.example")}
    threads = [threading.Thread(target=ask, args=one) for one in questions.items()]
    for thread in threads:
        thread.start()
    at_once = eventually(lambda: len(fresh._under_way) == 4, 5)
    over.set()
    for thread in threads:
        thread.join()
    assert at_once
    assert {place: found[place] for place in places} == {place: [(socket.AF_INET, place)] for place in places}
    assert found["a.example"] is None
    assert found["b.example"].host == "proxy.example"
