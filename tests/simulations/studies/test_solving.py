"""The inverse of the published guarantee."""

from __future__ import annotations

import pytest
from drafts import draft, text

from ldp_aggregator.learning.published import published_guarantee
from protocols import Campaign
from simulations.studies.planning import MOST_EPSILON, fewest_devices, largest_local_epsilon

DRAFT = draft(text("age", "young", "medium", "old"))


def published(epsilon: float, devices: int) -> float:
    campaign = Campaign.compile({**DRAFT, "privacy": {"epsilon": epsilon}})
    found = published_guarantee(campaign, devices).epsilon
    assert found is not None
    return found


@pytest.mark.parametrize(("devices", "wanted"), [(1_000, 0.1), (10_000, 0.05), (1_000_000, 0.01), (100, 0.3)])
def test_the_largest_local_epsilon_keeps_the_published_one_and_a_larger_one_does_not(
    devices: int, wanted: float
) -> None:
    local = largest_local_epsilon(DRAFT, devices, wanted)
    assert published(local, devices) <= wanted
    assert local == MOST_EPSILON or published(local * 1.02, devices) > wanted


def test_the_fewest_devices_are_enough_and_fewer_are_not() -> None:
    campaign = Campaign.compile(DRAFT)
    devices = fewest_devices(campaign, 0.02)
    assert devices is not None
    assert published(1.0, devices) <= 0.02 < published(1.0, devices * 98 // 100)
    assert fewest_devices(campaign, 1.0) == 1
    more = fewest_devices(campaign, 0.02, colluding=50_000)
    assert more is not None
    assert more == pytest.approx(devices + 50_000, rel=2e-3)


def test_a_wish_beyond_all_devices_is_answered_with_none_one_that_nothing_can_break_with_the_most_there_is() -> None:
    campaign = Campaign.compile(DRAFT)
    assert fewest_devices(campaign, 1e-9) is None
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="published epsilon"):
            fewest_devices(campaign, wrong)
        with pytest.raises(ValueError, match="published epsilon"):
            largest_local_epsilon(DRAFT, 10, wrong)
    assert largest_local_epsilon(DRAFT, 1, 0.7) == largest_local_epsilon(DRAFT, 0, 0.7) == 0.7, "there is no crowd"
    assert largest_local_epsilon(DRAFT, 10, 20.0) == MOST_EPSILON
