"""A lie is a report that an honest device could have sent, and pushes the estimates where it aims."""

import numpy as np
import pytest

from ldp_aggregator import Tally, estimate
from ldp_aggregator.counting.tally import refusals
from protocols import encode_upload
from protocols.mechanisms import DISCRETE
from simulations import SeededCoins, simulate
from simulations.fleet.devices import lying_reports

MECHANISMS = [*((name, "sign") for name in DISCRETE), ("oue", "laplace"), ("ss", "onebit")]


@pytest.mark.parametrize(("discrete", "continuous"), MECHANISMS)
@pytest.mark.parametrize("targets", [(None,), (0, 1)])
def test_every_lie_is_a_report_under_a_fresh_id_that_the_server_must_accept(
    discrete, continuous, targets, make_everything
):
    campaign = make_everything(discrete=discrete, continuous=continuous)
    coins, ids = SeededCoins(1), set()
    for target in targets * (100 // len(targets)):
        reports = lying_reports(campaign, campaign.questions, target, coins)
        assert [report.question for report in reports] == list(range(len(campaign.questions)))
        ids |= {report.id for report in reports}
        for question, report in zip(campaign.questions, reports, strict=True):
            rows = np.frombuffer(report.payload, dtype=np.uint8).reshape(1, -1)
            assert refusals(question, rows) == {}
            question.mechanism.check(report.payload)
    assert len(ids) == 100 * len(campaign.questions)


@pytest.mark.parametrize(("discrete", "continuous"), MECHANISMS)
@pytest.mark.parametrize("target", [0, 1])
def test_a_targeted_lie_raises_its_class_in_every_question(discrete, continuous, target, make_everything, make_people):
    campaign = make_everything(discrete=discrete, continuous=continuous)
    frame, labels = make_people(4_000, 7)
    honest = simulate(campaign, frame, labels, 3)
    coins = SeededCoins(2)
    lies = [encode_upload(lying_reports(campaign, campaign.questions, target, coins), campaign) for _ in range(200)]
    poisoned = honest + Tally.of_uploads(campaign, lies)
    for question in campaign.questions:
        before, after = (estimate(campaign, tally)[question.index].cells.value for tally in (honest, poisoned))
        if question.encoding == "index":
            before, after = (cells.reshape(-1, 2).sum(axis=0) for cells in (before, after))
            assert after[target] - after[1 - target] > before[target] - before[1 - target]
        elif continuous != "sign":
            assert after[target] > before[target]
