"""The sample for nginx in front of a real server: who gets through, who is held off, and what reaches the server."""

import http.client
import re
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cells import cell_report
from daemon import Daemon
from installing import REPOSITORY
from raw_http import request_of

from ldp_protocols import encode_upload
from ldp_protocols.wire import MEDIA_TYPE

SAMPLE = REPOSITORY / "deploy" / "nginx" / "ldp-aggregator.conf"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/bin")
NAME = "collect.example.org"
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
MAIN = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log warn;
events {{ worker_connections 512; }}
http {{
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    include {folder}/sample.conf;
}}
"""


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as bound:
        return bound.getsockname()[1]


class Proxy:
    """nginx with the sample, but for its addresses and files."""

    def __init__(self, folder: Path, public: str, certificate: Path) -> None:
        self.port = free_port()
        self._context = ssl.create_default_context(cafile=str(certificate))
        self._context.check_hostname = False
        sample = SAMPLE.read_text(encoding="utf-8")
        for said, here in {
            "listen 443 ssl": f"listen 127.0.0.1:{self.port} ssl",
            "127.0.0.1:8080": urlsplit(public).netloc,
            "/etc/ldp/fullchain.pem": str(certificate),
            "/etc/ldp/key.pem": str(certificate.with_name("key.pem")),
            "/var/log/nginx/ldp.log": str(folder / "ldp.log"),
        }.items():
            assert sample.count(said) == 1
            sample = sample.replace(said, here)
        (folder / "sample.conf").write_text(sample, encoding="utf-8")
        (folder / "main.conf").write_text(MAIN.format(folder=folder), encoding="utf-8")
        self._line = [NGINX, "-p", str(folder), "-c", str(folder / "main.conf"), "-g", "user root;"]
        if Path("/proc/self").stat().st_uid != 0:
            self._line = self._line[:-2]

    @contextmanager
    def running(self):
        with subprocess.Popen(self._line, stderr=subprocess.DEVNULL) as process:
            try:
                until = time.monotonic() + 60
                while True:
                    try:
                        self.connect().close()
                        break
                    except OSError:
                        assert process.poll() is None, "nginx does not take the sample"
                        assert time.monotonic() < until, "nginx does not answer"
                        time.sleep(0.02)
                yield self
            finally:
                process.terminate()
                process.wait(20)

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        return self._context.wrap_socket(plain, server_hostname=NAME)

    def http(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self._context, timeout=20)

    def ask(self, data: bytes) -> tuple[int, bytes]:
        with self.connect() as line:
            line.sendall(data)
            answer = b""
            while piece := line.recv(65536):
                answer += piece
        return int(answer[9:12]), answer

    def get(self, path: str) -> tuple[int, bytes]:
        return self.ask(f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode())


@pytest.fixture
def behind(kept_in_file, certificate, tmp_path):
    campaign, folder = kept_in_file.publish(64), tmp_path / "nginx"
    folder.mkdir()
    with Daemon(kept_in_file.folder) as daemon, Proxy(folder, daemon.public, certificate(2)).running() as proxy:
        yield proxy, daemon, campaign


def open_connections(daemon: Daemon) -> float:
    address = urlsplit(daemon.operations)
    with socket.create_connection((address.hostname, address.port), timeout=20) as line:
        line.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        told = b""
        while piece := line.recv(65536):
            told += piece
    return float(re.search(rb'ldp_connections\{listener="public"\} ([\d.]+)', told)[1])


def test_devices_and_people_get_through_and_nobody_else(behind):
    proxy, _, campaign = behind
    status, answer = proxy.ask(request_of(campaign, 1, Connection="close"))
    assert (status, answer.endswith(b'{"rejected": []}')) == (200, True)
    status, answer = proxy.get(f"/v1/campaigns/{campaign.id}")
    assert (status, answer.endswith(campaign.document)) == (200, True)
    status, page = proxy.get(f"/c/{campaign.id}")
    assert status == 200
    linked = re.findall(rb'(?:href|src)="(/[^"]+)"', page)
    assert any(path.startswith(b"/assets/") for path in linked)
    for path in linked:
        assert proxy.get(path.decode())[0] == 200, path
    assert proxy.get("/")[0] == 200
    for path in ("/login", "/admin/v1/campaigns", "/healthz", "/metrics", "/campaigns/new"):
        assert proxy.get(path)[0] == 404, path


def test_uploads_share_the_connections_that_the_proxy_keeps(behind):
    proxy, daemon, campaign = behind
    assert [proxy.ask(request_of(campaign, one, Connection="close"))[0] for one in range(30)] == [200] * 30
    assert 1 <= open_connections(daemon) <= 4, "they stay, and there are not as many as uploads"


def test_who_is_slow_holds_the_proxy_and_one_address_no_more_than_its_share(behind):
    """Fifty bodies that do not come reach nobody; the next one from there is told to come back."""
    proxy, daemon, campaign = behind
    body = encode_upload([cell_report(campaign, 1)], campaign)
    head = f"POST /v1/campaigns/{campaign.id}/reports HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: {MEDIA_TYPE}\r\n"
    slow = [proxy.connect() for _ in range(50)]
    for line in slow:
        line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:-1])
    until_held = [proxy.ask(request_of(campaign, 2, Connection="close"))[0] for _ in range(3)]
    assert until_held[-1] == 429
    assert open_connections(daemon) <= 1
    slow[0].sendall(body[-1:])
    assert slow[0].recv(12) == b"HTTP/1.1 200"
    for line in slow:
        line.close()


def test_more_requests_than_one_address_has_to_ask_are_told_to_come_back(behind):
    proxy, _, campaign = behind
    statuses = []
    with closing(proxy.http()) as connection:
        while 429 not in statuses and len(statuses) < 400:
            connection.request("GET", f"/v1/campaigns/{campaign.id}", headers={"Host": NAME})
            with connection.getresponse() as answer:
                answer.read()
                statuses.append(answer.status)
    assert statuses[:100] == [200] * 100
    assert statuses[-1] == 429
