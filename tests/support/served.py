"""An aggregator in a process of its own with whom people meet on a shell: its commands, and relays in front of it."""

import json
import re
import subprocess
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon import Daemon

SECONDS = 60
WAY = "it saw no answer, and the server no address"


def shell(*words: object, given: str | None = None) -> str:
    """What a command prints."""
    line = [*map(str, words)]
    done = subprocess.run(line, input=given, capture_output=True, text=True, timeout=2 * SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


class Served:
    """A server and its store; with a key it is a gateway, too."""

    def __init__(self, folder: Path, *, has_key: bool = False) -> None:
        self.data, self.key, self.has_key = folder / "data", folder / "gateway.key", has_key
        self.data.mkdir()
        line = shell("ldp-aggregator", "key", "create", self.key, "--gateway") if has_key else "gateway = {}"
        self.gateway = tomllib.loads(line)["gateway"]
        self.daemon = self.start()

    def start(self) -> Daemon:
        return Daemon(self.data, **({"LDP_AGGREGATOR_GATEWAY_KEY": str(self.key)} if self.has_key else {}))

    def ask(self, *words: object) -> str:
        return shell("ldp-aggregator", *words, "--data", self.data)

    def create(self, drafted: dict[str, Any]) -> str:
        """The id of the campaign that the draft makes."""
        path = self.data.with_name("draft.json")
        path.write_text(json.dumps(drafted), encoding="utf-8")
        return self.ask("campaign", "create", path, *(["--elsewhere"] if "gateway" in drafted else []))

    def document(self, campaign: str) -> bytes:
        """A campaign's, as an app ships it."""
        with urllib.request.urlopen(f"{self.daemon.public}/v1/campaigns/{campaign}", timeout=SECONDS) as answer:
            document: bytes = answer.read()
        return document

    def shown(self, campaign: str, reports: int = 0) -> dict[str, Any]:
        """A campaign, once it has so many reports, or will not have them any more."""
        until = time.monotonic() + SECONDS
        while True:
            shown: dict[str, Any] = json.loads(self.ask("campaign", "show", campaign, "--json"))
            if shown["reports"] >= reports or time.monotonic() > until:
                return shown
            time.sleep(0.2)

    @contextmanager
    def relay(self, campaign: str, folder: Path, least_batch: int) -> Iterator[str]:
        """The address of a relay's process, which is killed at the end; its storage in the folder stays."""
        token = folder / "relay.token"
        if not token.exists():
            token.write_text(self.ask("token", "create", "--scope", "relay"), encoding="ascii")
        line = ["ldp-relay", self.daemon.public, campaign, "--port", "0", "--gather", "0"]
        line += ["--storage", str(folder / "relay.db"), "--least-batch", str(least_batch), "--token-file", str(token)]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as relay:
            try:
                yield "http://" + re.search(r"relaying on (\S+)", relay.stdout.readline())[1]
            finally:
                relay.kill()
