"""Uploads of one report each are counted in one submission, and everybody is told what became of his own."""

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from cells import cell_campaign, cell_report
from drafts import draft, text

from ldp_aggregator.server import upload_queue
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.server.upload_queue import (
    Ingest,
    bundle,
    for_a_device,
    for_a_relay,
    read_upload,
    reports_about,
)
from ldp_aggregator.service.settings import Limits
from ldp_aggregator.store import Outcome, StoreError
from ldp_protocols import Campaign, Report, encode_upload

TWO = (text("u", "1", "2"), text("v", "1", "2"))


@dataclass
class Sent:
    """An upload whose sender remembers what he was told."""

    campaign: Campaign
    report: Report
    authorization: str | None = None
    since: float = 0.0
    is_patient: bool = False
    told: list[Any] = field(default_factory=list)
    end: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self):
        self.bounds = for_a_device(self.campaign, Limits())
        self.body = encode_upload([self.report], self.campaign)

    def settle(self, outcome):
        self.told.append(outcome)
        self.end.set()

    def refuse(self, problem):
        self.told.append(problem)


def test_of_a_bundle_everybody_is_told_of_his_own_report_whatever_question_it_answers():
    campaign = Campaign.compile(draft(*TWO, privacy={"epsilon": 1.0, "discrete": "de"}))
    sent = [
        Sent(campaign, Report(question, cell_report(campaign, number).id, b"\0"))
        for number, question in enumerate([2, 0, 1, 2, 0])
    ]
    (made,), refusals = bundle(sent)
    assert refusals == []
    ids = [block.ids[start : start + 16] for block in made.submission.blocks for start in range(0, len(block.ids), 16)]
    assert [upload.report.id for upload in made.uploads] == ids
    place = ids.index(sent[0].report.id)
    made.settle(Outcome(counted=4, rejected=((ids[place], "conflicting-report"),), places=(place,)))
    assert sent[0].told == [Outcome(rejected=((ids[place], "conflicting-report"),))] or sent[0].told[0].refused
    assert all(len(one.told) == 1 for one in sent)
    assert all(not one.told[0].rejected and one.told[0].refused is None for one in sent[1:])


@pytest.mark.parametrize(("answers", "most"), [("one", 1), ("all", 3)])
def test_a_device_sends_one_report_or_one_to_each_group_and_a_batch_hides_as_many_devices_as_can_have_answered(
    answers, most
):
    campaign = Campaign.compile(draft(*TWO, privacy={"epsilon": 1.0, "discrete": "de", "answers": answers}))
    reports = [Report(number % 3, cell_report(campaign, number).id, b"\0") for number in range(12)]
    device = for_a_device(campaign, Limits())
    assert device.reports == most
    assert read_upload(device, encode_upload(reports[:most], campaign)).reports == most
    with pytest.raises(ProblemError) as refused:
        read_upload(device, encode_upload(reports[: most + 1], campaign))
    assert refused.value.code == "too-many-reports"
    for vouched, hidden in ((1_000_000, 12 // most), (3, 3), (1, 1)):
        relayed = read_upload(for_a_relay(campaign, Limits(), vouched), encode_upload(reports, campaign))
        assert relayed.batch == hidden
    assert read_upload(for_a_relay(campaign, Limits(), None), encode_upload(reports, campaign)).batch is None


@pytest.mark.parametrize("count", [1, 2, 17, 400])
def test_a_relays_upload_is_taken_for_as_many_reports_as_it_holds_at_the_least(count):
    """By its bytes: a commit has so many reports at most. No report is shorter than one of a single byte."""
    campaign = cell_campaign(4)
    upload = Sent(campaign, cell_report(campaign, 0, cell=0))
    upload.bounds = for_a_relay(campaign, Limits(), None)
    upload.body = encode_upload([cell_report(campaign, number, cell=0) for number in range(count)], campaign)
    assert count <= reports_about(upload) <= 2 * count + 10


class Counts:
    """A store whose commits wait for their turn, and fail as they are told to, one after the other."""

    def __init__(self, *failures):
        self.failures, self.begun, self.gate = list(failures), asyncio.Event(), asyncio.Event()
        self.groups = []

    async def count(self, submissions):
        self.begun.set()
        await self.gate.wait()
        self.groups.append(sum(one.reports for one in submissions))
        if self.failures:
            raise self.failures.pop(0)
        return [Outcome(counted=one.reports) for one in submissions]

    async def beat(self):
        """It is well."""


def sent_to(*campaigns, ago=0.0):
    now = time.perf_counter()
    return [Sent(one, cell_report(one, number), since=now - ago) for number, one in enumerate(campaigns)]


async def test_what_was_queued_before_the_stop_is_counted_and_what_comes_then_is_sent_away():
    campaign, store = cell_campaign(), Counts()
    ingest = Ingest(store, Metrics(), group_reports=2)
    before = sent_to(*[campaign] * 5)
    for upload in before:
        ingest.take(upload)
    writing = asyncio.create_task(ingest.write())
    await store.begun.wait()
    ingest.drain()
    store.gate.set()
    await asyncio.wait_for(writing, 20)
    assert [one.told for one in before] == [[Outcome(counted=1)]] * 5
    assert store.groups == [2, 2, 1]
    (late,) = sent_to(campaign)
    ingest.take(late)
    assert [problem.code for problem in late.told] == ["stopping"]


async def test_the_patient_wait_for_many_of_them_or_for_the_first_who_is_not(monkeypatch):
    monkeypatch.setattr(upload_queue, "PATIENT_SECONDS", 600.0)
    monkeypatch.setattr(upload_queue, "PATIENT_ENOUGH", 4)
    campaign, store = cell_campaign(), Counts()
    store.gate.set()
    ingest = Ingest(store, Metrics(), group_reports=100)

    async def send(*patient):
        uploads = [replace(one, is_patient=each) for one, each in zip(sent_to(*[campaign] * 4), patient, strict=False)]
        for upload in uploads:
            ingest.take(upload)
        await asyncio.sleep(0.05)  # Longer than those wait who are not.
        return uploads

    async def counted(uploads):
        await asyncio.wait_for(asyncio.gather(*(one.end.wait() for one in uploads)), 20)

    writing = asyncio.create_task(ingest.write())
    await counted(await send(False, True))
    waiting = await send(True, True, True)
    assert store.groups == [2]
    await counted([*waiting, *await send(False)])
    assert store.groups == [2, 4]
    waiting = await send(True)
    assert store.groups == [2, 4]
    await counted([*waiting, *await send(True, True, True)])
    await counted(await send(False, False))
    ingest.drain()
    await asyncio.wait_for(writing, 20)
    assert store.groups == [2, 4, 4, 2]


async def test_the_age_of_the_queue_is_that_of_who_has_waited_longest_the_commit_under_way_included():
    campaign, store = cell_campaign(), Counts()
    ingest = Ingest(store, Metrics(), group_reports=10)
    assert ingest.queue_age == 0
    ingest.take(*sent_to(campaign, ago=900))
    assert 900 <= ingest.queue_age < 930
    writing = asyncio.create_task(ingest.write())
    await store.begun.wait()
    ingest.take(*sent_to(campaign, ago=100))
    assert 900 <= ingest.queue_age < 930
    ingest.drain()
    store.gate.set()
    await asyncio.wait_for(writing, 20)
    assert ingest.queue_age == 0


@pytest.mark.parametrize("bad", range(3))
@pytest.mark.parametrize(
    ("failure", "told"), [(ValueError("a bug"), [None] * 2), (StoreError("no space"), ["store-unavailable"] * 2)]
)
async def test_whoever_is_in_a_group_that_fails_is_told_once_and_who_sent_no_upload_only_that(bad, failure, told):
    store = Counts(failure)
    group = sent_to(*(cell_campaign(title=str(number)) for number in range(3)))
    group[bad].body = b"no upload"
    ingest = Ingest(store, Metrics(), group_reports=10)
    for upload in group:
        ingest.take(upload)
    store.gate.set()
    ingest.drain()
    await asyncio.wait_for(ingest.write(), 20)
    assert [len(one.told) for one in group] == [1] * 3
    assert group.pop(bad).told[0].code == "malformed-upload"
    assert [getattr(one.told[0], "code", None) for one in group] == told
