"""The precision that is expected, and reached; the worst question among those about shares."""

import math
from dataclasses import replace

import numpy as np
import pytest
from drafts import draft, number, text

from ldp_aggregator import Tally
from ldp_aggregator.dashboard.drawing.precision import expected_widths, precisions, reaches, worst
from ldp_aggregator.estimation.estimates import estimate
from ldp_protocols import Campaign

LABEL = {"name": "ill", "classes": ["yes", "no"]}
CAMPAIGN = Campaign.compile(draft(text("sky", "blue", "grey"), number("age", 0, 100), label=LABEL))


def test_the_worst_question_is_one_about_shares_and_unknown_where_any_of_them_is():
    expected = precisions(CAMPAIGN, 1_000)
    shares = [one.expected for one in expected if one.is_share]
    others = [one.expected for one in expected if not one.is_share]
    assert min(others) > 0
    raised = [replace(one, expected=9.0) if not one.is_share else one for one in expected]
    assert worst(raised, reached=False) == max(shares)
    assert worst([one for one in raised if not one.is_share], reached=False) == 9.0, "where no question is about shares"
    assert worst(expected, reached=True) is None, "nothing was reached"
    told = [replace(one, reached=0.5 + place / 10) for place, one in enumerate(expected)]
    first, second = (one for one in told if one.is_share)
    assert worst(told, reached=True) == second.reached > first.reached
    for unknown in (None, math.inf):
        assert worst([replace(first, reached=unknown), second], reached=True) is None
    assert worst([], reached=True) is None


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
