"""Sealed uploads across processes: devices, a relay that knows nothing, an aggregator that knows nobody."""

import urllib.request
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from daemon import Daemon
from drafts import draft, number, text
from forwarding import forwarding
from served import SECONDS, WAY, Served

from ldp_client import Device

HEADER_BYTES = 7


pytestmark = pytest.mark.usefixtures("forked_programs")

BATCH = 6


class Oblivious(Served):
    """A gateway, and a campaign whose answers have three lengths before zeros fill them up."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, has_key=True)
        features = text("age", "young", "old"), text("place", *map(str, range(99))), number("hours")
        privacy = {"epsilon": 1.0, "discrete": "oue", "continuous": "laplace"}
        self.campaign = self.create(draft(*features, privacy=privacy, gateway=self.gateway))

    @property
    def document(self) -> bytes:
        """As an app ships it."""
        with urllib.request.urlopen(f"{self.daemon.public}/v1/campaigns/{self.campaign}", timeout=SECONDS) as answer:
            document: bytes = answer.read()
        return document


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Oblivious]:
    made = Oblivious(tmp_path)
    with made.daemon:
        yield made


def contribute(
    served: Oblivious, relay: str, storage: Path | str, label: str = "a", document: bytes | None = None
) -> Device:
    """Where the app ships the document, nothing is fetched."""
    device = Device(storage, max_total_epsilon=10, relay=relay)
    joined = device.campaign(served.daemon.public, served.campaign, max_epsilon=10)
    if document is not None:
        joined.load(document)
    joined.grant()
    joined.contribute({"age": "old"}, label)
    assert device.run_once(SECONDS)
    return device


def test_a_relay_that_is_killed_loses_nothing_and_what_it_mixed_unread_hides_each_of_a_batch(served, tmp_path):
    for part in range(4):
        with served.relay(served.campaign, tmp_path, BATCH) as relay:
            for number in range(BATCH // 2):
                device = contribute(served, relay + "/ohttp", tmp_path / f"device{part}-{number}.db")
                (sent,) = device.sent()
                assert (sent.way.endswith(WAY), sent.reply) == (True, "arrived")
            if part % 2:
                shown = served.shown(served.campaign, (part + 1) * BATCH // 2)
    told = shown["relayed"]
    assert (told["reports"], told["least_batch"], told["otherwise"]) == (2 * BATCH, BATCH, 0)
    assert told["guarantee"]["reports"] == BATCH


def test_who_is_new_after_a_closing_hears_it_from_the_relay_and_spends_nothing(served, tmp_path):
    with served.relay(served.campaign, tmp_path, BATCH) as relay:
        served.ask("campaign", "close", served.campaign)
        device = Device(":memory:", max_total_epsilon=10, relay=relay + "/ohttp")
        joined = device.campaign(served.daemon.public, served.campaign, max_epsilon=10)
        assert joined.next_step() == ("nothing", "campaign-closing")
        assert joined.status().epsilon == 0.0


def test_anybodys_relay_does_and_sees_nothing_that_two_answers_share_and_what_it_repeats_is_counted_once(served):
    """But for one length, and one header."""
    with forwarding(served.daemon.public + "/v1/ohttp", times=3) as (relay, seen):
        document = served.document
        for number in range(40):
            device = contribute(served, relay, ":memory:", "ab"[number % 2], document)
            assert [(one.way.endswith(WAY), one.reply) for one in device.sent()] == [(True, "arrived")]
    shown = served.shown(served.campaign, 40)
    assert (shown["reports"], shown["relayed"]["least_batch"]) == (40, None)
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
    made = Oblivious(tmp_path)
    made.daemon.stop()
    kept = partial(Device, tmp_path / "device.db", max_total_epsilon=10)
    with Daemon(made.data) as keyless:
        made.daemon = keyless
        with forwarding(keyless.public + "/v1/ohttp") as (relay, seen):
            device = kept(relay=relay)
            joined = device.campaign(keyless.public, made.campaign, max_epsilon=10)
            joined.load(made.document)
            joined.grant()
            joined.contribute({"age": "old"}, "a")
            for _ in range(30):  # A second may end within a try.
                assert not device.run_once(1)
                if seen and joined.status().problem != "timeout":
                    break
            assert joined.status().problem == "unknown-gateway-key"
            assert seen
    with made.start() as back:
        with forwarding(back.public + "/v1/ohttp") as (relay, _):
            assert kept(relay=relay).run_once(SECONDS)
        assert made.shown(made.campaign, 1)["reports"] == 1
