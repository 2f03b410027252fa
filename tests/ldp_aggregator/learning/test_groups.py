"""Features of one shape are computed at once: what comes out is what comes out for each in a group of its own."""

import numpy as np
import pytest
from drafts import draft, text
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_aggregator import Tally, estimate
from ldp_aggregator.estimation.posterior import tables
from ldp_aggregator.estimation.posterior.tables import posterior_of, rows
from ldp_aggregator.mechanisms import analysis_of
from protocols import Campaign

shapes = st.lists(st.tuples(st.integers(2, 4), st.booleans()), min_size=1, max_size=6)
"""Numbers of values of features, and whether these may be missing."""

EPSILONS = {"one campaign": (2.0,), "two campaigns": (1.0, 4.0)}
"""Those of campaigns over the same features."""


def campaign_of(features, classes, epsilon):
    described = [
        text(f"x{i}", *(f"v{j}" for j in range(size)), missing=missing) for i, (size, missing) in enumerate(features)
    ]
    label = {"name": "y", "classes": [f"c{i}" for i in range(classes)]}
    return Campaign.compile(draft(*described, label=label, privacy={"epsilon": epsilon}))


def tally_of(campaign, rng):
    """A few hundred reports to every question but one in six, which nobody answered."""
    tally = Tally(campaign)
    for place, question in enumerate(campaign.questions):
        tally.n[place] = n = rng.integers(200, 400) * (rng.random() < 5 / 6)
        held = rng.multinomial(n, rng.dirichlet(np.ones(question.domain_size)))
        tally.counts[place][:] = analysis_of(question.mechanism).tally(held, rng)
    return tally


def learn(estimates):
    questions, campaign = [question for one in estimates for question in one.questions], estimates[0].campaign
    return posterior_of(campaign.asked, len(campaign.label.classes), questions, questions)


@pytest.mark.parametrize("epsilons", EPSILONS.values(), ids=EPSILONS)
@settings(max_examples=settings.default.max_examples // 4)
@given(features=shapes, classes=st.integers(2, 3), seed=st.integers(0, 2**32))
def test_features_of_mixed_shapes_are_what_they_are_alone_in_their_groups(epsilons, features, classes, seed):
    rng = np.random.default_rng(seed)
    campaigns = [campaign_of(features, classes, epsilon) for epsilon in epsilons]
    estimates = [estimate(one, tally_of(one, rng)) for one in campaigns]
    together = learn(estimates)
    assert set(together.features) == {f"x{i}" for i in range(len(features))}
    assert {len(set(features))} == {len(together.groups)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "MOST_NUMBERS", 1)
        alone = learn(estimates)
    assert len(alone.groups) == len(features)
    for name, feature in alone.features.items():
        found = together.features[name]
        assert found.table == pytest.approx(feature.table, rel=1e-12)
        assert found.present == pytest.approx(feature.present, rel=1e-12)


def test_a_row_of_a_group_is_the_feature_without_the_axis_and_what_is_large_is_computed_in_parts(monkeypatch):
    campaign = campaign_of([(3, True)] * 3, 2, 1.0)
    found = estimate(campaign, tally_of(campaign, np.random.default_rng(0)))
    ((_, group),) = learn([found]).groups
    one, two = rows(group, 1), rows(group, [2, 0])
    assert one.table.shape == (3, 2)
    assert (one.absence == group.absence[1]).all()
    assert (two.effective == group.effective[[2, 0]]).all()
    assert (one.mean == group.mean[1]).all()
    assert one.cells_of(one.mean[None]).shape == (1, 4, 2)
    campaign = campaign_of([(3, False)] * 5, 2, 1.0)
    found = estimate(campaign, tally_of(campaign, np.random.default_rng(1)))
    whole = learn([found])
    monkeypatch.setattr(tables, "MOST_NUMBERS", 2 * 6**2)
    divided = learn([found])
    assert [len(group.names) for group, _ in divided.groups] == [2, 2, 1]
    for name, feature in whole.features.items():
        assert divided.features[name].table == pytest.approx(feature.table, rel=1e-12)
