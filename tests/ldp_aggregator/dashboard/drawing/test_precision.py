"""The precision that is expected, and reached; the worst question among those about shares."""

import math
from dataclasses import replace

import numpy as np
import pytest
from drafts import draft, number, text

from ldp_aggregator import Tally
from ldp_aggregator.dashboard.drawing.precision import (
    devices_of,
    expected_widths,
    more_devices,
    precisions,
    reaches,
    widest,
)
from ldp_aggregator.estimation.estimates import estimate
from ldp_protocols import Campaign

LABEL = {"name": "ill", "classes": ["yes", "no"]}
CAMPAIGN = Campaign.compile(draft(text("sky", "blue", "grey"), number("age", 0, 100), label=LABEL))


def test_the_widest_is_of_a_question_about_shares_and_unknown_where_any_of_them_is():
    found = precisions(CAMPAIGN, 1_000)
    assert widest(found) == widest([]) == math.inf, "nothing was reached"
    told = [replace(one, reached=0.5 + place / 10 + 9 * (not one.is_share)) for place, one in enumerate(found)]
    first, second = (one for one in told if one.is_share)
    assert widest(told) == second.reached > first.reached
    others = [one for one in told if not one.is_share]
    assert widest(others) == max(one.reached for one in others), "where no question is about shares"
    assert widest([replace(first, reached=None), second]) == math.inf


def test_so_many_more_devices_narrow_an_interval_to_one_that_is_shown():
    assert more_devices(CAMPAIGN, 900, 0.25) is None
    assert more_devices(CAMPAIGN, 900, 0.5) == 3 * 900
    assert more_devices(CAMPAIGN, 900, 7.0) == 15 * 900, "no share is known worse than not at all"
    assert more_devices(CAMPAIGN, 1, 0.2501) == 1
    (expected,) = expected_widths(CAMPAIGN, [1_000])
    for devices in (0, 3):
        assert more_devices(CAMPAIGN, devices, math.inf) == math.ceil(1_000 * (expected / 0.25) ** 2 - devices)


@pytest.mark.parametrize(("answers", "devices"), [("one", 70), ("all", 40)])
def test_who_answers_all_groups_is_one_device(answers, devices):
    """Of the groups of the classes and of two features the one that most devices answered."""
    label = {"name": "y", "classes": ["a", "b"]}
    asked = draft(text("u", "0", "1"), text("v", "0", "1"), label=label)
    campaign = Campaign.compile({**asked, "privacy": {"epsilon": 4.0, "answers": answers}})
    tally = Tally(campaign)
    for question, n in zip(campaign.questions, (10, 40, 20), strict=True):
        tally.add(question.index, n, np.zeros(question.domain_size, dtype=np.int64))
    assert devices_of(campaign, tally) == devices


def test_what_was_reached_is_the_half_width_of_the_average_cell_and_none_without_reports():
    tally = Tally(CAMPAIGN)
    assert {one.reached for one in precisions(CAMPAIGN, 0, estimates=estimate(CAMPAIGN, tally))} == {None}
    assert {one.expected for one in precisions(CAMPAIGN, 0)} == {math.inf}
    label = CAMPAIGN.questions[0].index
    tally.n[label] = 1_000
    tally.counts[label][:] = [600, 400]
    found = estimate(CAMPAIGN, tally)
    of_label, *others = precisions(CAMPAIGN, 1_000, tally.n.tolist(), found)
    assert of_label.reached == pytest.approx(1.959964 * np.sqrt(found[label].cells.variance).mean())
    assert (of_label.n, {one.reached for one in others}) == (1_000, {None})


def test_multiples_are_of_the_devices_that_there_are_or_of_a_thousand():
    for devices, first in ((0, 1_000), (70, 70)):
        found = reaches(CAMPAIGN, devices)
        assert [one.devices for one in found] == [first, 2 * first, 4 * first, 10 * first, 100 * first]
        assert [one.expected for one in found] == expected_widths(CAMPAIGN, [one.devices for one in found])
        assert found[0].expected > 9 * found[4].expected > 0
    only_shares = [max(one.expected for one in precisions(CAMPAIGN, 500) if one.is_share)]
    assert expected_widths(CAMPAIGN, [500]) == pytest.approx(only_shares)
