"""A campaign with an issuer counts an answer with a token of just that answer, once, whichever way it comes."""

import hashlib
import os
from base64 import urlsafe_b64decode
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from cells import cell_campaign
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.hashes import SHA384
from drafts import draft, number, text
from exact_coins import SeededCoins
from issuing import PUBLISHED, SIGNER, issuer, shown_for, sign
from raw_http import ELSEWHERE

from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.node_statistics import encode_share
from ldp_aggregator.server.access import check_answer_token
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.drafts import check_kind
from ldp_aggregator.store import Submission
from ldp_client.answering import perturb
from ldp_client.tokens import finished_token, token_request
from ldp_protocols import Campaign, DocumentError, DraftError, Report, decode_upload, encode_upload
from ldp_protocols.exact import SYSTEM_COINS
from ldp_protocols.tokens import challenge, credentials, token_input
from ldp_simulations.columns import Columns
from ldp_simulations.fidelities import simulate_counts

FRAME = pd.DataFrame({"u": ["1", "2"] * 5, "v": np.linspace(0, 1, 10), "w": ["1", "2", "3", None, None] * 2})
LABELS = ["a", "b", "b", "a", "a"] * 2


def device(campaign):
    """A device's upload, and the header that shows its token."""
    secret = os.urandom(32)
    token = finished_token(campaign, secret, sign(token_request(campaign, secret)))
    record = {feature.name: feature.values[0] for feature in campaign.features}
    reports = perturb(campaign, record, campaign.label.classes[0], secret=secret, coins=SYSTEM_COINS)
    return reports, credentials(token)


@pytest.fixture
async def campaign(server):
    return await server.publish(issuer=issuer())


@pytest.fixture(params=[{}, ELSEWHERE], ids=["short", "aiohttp"])
def send(request, server):
    async def ask(campaign, reports, shown=None):
        shown = {} if shown is None else {"Authorization": shown}
        status, told = await server.upload(campaign, encode_upload(reports, campaign), **request.param, **shown)
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
    assert await send(campaign, [other], shown) == (200, [])
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


@pytest.mark.parametrize("invented", [1000, pytest.param(10_000, marks=pytest.mark.long)])
async def test_invented_devices_with_a_hundred_tokens_move_what_a_hundred_liars_can(server, invented):
    """Each lies as loudly as it can, and shows one of the tokens; the seeds of the honest ones decide nothing."""
    plain, campaign = (cell_campaign(4, title=title, issuer=issuer()) for title in ("honest", "attacked"))
    honest, lies = device_answers(campaign, 2000), device_answers(campaign, invented, cell=3)
    for one in (plain, campaign):
        await server.store.create_campaign(one)
        await server.store.count([Submission(one, decode_upload(encode_upload(honest, one), one))])
    shown = [shown_for(campaign, report) for report in lies[:100]]
    ends = Counter()
    for place, report in enumerate(lies):
        headers = {"Authorization": shown[place % 100]}
        status, _ = await server.upload(campaign, encode_upload([report], campaign), **headers)
        ends[status] += 1
    assert ends == {200: 100, 401: invented - 100}
    before, after = [estimate(one, await server.store.tally(one.id)) for one in (plain, campaign)]
    moved = np.abs(after.questions[0].cells.value - before.questions[0].cells.value)
    assert 0.5 < moved[3] / (100 * after.per_liar[0][3]) <= 1
    assert (moved <= 100 * after.per_liar[0] * (1 + 1e-12)).all()


def device_answers(campaign, count, cell=None):
    """Answers under ids of their own; those of liars all speak for one cell."""
    mechanism, coins = campaign.questions[0].mechanism, SeededCoins(count)
    lie = None if cell is None else analysis_of(mechanism).loudest([cell])
    return [
        Report(0, hashlib.sha256(b"%d %d" % (count, n)).digest()[:16], lie or mechanism.perturb(n % 2, coins))
        for n in range(count)
    ]


def test_of_a_person_with_three_tokens_three_lies_are_counted_as_one_liars():
    features = [text("u", "1", "2"), number("v"), {**text("w", "1", "2", "3"), "missing": True}]
    drafts = [draft(*features, issuer=issuer(tokens=tokens)) for tokens in (1, 3)]
    one, three = (told_of_liars(Campaign.compile(each)) for each in drafts)
    assert one.keys() == three.keys()
    for name in one:
        np.testing.assert_allclose(three[name], 3 * one[name], rtol=1e-12)


def told_of_liars(campaign):
    """What one liar moves, of numbers that grow with the lies."""
    found = estimate(campaign, simulate_counts(Columns.of(campaign, FRAME, LABELS), np.random.default_rng(7), 200_000))
    told = {f"question {place}": reach for place, reach in enumerate(found.per_liar)}
    return told | {"classes": found.class_prior_per_liar, "missing": found.missing["w"].per_liar}


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


def test_nodes_have_no_part_in_it():
    campaign = cell_campaign(issuer=issuer())
    with pytest.raises(DraftError, match="issuer"):
        check_kind(campaign, federated=True, max_reports=None)
    with pytest.raises(DocumentError, match="each with a token"):
        encode_share(campaign, [0] * 10)


def test_one_token_pays_for_one_report_where_a_device_answers_one_question():
    campaign = Campaign.compile(
        draft(text("u", "1", "2"), text("v", "1", "2"), issuer=issuer(), privacy={"epsilon": 1.0})
    )
    (first,), (second,) = (perturb(campaign, {"u": "1", "v": "1"}, "a") for _ in range(2))
    reports = [first, Report((first.question + 1) % 3, second.id, first.payload)]
    signed = token_input(campaign, [one.id for one in reports])
    shown = credentials(signed + SIGNER.sign(signed, PSS(MGF1(SHA384()), 48), SHA384()))
    blocks = decode_upload(encode_upload(reports, campaign), campaign)
    with pytest.raises(ProblemError):
        check_answer_token(campaign, blocks, shown)
    alone = decode_upload(encode_upload([first], campaign), campaign)
    check_answer_token(campaign, alone, shown_for(campaign, first))
