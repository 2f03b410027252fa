"""A campaign with a crowd at its relay: whole batches leave, of people that were admitted, and nothing else."""

import os
from dataclasses import replace

import pytest
from crowds import GATEWAY, crowd_draft
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA384
from issuing import issuer
from records import RECORD

from ldp_aggregator.issuer.issuing import public_key
from ldp_aggregator.relay import RELAY_POLICY, Mixing, Relay
from ldp_aggregator.relay.people import NotAdmittedError
from ldp_client.answering import perturb
from ldp_client.testing import FakeClock
from ldp_protocols import DocumentError, LdpError, encode_upload
from ldp_protocols.document.gateway import read_configuration
from ldp_protocols.oblivious import seal_header, sealed_bytes
from ldp_protocols.tokens import credentials, relay_input

FOR_RELAYS = generate_private_key(65537, 2048)
KEY_ID = read_configuration(GATEWAY["key"]).key_id
SMALL = {"devices": 100, "honest": 1, "delta": 1e-6}
DAY = 86400.0


@pytest.fixture
def campaign(server):
    """A crowd of a hundred, each admitted by a token."""
    return server.publish(crowd_draft(promise=SMALL, issuer=issuer(relay_key=public_key(FOR_RELAYS))))


@pytest.fixture
def known(server):
    """A crowd of a hundred, whose people the relay is said to know."""
    return server.publish(crowd_draft(promise={**SMALL, "expires": 3}, issuer=None))


@pytest.fixture
def build(server, tmp_path):
    def made(campaign, **options):
        return Relay(server.url, campaign.id, storage=tmp_path / "relay.db", **options)

    return made


def sealed(campaign):
    return (seal_header(KEY_ID, 1) + os.urandom(4096))[: sealed_bytes(campaign.upload_bytes)]


def token_of(campaign, person):
    message = relay_input(campaign, person.to_bytes(32, "big"))
    return credentials(message + FOR_RELAYS.sign(message, PSS(MGF1(SHA384()), 48), SHA384()))


def test_a_batch_leaves_when_so_many_people_are_in_it_and_one_fewer_waits_also_after_restarts(build, campaign):
    relay = build(campaign, mixing=Mixing(1))
    for person in range(99):
        relay.collect_sealed(sealed(campaign), token_of(campaign, person))
        relay.collect_sealed(sealed(campaign), token_of(campaign, person))
    assert not relay.run_once(5)
    for again in (relay, build(campaign)):
        assert (again.gathering(), again.queued(), again.missing()) == (99, 0, 1)
        with pytest.raises(NotAdmittedError):
            again.collect_sealed(sealed(campaign))
        again.run_once(5)
        assert (again.gathering(), again.queued()) == (99, 0)
    relay.collect_sealed(sealed(campaign), token_of(campaign, 99))
    relay.run_once(5)  # The server of this test is no gateway: what matters is that the pool has left.
    assert (relay.gathering(), relay.queued(), relay.missing()) == (0, 100, 100)


def test_a_relay_that_is_started_anew_knows_the_rule_before_anybody_comes(build, known):
    relay = build(known)
    for _ in range(99):
        relay.collect_sealed(sealed(known))
    again = build(known, mixing=Mixing(2))
    again.run_once(5)
    assert (again.gathering(), again.queued(), again.rule().least_batch) == (99, 0, 100)
    for least in (150, 1000):
        assert build(known, mixing=Mixing(least)).rule().least_batch == least


def test_nothing_leaves_late_and_nothing_comes_in_the_clear(build, known, code_of):
    assert code_of(LdpError, build(known, mixing=Mixing(100, longest_wait=60)).rule) == "bad-batch"
    relay = build(known)
    upload = encode_upload(perturb(known, RECORD, "a"), known)
    assert code_of(DocumentError, relay.collect, upload) == "not-sealed"


def test_a_batch_that_does_not_fill_is_thrown_away_in_its_time_and_counted(build, known):
    clock = FakeClock()
    relay = build(known, clock=clock)
    for _ in range(30):
        relay.collect_sealed(sealed(known))
    clock.now += 3 * DAY - 1
    relay.run_once(5)
    assert (relay.gathering(), relay.expired()) == (30, 0)
    clock.now += 1
    relay.run_once(5)
    assert (relay.gathering(), relay.expired(), relay.queued(), relay.missing()) == (0, 30, 0, 100)
    relay.collect_sealed(sealed(known))
    clock.now += 3 * DAY
    relay.run_once(5)
    assert (relay.gathering(), build(known).expired()) == (0, 31)


def test_there_is_room_for_two_batches_however_little_the_policy_has(build, known):
    small = replace(RELAY_POLICY, most_queued_reports=100, most_queued_bytes=1)
    relay = build(known, policy=small, mixing=Mixing(1))
    relay.campaign()
    assert relay.room() == 200
    for _ in range(3):
        relay.collect_sealed(sealed(known))
    assert relay.room() == 197
