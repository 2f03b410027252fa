"""The standard library's HTTP against real sockets."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ldp_client import TransportError
from ldp_client.network.stdlib import HttpTransport
from ldp_client.network.transport import Request
from ldp_client.testing import FakeServer
from protocols import Campaign


@pytest.fixture
def transport() -> HttpTransport:
    return HttpTransport(proxies={})


def get(url: str, **options: int) -> Request:
    return Request("GET", url, {}, **options)


def code_of(transport: HttpTransport, url: str, timeout: float = 5.0, **options: int) -> str:
    with pytest.raises(TransportError) as caught:
        transport.send(get(url, **options), timeout)
    return caught.value.code


class Raw:
    """A server that says exactly these bytes to every connection, piece by piece."""

    def __init__(self, *pieces: bytes, pause: float = 0.0, close: bool = True) -> None:
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._pieces, self._pause, self._close = pieces, pause, close
        self._stop = threading.Event()
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            connection.recv(65536)
            try:
                for piece in self._pieces:
                    connection.sendall(piece)
                    if self._stop.wait(self._pause):
                        break
            except OSError:
                continue
            if self._close:
                connection.close()

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for connection in self._open:
            connection.close()


def test_a_connection_is_kept_and_used_again(transport: HttpTransport) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    made = 0

    class Counting(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            nonlocal made
            made += 1
            super().setup()

        def do_GET(self) -> None:
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Counting) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        for _ in range(5):
            assert transport.send(get(f"http://127.0.0.1:{server.server_port}/"), 5).body == b"ok"
        transport.close()
        server.shutdown()
    assert made == 1
    assert transport.status().requests == 5


def test_a_connection_that_went_stale_is_replaced_before_anything_is_sent(transport: HttpTransport) -> None:
    with Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as server:
        for _ in range(3):
            assert transport.send(get(server.url), 5).status == 200
            threading.Event().wait(0.02)
        assert server.connections == 3


def test_headers_come_in_lower_case_and_redirects_are_not_followed(transport: HttpTransport) -> None:
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
    ],
)
def test_an_answer_that_is_none_has_a_code(transport: HttpTransport, said: list[bytes], code: str) -> None:
    with Raw(*said) as server:
        assert code_of(transport, server.url, largest_answer=50) == code


def test_a_silent_server_times_out(transport: HttpTransport) -> None:
    with Raw(close=False) as server:
        assert code_of(transport, server.url, timeout=0.1) == "timeout"


@pytest.mark.parametrize(
    "start", [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", b"HTTP/1.1 200 OK\r\nName: "], ids=["body", "header"]
)
def test_a_dripping_server_times_out(transport: HttpTransport, start: bytes) -> None:
    with Raw(start, *[b"x"] * 100, pause=0.03) as server:
        started = time.monotonic()
        assert code_of(transport, server.url, timeout=0.2) == "timeout"
        assert time.monotonic() - started < 1.5


def test_nobody_listening_is_unreachable(transport: HttpTransport) -> None:
    assert code_of(transport, "http://127.0.0.1:9/") == "unreachable"
    assert code_of(transport, "http://name.invalid/") == "unreachable"


def test_plain_http_goes_through_the_proxy_with_its_password(campaign: Campaign) -> None:
    seen: list[tuple[str, str | None]] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers.get("Proxy-Authorization")))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True).start()
        through = {"http": f"http://user:p%40ss@127.0.0.1:{proxy.server_port}"}
        with HttpTransport(proxies=through) as transport:
            assert transport.send(get("http://collect.example.org/x?y=1"), 5).status == 204
        proxy.shutdown()
    assert seen == [("http://collect.example.org/x?y=1", "Basic dXNlcjpwQHNz")]


# http.client forgets to close a refused tunnel's answer in some versions.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_https_asks_the_proxy_for_a_tunnel() -> None:
    with Raw(b"HTTP/1.1 403 Forbidden\r\n\r\n") as proxy, HttpTransport(proxies={"https": proxy.url}) as transport:
        assert code_of(transport, "https://collect.example.org/") == "unreachable"
        assert proxy.connections == 1
    gc.collect()


def test_the_environments_proxy_is_honoured_and_loopback_goes_around_it(
    monkeypatch: pytest.MonkeyPatch, server: FakeServer, campaign: Campaign
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with HttpTransport() as transport:
        assert code_of(transport, "http://collect.example.org/") == "unreachable"
        assert transport.send(get(f"{server.url}/v1/campaigns/{campaign.id}"), 5).status == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(path), "-out", str(path) + ".crt"]
    subprocess.run(command, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(str(path) + ".crt").read_bytes())
    return path


def test_a_certificate_nobody_vouches_for_is_refused(certificate: Path) -> None:
    class Quiet(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silent."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A refused handshake is what is tested."""

    with Server(("127.0.0.1", 0), Quiet) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"https://localhost:{server.server_port}/"
        with HttpTransport(proxies={}) as transport:
            assert code_of(transport, url) == "tls-untrusted"
        with HttpTransport(proxies={}, context=ssl.create_default_context(cafile=str(certificate))) as transport:
            assert transport.send(get(url), 5).status == 204
            assert code_of(transport, f"https://127.0.0.1:{server.server_port}/") == "tls-untrusted"
        server.shutdown()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_never_speaks_on_its_parents_connection(
    transport: HttpTransport, server: FakeServer, campaign: Campaign
) -> None:
    request = get(f"{server.url}/v1/campaigns/{campaign.id}")
    assert transport.send(request, 5).status == 200
    child = os.fork()
    if not child:
        inherited = len(transport._idle)
        answer = transport.send(request, 5)
        os._exit(0 if inherited == 1 and answer.body == campaign.document and len(transport._idle) == 1 else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert transport.send(request, 5).body == campaign.document
