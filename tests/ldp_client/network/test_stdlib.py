"""The standard library's HTTP against real sockets."""

import select
import shutil
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from sockets import Raw, Scripted, exactly, until_blank_line

from ldp_client import TransportError
from ldp_client.network.stdlib import HttpTransport
from ldp_client.network.transport import Request


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


class Echo(BaseHTTPRequestHandler):
    """Answers the host that was asked for, and the body."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.headers["Host"].encode() + b" " + body)

    def log_message(self, *_):
        """Silent."""


@pytest.fixture
def tls_port(certificate):
    """The port of a server that shows the certificate."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_):
            """A refused handshake is what is tested."""

    with Server(("127.0.0.1", 0), Echo) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server.server_port
        server.shutdown()


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
