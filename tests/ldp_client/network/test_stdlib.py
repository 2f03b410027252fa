"""The standard library's HTTP against real sockets."""

import re
import select
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from sockets import Raw, Scripted, exactly, until_blank_line

from ldp_client import TransportError
from ldp_client.network.stdlib import HttpTransport, Patience, Proxies, Proxy, read_proxy
from ldp_client.network.transport import Request
from ldp_protocols import LdpError


@pytest.fixture
def transport():
    return HttpTransport(proxies={})


def get(url, **options):
    return Request("GET", url, {}, **options)


def test_every_request_has_a_connection_of_its_own(transport):
    with Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", close=False) as server:
        for key in ("one", "one", "another", None):
            assert transport.send(Request("GET", server.url, {}, isolate=key), 5).body == b"ok"
        assert server.connections == 4


def test_a_request_says_what_it_has_to_and_the_same_on_every_device():
    """Neither the library's version nor anything else that would tell devices apart."""
    with Raw(b"HTTP/1.1 204 No Content\r\nSet-Cookie: device=1\r\n\r\n") as server:
        for _ in range(2):
            request = Request("POST", server.url + "x?y", {"Content-Type": "a/b", "Accept": "c/d"}, b"body")
            assert HttpTransport(proxies={}).send(request, 5).status == 204
        expected = (
            f"POST /x?y HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAccept-Encoding: identity\r\n"
            "Content-Type: a/b\r\nAccept: c/d\r\nConnection: close\r\nContent-Length: 4\r\n\r\n"
        )
        assert {heard.partition(b"body")[0] for heard in server.heard} == {expected.encode()}


@pytest.mark.parametrize("value", ["a\r\nCookie: x", "a\nb", "\u2603"])
def test_a_header_that_http_does_not_allow_is_refused_and_nothing_is_sent(transport, value, code_of):
    with Raw(b"") as server:
        request = Request("POST", server.url, {"X-Token": value}, b"body")
        assert code_of(TransportError, transport.send, request, 5) == "bad-request"
        assert server.connections == 0


def test_headers_come_in_lower_case_and_redirects_are_not_followed(transport):
    with Raw(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n") as server:
        answer = transport.send(get(server.url), 5)
    assert (answer.status, answer.headers["location"]) == (302, "http://127.0.0.1:9/")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([b""], "connection-lost"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"], "connection-lost"),
        ([b"this is not HTTP\r\n\r\n"], "connection-lost"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 100], "answer-too-long"),
        ([b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000], "answer-too-long"),
        ([b"HTTP/1.1 200 OK\r\n" + (b"Name: " + b"x" * 30_000 + b"\r\n") * 50], "answer-too-long"),
    ],
)
def test_an_answer_that_is_none_has_a_code(transport, said, code, code_of):
    with Raw(*said) as server:
        assert code_of(TransportError, transport.send, get(server.url, largest_answer=50), 5) == code


def test_an_answer_that_never_begins_is_none(transport, code_of):
    """Whether the bytes become too many first, or Python's patience with interim answers ends."""
    with Raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000) as server:
        code = code_of(TransportError, transport.send, get(server.url, largest_answer=50), 5)
    assert code in {"answer-too-long", "connection-lost"}


@pytest.mark.parametrize("buffer", [1 << 13, 1 << 17, 1 << 20])
def test_a_long_body_that_comes_at_once_is_not_taken_for_a_head(transport, monkeypatch, buffer):
    """However much Python reads in one go: 8 KiB up to 3.13, 128 KiB from 3.14 on."""
    real = socket.socket.makefile
    monkeypatch.setattr(socket.socket, "makefile", lambda sock, mode, *_: real(sock, mode, buffer))
    body = b"x" * 300_000
    with Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + body) as server:
        assert transport.send(get(server.url, largest_answer=1 << 20), 5).body == body


def test_nobody_listening_is_unreachable(transport, code_of):
    assert code_of(TransportError, transport.send, get("http://127.0.0.1:9/"), 5) == "unreachable"
    assert code_of(TransportError, transport.send, get("http://name.invalid/"), 5) == "unreachable"


def test_plain_http_goes_through_the_proxy_with_its_password():
    with Raw(b"HTTP/1.1 204 No Content\r\n\r\n") as proxy:
        through = {"http": f"http://user:p%40ss@127.0.0.1:{proxy.port}"}
        assert HttpTransport(proxies=through).send(get("http://collect.example.org/x?y=1"), 5).status == 204
        (heard,) = proxy.heard
    assert heard.startswith(b"GET http://collect.example.org/x?y=1 HTTP/1.1\r\n")
    assert b"\r\nProxy-Authorization: Basic dXNlcjpwQHNz\r\n" in heard


def test_the_environments_proxy_is_honoured_and_loopback_goes_around_it(monkeypatch, server, campaign, code_of):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    transport = HttpTransport()
    assert code_of(TransportError, transport.send, get("http://collect.example.org/"), 5) == "unreachable"
    assert transport.send(get(f"{server.url}/v1/campaigns/{campaign.id}"), 5).status == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,DNS:collect.example.org"]
    command += ["-keyout", str(path), "-out", f"{path}.crt"]
    subprocess.run(command, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


@pytest.fixture
def tls_port(certificate):
    """The port of a server that shows the certificate, and answers the host that was asked for, and the body."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def echo(connection):
        with context.wrap_socket(connection, server_side=True) as secure:  # A refused handshake is an OSError, too.
            head = until_blank_line(secure)
            assert head.startswith((b"POST /", b"GET /")), "as to the server itself, not as to a proxy"
            assert b"proxy" not in head.lower()
            host = re.search(rb"Host: ([^\r:]*)", head)[1]
            secure.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + host + b" " + exactly(secure, len(b"the report")))

    with Scripted(echo) as server:
        yield server.port


def post(url):
    return Request("POST", url, {}, b"the report")


def test_a_certificate_nobody_vouches_for_is_refused(certificate, tls_port, code_of):
    url = f"https://localhost:{tls_port}/"
    assert code_of(TransportError, HttpTransport(proxies={}).send, get(url), 5) == "tls-untrusted"
    transport = HttpTransport(proxies={}, context=ssl.create_default_context(cafile=str(certificate)))
    assert transport.send(post(url), 5).status == 200
    assert code_of(TransportError, transport.send, get(f"https://127.0.0.1:{tls_port}/"), 5) == "tls-untrusted"


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_tls_goes_through_a_proxy_from_end_to_end(certificate, tls_port, scheme, code_of):
    """The proxy looks the name up and passes on what it cannot read."""
    passed = []

    def script(connection):
        if scheme == "http":
            assert until_blank_line(connection).startswith(b"CONNECT collect.example.org:443 ")
            connection.sendall(b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\n")
        else:
            exactly(connection, 4)
            connection.sendall(b"\x05\x00")
            assert exactly(connection, 26).endswith(b"collect.example.org\x01\xbb")
            connection.sendall(b"\x05\x00\x00\x01" + b"\0" * 6)
        with socket.create_connection(("127.0.0.1", tls_port)) as beyond:
            ends = [connection, beyond]
            while True:
                for end in select.select(ends, [], [], 20)[0]:
                    piece = end.recv(65536)
                    if not piece:
                        return
                    passed.append(piece)
                    ends[end is connection].sendall(piece)

    with Scripted(script) as proxy:
        trusting = ssl.create_default_context(cafile=str(certificate))
        through = {"https": f"{scheme}://127.0.0.1:{proxy.port}"}
        answer = HttpTransport(proxies=through, context=trusting).send(post("https://collect.example.org/x"), 20)
        assert answer.body == b"collect.example.org the report"
        refused = HttpTransport(proxies=through).send
        assert code_of(TransportError, refused, get("https://collect.example.org/x"), 5) == "tls-untrusted"
    assert b"the report" not in b"".join(passed)


SERVED = b"HTTP/1.1 204 No Content\r\n\r\n"
REFUSALS = (b"HTTP/1.1 407 No\r\n\r\n", b"HTTP/1.1 502 No\r\n\r\n", b"nonsense\r\n\r\n")
ENDLESS = b"HTTP/1.1 200 OK\r\n" + b"Name: x\r\n" * 20_000
BOUND = b"\x01" + b"\0" * 6
NAME = b"\x03\x13collect.example.org"
HIDDEN = "http://collect.example.org:81/x"
BAD = [
    *("http://host:99999", "http://host:0", "http://[::1", "socks4://host:1", "https://host:1", "ftp://host"),
    *("http://", "//", "//host:81", "host name:80", "socks5h://" + "u" * 256 + ":p@host:1"),
]


class Socks:
    """A SOCKS5 proxy for one script of answers; notes what it was told, and serves HTTP behind it."""

    def __init__(self, method, verdict=b"\0", refusal=b"\0", bound=BOUND):
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


def says(said):
    """A server that says this to whatever it hears."""
    return lambda connection: connection.recv(65536) and connection.sendall(said)


def through(script, url=HIDDEN, user=""):
    """The status of an exchange through the proxy, or its code."""
    with Scripted(script) as proxy:
        transport = HttpTransport(proxies={"all": f"socks5h://{user}127.0.0.1:{proxy.port}"})
        try:
            return str(transport.send(Request("GET", url, {}), 5).status)
        except TransportError as error:
            return error.code


@pytest.mark.parametrize(
    ("host", "destination", "bound"),
    [
        *(("collect.example.org", NAME, bound) for bound in (BOUND, b"\x04" + b"\0" * 18, b"\x03\x04name\0\0")),
        ("192.0.2.7", b"\x01\xc0\x00\x02\x07", BOUND),
        ("[2001:db8::1]", b"\x04" + bytes.fromhex("20010db8000000000000000000000001"), BOUND),
    ],
)
def test_socks_is_told_an_address_as_one_and_a_name_which_it_looks_up_itself(monkeypatch, host, destination, bound):
    def refuse(*_, **__):
        raise AssertionError("the name was looked up here")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    script = Socks(0, bound=bound)
    assert through(script, f"http://{host}:81/x") == "204"
    assert script.destination == b"\x05\x01\x00" + destination + (81).to_bytes(2, "big")
    assert script.requested.startswith(f"GET /x HTTP/1.1\r\nHost: {host}:81\r\n".encode())


def test_a_socks_proxy_gets_the_credentials_of_its_address_or_new_ones_for_every_connection_which_isolates():
    script = Socks(2)
    assert [through(script), through(script)] == ["204", "204"]
    assert script.greeting == b"\x05\x02\x00\x02"
    assert len({user for user, _ in script.credentials}) == 2
    assert through(script, user="me:p%40ss@") == "204"
    assert script.credentials[2:] == [(b"me", b"p@ss")]


@pytest.mark.parametrize(
    ("script", "codes"),
    [
        *((refuses, {"proxy-refused"}) for refuses in (Socks(255), Socks(1), Socks(2, verdict=b"\x01"))),
        *((refuses, {"proxy-refused"}) for refuses in (Socks(0, refusal=b"\x05"), Socks(0, bound=b"\x09"))),
        *((says(said), {"proxy-refused", "connection-lost"}) for said in (b"", b"\x05", b"HTTP/1.1 400 No\r\n\r\n")),
    ],
)
def test_a_socks_proxy_that_refuses_is_told_apart_and_what_is_none_is_a_transport_problem(script, codes):
    assert through(script) in codes


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
