"""What a call may have to wait for, and never comes: a file's lock, a server's answer."""

import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

from ldp_client import MemoryStorage
from ldp_protocols import LdpError

PATIENCE = 60.0
"""Seconds after which a call is taken to wait for ever."""

_HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(sys.argv[2])
connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(path, how="BEGIN EXCLUSIVE"):
    """Another process has the file's lock, and does not let go."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        assert process.poll() is None
    finally:
        process.communicate("")


class Failing(MemoryStorage):
    """A storage that raises ``error`` while ``fails`` is "write", or "read"."""

    def __init__(self, error):
        super().__init__()
        self.error, self.fails = error, None

    def transaction(self, *, write):
        if self.fails == ("write" if write else "read"):
            raise self.error
        return super().transaction(write=write)


@contextmanager
def silent_server():
    """Takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def returned(call):
    """What a call returns, or raises; fails where it does neither."""
    ends = []

    def run():
        try:
            ends.append(call())
        except LdpError as error:
            ends.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert ends, "the call waits longer than its timeout"
    return ends[0]


def code_of(call):
    error = returned(call)
    assert isinstance(error, LdpError), error
    return error.code
