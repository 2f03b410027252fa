"""Parts of a tally: written, read and added up without changing a bit."""

from __future__ import annotations

import numpy as np
import pytest
from cells import cell_campaign

from ldp_aggregator import Tally
from ldp_aggregator.counting.parts import encode_part, part_of_tally, tally_of_parts


def test_parts_add_up_in_any_order():
    campaign = cell_campaign(4)
    parts = [encode_part({0: (n, np.arange(4) * n)}) for n in (1, 10, 100)]
    forwards, backwards = tally_of_parts(campaign, parts), tally_of_parts(campaign, reversed(parts))
    assert forwards == backwards
    assert (forwards.n.tolist(), forwards.counts[0].tolist()) == ([111], [0, 111, 222, 333])


def test_a_tally_survives_being_a_part():
    campaign = cell_campaign(4)
    tally = Tally(campaign)
    tally.add(0, 2**40, np.array([2**62, -(2**62), 0, -1]))
    assert tally_of_parts(campaign, [part_of_tally(tally)]) == tally
    assert part_of_tally(Tally(campaign)) == b""


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (np.array([1, 1, 0, 0, 0, 1], "<i8").tobytes(), "question 1, which does not exist"),
        (np.array([-1, 1, 0, 0, 0, 1], "<i8").tobytes(), "question -1, which does not exist"),
        (np.array([0, 1, 0, 0, 1], "<i8").tobytes(), "ends within question 0"),
        (b"\0" * 7, "size"),
    ],
)
def test_bytes_that_are_no_part_are_refused(part, message):
    with pytest.raises(ValueError, match=message):
        tally_of_parts(cell_campaign(4), [part])
