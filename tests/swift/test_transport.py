"""The client's requests, by the platform's own HTTP: what they tell, and what they do not take."""

import subprocess
import time

from sockets import Raw, Scripted, exactly, until_blank_line

KEPT = b"Set-Cookie: person=1\r\nX-Kept: kept\r\n"
BODY = b"x" * 1000
ANSWER = b"HTTP/1.1 200 OK\r\n" + KEPT + b"Content-Length: 1000\r\n\r\n" + BODY


def request(swift, url, longest=10_000, timeout=20):
    done = subprocess.run(
        [*swift, "request", url, str(longest), str(timeout)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_upload_tells_nothing_but_itself(swift):
    heard = []

    def script(connection):
        heard.append(until_blank_line(connection).decode().splitlines()[:-1])
        heard.append(exactly(connection, len(b"report")))
        connection.sendall(ANSWER)

    with Scripted(script) as server:
        assert request(swift, f"http://127.0.0.1:{server.port}/post") == "200 1000 kept"
    (first, *lines), body = heard
    assert (first, body) == ("POST /post HTTP/1.1", b"report")
    headers = dict(line.split(": ", 1) for line in lines)
    assert {name: value for name, value in headers.items() if name not in {"Host", "Connection", "Content-Length"}} == {
        "User-Agent": "ldp-bayes",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Accept-Language": "*",
        "Content-Type": "x/y",
    }


def test_a_redirect_is_not_followed(swift):
    with Raw(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n" + KEPT + b"Content-Length: 0\r\n\r\n") as server:
        assert request(swift, server.url).startswith("302 ")
        assert server.connections == 1


def test_an_answer_that_is_too_long_is_none(swift):
    with Raw(ANSWER) as server:
        assert request(swift, server.url, longest=1000) == "200 1000 kept"
        assert request(swift, server.url, longest=999) == "nothing"
    with Raw(b"HTTP/1.1 200 OK\r\n\r\n", *[BODY] * 10_000) as server:
        assert request(swift, server.url, longest=5000) == "nothing"


def test_an_answer_that_does_not_come_in_time_is_none(swift):
    begun = time.monotonic()
    with Raw(close=False) as server:
        assert request(swift, server.url, timeout=1) == "nothing"
    assert time.monotonic() - begun < 4


def test_where_nobody_listens_there_is_no_answer(swift):
    assert request(swift, "http://127.0.0.1:1/") == "nothing"
