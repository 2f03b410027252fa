"""Python's issuer, device, aggregator and gateway against @cloudflare/privacypass-ts, @cloudflare/blindrsa-ts and
@hpke/core, in both directions.
"""

import base64
import hashlib
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA384
from drafts import draft, text
from issuing import SIGNER

from ldp_aggregator.issuer import TokenIssuer, public_key
from ldp_aggregator.server.access import check_answer_token
from ldp_aggregator.server.problems import ProblemError
from ldp_client.errors import TransportError
from ldp_client.network.sealed import Sealed
from ldp_client.tokens import finished_token, token_request
from ldp_protocols import Campaign
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.tokens import TOKEN_TYPE, credentials, token_input
from ldp_protocols.wire import Block

PROGRAM = Path(__file__).resolve().parents[2] / "javascript" / "test" / "interop.mjs"
SECRET = hashlib.sha256(b"a device").digest()


@pytest.fixture
def other(node):
    """The other end: a function that says bytes to it, and one that hears some."""

    @contextmanager
    def started(what):
        with subprocess.Popen([node, PROGRAM, what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as end:

            def say(content):
                end.stdin.write(content.hex() + "\n")
                end.stdin.flush()

            yield say, lambda: bytes.fromhex(end.stdout.readline())

    return started


@pytest.fixture
def issuer(tmp_path):
    return TokenIssuer(SIGNER, tmp_path / "people.sqlite")


def campaign_of(name):
    return Campaign.compile(draft(text("age", "young", "old"), issuer={"name": "issuer.example", "key": name}))


def test_our_issuer_signs_for_a_client_of_privacypass_ts(other, issuer):
    with other("client") as (say, hear):
        say(campaign_of(public_key(SIGNER)).issuer.key)
        say(issuer.sign("alice", hear()))
        token = hear()
    SIGNER.public_key().verify(token[-256:], token[:-256], PSS(MGF1(SHA384()), 48), SHA384())
    assert len(token) == 354


def test_an_issuer_of_privacypass_ts_signs_for_our_device_and_verifies_its_token(other):
    with other("issuer") as (say, hear):
        campaign = campaign_of(base64.urlsafe_b64encode(hear()).decode())
        say(token_request(campaign, SECRET))
        token = finished_token(campaign, SECRET, hear())
        say(token)
        assert hear() == b"\1"


def test_our_aggregator_takes_what_blindrsa_ts_blinds_and_our_issuer_signs(other, issuer):
    campaign = campaign_of(public_key(SIGNER))
    block = Block(0, bytes(16), b"\0")
    signed = token_input(campaign, [block.ids])
    with other("blind") as (say, hear):
        say(campaign.issuer.key)
        say(signed)
        say(issuer.sign("bob", TOKEN_TYPE + campaign.issuer.key_id[-1:] + hear()))
        token = signed + hear()
    check_answer_token(campaign, [block], credentials(token))
    with pytest.raises(ProblemError):
        check_answer_token(campaign, [Block(0, b"\1" + bytes(15), b"\0")], credentials(token))


def test_a_gateway_on_hpke_core_opens_what_our_device_seals_and_the_device_its_answer(other):
    private = X25519PrivateKey.generate()
    gateway = Gateway(7, private.public_key().public_bytes_raw(), (1,))
    sealed = Sealed(gateway, b"a message")
    with other("gateway") as (say, hear):
        say(private.private_bytes_raw())
        say(sealed.body)
        assert hear() == b"a message"
        say(b"an answer")
        answer = hear()
    assert sealed.open(answer) == b"an answer"
    with pytest.raises(TransportError):
        Sealed(gateway, b"a message").open(answer)
