"""A session is one server's, and ends with it."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from ldp_aggregator.dashboard.session import COOKIE

PROGRAM = (sys.executable, "-m", "ldp_aggregator")


@contextmanager
def serving(data: Path) -> Iterator[str]:
    """The admin listener of a server of its own."""
    listeners = ("--listen", "127.0.0.1:0", "--listen-admin", "0", "--listen-operations", "0")
    command = [*PROGRAM, "serve", "--data", str(data), *listeners]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process.stdout.readline().split(" admin ")[1].split()[0]
    finally:
        process.terminate()
        process.communicate()


def ask(admin: str, method: str, path: str, body: str | None = None, **headers: str) -> http.client.HTTPResponse:
    """On a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(admin).netloc, timeout=20)
    try:
        connection.request(method, path, body, headers)
        return connection.getresponse()
    finally:
        connection.close()


def test_a_session_ends_with_the_server(tmp_path):
    create = [*PROGRAM, "token", "create", "--scope", "admin", "--data", str(tmp_path)]
    token = subprocess.run(create, capture_output=True, text=True, check=True).stdout.strip()
    with serving(tmp_path) as admin:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = ask(admin, "POST", "/login", urlencode({"token": token}), **form)
        cookie = answer.headers["Set-Cookie"].split(";")[0]
        assert cookie.startswith(COOKIE)
        assert ask(admin, "GET", "/", Cookie=cookie).status == 200
    with serving(tmp_path) as admin:
        assert ask(admin, "GET", "/", Cookie=cookie).status == 303
