"""Uploads of one report each are counted in one submission, and everybody is told what became of his own."""

from dataclasses import dataclass, field
from typing import Any

from cells import cell_report
from drafts import draft, text

from ldp_aggregator.server.upload_queue import bundle, for_a_device
from ldp_aggregator.service.settings import Limits
from ldp_aggregator.store import Outcome
from ldp_protocols import Campaign, Report, encode_upload


@dataclass
class Sent:
    """An upload whose sender remembers what he was told."""

    campaign: Campaign
    report: Report
    shown: str | None = None
    since: float = 0.0
    told: list[Any] = field(default_factory=list)

    def __post_init__(self):
        self.terms = for_a_device(self.campaign, Limits())
        self.body = encode_upload([self.report], self.campaign)

    def settle(self, outcome):
        self.told.append(outcome)

    def refuse(self, problem):
        self.told.append(problem)


def test_of_a_bundle_everybody_is_told_of_his_own_report_whatever_question_it_answers():
    features = (text("u", "1", "2"), text("v", "1", "2"))
    campaign = Campaign.compile(draft(*features, privacy={"epsilon": 1.0, "discrete": "de"}))
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
