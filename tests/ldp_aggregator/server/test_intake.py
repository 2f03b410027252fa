"""Questions before an upload gets a place in the queue: how much, how often, what the operator wants to know."""

import asyncio
import contextlib

import drafts
import pytest
from cells import cells_of, reports_of
from drafts import text
from issuing import issuer, shown_for
from raw_http import ELSEWHERE

from ldp_aggregator.server import intake as intake_module
from ldp_aggregator.server.intake import Admission, admission_of
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.server.upload_queue import for_a_device
from ldp_aggregator.service.settings import Limits, Settings
from ldp_protocols import Campaign, LdpError, Report, decode_upload, encode_upload

BURST_SECONDS = 5.0
MOST_KEPT = 1024
LEAST_BYTES = 8 << 10


def draft(values=3, features=4):
    texts = [text(f"f{n}", *(f"v{v}" for v in range(values)), missing=True) for n in range(features)]
    return drafts.draft(*texts, privacy={"epsilon": 1.0, "answers": "all", "discrete": "oue"})


@pytest.mark.parametrize("values", [3, 5000])
@pytest.mark.parametrize("features", [1, 200])
def test_every_device_can_send_all_its_answers(values, features):
    if values * features > 100_000:
        values = 300
    campaign = Campaign.compile(draft(values, features))
    answers = [Report(group[0].index, bytes(16), b"\0" * group[0].mechanism.width) for group in campaign.groups]
    upload = encode_upload(answers, campaign)
    decode_upload(upload, campaign)
    most = for_a_device(campaign, Limits())
    assert most.reports == len(answers)
    assert len(upload) <= most.bytes <= max(LEAST_BYTES, len(upload) + 2 * len(answers))


def test_an_operator_can_only_lower_what_a_device_may_send():
    campaign = Campaign.compile(draft())
    most = for_a_device(campaign, Limits(reports_per_upload=2, body_bytes=1024))
    assert (most.reports, most.bytes) == (2, 1024)


@pytest.mark.parametrize("headers", [{}, ELSEWHERE], ids=["short", "aiohttp"])
async def test_a_body_of_the_greatest_length_is_read_and_one_of_a_byte_more_is_not(server, headers):
    campaign = await server.publish()
    for length, refused in ((8192, (400, "malformed-upload")), (8193, (413, "body-too-large"))):
        assert await server.refused(campaign, bytes(length), **headers) == refused


def test_a_rate_lets_a_burst_pass_and_then_so_many_a_second():
    now = [0.0]
    admission = Admission(per_second=10, clock=lambda: now[0])

    def refusal(campaign):
        try:
            admission.count(campaign)
        except ProblemError as problem:
            return problem
        return None

    def admitted(tries, campaign="a"):
        refused = [problem for _ in range(tries) if (problem := refusal(campaign)) is not None]
        assert {(problem.status, problem.code) for problem in refused} <= {(429, "too-many-uploads")}
        assert {int(problem.headers["Retry-After"]) for problem in refused} <= set(range(1, 61))
        return tries - len(refused)

    burst = int(10 * BURST_SECONDS)
    assert admitted(2 * burst) == burst
    now[0] += 1
    assert admitted(100) == 10
    assert admitted(2 * burst, campaign="b") == burst, "each campaign has its own"
    now[0] += 1000
    assert admitted(2 * burst) == burst
    for number in range(2 * MOST_KEPT):
        admission.count(str(number))
    assert len(admission._room) == MOST_KEPT, "rates are kept of so many"


def test_a_rate_below_one_in_the_time_of_a_burst_admits_one_now_and_then():
    now = [0.0]
    admission = Admission(per_second=0.01, clock=lambda: now[0])
    admitted = 0
    for _ in range(1000):
        with contextlib.suppress(ProblemError):
            admission.count("a")
            admitted += 1
        now[0] += 1
    assert admitted == 10


async def test_a_campaign_that_gets_too_many_uploads_says_so_on_both_ways(serving):
    async with serving(uploads_per_second=0.4) as server:  # Two at once.
        campaign = await server.publish()
        assert [(await server.upload(campaign, [number]))[0] for number in range(2)] == [200, 200]
        for headers in ({}, ELSEWHERE):
            assert await server.refused(campaign, [3], **headers) == (429, "too-many-uploads")
        assert (await server.upload(campaign, [4], **server.bearer("relay")))[0] == 200


async def test_a_check_of_the_operators_own_is_asked_before_every_upload(serving, monkeypatch):
    asked = []

    async def with_a_word(campaign_id, headers):
        await asyncio.sleep(0)
        asked.append(campaign_id)
        return headers.get("X-Word") == "sesame"

    monkeypatch.setattr(intake_module, "_load", lambda name: with_a_word if name == "my.module:check" else None)
    async with serving(admission="my.module:check") as server:
        campaign = await server.publish()
        for headers in ({}, {}, ELSEWHERE):
            assert await server.refused(campaign, [1], **headers) == (403, "not-admitted")
        assert not any(await cells_of(server.store, campaign))
        for number in range(3):
            assert (await server.upload(campaign, [number], **{"X-Word": "sesame"}))[0] == 200
        assert asked == [campaign.id] * 6
        assert (await server.upload(campaign, [4], **server.bearer("relay")))[0] == 200
        assert len(asked) == 6, "who has shown a relay's token is admitted"


async def test_the_check_is_asked_of_answers_with_a_token_too_and_of_each_campaign_by_its_id(serving, monkeypatch):
    """An issuer says who may answer a campaign, the operator's check who may come at all."""
    shut, asked = set(), []

    async def check(campaign_id, headers):
        asked.append(campaign_id)
        return campaign_id not in shut

    monkeypatch.setattr(intake_module, "_load", lambda name: check if name == "my.module:check" else None)
    async with serving(admission="my.module:check") as server:
        signed = [await server.publish(title=title, issuer=issuer()) for title in ("first", "second")]
        plain = await server.publish(title="third")
        shut |= {signed[0].id}
        for headers in ({}, ELSEWHERE):
            for campaign in signed:
                (report,) = reports_of(campaign, [1])
                shown = {"Authorization": shown_for(campaign, report)}
                status, told = await server.upload(campaign, [1], **headers, **shown)
                assert (status, told.get("code")) == ((403, "not-admitted") if campaign.id in shut else (200, None))
            assert (await server.upload(plain, [1], **headers))[0] == 200
        assert not any(await cells_of(server.store, signed[0]))
        assert await cells_of(server.store, signed[1], 2) == [0, 1]
        assert asked == [*(one.id for one in signed), plain.id] * 2


def test_a_check_is_loaded_by_its_name_and_one_that_cannot_be_is_a_wrong_setting():
    assert admission_of(Settings(admission="json:loads")).checks
    assert not admission_of(Settings()).checks
    for name in ("no.such.module:check", "json:nothing", "math:pi"):
        with pytest.raises(LdpError, match="setting admission"):
            admission_of(Settings(admission=name))
