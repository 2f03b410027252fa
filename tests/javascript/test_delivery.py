"""Whole devices in JavaScript against a real aggregator: with tokens of our issuer, sealed and by a relay, and both."""

import base64
import hashlib
import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from daemon import Daemon
from drafts import draft, text
from forked import programs
from forwarding import forwarding

from ldp_aggregator.issuer import TokenIssuer, make_issuer_key, public_key
from protocols import LdpError

PROGRAM = Path(__file__).resolve().parents[2] / "javascript" / "test" / "deliver.mjs"
WAY = "sent so that nobody saw both who and what"
SECONDS = 60


def shell(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=True).stdout.strip()


class Served:
    """An aggregator with a gateway, and an issuer."""

    def __init__(self, folder):
        self.data, self.key = folder / "data", folder / "gateway.key"
        self.data.mkdir()
        self.gateway = {"key": shell("ldp-aggregator", "key", "create", str(self.key), "--gateway")}
        secret = make_issuer_key(folder / "issuer.pem")
        self.issuer = {"name": "issuer.example", "key": public_key(secret)}
        self.sign = TokenIssuer(secret, folder / "people.sqlite").sign
        self.daemon = Daemon(self.data, LDP_AGGREGATOR_GATEWAY_KEY=str(self.key))

    def create(self, **members):
        path = self.data.with_name("draft.json")
        path.write_text(json.dumps(draft(text("age", "young", "old"), text("height", *"abcdefgh"), **members)))
        return self.ask("campaign", "create", str(path))

    def ask(self, *words):
        return shell("ldp-aggregator", *words, "--data", str(self.data))

    def reports(self, campaign, least):
        until = time.monotonic() + SECONDS
        while True:
            found = json.loads(self.ask("campaign", "show", campaign, "--json"))["reports"]
            if found >= least or time.monotonic() > until:
                return found
            time.sleep(0.2)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", os.pathsep.join([str(programs()), os.environ["PATH"]]))
        made = Served(tmp_path_factory.mktemp("served"))
        with made.daemon:
            yield made


@pytest.fixture
def deliver(served, node):
    """Have a device in JavaScript do its part; ``issue`` answers its request for a token."""

    def delivered(campaign, issue=None, **more):
        given = {"url": served.daemon.public, "id": campaign, "record": {"age": "old"}, "label": "a", **more}
        command = [node, str(PROGRAM), json.dumps(given)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as device:
            line = device.stdout.readline()
            if line.startswith("token "):
                device.stdin.write(issue(bytes.fromhex(line.split()[1])).hex() + "\n")
                device.stdin.flush()
                line = device.stdout.readline()
            return json.loads(line)

    return delivered


def test_a_device_with_a_token_delivers_and_a_person_has_one(served, deliver):
    campaign = served.create(issuer=served.issuer)
    told = deliver(campaign, lambda request: served.sign("alice", request))
    assert (told["fate"], told["steps"]) == ("arrived", ["ask", "token", "contribute"])
    with pytest.raises(LdpError) as refused:
        deliver(campaign, lambda request: served.sign("alice", request))
    assert refused.value.code == "tokens-spent"
    assert deliver(campaign, lambda request: served.sign("bob", request))["fate"] == "arrived"
    assert served.reports(campaign, 2) == 2


@pytest.mark.parametrize("answers", ["one", "all"])
def test_a_device_with_a_token_and_a_relay_delivers_sealed_and_in_one_length(served, deliver, answers):
    campaign = served.create(
        issuer=served.issuer,
        gateway=served.gateway,
        privacy={"epsilon": 4.0, "answers": answers, "discrete": "oue"},
        title=answers,
    )
    with forwarding(served.daemon.public + "/v1/ohttp") as (relay, seen):
        for number in range(8 if answers == "one" else 2):
            person = f"{answers} {number}"
            told = deliver(campaign, lambda request, person=person: served.sign(person, request), relay=relay)
            assert (told["fate"], {one["way"] for one in told["sent"]}) == ("arrived", {WAY})
    assert len({len(body) for _, body in seen}) == 1
    assert all(
        not re.search("(?i)authorization|cookie|referer|origin", name) for headers, _ in seen for name in headers
    )
    assert served.reports(campaign, 1) > 0


def test_what_a_relay_repeats_is_counted_once(served, deliver):
    campaign = served.create(gateway=served.gateway, issuer=served.issuer, title="repeated")
    with forwarding(served.daemon.public + "/v1/ohttp", times=3) as (relay, _):
        assert deliver(campaign, lambda request: served.sign("carol", request), relay=relay)["fate"] == "arrived"
    assert served.reports(campaign, 1) == 1


def test_the_token_of_another_answer_of_another_campaign_or_of_another_issuer_is_refused_and_waits(
    served, deliver, tmp_path
):
    campaign = served.create(issuer=served.issuer, title="theirs")
    told = deliver(campaign, lambda request: served.sign("dora", request), stop="contribute")
    storage = tmp_path / "device"
    mine = deliver(campaign, lambda request: served.sign("emil", request), storage=str(storage), stop="contribute")
    (state,) = storage.glob("device.[0-9]*")
    number, text_ = state.read_text().split(" ", 1)
    # Somebody puts what was stolen into a device's own storage, and makes its checksum right.
    body = text_[43:].replace(mine["token"], told["token"])
    state.write_text(f"{number} {checksum(body)}{body}")
    mine = deliver(campaign, storage=str(storage), seconds=1)
    assert (mine["fate"], mine["problem"], mine["dropped"]) == ("on-its-way", "wrong-answer-token", {})
    assert json.loads(served.ask("campaign", "show", campaign, "--json"))["reports"] == 0


def checksum(body):
    return base64.urlsafe_b64encode(hashlib.sha256(body.encode()).digest()).rstrip(b"=").decode()


def test_a_device_that_dies_between_its_token_and_its_answer_goes_on_with_the_same_token(served, deliver, tmp_path):
    campaign = served.create(issuer=served.issuer, title="dies")
    storage = str(tmp_path / "device")
    first = deliver(campaign, lambda request: served.sign("fritz", request), storage=storage, stop="contribute")
    assert first["steps"] == ["ask", "token", "contribute"]
    again = deliver(campaign, storage=storage)
    assert (again["fate"], again["steps"], again["token"]) == (
        "arrived",
        ["contribute", "contribute", "contribute"],
        first["token"],
    )


def test_an_answer_of_the_issuer_that_was_lost_is_asked_for_again_and_counted_once(served, deliver, tmp_path):
    campaign, asked = served.create(issuer=served.issuer, title="lost"), []

    def lost(request):
        asked.append((request, served.sign("greta", request)))
        return b""

    storage = str(tmp_path / "device")
    assert deliver(campaign, lost, storage=storage)["refused"] == "wrong-token"
    assert deliver(campaign, lost, storage=storage)["refused"] == "wrong-token"
    assert deliver(campaign, lambda request: served.sign("greta", request), storage=storage)["fate"] == "arrived"
    assert len(set(asked)) == 1


def test_an_issuer_that_does_not_sign_gets_nothing_sent(served, deliver):
    campaign = served.create(issuer=served.issuer, title="unsigned")
    told = deliver(campaign, lambda request: request[3:])
    assert (told["refused"], told["fate"], told["sent"]) == ("wrong-token", None, [])


def test_our_own_relay_takes_what_javascript_seals_and_mixes_it(served, deliver, tmp_path):
    campaign = served.create(gateway=served.gateway, title="mixed")
    token = tmp_path / "relay.token"
    token.write_text(served.ask("token", "create", "--scope", "relay"), encoding="ascii")
    line = ["ldp-client", "relay", served.daemon.public, campaign, "--port", "0", "--gather", "0"]
    line += ["--storage", str(tmp_path / "relay.db"), "--least-batch", "3", "--token-file", str(token)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as relay:
        try:
            url = "http://" + re.search(r"relaying on (\S+)", relay.stdout.readline())[1] + "/ohttp"
            assert {deliver(campaign, relay=url)["fate"] for _ in range(3)} == {"arrived"}
            assert served.reports(campaign, 3) == 3
        finally:
            relay.kill()
