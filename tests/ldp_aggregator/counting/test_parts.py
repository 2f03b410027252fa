"""The parts of a tally: exact, as small as what they add, and refused where they are none."""

import numpy as np
import pytest
from cells import cell_campaign

from ldp_aggregator import Tally
from ldp_aggregator.counting.parts import compactable, encode_part, part_of_tally, tally_of_parts


def test_parts_add_up_in_any_order_and_a_tally_survives_being_one():
    campaign = cell_campaign(4)
    parts = [encode_part({0: (n, np.arange(4) * n)}) for n in (1, 10, 100)]
    forwards, backwards = tally_of_parts(campaign, parts), tally_of_parts(campaign, reversed(parts))
    assert forwards == backwards
    assert (forwards.n.tolist(), forwards.counts[0].tolist()) == ([111], [0, 111, 222, 333])
    tally = Tally(campaign)
    tally.add(0, 2**40, np.array([2**62, -(2**62), 0, -1]))
    assert tally_of_parts(campaign, [part_of_tally(tally)]) == tally
    assert part_of_tally(Tally(campaign)) == b""


def test_a_part_is_as_large_as_what_it_adds():
    one = np.zeros(32_768, dtype=np.int64)
    one[20_000] = 1
    assert len(encode_part({0: (1, one)})) == 48
    assert len(encode_part({0: (1, np.ones(32_768, dtype=np.int64))})) == 32 + 32_768
    tally = tally_of_parts(cell_campaign(32_768), [encode_part({0: (1, one)})] * 3)
    assert tally.counts[0].tolist() == (3 * one).tolist()


@pytest.mark.parametrize("size", [4, 128, 254, 256, 258, 32_768])
def test_every_vector_survives_packing(size):
    rng, campaign = np.random.default_rng(size), cell_campaign(size)
    for share in (0.0, 0.01, 0.5, 1.0):
        for largest in (1, 127, 128, 2**15, 2**31, 2**62):
            counts = np.where(rng.random(size) < share, rng.integers(-largest - 1, largest, size), 0)
            counts[-1] = largest
            part = encode_part({0: (7, counts)})
            assert len(part) % 8 == 0
            tally = tally_of_parts(campaign, [part, b""])
            assert (tally.n.tolist(), tally.counts[0].tolist()) == ([7], counts.tolist())


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([48] * 65, 65),
        ([48] * 64 + [1000], 65),
        ([48] * 64 + [4000], 64),
        ([8, 5000, 5000], 3),
        ([48] * 20 + [900] * 45, 65),
        ([48] * 10 + [900] * 55, 10),
        ([], 0),
    ],
)
def test_small_parts_are_added_up_and_large_ones_left_until_the_small_are_as_large(sizes, chosen):
    assert compactable(sizes) == chosen


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (np.array([1, 1, 0, 0, 0, 1], "<i8").tobytes(), "question 1, which does not exist"),
        (np.array([-1, 1, 0, 0], "<i8").tobytes(), "question -1, which does not exist"),
        (np.array([0, 1, 1], "<i8").tobytes(), "ends within question 0"),
        (np.array([0, 1, 1, 0x11, 0], "<i8").tobytes(), "ends within question 0"),
        (np.array([0, 1, 5, 0x11, 0, 0], "<i8").tobytes(), "question 0 that makes no sense"),
        (np.array([0, 1, 1, 0x13, 0, 0], "<i8").tobytes(), "question 0 that makes no sense"),
        (np.array([0, 1, 1, 0x11, 4, 1], "<i8").tobytes(), "question 0 that makes no sense"),
        (np.array([0, 1, 2, 0x11, 0x0101, 0x0101], "<i8").tobytes(), "question 0 that makes no sense"),
        (np.array([0, 1, 3, 0x01, 0], "<i8").tobytes(), "3 counts for question 0 of 4"),
        (b"\0" * 7, "size"),
    ],
)
def test_bytes_that_are_no_part_are_refused(part, message):
    with pytest.raises(ValueError, match=message):
        tally_of_parts(cell_campaign(4), [part])
