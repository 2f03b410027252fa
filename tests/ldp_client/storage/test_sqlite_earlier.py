"""Storages that earlier states of this software have written: each opens, tells what was spent, and delivers."""

import shutil
from pathlib import Path

import pytest

from ldp_client import ConsentError, Device
from ldp_client.network.transport import Response
from ldp_client.testing import FakeClock
from ldp_protocols import decode_upload

KEPT = Path(__file__).resolve().parents[2] / "storages"
NAMES = sorted(one.name for one in KEPT.iterdir() if one.is_dir())
URL = "https://collect.example.org"
CAMPAIGN = "ofzTygr7bZ0VgiAQmPyTDbYVgkPpbuGwpsngCRU5o7o"
ANSWERED_AT = 1_800_000_000.0
HOUR = 3600.0


class Taking:
    """An aggregator that takes everything."""

    def __init__(self):
        self.requests = []

    def send(self, request, timeout, cancellation=None):
        self.requests.append(request)
        return Response(200, {"content-type": "application/json"}, b'{"rejected": []}')


@pytest.fixture(params=NAMES)
def opened(request, tmp_path):
    """A device an hour later, its part in the campaign, and what it sends."""
    for name in ("device.db", "device.db.cache"):
        shutil.copyfile(KEPT / request.param / name, tmp_path / name)
    transport = Taking()
    clock = FakeClock(ANSWERED_AT + HOUR)
    device = Device(tmp_path / "device.db", max_total_epsilon=4, clock=clock, transport=transport)
    return device, device.campaign(URL, CAMPAIGN, max_epsilon=2), transport


def test_two_earlier_states_are_kept():
    assert {"486d5257", "596852de"} <= set(NAMES)


def test_its_ledger_and_its_consent_are_those_that_were_written(opened):
    device, part, _ = opened
    assert str(device.ledger()) == (
        "This device has contributed to 1 campaign. Privacy loss so far: epsilon 1 of at most 4.\n"
        '* "Vectors" on 2027-01-15: 1 answer, with noise added on this device; epsilon 1; on this device; nothing of '
        "it has left."
    )
    status = part.status()
    assert (status.consent, status.fate, status.queued, status.problem) == (True, "waiting", 1, "delivery-not-started")
    assert part.next_step() == ("nothing", "answered")


def test_it_answers_no_second_time_and_the_queued_report_is_delivered_as_it_was(opened):
    device, part, transport = opened
    (waiting,) = device.export()["waiting"]
    assert part.contribute({}, "no") == device.ledger().receipt(part.id)
    assert device.run_once(30)
    (upload,) = transport.requests
    assert upload.url == f"{URL}/v1/campaigns/{CAMPAIGN}/reports"
    (block,) = decode_upload(upload.body, part.fetch())
    assert (block.question, block.ids.hex(), block.payloads.hex()) == tuple(
        waiting[one] for one in ("question", "id", "payload")
    )
    assert part.status().fate == "arrived"
    (sent,) = device.sent()
    assert sent.said.endswith(")")


def test_it_can_be_withdrawn_and_erased(opened):
    device, part, transport = opened
    withdrawn = part.withdraw()
    assert (withdrawn.deleted, withdrawn.on_its_way, withdrawn.refunded) == (1, 0, pytest.approx(1))
    device.erase()
    with pytest.raises(ConsentError):
        part.contribute({}, "no")
    assert transport.requests == []
