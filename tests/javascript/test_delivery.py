"""Whole devices in JavaScript against a real aggregator: with tokens of our issuer, sealed and by a relay, and both."""

import base64
import hashlib
import json
import os
import re
import subprocess
import urllib.request
from pathlib import Path

import pytest
from drafts import draft, text
from forked import programs
from forwarding import forwarding
from served import WAY, Served

from ldp_aggregator.issuer import TokenIssuer, make_issuer_key, public_key
from ldp_protocols import LdpError

PROGRAM = Path(__file__).resolve().parents[2] / "javascript" / "test" / "deliver.mjs"


class Issuing(Served):
    """An aggregator with a gateway, and an issuer."""

    def __init__(self, folder):
        super().__init__(folder, has_key=True)
        secret = make_issuer_key(folder / "issuer.pem")
        self.issuer = {"name": "issuer.example", "key": public_key(secret)}
        self.sign = TokenIssuer(secret, folder / "people.sqlite").sign

    def asking(self, **members):
        """The id of a campaign with these members."""
        return self.create(draft(text("age", "young", "old"), text("height", *"abcdefgh"), **members))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", os.pathsep.join([str(programs()), os.environ["PATH"]]))
        made = Issuing(tmp_path_factory.mktemp("served"))
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
    campaign = served.asking(issuer=served.issuer)
    told = deliver(campaign, lambda request: served.sign("alice", request))
    assert (told["fate"], told["steps"]) == ("arrived", ["ask", "token", "contribute"])
    with pytest.raises(LdpError) as refused:
        deliver(campaign, lambda request: served.sign("alice", request))
    assert refused.value.code == "tokens-spent"
    assert deliver(campaign, lambda request: served.sign("bob", request))["fate"] == "arrived"
    assert served.shown(campaign, 2)["reports"] == 2


@pytest.mark.parametrize("answers", ["one", "all"])
def test_a_device_with_a_token_and_a_relay_delivers_sealed_and_in_one_length(served, deliver, answers):
    campaign = served.asking(
        issuer=served.issuer,
        gateway=served.gateway,
        privacy={"epsilon": 4.0, "answers": answers, "discrete": "oue"},
        title=answers,
    )
    with urllib.request.urlopen(f"{served.daemon.public}/v1/campaigns/{campaign}") as answer:
        document = answer.read().decode()
    with forwarding(served.daemon.public + "/v1/ohttp") as (relay, seen):
        for number in range(8 if answers == "one" else 2):
            person = f"{answers} {number}"
            told = deliver(
                campaign, lambda request, person=person: served.sign(person, request), relay=relay, document=document
            )
            assert told["fate"] == "arrived"
            assert all(one["way"].endswith(WAY) for one in told["sent"])
    assert len({len(body) for _, body in seen}) == 1
    assert all(
        not re.search("(?i)authorization|cookie|referer|origin", name) for headers, _ in seen for name in headers
    )
    assert served.shown(campaign, 1)["reports"] > 0


def test_the_token_of_another_answer_of_another_campaign_or_of_another_issuer_is_refused_and_waits(
    served, deliver, tmp_path
):
    campaign = served.asking(issuer=served.issuer, title="theirs")
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
    assert served.shown(campaign)["reports"] == 0


def checksum(body):
    return base64.urlsafe_b64encode(hashlib.sha256(body.encode()).digest()).rstrip(b"=").decode()


def test_a_device_that_dies_between_its_token_and_its_answer_goes_on_with_the_same_token(served, deliver, tmp_path):
    campaign = served.asking(issuer=served.issuer, title="dies")
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
    campaign, asked = served.asking(issuer=served.issuer, title="lost"), []

    def lost(request):
        asked.append((request, served.sign("greta", request)))
        return b""

    storage = str(tmp_path / "device")
    assert deliver(campaign, lost, storage=storage)["refused"] == "wrong-token"
    assert deliver(campaign, lost, storage=storage)["refused"] == "wrong-token"
    assert deliver(campaign, lambda request: served.sign("greta", request), storage=storage)["fate"] == "arrived"
    assert len(set(asked)) == 1


def test_our_own_relay_takes_what_javascript_seals_and_mixes_it(served, deliver, tmp_path):
    campaign = served.asking(gateway=served.gateway, title="mixed")
    with served.relay(campaign, tmp_path, 3) as url:
        assert {deliver(campaign, relay=url + "/ohttp")["fate"] for _ in range(3)} == {"arrived"}
        assert served.shown(campaign, 3)["reports"] == 3
