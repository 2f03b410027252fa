"""The change that is told of lies is one that they really make, and a bound where it is called one."""

import numpy as np
import pytest
from evaluated import draft
from voters import people

from ldp_aggregator import Tally, train
from ldp_aggregator.estimation.poisoning import report_that_names
from protocols import Campaign
from simulations import simulate


def campaign_of(**privacy):
    return Campaign.compile(draft(privacy={"epsilon": 1.0, **privacy}))


@pytest.mark.parametrize(
    "privacy", [{}, {"discrete": "she"}, {"continuous": "laplace"}, {"continuous": "onebit"}, {"answers": "all"}]
)
def test_one_device_in_a_hundred_is_taken_to_lie_and_every_feature_has_its_change(privacy):
    campaign = campaign_of(**privacy)
    frame, labels = people(4_000)
    tally = simulate(campaign, frame, labels, rng=1, fidelity="counts", devices=50_000)
    told = train(campaign, tally).model_.training["lies"]
    assert told["liars"] == pytest.approx(500, abs=10)
    assert told["named"] in ("a", "b")
    assert set(told["features"]) == {"u", "v", "size"}
    assert all(moved > 0 for moved in told["features"].values())
    assert 0 < told["classes"] <= 1
    told = train(campaign, Tally(campaign)).model_.training["lies"]
    assert told["liars"] == 1, "without reports one liar can have made the classes anything"
    assert told["classes"] in (None, 1.0)


def test_what_is_told_is_the_larger_of_the_changes_that_lies_for_either_class_make():
    """All liars about u name one class and the value least like it."""
    campaign = campaign_of(discrete="oue")
    frame, labels = people(4_000)
    tally = simulate(campaign, frame, labels, rng=1, fidelity="counts", devices=50_000)
    before = train(campaign, tally)
    told, table = before.model_.training["lies"], np.array(before.model_.likelihoods[0].table)
    asked, moved = next(one for one in campaign.questions if one.feature == "u"), []
    for named in range(2):
        lied, n = Tally(campaign) + tally, int(tally.n[asked.index])
        item = int(table[:, named].argmin()) * 2 + named
        counts = lied.counts[asked.index]
        counts[:] = np.rint(counts * (1 - told["liars"] / n)) + told["liars"] * report_that_names(asked, item)
        moved.append(np.abs(np.array(train(campaign, lied).model_.likelihoods[0].table) - table).max())
    assert max(moved) == pytest.approx(told["features"]["u"], rel=0.35)
