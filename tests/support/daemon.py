"""A server as a process of its own, for tests that kill it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from discretion import strange
from forked import programs

WITHOUT_UVLOOP = str(Path(__file__).with_name("without_uvloop.py"))
READY = re.compile(r"ready: public (\S+) admin (\S+) operations (\S+)")
START_SECONDS = 60


class Daemon:
    """``ldp-aggregator serve`` on free loopback ports, with this data folder; other settings by environment.

    On uvloop where it is installed, unless told otherwise; in an interpreter that has imported already, but a ``new``.
    """

    def __init__(self, data, *arguments, uvloop=True, new=False, **environment):
        self._path = data / "daemon.log"
        self._log = self._path.open("ab")
        self._kills = signal.SIGKILL if new else signal.SIGQUIT
        program = ["-m", "ldp_aggregator"] if uvloop else [WITHOUT_UVLOOP]
        command = [sys.executable if new else str(programs() / "python"), *program, "serve", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [*command, "--listen-admin", "0", "--listen-operations", "0", "--data", str(data), *arguments],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=os.environ | environment,
        )
        line = self.process.stdout.readline()
        match = READY.search(line)
        if match is None:
            self.stop()
            raise RuntimeError(f"the server did not start: {line!r} {self._path.read_text()}")
        self.public, self.admin, self.operations = match.groups()

    def kill(self):
        """As a power cut does it to a process: SIGKILL."""
        self.process.send_signal(self._kills)
        self._end()

    def stop(self, seconds=30):
        """SIGTERM, and wait; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError("the server did not stop in time") from None
        return self._end()

    def _end(self):
        code = self.process.wait()
        self.process.stdout.close()
        self._log.close()
        self._check_log()
        return code

    def _check_log(self):
        """Whatever was done to it, it wrote nothing down about its clients; a line that a kill cut short is none."""
        for line in self._path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.startswith("{") and line.endswith("\n"):
                assert strange(line) == []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self._log.closed:
            self.stop()
