"""Tallies and their parts are exact: any order, any sharding, any merge gives the same bits."""

import random

import numpy as np
import pytest
from cells import cell_campaign

from ldp_aggregator import Tally
from ldp_aggregator.counting.tally import compactable, digests, encode_part, part_of_tally, tally_of_parts
from ldp_client.answering import perturb
from protocols import DocumentError, Report, encode_upload
from simulations.fidelities import SeededCoins


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


FEATURE = {"kind": "categorical", "missing": False, "values": ["a", "b", "c"]}


def test_shards_in_any_order_add_up_to_one_node(make_campaign):
    campaign, coins = make_campaign(FEATURE, discrete="oue"), SeededCoins(7)
    people = [({"x": "abc"[i % 3]}, f"c{i % 2}") for i in range(300)]
    sent = [encode_upload(perturb(campaign, record, label, coins=coins), campaign) for record, label in people]
    whole = Tally.of_uploads(campaign, sent)
    shuffled = random.Random(1).sample(sent, len(sent))
    shards = [Tally.of_uploads(campaign, shuffled[start::7]) for start in range(7)]
    total = Tally(campaign)
    for shard in reversed(shards):
        total.merge(shard)
    assert total == whole
    assert shards[0] + shards[1] == shards[1] + shards[0]
    assert whole.n.sum() == 300
    assert whole != Tally.of_uploads(campaign, sent[1:])
    assert whole != "a tally"


def test_a_report_no_device_can_have_sent_is_left_out(make_campaign):
    campaign = make_campaign(FEATURE, discrete="oue")
    good, bad = Report(1, b"a" * 16, bytes([0b111111])), Report(1, b"b" * 16, bytes([0b11000000]))
    tally = Tally.of_uploads(campaign, [encode_upload([good, bad, good], campaign)])
    assert tally.n.tolist() == [0, 2]
    assert tally.counts[1].tolist() == [2] * 6


def test_what_is_no_upload_or_does_not_fit_is_refused(make_campaign):
    one, other = make_campaign(FEATURE), make_campaign(FEATURE, epsilon=2)
    with pytest.raises(DocumentError):
        Tally.of_uploads(one, [b"\x00"])
    with pytest.raises(ValueError, match="do not add up"):
        Tally(one).merge(Tally(other))
    tally = Tally(one)
    with pytest.raises(ValueError, match="question 1 has 6 counts, not 2"):
        tally.add(1, 1, tally.counts[0])
    assert not tally.n.any()


def mix(value):
    """The finaliser of splitmix64, in whole numbers."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def slow_digest(question, payload):
    words = [int.from_bytes(payload[start : start + 8], "little") for start in range(0, len(payload), 8)]
    total = sum(mix((word + 0x9E3779B97F4A7C15 * place) % 2**64) for place, word in enumerate(words, start=1))
    return mix((total + question * 0x94D049BB133111EB) % 2**64)


def test_the_digest_is_the_same_on_every_machine_and_in_every_version():
    """It is stored: a change would make every retry across an update a conflict."""
    assert f"{int(digests(0, np.zeros((1, 1), np.uint8))[0]):016x}" == "48218226ff3cd4bf"
    for width in (1, 7, 8, 9, 13, 100):
        rows = np.random.default_rng(width).integers(0, 256, (50, width), dtype=np.uint8)
        assert digests(5, rows).tolist() == [slow_digest(5, row.tobytes()) for row in rows]


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 100])
def test_every_flipped_bit_another_order_of_words_and_another_question_change_the_digest(width):
    rng = np.random.default_rng(width)
    row = rng.integers(0, 256, (1, width), dtype=np.uint8)
    flipped = np.repeat(row, 8 * width, axis=0)
    for bit in range(8 * width):
        flipped[bit, bit // 8] ^= 1 << bit % 8
    values = digests(3, np.concatenate([row, flipped]))
    assert len(set(values.tolist())) == 8 * width + 1
    assert len({int(digests(question, row)[0]) for question in range(1000)}) == 1000
    words = np.arange(16, dtype=np.uint8).reshape(1, 16)
    assert digests(0, words)[0] != digests(0, np.roll(words, 8, axis=1))[0]
