"""Proxies: which is taken, and what is said to it."""

import socket

import pytest
from sockets import Raw, Scripted, exactly, until_blank_line

from ldp_client import TransportError
from ldp_client.network.stdlib import HttpTransport, Patience, Proxies, Proxy, read_proxy
from ldp_client.network.transport import Request
from protocols import LdpError

SERVED = b"HTTP/1.1 204 No Content\r\n\r\n"
REFUSALS = (b"HTTP/1.1 407 No\r\n\r\n", b"HTTP/1.1 502 No\r\n\r\n", b"nonsense\r\n\r\n")
ENDLESS = b"HTTP/1.1 200 OK\r\n" + b"Name: x\r\n" * 20_000
HIDDEN = "http://collect.example.org:81/x"
BAD = [
    *("http://host:99999", "http://host:0", "http://[::1", "socks4://host:1", "https://host:1", "ftp://host"),
    *("http://", "//", "//host:81", "host name:80", "socks5h://" + "u" * 256 + ":p@host:1"),
]


class Socks:
    """A SOCKS5 proxy for one script of answers; notes what it was told, and serves HTTP behind it."""

    def __init__(self, method, verdict=b"\0", refusal=b"\0", bound=b"\x01" + b"\0" * 6):
        self.method, self.verdict, self.refusal, self.bound = method, verdict, refusal, bound
        self.greeting = b""
        self.credentials = []
        self.destination = b""
        self.requested = b""

    def __call__(self, connection):
        self.greeting = exactly(connection, 4)
        connection.sendall(bytes([5, self.method]))
        if self.method == 2:
            assert exactly(connection, 1) == b"\x01"
            user = exactly(connection, exactly(connection, 1)[0])
            self.credentials.append((user, exactly(connection, exactly(connection, 1)[0])))
            connection.sendall(b"\x01" + self.verdict)
        head = exactly(connection, 4)
        length = {1: 4, 4: 16}.get(head[3]) if head else None
        if head and length is None:
            length = 1 + connection.recv(1, socket.MSG_PEEK)[0]
        self.destination = head + exactly(connection, (length or 0) + 2)
        # In two pieces: a proxy may answer as slowly as it likes.
        connection.sendall(b"\x05")
        connection.sendall(self.refusal + b"\0" + self.bound)
        self.requested = until_blank_line(connection)
        connection.sendall(SERVED)


def through(script, url=HIDDEN, user="", **more):
    """The status of an exchange through the proxy, or its code."""
    with Scripted(script) as proxy:
        transport = HttpTransport(proxies={"all": f"socks5h://{user}127.0.0.1:{proxy.port}"})
        try:
            return str(transport.send(Request("GET", url, {}), 5).status)
        except TransportError as error:
            return error.code


@pytest.mark.parametrize("bound", [b"\x01" + b"\0" * 6, b"\x04" + b"\0" * 18, b"\x03\x04name\0\0"])
def test_socks_is_told_the_name_and_looks_it_up_itself(monkeypatch, bound):
    def refuse(*_, **__):
        raise AssertionError("the name was looked up here")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    script = Socks(0, bound=bound)
    assert through(script) == "204"
    assert script.destination == b"\x05\x01\x00\x03\x13collect.example.org" + (81).to_bytes(2, "big")
    assert script.requested.startswith(b"GET /x HTTP/1.1\r\nHost: collect.example.org:81\r\n")


@pytest.mark.parametrize(
    ("url", "destination"),
    [
        ("http://192.0.2.7:81/", b"\x01\xc0\x00\x02\x07"),
        ("http://[2001:db8::1]:81/", b"\x04" + bytes.fromhex("20010db8000000000000000000000001")),
    ],
)
def test_socks_is_told_an_address_as_one(url, destination):
    script = Socks(0)
    assert through(script, url) == "204"
    assert script.destination == b"\x05\x01\x00" + destination + b"\0\x51"


def test_a_socks_proxy_gets_the_credentials_of_its_address_or_new_ones_for_every_connection_which_isolates():
    script = Socks(2)
    assert [through(script), through(script)] == ["204", "204"]
    assert script.greeting == b"\x05\x02\x00\x02"
    assert len({user for user, _ in script.credentials}) == 2
    assert through(script, user="me:p%40ss@") == "204"
    assert script.credentials[2:] == [(b"me", b"p@ss")]


@pytest.mark.parametrize(
    "script", [Socks(255), Socks(1), Socks(2, verdict=b"\x01"), Socks(0, refusal=b"\x05"), Socks(0, bound=b"\x09")]
)
def test_a_socks_proxy_that_refuses_is_told_apart(script):
    assert through(script) == "proxy-refused"


@pytest.mark.parametrize("said", [b"", b"\x05", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_what_is_no_socks_proxy_is_a_transport_problem(said, code_of):
    with Raw(said) as proxy:
        transport = HttpTransport(proxies={"all": f"socks5h://127.0.0.1:{proxy.port}"})
        code = code_of(TransportError, transport.send, Request("GET", HIDDEN, {}), 5)
    assert code in {"proxy-refused", "connection-lost"}


def test_all_proxy_of_the_environment_is_honoured(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    script = Socks(0)
    with Scripted(script) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"socks5h://127.0.0.1:{proxy.port}")
        assert HttpTransport().send(Request("GET", HIDDEN, {}), 5).status == 204
        monkeypatch.setenv("NO_PROXY", "example.org")
        taken = Proxies(None).proxy("http", "collect.example.org", Patience(5, None))
    assert taken is None


@pytest.mark.parametrize("said", [*REFUSALS, ENDLESS], ids=["407", "502", "nonsense", "endless"])
def test_a_tunnel_that_is_refused_is_told_apart(said):
    with Raw(said) as proxy:
        transport = HttpTransport(proxies={"https": f"http://me:p%40ss@127.0.0.1:{proxy.port}"})
        with pytest.raises(TransportError) as caught:
            transport.send(Request("POST", "https://collect.example.org/x", {"X-Token": "t"}, b"report"), 5)
        assert caught.value.code == "proxy-refused"
        (heard,) = proxy.heard
    # The proxy learns the host, and nothing of the request.
    assert heard == (
        b"CONNECT collect.example.org:443 HTTP/1.1\r\nHost: collect.example.org:443\r\n"
        b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n"
    )


@pytest.mark.parametrize("address", BAD)
def test_a_proxy_that_cannot_be_used_is_refused_with_a_typed_error_at_once_or_where_the_environments_is_needed(
    monkeypatch, address, code_of
):
    with pytest.raises(LdpError, match="must be like") as caught:
        HttpTransport(proxies={"https": address})
    assert caught.value.code == "bad-proxy"
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", address)
    assert code_of(TransportError, HttpTransport().send, Request("GET", HIDDEN, {}), 5) == "bad-proxy"


def test_a_proxys_password_is_in_no_message_and_no_representation():
    with pytest.raises(LdpError) as caught:
        read_proxy("socks4://me:s3cret@host")
    assert "s3cret" not in str(caught.value) + repr(read_proxy("http://me:s3cret@host"))


@pytest.mark.parametrize(
    ("address", "proxy"),
    [
        ("host:3128", Proxy(False, "host", 3128)),
        ("http://host", Proxy(False, "host", 80)),
        ("socks5h://127.0.0.1", Proxy(True, "127.0.0.1", 1080)),
        ("socks5://[::1]:9050/", Proxy(True, "::1", 9050)),
        ("http://u@host", Proxy(False, "host", 80, ("u", ""))),
    ],
)
def test_a_proxys_address_is_read(address, proxy):
    assert read_proxy(address) == proxy
