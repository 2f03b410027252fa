"""Sealed uploads across processes: devices, a relay that knows nothing, an aggregator that knows nobody."""

import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from crowds import crowd_draft
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from daemon import Daemon
from drafts import draft, number, text
from forwarding import forwarding
from served import SECONDS, WAY, Served

from ldp_aggregator.issuer.issuing import TokenIssuer
from ldp_client import Device
from ldp_client.answering import perturb
from ldp_client.network.sealed import Sealed
from ldp_protocols import Campaign, encode_upload
from ldp_protocols.oblivious import BESIDE_BODY, REQUEST_TYPE, BinaryRequest, encode_request
from ldp_protocols.tokens import RELAY_HEADER, TOKEN_BYTES, credentials
from ldp_protocols.wire import MEDIA_TYPE

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
        document = served.document(served.campaign)
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


def flooded(relay: str, path: str, media_type: str, body: bytes, headers: dict[str, str]) -> int:
    """The status that an upload of the operator's own gets."""
    request = urllib.request.Request(relay + path, body, {"Content-Type": media_type, **headers})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed", "clear"])
def test_a_batch_is_of_people_and_not_of_one_person_and_what_the_operator_sends(is_sealed, tmp_path):
    served = Served(tmp_path, has_key=True)
    keys = [generate_private_key(65537, 2048) for _ in range(2)]
    signer = TokenIssuer(keys[0], tmp_path / "people.sqlite", 1, keys[1])
    named = {"name": "issuer.example", "key": signer.public_keys[0], "relay_key": signer.public_keys[1]}
    with served.daemon as daemon:
        gateway = {"gateway": served.gateway} if is_sealed else {}
        campaign_id = served.create(draft(text("ill", "yes", "no"), issuer=named, **gateway))
        with served.relay(campaign_id, tmp_path, BATCH) as relay:

            def answered(person: str) -> tuple[Device, str]:
                where = {"relay": relay + "/ohttp"} if is_sealed else {}
                device = Device(":memory:", max_total_epsilon=9, **where)
                joined = device.campaign(daemon.public if is_sealed else relay, campaign_id, max_epsilon=9)
                joined.grant()
                joined.obtain_token(partial(signer.sign, person))
                joined.contribute({"ill": "yes"}, "a")
                assert device.run_once(SECONDS)
                return device, joined.status().fate

            assert answered("one person")[1] == "arrived"
            # n - 1 uploads of the operator's own, who has no people: without a token, and with one device's again.
            liar, _ = answered("the operator")
            campaign = Campaign.parse(served.document(campaign_id))
            (token,) = liar.export()["tokens"].values()
            tokens = bytes.fromhex(token)
            headers = {"Authorization": credentials(tokens[:TOKEN_BYTES])}
            if is_sealed:
                headers = {RELAY_HEADER: credentials(tokens[TOKEN_BYTES:])}
            made_up = encode_upload(perturb(campaign, {"ill": "no"}, "b"), campaign)
            if is_sealed:
                inside = BinaryRequest("POST", "https", "x", f"/v1/campaigns/{campaign_id}/reports", (), made_up)
                message = encode_request(inside, beside=BESIDE_BODY)
                path, kind = "/ohttp", REQUEST_TYPE
                bodies = [Sealed(campaign.gateway, message).body for _ in range(BATCH)]
                assert {flooded(relay, path, kind, one, headers) for one in bodies} == {202}
            else:
                path, kind, bodies = f"/v1/campaigns/{campaign_id}/reports", MEDIA_TYPE, [made_up]
                assert flooded(relay, path, kind, made_up, headers) == 401
            assert {flooded(relay, path, kind, one, {}) for one in bodies} == {401}
            assert served.shown(campaign_id)["reports"] == 0
            # And with other people the batch leaves, and all of it counts.
            for number in range(BATCH - 2):
                assert answered(f"person {number}")[1] == "arrived"
            told = served.shown(campaign_id, BATCH)
    assert (told["reports"], told["relayed"]["least_batch"], told["relayed"]["otherwise"]) == (BATCH, BATCH, 0)
    assert told["relayed"]["guarantee"]["reports"] == BATCH


def test_a_gateway_without_the_key_is_a_retry_and_nothing_is_lost(tmp_path):
    made = Oblivious(tmp_path)
    made.daemon.stop()
    kept = partial(Device, tmp_path / "device.db", max_total_epsilon=10)
    with Daemon(made.data) as keyless:
        made.daemon = keyless
        with forwarding(keyless.public + "/v1/ohttp") as (relay, seen):
            device = kept(relay=relay)
            joined = device.campaign(keyless.public, made.campaign, max_epsilon=10)
            joined.load(made.document(made.campaign))
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


@pytest.mark.long  # some fifteen processes
def test_a_crowds_relay_that_is_killed_again_and_again_lets_nothing_go_early_and_loses_nothing(tmp_path):
    served = Served(tmp_path, has_key=True)
    promise = {"devices": 100, "honest": 1, "delta": 1e-6}
    with served.daemon:
        drafted = crowd_draft(text("ill", "yes", "no"), promise=promise, issuer=None, gateway=served.gateway)
        campaign_id = served.create(drafted)
        campaign = Campaign.parse(served.document(campaign_id))
        path, sent = f"/v1/campaigns/{campaign_id}/reports", 0
        while sent < 100:
            with served.relay(campaign_id, tmp_path, 1) as relay:
                for _ in range(min(9, 100 - sent)):
                    upload = encode_upload(perturb(campaign, {"ill": "no"}, "b"), campaign)
                    inside = BinaryRequest("POST", "https", "x", path, (("content-type", MEDIA_TYPE),), upload)
                    body = Sealed(campaign.gateway, encode_request(inside, beside=BESIDE_BODY)).body
                    assert flooded(relay, "/ohttp", REQUEST_TYPE, body, {}) == 202
                    sent += 1
                if sent < 100:
                    assert served.shown(campaign_id)["reports"] == 0
        for _ in range(4):
            with served.relay(campaign_id, tmp_path, 1):
                pass  # Killed as it begins to forward.
        with served.relay(campaign_id, tmp_path, 1):
            told = served.shown(campaign_id, 100)
    assert (told["reports"], told["relayed"]["least_batch"], told["relayed"]["otherwise"]) == (100, 100, 0)
    assert told["published"]["epsilon"] == 1
