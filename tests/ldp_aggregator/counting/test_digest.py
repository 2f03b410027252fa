"""The digest beside an id: the same report gives the same number, any other one another."""

import numpy as np
import pytest

from ldp_aggregator.counting.digest import digests


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
    for width in (1, 8, 13):
        payload = bytes(range(7, 7 + width))
        assert digests(5, np.frombuffer(payload, np.uint8)[None, :]).tolist() == [slow_digest(5, payload)]


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 100])
def test_every_flipped_bit_changes_the_digest(width):
    rng = np.random.default_rng(width)
    row = rng.integers(0, 256, (1, width), dtype=np.uint8)
    flipped = np.repeat(row, 8 * width, axis=0)
    for bit in range(8 * width):
        flipped[bit, bit // 8] ^= 1 << bit % 8
    values = digests(3, np.concatenate([row, flipped]))
    assert len(set(values.tolist())) == 8 * width + 1


def test_the_same_payload_to_another_question_has_another_digest():
    rows = np.zeros((1, 4), dtype=np.uint8)
    assert len({int(digests(question, rows)[0]) for question in range(1000)}) == 1000


def test_swapped_words_change_the_digest():
    words = np.arange(16, dtype=np.uint8).reshape(1, 16)
    swapped = np.roll(words, 8, axis=1)
    assert digests(0, words)[0] != digests(0, swapped)[0]


def test_a_row_does_not_depend_on_its_neighbours():
    rows = np.random.default_rng(1).integers(0, 256, (50, 11), dtype=np.uint8)
    assert digests(2, rows).tolist() == [int(digests(2, rows[i : i + 1])[0]) for i in range(50)]
