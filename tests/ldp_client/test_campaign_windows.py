"""A device in a series: one window for life, drawn from its secret, and one answer in it or none."""

import json
from collections import Counter
from datetime import datetime, timezone

import pytest
from records import RECORD, Untouchable

from ldp_client import Policy, RefusedError
from ldp_client.campaign import _expiry
from ldp_client.draw import draw_questions, draw_window
from ldp_client.ledger import read_installation
from ldp_client.testing import Answer
from ldp_protocols import decode_upload
from ldp_protocols.document.windows import WINDOW_GRACE

CLOCK_TOLERANCE = 24 * 3600.0


WEEK = 7 * 86400.0
COUNT = 5


@pytest.fixture
def draft(draft, clock):
    start = datetime.fromtimestamp(clock.now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**draft, "windows": {"from": start, "length": "P7D", "count": COUNT}}


@pytest.fixture
def start(join, campaign, tmp_path):
    """Start the app on the same file; returns the campaign as the device sees it, and the device's own window."""

    def make(**options):
        device, part = join(storage=tmp_path / "device.db", **options)
        with device._install.storage.transaction(write=False) as transaction:
            secret = read_installation(transaction).secret
        return device, part, draw_window(campaign, secret) if secret else None

    return make


@pytest.mark.parametrize(("age", "expires"), [(WEEK, WEEK), (100 * WEEK, WEEK + WINDOW_GRACE.total_seconds())])
def test_an_answer_is_given_up_with_its_window_and_at_the_policys_age_at_the_latest(campaign, clock, age, expires):
    """Of the first window, by its place among all that are asked, and of the third two windows later."""
    per_window, policy = len(campaign.questions), Policy(report_age=age)
    for window in (0, 2):
        for asked in (window * per_window, (window + 1) * per_window - 1):
            at = clock.now + window * WEEK
            assert _expiry(campaign, asked, at, policy) == at + expires


def test_a_device_answers_in_its_window_and_in_no_other(start, server, campaign, clock):
    first = clock.now
    answered = []
    start()
    for week in range(-1, COUNT + 1):
        clock.now = first + week * WEEK + WEEK / 2
        device, part, own = start(granted=False)
        if week < 0:
            assert part.next_step() == ("nothing", "campaign-not-open")
            continue
        if week == own:
            assert part.next_step().step == "contribute"
            receipt = part.contribute(RECORD, "yes")
            answered.append(week)
            assert [question // len(campaign.questions) for question in receipt.questions] == [own]
            assert f", in window {own + 1} of {COUNT}: 1 answer" in str(device.ledger())
        if week < own:
            assert part.next_step() == ("nothing", "window-not-open")
            assert f"window {own + 1} of {COUNT}" in str(part.refusal())
            with pytest.raises(RefusedError, match="come again"):
                part.contribute(Untouchable(), "yes")
            part.withdraw()
            part.grant()  # A person may agree before it opens.
        if week > own:
            assert part.next_step().step == "nothing"
            assert part.contribute(Untouchable(), "no").questions == receipt.questions
        assert part.status().contributed == (week >= own)
        assert device.run_once(5)
    assert answered == [own]
    assert server.counted(campaign.id) == 1
    (block,) = decode_upload(server.uploads[0], campaign)
    assert block.question // len(campaign.questions) == own


def test_a_device_that_was_off_in_its_window_answers_in_none(start, server, campaign, clock):
    device, part, own = start()
    clock.now += (own + 1) * WEEK
    assert part.refusal().code == "window-over"
    with pytest.raises(RefusedError, match="no other"):
        part.contribute(Untouchable(), "yes")
    device, part, again = start(granted=False)
    assert (again, part.next_step().step) == (own, "nothing")
    assert device.ledger().total_epsilon == 0
    assert device.run_once(5)
    assert not server.uploads


def test_a_clock_that_runs_back_makes_no_second_answer(start, server, campaign, clock):
    first = clock.now
    _, _, own = start()
    clock.now = first + own * WEEK
    device, part, _ = start(granted=False)
    receipt = part.contribute(RECORD, "yes")
    for moment in (first - CLOCK_TOLERANCE, first, first + own * WEEK, first + COUNT * WEEK):
        clock.now = moment
        device, part, _ = start(granted=False)
        assert part.contribute({}, "no") == receipt
    assert device.run_once(5)
    assert server.counted(campaign.id) == 1


def test_a_clock_that_runs_ahead_keeps_the_answer_until_the_server_takes_it(start, server, campaign, clock):
    _, _, own = start()
    clock.now += own * WEEK
    device, part, _ = start()
    part.contribute(RECORD, "yes")

    def early(number):
        (block,) = decode_upload(server.uploads[number], campaign)
        body = json.dumps({"rejected": [[block.ids.hex(), "window-not-open"]]}).encode()
        return Answer(headers={"Content-Type": "application/json"}, body=body) if number < 3 else None

    server.answer_with = early
    assert not device.run_once(0.5)
    assert part.status().problem == "window-not-open"
    assert (part.status().queued, part.status().fate) == (1, "on-its-way")
    assert device.run_once(3600)
    assert (len(set(server.uploads)), len(server.uploads)) == (1, 4)
    assert part.status().fate == "arrived"


def test_an_answer_is_given_up_when_its_window_is_long_over(start, server, clock):
    _, _, own = start()
    clock.now += own * WEEK
    device, part, _ = start()
    part.contribute(RECORD, "yes")
    server.answer_with = lambda _: Answer(status=503, code="store-unavailable")
    for _ in range(30):
        device.run_once(0.5)
        clock.advance(86_400)
    assert part.status().fate == "expired"


def test_an_answer_is_kept_until_a_week_after_its_own_window(start, campaign, clock):
    first = clock.now
    _, _, own = start()
    clock.now += own * WEEK
    device, part, _ = start()
    part.contribute(RECORD, "yes")
    assert device.export()["delivery"][campaign.id]["expires"] == first + (own + 1) * WEEK + WEEK


def test_windows_are_drawn_evenly_and_apart_from_the_question(campaign):
    secrets = [number.to_bytes(32, "big") for number in range(4000)]
    drawn = Counter((draw_window(campaign, secret), draw_questions(campaign, secret)[0].index) for secret in secrets)
    weights = [question.weight for question in campaign.questions]
    for (_, question), times in drawn.items():
        expected = len(secrets) / COUNT * weights[question] / sum(weights)
        assert abs(times - expected) < 6 * expected**0.5 + 6
    assert {window for window, _ in drawn} == set(range(COUNT))
