"""A campaign with an issuer counts an answer with a token of just that answer, once, whichever way it comes."""

import os
from base64 import urlsafe_b64decode

import pytest
from cells import cell_campaign, cells_of
from drafts import draft, text
from issuing import PUBLISHED, issuer, sign

from ldp_aggregator.node_statistics import encode_share
from ldp_aggregator.service.publishing import check_kind
from ldp_client.answering import perturb
from ldp_client.tokens import finished_token, token_request
from protocols import Campaign, DocumentError, DraftError, Report, encode_upload
from protocols.exact import SYSTEM_COINS
from protocols.tokens import challenge, credentials

ELSEWHERE = {"Origin": "https://other.example"}
"""aiohttp answers whoever says so."""


def device(campaign, secret=None):
    """A device's upload, and the header that shows its token."""
    secret = secret or os.urandom(32)
    token = finished_token(campaign, secret, sign(token_request(campaign, secret)))
    record = {feature.name: feature.values[0] for feature in campaign.features}
    reports = perturb(campaign, record, campaign.label.classes[0], secret=secret, coins=SYSTEM_COINS)
    return reports, credentials(token)


@pytest.fixture
async def campaign(server):
    return await server.publish(issuer=issuer())


@pytest.fixture(params=[{}, ELSEWHERE], ids=["short", "aiohttp"])
def send(request, server):
    async def ask(campaign, reports, shown=None, **headers):
        shown = {} if shown is None else {"Authorization": shown}
        body = reports if isinstance(reports, bytes) else encode_upload(reports, campaign)
        status, told = await server.upload(campaign, body, **request.param, **shown, **headers)
        return status, told.get("code", told.get("rejected"))

    return ask


async def counted(server, campaign):
    return int((await server.store.tally(campaign.id)).n.sum())


async def test_an_answer_counts_once_with_its_token_and_never_without(server, campaign, send):
    reports, shown = device(campaign)
    assert await send(campaign, reports) == (401, "missing-answer-token")
    assert await send(campaign, reports, "Bearer x") == (401, "missing-answer-token")
    assert await send(campaign, reports, server.bearer("relay")["Authorization"]) == (401, "missing-answer-token")
    assert await counted(server, campaign) == 0
    for _ in range(3):
        assert await send(campaign, reports, shown) == (200, [])
    assert await counted(server, campaign) == 1
    (report,) = reports
    other = Report(0, report.id, bytes([report.payload[0] ^ 1]))
    assert await send(campaign, [other], shown) == (200, [[report.id.hex(), "conflicting-report"]])
    assert await counted(server, campaign) == 1


async def test_a_token_is_of_one_answer_in_one_campaign(server, campaign, send):
    reports, shown = device(campaign)
    others, _ = device(campaign)
    assert await send(campaign, others, shown) == (401, "wrong-answer-token")
    assert await send(campaign, [*reports, *others], shown) == (413, "too-many-reports")
    elsewhere = await server.publish(issuer=issuer(), title="elsewhere")
    assert await send(elsewhere, reports, shown) == (401, "wrong-answer-token")
    assert await counted(server, campaign) == await counted(server, elsewhere) == 0


async def test_a_token_with_any_byte_changed_is_none(server, campaign, send):
    reports, shown = device(campaign)
    token = urlsafe_b64decode(shown.split('"')[1])
    for place in (0, 1, 2, 33, 34, 65, 66, 97, 98, 200, 353):
        changed = bytearray(token)
        changed[place] ^= 1
        assert await send(campaign, reports, credentials(bytes(changed))) == (401, "wrong-answer-token")
    assert await send(campaign, reports, credentials(token[:-1])) == (401, "missing-answer-token")
    assert await send(campaign, reports, shown) == (200, [])


async def test_what_is_missing_is_told_as_the_standard_has_it(server, campaign):
    url = f"{server.public}/v1/campaigns/{campaign.id}/reports"
    reports, _ = device(campaign)
    media = {"Content-Type": "application/vnd.ldp-bayes.reports+msgpack"}
    answer = await server.ask("POST", url, data=encode_upload(reports, campaign), headers=media)
    scheme, _, asked = answer.headers["WWW-Authenticate"].partition(" ")
    told = dict(part.split("=", 1) for part in asked.split(", "))
    assert (scheme, list(told)) == ("PrivateToken", ["challenge", "token-key"])
    assert urlsafe_b64decode(told["challenge"].strip('"')) == challenge(campaign)
    assert urlsafe_b64decode(told["token-key"].strip('"')).hex() == PUBLISHED["pkS"]


async def test_invented_devices_without_tokens_of_their_own_count_for_nothing(server, campaign):
    """So many liars as there are tokens, however many devices they invent."""
    shown = [device(campaign)[1] for _ in range(5)]
    ends = []
    for number in range(100):
        reports, _ = device(campaign)
        status, _ = await server.upload(campaign, encode_upload(reports, campaign), Authorization=shown[number % 5])
        ends.append(status)
    assert set(ends) == {401}
    assert await counted(server, campaign) == 0


async def test_all_answers_of_a_device_have_one_token_and_no_group_has_two(server, send):
    features = [text(f"f{n}", "a", "b") for n in range(3)]
    drafted = draft(*features, privacy={"epsilon": 3.0, "answers": "all"}, issuer=issuer())
    campaign = Campaign.compile(drafted)
    await server.store.create_campaign(campaign)
    reports, shown = device(campaign)
    assert len(reports) == len(campaign.groups) > 1
    assert await send(campaign, reports[:-1], shown) == (401, "wrong-answer-token")
    twice = [Report(reports[0].question, bytes(16), reports[0].payload), *reports[1:], reports[0]]
    assert (await send(campaign, twice[: len(reports)], shown))[0] == 401
    doubled = [reports[0], Report(reports[0].question, bytes(16), reports[0].payload)]
    assert await send(campaign, doubled, shown) == (413, "too-many-reports")
    assert await send(campaign, reports, shown) == (200, [])
    assert await counted(server, campaign) == len(reports)


async def test_what_no_device_sends_is_refused_as_ever(campaign, send):
    reports, shown = device(campaign)
    upload = encode_upload(reports, campaign)
    assert await send(campaign, upload[:-1], shown) == (400, "malformed-upload")
    assert await send(campaign, b"no upload", shown) == (400, "malformed-upload")


async def test_other_campaigns_take_what_they_took(server, send):
    plain = await server.publish(title="plain")
    reports, _ = device_without_token(plain)
    assert await send(plain, reports) == (200, [])
    assert sum(await cells_of(server.store, plain)) == 1


def device_without_token(campaign):
    record = {feature.name: feature.values[0] for feature in campaign.features}
    return perturb(campaign, record, "yes", secret=os.urandom(32), coins=SYSTEM_COINS), None


def test_nodes_have_no_part_in_it():
    campaign = cell_campaign(issuer=issuer())
    with pytest.raises(DraftError, match="issuer"):
        check_kind(campaign, federated=True, max_reports=None)
    with pytest.raises(DocumentError, match="each with a token"):
        encode_share(campaign, [0] * 10)
