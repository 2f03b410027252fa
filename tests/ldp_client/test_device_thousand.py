"""A thousand devices: over a day of a wrong clock none of their answers is lost, and after an end none is asked."""

import json

import pytest

from ldp_client import Device, MemoryStorage, TransportError
from ldp_client.network.transport import PROBLEM_TYPE, Response
from ldp_client.testing import FakeClock
from ldp_protocols import Campaign, decode_upload

DEVICES = 1000
HOUR, DAY = 3600, 86400
START = 1_800_000_000.0
RECORD = {"income": 30_000.0}
JSON = {"content-type": "application/json"}


def problem(status, code):
    return Response(status, {"content-type": PROBLEM_TYPE}, json.dumps({"code": code}).encode())


def taken(*pairs):
    return Response(200, JSON, json.dumps({"rejected": pairs}).encode())


WRONG = [
    lambda _: problem(409, "campaign-closed"),
    lambda report: taken([report, "campaign-full"]),
    lambda report: taken([report, "window-over"]),
    lambda _: problem(409, "campaign-closing"),
    lambda _: problem(503, "clock-unsettled"),
    lambda _: TransportError("unreachable"),
]
"""What a server says while its clock is 200 days off: of an upload, with the id of its one report."""


class Server:
    """Answers all devices, with what it says now."""

    def __init__(self, campaign):
        self.campaign, self.state, self.counted = campaign, "open", []
        self.says = lambda _: taken()

    def send(self, request, timeout, cancellation=None):
        if request.body is None:
            told = (
                json.dumps({"state": self.state}).encode() if request.url.endswith("/state") else self.campaign.document
            )
            return Response(200, JSON, told)
        (block,) = decode_upload(request.body, self.campaign)
        answer = self.says(block.ids.hex())
        if isinstance(answer, TransportError):
            raise answer
        self.counted += [block.ids] * (answer == taken())
        return answer


@pytest.fixture
def served(draft):
    return Server(Campaign.compile(draft))


def devices(server):
    """Each with its own clock, which for a day is right, 200 days ahead or 200 days behind, and its campaign."""
    for number in range(DEVICES):
        off = (0, 200 * DAY, -200 * DAY)[number % 3]
        clock = FakeClock(START + off)
        device = Device(MemoryStorage(), max_total_epsilon=8, transport=server, clock=clock)
        yield number, off, clock, device, device.campaign("https://a.example", server.campaign.id, max_epsilon=4)


def test_over_a_day_of_a_wrong_clock_no_answer_is_lost(served):
    for number, off, clock, device, part in devices(served):
        part.load(served.campaign.document)
        part.grant()
        part.contribute(RECORD, "yes")
        for hours in (0, 1, 7, 14, 21, 23.99, 24, 31):
            clock.now = START + hours * HOUR + (off if hours < 24 else 0)
            served.says = WRONG[number % len(WRONG)] if hours < 24 else lambda _: taken()
            device.run_once(timeout=1e-6)
            status = part.status()
            assert status.queued + status.sent == 1, (number, hours)
            assert (status.dropped, status.quarantined) == ({}, {}), (number, hours)
        assert (status.sent, part.status().fate) == (1, "arrived"), number
    assert len(served.counted) == len(set(served.counted)) == DEVICES


def test_after_a_closing_a_filling_and_a_deletion_nobody_new_is_asked_and_nothing_spent(served):
    for number, _, _, device, part in devices(served):
        served.state = ("closed", "full", "deleted")[number % 3]
        assert part.next_step() == ("nothing", f"campaign-{served.state}")
        assert device.ledger().total_epsilon == 0.0
    assert served.counted == []
