"""Sealed uploads across processes: devices, a relay that knows nothing, an aggregator that knows nobody."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from daemon import Daemon
from drafts import draft, number, text
from forwarding import forwarding

from ldp_client import Device
from protocols.oblivious import HEADER_BYTES

pytestmark = pytest.mark.usefixtures("forked_programs")

BATCH = 6
SECONDS = 60
WAY = "sent so that nobody saw both who and what"


def shell(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=True).stdout.strip()


class Served:
    """A gateway, and a campaign whose answers have three lengths before zeros fill them up."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.data.mkdir()
        self.key = folder / "gateway.key"
        gateway = {"key": shell("ldp-aggregator", "key", "create", str(self.key), "--gateway")}
        self.daemon = Daemon(self.data, LDP_AGGREGATOR_GATEWAY_KEY=str(self.key))
        features = text("age", "young", "old"), text("place", *map(str, range(99))), number("hours")
        privacy = {"epsilon": 1.0, "discrete": "oue", "continuous": "laplace"}
        self.campaign = self.create(draft(*features, privacy=privacy, gateway=gateway))

    def create(self, drafted: dict[str, object]) -> str:
        path = self.data.with_name("draft.json")
        path.write_text(json.dumps(drafted), encoding="utf-8")
        return self.ask("campaign", "create", str(path))

    def ask(self, *words: str) -> str:
        return shell("ldp-aggregator", *words, "--data", str(self.data))

    def shown(self, reports: int) -> dict[str, object]:
        """The campaign, once it has so many reports, or will not have them any more."""
        until = time.monotonic() + SECONDS
        while True:
            shown: dict[str, object] = json.loads(self.ask("campaign", "show", self.campaign, "--json"))
            if shown["reports"] == reports or time.monotonic() > until:
                return shown
            time.sleep(0.2)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    with made.daemon:
        yield made


@contextmanager
def relaying(served: Served, folder: Path) -> Iterator[str]:
    """A relay process, which is killed at the end; its storage stays."""
    token = folder / "relay.token"
    if not token.exists():
        token.write_text(served.ask("token", "create", "--scope", "relay"), encoding="ascii")
    line = ["ldp-client", "relay", served.daemon.public, served.campaign, "--port", "0", "--gather", "0"]
    line += ["--storage", str(folder / "relay.db"), "--least-batch", str(BATCH), "--token-file", str(token)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as relay:
        try:
            yield "http://" + re.search(r"relaying on (\S+)", relay.stdout.readline())[1] + "/ohttp"
        finally:
            relay.kill()


def contribute(served: Served, relay: str, storage: Path | str, label: str = "a") -> Device:
    device = Device(storage, max_total_epsilon=10, relay=relay)
    joined = device.campaign(served.daemon.public, served.campaign, max_epsilon=10)
    joined.grant()
    joined.contribute({"age": "old"}, label)
    assert device.run_once(SECONDS)
    return device


def test_a_relay_that_is_killed_loses_nothing_and_what_it_mixed_unread_hides_each_of_a_batch(served, tmp_path):
    for part in range(4):
        with relaying(served, tmp_path) as relay:
            for number in range(BATCH // 2):
                device = contribute(served, relay, tmp_path / f"device{part}-{number}.db")
                (sent,) = device.sent()
                assert (sent.way, sent.reply) == (WAY, "arrived")
            if part % 2:
                shown = served.shown((part + 1) * BATCH // 2)
    told = shown["relayed"]
    assert (told["reports"], told["least_batch"], told["otherwise"]) == (2 * BATCH, BATCH, 0)
    assert told["guarantee"]["reports"] == BATCH


def test_anybodys_relay_does_and_what_it_repeats_is_counted_once(served):
    with forwarding(served.daemon.public + "/v1/ohttp", times=3) as (relay, _):
        for _ in range(4):
            device = contribute(served, relay, ":memory:")
            assert [(one.way, one.reply) for one in device.sent()] == [(WAY, "arrived")]
    shown = served.shown(4)
    assert (shown["reports"], shown["relayed"]["least_batch"]) == (4, None)


def test_a_relay_sees_one_length_one_header_and_nothing_else_that_two_answers_share(served):
    with forwarding(served.daemon.public + "/v1/ohttp") as (relay, seen):
        for number in range(40):
            contribute(served, relay, ":memory:", label="ab"[number % 2])
    heads = [{name: value for name, value in headers.items() if name != "Host"} for headers, _ in seen]
    assert all(head == heads[0] for head in heads)
    assert set(heads[0]) == {"Content-Type", "Content-Length", "Connection", "Accept-Encoding"}
    bodies = [body for _, body in seen]
    assert len({len(body) for body in bodies}) == 1
    assert len({body[:HEADER_BYTES] for body in bodies}) == 1
    columns = list(zip(*(body[HEADER_BYTES:] for body in bodies), strict=True))
    # Of 40 bytes drawn evenly 9 have one value less than once in 10^10, by chance; there are a few hundred columns.
    assert max(max(Counter(column).values()) for column in columns) < 9
    # Nor do any two bodies share a run of 8 bytes: of 10^8 pairs of runs less than once in 10^11.
    runs = Counter(body[at : at + 8] for body in bodies for at in range(HEADER_BYTES, len(body) - 8))
    assert max(runs.values()) == 1


def test_a_gateway_without_the_key_is_a_retry_and_nothing_is_lost(tmp_path):
    made = Served(tmp_path)
    made.daemon.stop()
    storage = tmp_path / "device.db"
    with Daemon(made.data) as keyless:
        made.daemon = keyless
        with forwarding(keyless.public + "/v1/ohttp") as (relay, seen):
            device = Device(storage, max_total_epsilon=10, relay=relay)
            joined = device.campaign(keyless.public, made.campaign, max_epsilon=10)
            joined.grant()
            joined.contribute({"age": "old"}, "a")
            assert not device.run_once(1)
            assert joined.status().problem == "unknown-gateway-key"
            assert seen
    with Daemon(made.data, LDP_AGGREGATOR_GATEWAY_KEY=str(made.key)) as back:
        with forwarding(back.public + "/v1/ohttp") as (relay, _):
            assert Device(storage, max_total_epsilon=10, relay=relay).run_once(SECONDS)
        assert made.shown(1)["reports"] == 1
