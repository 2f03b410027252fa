"""One person once: a relay admits by the tokens of the campaign's issuer, each of them once, and remembers them."""

import os
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA384
from issuing import SIGNER, issuer, shown_for
from records import RECORD

from ldp_aggregator.issuer.issuing import TokenIssuer, public_key
from ldp_aggregator.relay import RELAY_POLICY, Mixing, Relay
from ldp_aggregator.relay.people import NotAdmittedError, _is_signed, admitted_answer, admitted_sealed
from ldp_client import StorageError
from ldp_client.answering import perturb
from ldp_client.tokens import finished_token, token_request
from ldp_protocols import Campaign, DocumentError, encode_upload
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.oblivious import seal_header, sealed_bytes
from ldp_protocols.tokens import credentials, relay_input, token_input

FOR_RELAYS = generate_private_key(65537, 2048)
GATEWAY = Gateway(5, bytes([9] + [0] * 31))


@pytest.fixture
def sealing(server, draft):
    """A campaign with a gateway, and an issuer that signs for relays."""
    named = {"gateway": GATEWAY.to_json(), "issuer": issuer(relay_key=public_key(FOR_RELAYS))}
    return server.publish({**draft, **named})


def signed(message, key=FOR_RELAYS):
    return message + key.sign(message, PSS(MGF1(SHA384()), 48), SHA384())


def token_of(campaign, person):
    return credentials(signed(relay_input(campaign, bytes([person]) * 32)))


def sealed(campaign):
    return (seal_header(5, 1) + os.urandom(4096))[: sealed_bytes(campaign.upload_bytes)]


@pytest.fixture
def build(server, tmp_path):
    def made(campaign, least=3):
        return Relay(server.url, campaign.id, storage=tmp_path / "relay.db", mixing=Mixing(least))

    return made


def test_a_signature_has_one_form(draft):
    """With the modulus added it verifies as well (RFC 8017, 5.2.2): whoever reads bytes would take it for another."""
    campaign = Campaign.compile({**draft, "issuer": issuer()})
    message, modulus = token_input(campaign, [bytes(16)]), SIGNER.public_key().public_numbers().n
    tokens = (signed(message, SIGNER) for _ in range(1_000))
    signature = next(
        one for token in tokens if (one := int.from_bytes(token[len(message) :], "big")) + modulus < 1 << 2048
    )
    for number, is_signed in ((signature, True), (signature + modulus, False), (modulus, False)):
        assert _is_signed(campaign.issuer, message, message + number.to_bytes(256, "big")) is is_signed


def test_a_sealed_upload_without_a_token_of_its_issuer_for_its_relays_is_refused(build, sealing, draft):
    relay = build(sealing)
    named = {"gateway": GATEWAY.to_json(), "issuer": sealing.issuer.to_json()}
    other = Campaign.compile({**draft, "title": "another", **named})
    report = perturb(sealing, RECORD, "yes")[0]
    good = relay_input(sealing, bytes(32))
    cases = {
        "missing-relay-token": [None, "", "Bearer x", "PrivateToken token=abc"],
        "wrong-relay-token": [
            token_of(other, 1),
            shown_for(sealing, report),
            credentials(signed(good, SIGNER)),
            credentials(signed(token_input(sealing, [report.id]))),
            credentials(good + bytes(256)),
            credentials(good + b"\xff" * 256),
        ],
    }
    for code, shown in cases.items():
        for one in shown:
            with pytest.raises(NotAdmittedError) as refused:
                relay.collect_sealed(sealed(sealing), one)
            assert refused.value.code == code
    assert relay.gathering() == 0


def test_every_bit_of_a_token_counts(sealing):
    token = signed(relay_input(sealing, bytes(32)))
    assert admitted_sealed(sealing, credentials(token)) == "admitted/" + "00" * 32
    for place in range(0, len(token), 7):
        wrong = bytearray(token)
        wrong[place] ^= 1
        with pytest.raises(NotAdmittedError):
            admitted_sealed(sealing, credentials(bytes(wrong)))


def test_a_person_is_in_a_batch_once_however_often_and_whatever_is_sent_also_after_a_restart(build, sealing):
    relay = build(sealing)
    for _ in range(7):
        relay.collect_sealed(sealed(sealing), token_of(sealing, 1))
    assert relay.gathering() == 1
    again = build(sealing)
    again.collect_sealed(sealed(sealing), token_of(sealing, 1))
    again.collect_sealed(sealed(sealing), token_of(sealing, 2))
    assert again.gathering() == 2


def test_who_was_in_a_batch_that_has_left_is_in_no_other(build, sealing, server):
    relay = build(sealing, least=2)
    for person in (1, 2):
        relay.collect_sealed(sealed(sealing), token_of(sealing, person))
    relay.run_once(5)  # The server of this test is no gateway: what matters is that the pool has left.
    assert (relay.gathering(), relay.queued()) == (0, 2)
    for person in (1, 2, 3):
        relay.collect_sealed(sealed(sealing), token_of(sealing, person))
    assert relay.gathering() == 1


def test_a_refusal_for_want_of_room_spends_no_token(sealing, server, tmp_path):
    policy = replace(RELAY_POLICY, most_queued_reports=1)
    small = Relay(server.url, sealing.id, storage=tmp_path / "relay.db", mixing=Mixing(1), policy=policy)
    small.collect_sealed(sealed(sealing), token_of(sealing, 1))
    with pytest.raises(StorageError):
        small.collect_sealed(sealed(sealing), token_of(sealing, 2))
    large = Relay(server.url, sealing.id, storage=tmp_path / "relay.db", mixing=Mixing(3))
    large.collect_sealed(sealed(sealing), token_of(sealing, 2))
    assert large.gathering() == 2


def test_without_a_key_for_relays_sealed_uploads_are_taken_as_they_come(build, server, draft):
    campaign = server.publish({**draft, "gateway": GATEWAY.to_json(), "issuer": issuer()})
    relay = build(campaign)
    for _ in range(2):
        relay.collect_sealed(sealed(campaign))
    assert relay.gathering() == 2


def test_an_answer_in_the_clear_is_admitted_by_its_own_token_once(build, server, draft):
    campaign = server.publish({**draft, "issuer": issuer()})
    relay = build(campaign, least=9)
    reports = [perturb(campaign, RECORD, "yes") for _ in range(2)]
    bodies = [encode_upload(one, campaign) for one in reports]
    for shown, code in {None: "missing-answer-token", shown_for(campaign, reports[1][0]): "wrong-answer-token"}.items():
        with pytest.raises(NotAdmittedError) as refused:
            relay.collect(bodies[0], shown)
        assert refused.value.code == code
    for _ in range(3):
        assert relay.collect(bodies[0], shown_for(campaign, reports[0][0])) == {}
    assert relay.gathering() == 1
    both = encode_upload(reports[0] + reports[1], campaign)
    with pytest.raises(DocumentError):
        relay.collect(both, shown_for(campaign, reports[0][0]))
    relay.collect(bodies[1], shown_for(campaign, reports[1][0]))
    assert relay.gathering() == 2


def test_the_tokens_of_a_person_are_of_two_keys_and_have_nothing_in_common(sealing, tmp_path, code_of):
    """So that who sees both, the issuer with the relay and the aggregator, cannot tell which two are one person's."""
    signer = TokenIssuer(SIGNER, tmp_path / "people.sqlite", 1, FOR_RELAYS)
    secret = os.urandom(32)
    answers = [signer.sign("ann", token_request(sealing, secret, for_relay=kind)) for kind in (False, True)]
    for_answer = finished_token(sealing, secret, answers[0])
    for_relay = finished_token(sealing, secret, answers[1], for_relay=True)
    parts = [{one[at : at + 32] for at in (2, 34, 66)} for one in (for_answer, for_relay)]
    assert not parts[0] & parts[1]
    admitted_sealed(sealing, credentials(for_relay))
    ids = [report.id for report in perturb(sealing, RECORD, "yes", secret=secret)]
    admitted_answer(sealing, credentials(for_answer), ids)
    for kind in (False, True):  # One of each key, and no two of one.
        other = token_request(sealing, os.urandom(32), for_relay=kind)
        assert code_of(Exception, signer.sign, "ann", other) == "tokens-spent"
