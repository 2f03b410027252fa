"""No made-up report moves the mean of a class further than is printed beside it, and some reports nearly so far."""

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number
from payloads import possible_payloads

from ldp_aggregator import Tally, estimate
from ldp_aggregator.estimation.poisoning import quotient_reach
from protocols import Campaign
from protocols.wire import Block
from simulations import simulate

SETTINGS = [
    *({"continuous": name} for name in ("laplace", "onebit")),
    *({"continuous": "sign", "discrete": name} for name in ("de", "sue", "oue", "the", "ss", "she")),
    {"continuous": "laplace", "answers": "all"},
]


def campaign_of(*, missing=False, **privacy):
    privacy = {"epsilon": 6 if privacy["continuous"] != "laplace" else 30, **privacy}
    return Campaign.compile(draft(number("x", high=100, missing=missing), privacy=privacy))


def people(n, *, missing=False):
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(n) < 0.6, "a", "b")
    values = np.clip(rng.normal(np.where(labels == "a", 30, 70), 15), 0, 100)
    return pd.DataFrame({"x": np.where(missing & (rng.random(n) < 0.1), np.nan, values)}), labels


def counted(campaign, question, payload):
    """Return what one report adds to the counts of a question."""
    tally = Tally(campaign)
    assert not tally.add_block(Block(question.index, bytes(16), payload))
    return tally.counts[question.index]


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "may be missing"])
@pytest.mark.parametrize("privacy", SETTINGS, ids=lambda privacy: "-".join(privacy.values()))
@pytest.mark.parametrize("liars", [1, 6])
def test_no_lie_moves_a_mean_further_than_is_stated(privacy, missing, liars):
    """So many devices send one made-up report in place of another that was counted, to one question."""
    if missing and privacy["continuous"] != "sign":
        pytest.skip("these mechanisms cannot tell that a value is missing")
    campaign = campaign_of(missing=missing, **privacy)
    tally = simulate(campaign, *people(900, missing=missing), rng=2)
    honest = estimate(campaign, tally)
    bound, furthest = honest.mean_reach("x", liars), np.zeros(2)
    assert np.isfinite(bound).all()
    for question in campaign.questions:
        corners = [counted(campaign, question, payload) for payload in possible_payloads(question)][:40]
        for said, made_up in ((corners[i], corners[j]) for i in range(len(corners)) for j in range(0, len(corners), 3)):
            lied = Tally(campaign) + tally
            lied.counts[question.index] += liars * (made_up - said)
            if lied.counts[question.index].min() < 0 and question.mechanism.name not in ("she", "laplace"):
                continue
            moved = np.abs(estimate(campaign, lied).moments["x"].mean - honest.moments["x"].mean)
            furthest = np.maximum(furthest, moved)
    assert (furthest <= bound * (1 + 1e-9)).all()
    assert (furthest > 0.4 * bound).any()


def test_a_quotient_moves_as_far_as_the_formula_says_and_nothing_bounds_that_of_a_class_one_lie_makes_insufficient():
    s, p, a, h = np.array([0.3]), np.array([0.5]), np.array([0.05]), 0.1
    ends = [(s + ds) / (p + dp) for ds in (-a, 0, a) for dp in (-h, 0, h)]
    assert np.abs(np.array(ends) - s / p).max() == pytest.approx(quotient_reach(s / p, a, p, h)[0])
    assert np.isinf(quotient_reach(s / p, a, p, 0.5)[0])
    campaign = campaign_of(continuous="sign")
    frame, _ = people(300)
    found = estimate(campaign, simulate(campaign, frame, np.where(np.arange(300) < 4, "b", "a"), rng=2))
    assert np.isfinite(found.mean_reach("x", 1)[0])
    assert np.isinf(found.mean_reach("x", 1)[1])
    assert np.isinf(found.mean_reach("x", 300)).all()
