"""Where the blocks of a page run: a folder, a shell that lives as long as the page, a Python namespace."""

import contextlib
import io
import itertools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from blocks import ROOT

STUBS = Path(__file__).parent / "stubs"
FOREVER = re.compile(
    r"^(?P<command>(?:ldp-aggregator serve|ldp-relay|node \S*serve\.mjs)\b[^\n&#]*?)"
    r"\s*&?\s*(?:#[^\n]*)?$",
    re.MULTILINE,
)
"""What runs until it is stopped; a page may say so with ``&``, or leave it to its reader."""
SECONDS = 3600
"""A page that hangs is ended; nothing is said about how long one takes."""

FUNCTIONS = """
server=
stop() { [ -z "$server" ] || { kill $server 2>/dev/null && wait $server || :; }; server=; }
ready() { until (exec 3<>/dev/tcp/127.0.0.1/$1) 2>/dev/null; do kill -0 $! || return 1; sleep 0.1; done; }
serving() {
  until curl -sf -o /dev/null http://127.0.0.1:$1/readyz; do kill -0 $server || return 1; sleep 0.1; done
}
"""
"""One server of the aggregator at a time: the next one takes the same ports."""


PORTS = itertools.cycle(random.Random(os.getpid()).sample(range(10_000, 32_000), 20_000))
"""Below those that systems give to connections, which take a port between the look at it and the server."""


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        while len(found) < count:
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port := next(PORTS))))
                found.append(port)
        return found


class Session:
    """``texts`` are replaced in what runs, as whole words: the addresses and names that a reader replaces, too. One
    that is a function is called then. ``interpreters`` is a folder of programs that stand for the environment's.
    """

    def __init__(self, folder, *interpreters):
        self.folder = folder
        self.public, self.admin, self.operations, other, relay = free_ports(5)
        self.texts = {"8080": str(self.public), "8081": str(self.admin), "5173": str(other)}
        self._forever = {"ldp-aggregator": self.public, "ldp-relay": relay, "node": other}
        self._section = 0
        self._lasting = contextlib.ExitStack()
        self.names = {"__name__": "page"}
        self.printed = []
        own = {name: text for name, text in os.environ.items() if not name.startswith(("LDP_", "PYTEST", "XDG"))}
        self.environment = own | {
            "PATH": os.pathsep.join([str(STUBS), *interpreters, str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HOME": str(folder),
            "LDP_REPOSITORY": str(ROOT),
            "LDP_AGGREGATOR_LISTEN": f"127.0.0.1:{self.public}",
            "LDP_AGGREGATOR_LISTEN_ADMIN": f"127.0.0.1:{self.admin}",
            "LDP_AGGREGATOR_LISTEN_OPERATIONS": f"127.0.0.1:{self.operations}",
        }
        self._shell = None
        self._log = folder / ".printed"

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        with self._lasting:
            if self._shell is None:
                return
            self._shell.stdin.close()
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._shell.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._shell.wait(10)
            self._shell.wait()

    def enter(self, context):
        """Something that lasts as long as the page."""
        return self._lasting.enter_context(context)

    def of(self, language, number):
        """What the block of that number, of those in that language, has printed."""
        return [printed for block, printed in self.printed if block.language == language][number]

    def run(self, block):
        """Run it; returns what it printed. An error of the block is an AssertionError that names its place."""
        if block.section != self._section:
            self._section = block.section
            if self._shell is not None:
                # A section that exports another database speaks for itself alone.
                self._say("unset LDP_AGGREGATOR_DATABASE")
        text = self.replaced(block.text)
        if block.title:
            (self.folder / block.title).write_text(text, encoding="utf-8")
            return ""
        printed = {"sh": self.shell, "python": self.python, "js": self.javascript}[block.language](text, block.place)
        self.printed.append((block, printed))
        return printed

    def replaced(self, text):
        words = "|".join(sorted(map(re.escape, self.texts), key=len, reverse=True))

        def new(found):
            text = self.texts[found[0]]
            return text if isinstance(text, str) else text()

        return re.sub(rf"(?<!\w)(?:{words})(?!\w)", new, text)

    def python(self, text, place):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.chdir(self.folder):
            exec(compile(text, place, "exec", dont_inherit=True), self.names)
        return out.getvalue()

    def javascript(self, text, place):
        module = self.folder / f"block-{len(self.printed)}.mjs"
        module.write_text(text, encoding="utf-8")
        return self.shell(f"node {module.name}", place)

    def shell(self, text, place):
        """In the page's bash, which stops at the first command that fails; a server is waited for."""
        if self._shell is None:
            self._shell = subprocess.Popen(
                ["bash", "--noprofile", "--norc"],
                stdin=subprocess.PIPE,
                stdout=self._lasting.enter_context(self._log.open("wb")),
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self.folder,
                env=self.environment,
                start_new_session=True,
            )
            self._say("set -euo pipefail" + FUNCTIONS)
        text = FOREVER.sub(self._started, text)
        script, before = self.folder / ".block.sh", self._log.stat().st_size
        script.write_text(text, encoding="utf-8")
        end = f"=== end of {place}"
        self._say(f"source {script} < /dev/null; echo; echo {end!r}")
        deadline = time.monotonic() + SECONDS
        while True:
            printed = self._log.read_bytes()[before:].decode()
            if end in printed:
                return printed.partition(end)[0]
            if self._shell.poll() is not None or time.monotonic() > deadline:
                printed = self._log.read_bytes()[before:].decode()
                raise AssertionError(f"{place} failed:\n{text}\n--- printed:\n{printed}")
            time.sleep(0.02)

    def _started(self, found):
        command = found["command"]
        program = command.split()[0]
        port = self._forever[program]
        if program == "ldp-aggregator":
            return f"stop; {command} & server=$!; serving {self.operations}"
        return f"{command} {'--port ' if program == 'ldp-relay' else ''}{port} & ready {port}"

    def _say(self, text):
        # A shell that has ended is told by what it printed.
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.write(text + "\n")
            self._shell.stdin.flush()
