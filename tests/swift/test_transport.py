"""The client's requests, by the platform's own HTTP: what they tell, and what they do not take."""

import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

BODY = b"x" * 1000


class Handler(BaseHTTPRequestHandler):
    seen: ClassVar[list[tuple[str, dict[str, str], bytes]]] = []

    def do_GET(self):
        self.seen.append((self.path, dict(self.headers.items()), b""))
        self.answer()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, dict(self.headers.items()), body))
        self.answer()

    def answer(self):
        self.send_response(302 if "redirect" in self.path else 200)
        if "redirect" in self.path:
            self.send_header("Location", "/elsewhere")
        self.send_header("Set-Cookie", "person=1")
        self.send_header("X-Kept", "kept")
        if "endless" not in self.path:
            self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        if "slow" in self.path:
            time.sleep(5)
        try:
            for _ in range(10_000 if "endless" in self.path else 1):
                self.wfile.write(BODY)
        except OSError:
            pass  # it has hung up

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    Handler.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def request(swift, url, longest=10_000, timeout=20):
    done = subprocess.run(
        [*swift, "request", url, str(longest), str(timeout)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_upload_tells_nothing_but_itself(swift, server):
    assert request(swift, f"{server}/post") == "200 1000 kept"
    ((path, headers, body),) = Handler.seen
    assert (path, body) == ("/post", b"report")
    wire = {"Host", "Connection", "Content-Length"}
    fixed = {
        "User-Agent": "ldp-bayes",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Accept-Language": "*",
        "Content-Type": "x/y",
    }
    assert {name: value for name, value in headers.items() if name not in wire} == fixed


def test_a_redirect_is_not_followed(swift, server):
    assert request(swift, f"{server}/redirect").startswith("302 ")
    assert [path for path, *_ in Handler.seen] == ["/redirect"]


def test_an_answer_that_is_too_long_is_none(swift, server):
    assert request(swift, f"{server}/plain", longest=1000) == "200 1000 kept"
    assert request(swift, f"{server}/plain", longest=999) == "nothing"
    assert request(swift, f"{server}/endless", longest=5000) == "nothing"


def test_an_answer_that_does_not_come_in_time_is_none(swift, server):
    begun = time.monotonic()
    assert request(swift, f"{server}/slow", timeout=1) == "nothing"
    assert time.monotonic() - begun < 4


def test_where_nobody_listens_there_is_no_answer(swift):
    assert request(swift, "http://127.0.0.1:1/") == "nothing"
