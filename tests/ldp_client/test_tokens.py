"""A device in a campaign with an issuer: it obtains one token, shows it with its answer, and answers no other way."""

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.hashes import SHA384
from issuing import MODULUS, SIGNER, issuer, sign
from records import RECORD, Untouchable

from ldp_client import ConsentError, RefusedError
from ldp_client.draw import draw_questions
from ldp_client.ledger import read_installation
from ldp_client.testing import Answer
from ldp_client.tokens import finished_token, token_request
from ldp_protocols import LdpError
from ldp_protocols.tokens import read_credentials, token_input
from ldp_protocols.wire import decode_upload, report_id

TOKEN_BYTES = 354


SECRETS = [hashlib.sha256(bytes([n])).digest() for n in range(8)]


@pytest.fixture
def draft(draft):
    return {**draft, "issuer": issuer()}


@pytest.fixture
def shown(server, monkeypatch):
    """The header ``Authorization`` of every upload."""
    seen = []
    handler = server._server.RequestHandlerClass
    real = handler.do_POST

    def noted(self):
        seen.append(self.headers.get("Authorization"))
        real(self)

    monkeypatch.setattr(handler, "do_POST", noted)
    return seen


def is_signed(token, campaign, ids):
    SIGNER.public_key().verify(token[-256:], token[:-256], PSS(MGF1(SHA384()), 48), SHA384())
    return token[:-256] == token_input(campaign, ids)


def test_an_app_is_told_to_obtain_a_token_and_then_to_contribute(start, server, campaign, shown, code_of):
    requests = []

    def issue(request):
        requests.append(request)
        return sign(request)

    device, part = start()
    assert part.next_step().step == "ask"
    with pytest.raises(ConsentError):
        part.obtain_token(issue)
    part.grant()
    assert part.next_step().step == "token"
    assert code_of(RefusedError, part.contribute, Untouchable(), "yes") == "token-missing"
    part.obtain_token(issue)
    part.obtain_token(issue)
    assert len(requests) == 1, "there is one"
    device, part = start()
    assert part.next_step().step == "contribute"
    part.contribute(RECORD, "yes")
    assert device.run_once(5)
    assert part.next_step().step == "nothing"
    assert server.counted(campaign.id) == 1
    (header,), (upload,) = shown, server.uploads
    (block,) = decode_upload(upload, campaign)
    token = read_credentials(header)
    assert is_signed(token, campaign, [block.ids])
    for seen in (requests[0][3:], sign(requests[0])):
        for at in range(0, 256, 8):
            assert seen[at : at + 8] not in token + upload, "the issuer saw it"


def test_a_request_is_the_same_bytes_each_time_and_another_for_another_device_or_campaign(campaign, server, draft):
    other = server.publish({**draft, "title": "another"})
    made = [token_request(of, secret) for of in (campaign, other) for secret in SECRETS]
    assert made == [token_request(of, secret) for of in (campaign, other) for secret in SECRETS]
    assert len({request[3:] for request in made}) == len(made)
    assert {(len(request), request[:3]) for request in made} == {(259, b"\0\2" + campaign.issuer.key_id[-1:])}
    for secret in SECRETS:
        token = finished_token(campaign, secret, sign(token_request(campaign, secret)))
        (question,) = draw_questions(campaign, secret)
        assert len(token) == TOKEN_BYTES
        assert is_signed(token, campaign, [report_id(secret, campaign, question)])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda signed: b"",
        lambda signed: bytes(256),
        lambda signed: signed[:-1],
        lambda signed: signed + b"\0",
        lambda signed: bytes(1) + signed,
        lambda signed: (int.from_bytes(signed, "big") ^ 1).to_bytes(256, "big"),
        lambda signed: (int.from_bytes(signed, "big") + MODULUS).to_bytes(257, "big"),
        lambda signed: MODULUS.to_bytes(256, "big"),
        lambda signed: b"\xff" * 256,
    ],
)
def test_an_answer_that_is_no_signature_is_refused_and_nothing_is_stored(wrong, start, code_of):
    _, part = start(granted=True)
    assert code_of(LdpError, part.obtain_token, lambda request: wrong(sign(request))) == "wrong-token"
    assert part.next_step().step == "token"
    part.obtain_token(sign)
    assert part.next_step().step == "contribute"


def test_what_the_apps_own_call_raises_comes_out_and_it_can_be_tried_again(start):
    _, part = start(granted=True)
    with pytest.raises(ZeroDivisionError):
        part.obtain_token(lambda request: request[: 1 // 0])
    assert part.next_step().step == "token"


def test_somebody_who_withdraws_while_the_issuer_answers_has_no_token(start):
    _, part = start(granted=True)

    def issue(request):
        part.withdraw()
        return sign(request)

    with pytest.raises(ConsentError):
        part.obtain_token(issue)
    assert part.next_step().step == "nothing"


def test_a_device_that_was_erased_and_agreed_anew_while_the_issuer_answers_keeps_no_token_of_before(start):
    device, part = start(granted=True)

    def issue(request):
        device.erase()
        part.grant()
        return sign(request)

    with pytest.raises(ConsentError):
        part.obtain_token(issue)
    assert part.next_step().step == "token"


def test_a_retry_shows_the_same_token_with_the_same_bytes(start, server, shown, clock):
    server.answer_with = lambda number: Answer(503, "overloaded", commit=number == 0) if number < 2 else None
    device, part = start(granted=True)
    part.obtain_token(sign)
    part.contribute(RECORD, "yes")
    for _ in range(9):
        device.run_once(5)
        clock.advance(3600)
    assert part.status().fate == "arrived"
    assert (len(shown), len(set(shown)), len(set(server.uploads))) == (3, 1, 1)


def test_all_answers_of_a_device_leave_together_with_their_one_token(server, draft, join, shown, clock):
    """Also where the server says that it is too much, or finds one of them wrong: parts of it have no token."""
    campaign = server.publish({**draft, "privacy": {"epsilon": 4.0, "answers": "all"}})
    refusals = [Answer(413, "body-too-large"), Answer(400, "malformed-upload")]
    for refusal in refusals:
        server.answer_with = lambda _, refusal=refusal: refusal
        device, part = join(of=campaign)
        part.obtain_token(sign)
        part.contribute(RECORD, "yes")
        before = len(server.uploads)
        device.run_once(5)
        (upload,) = server.uploads[before:]
        blocks = decode_upload(upload, campaign)
        assert len(blocks) == len(campaign.groups)
        assert is_signed(read_credentials(shown[-1]), campaign, [block.ids for block in blocks])
        assert len(device.quarantined()) == len(blocks)
        server.answer_with = lambda _: None
        part.requeue()
        assert device.run_once(5)
        assert part.status().fate == "arrived"


def test_a_copy_of_what_is_kept_has_the_token_and_erasing_takes_it(start, campaign):
    device, part = start(granted=True)
    assert device.export()["tokens"] == {}
    part.obtain_token(sign)
    with device._install.storage.transaction(write=False) as transaction:
        secret = read_installation(transaction).secret
    token = finished_token(campaign, secret, sign(token_request(campaign, secret)))
    assert device.export()["tokens"] == {campaign.id: token.hex()}
    device.erase()
    assert device.export()["tokens"] == {}


def test_a_copy_has_the_token_of_its_own_user_alone(join, campaign):
    device, _ = join()
    user, part = join(device=device.scope("user"))
    part.obtain_token(sign)
    assert [list(one.export()["tokens"]) for one in (device, user)] == [[], [campaign.id]]


def test_a_campaign_without_an_issuer_needs_none(server, draft, join, code_of):
    _, part = join(of=server.publish({**draft, "issuer": None}))
    assert part.next_step().step == "contribute"
    assert code_of(LdpError, part.obtain_token, sign) == "no-issuer"
