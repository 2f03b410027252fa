"""Two questions in one answer: what a record answers, bit by bit, and in which words a person reads what was sent."""

from __future__ import annotations

from collections import Counter

import pytest
from exact_coins import SeededCoins

from ldp_client.answering import item_of
from ldp_client.ledger.sent import asked, said
from protocols import Campaign
from protocols.exact.coins import Coins

CAMPAIGN = Campaign.compile(
    {
        "version": 1,
        "title": "t",
        "label": {"name": "y", "classes": ["a", "b"]},
        "features": [
            {"name": "x", "kind": "continuous", "missing": False, "low": 0, "high": 8},
            {"name": "u", "kind": "categorical", "missing": False, "values": ["p", "q"]},
            {"name": "w", "kind": "continuous", "missing": False, "low": 0, "high": 1, "bins": 2},
        ],
        "privacy": {"epsilon": 3},
    }
)
SIGNS, TRIPLE = CAMPAIGN.questions[1:]
OPEN = Campaign.compile(
    {
        "version": 1,
        "title": "t",
        "label": {"name": "y", "classes": ["a", "b"]},
        "features": [{"name": "x", "kind": "continuous", "low": 0, "high": 8}],
        "privacy": {"epsilon": 3},
    }
)
OPEN_SIGNS = OPEN.questions[1]


class NoCoins(Coins):
    def words(self, count):
        raise AssertionError("a record that holds everything takes no coins for its indices")


def answered(record, class_index, number=4_000):
    """How often each item is answered."""
    coins = SeededCoins(1)
    return Counter(item_of(CAMPAIGN, SIGNS, record, class_index, coins) for _ in range(number))


@pytest.mark.parametrize("class_index", [0, 1])
def test_at_an_end_both_bits_are_certain_and_the_square_is_at_its_top(class_index):
    for record, bits in (({"x": 0}, 0b01), ({"x": 8}, 0b11), ({"x": -50}, 0b01), ({"x": "1e9"}, 0b11)):
        assert set(answered(record, class_index, 50)) == {4 * class_index + bits}


def test_in_the_middle_the_square_is_at_its_bottom_and_the_value_a_fair_coin():
    found = answered({"x": 4}, 1)
    assert set(found) == {4, 6}
    assert abs(found[6] / 4_000 - 0.5) < 0.04  # Five standard errors.


def test_elsewhere_the_bits_are_independent_coins_of_value_and_square():
    """T = 1/2: bits of 3/4 and, of 2 t^2 - 1 = -1/2, 1/4. Five standard errors are at most .036."""
    found = answered({"x": 6}, 0)
    for item, share in ((0, 3 / 16), (1, 1 / 16), (2, 9 / 16), (3, 3 / 16)):
        assert abs(found[item] / 4_000 - share) < 0.04


def test_a_missing_number_is_one_random_number_for_both_bits():
    """T uniform on [-1, 1]: the square leans up for one in three, alike for both values."""
    for record in ({}, {"x": None}, {"x": "tall"}):
        found = answered(record, 0, 8_000)
        for item, share in ((0, 1 / 3), (1, 1 / 6), (2, 1 / 3), (3, 1 / 6)):
            assert abs(found[item] / 8_000 - share) < 0.027


@pytest.mark.parametrize("class_index", [0, 1])
def test_a_number_that_may_be_missing_has_a_cell_for_that_and_takes_no_coins_then(class_index):
    for record in ({}, {"x": None}, {"x": "tall"}, {"x": float("nan")}):
        assert item_of(OPEN, OPEN_SIGNS, record, class_index, NoCoins()) == 5 * class_index + 4
    coins = SeededCoins(3)
    for record, bits in (({"x": 0}, {0b01}), ({"x": 8}, {0b11}), ({"x": 4}, {0b00, 0b10})):
        found = {item_of(OPEN, OPEN_SIGNS, record, class_index, coins) for _ in range(50)}
        assert found == {5 * class_index + both for both in bits}


def test_with_the_same_coins_a_number_has_the_same_bits_whether_it_may_be_missing_or_not():
    for seed in range(40):
        one, other = (
            item_of(campaign, question, {"x": seed / 5}, 1, SeededCoins(seed))
            for campaign, question in ((CAMPAIGN, SIGNS), (OPEN, OPEN_SIGNS))
        )
        assert one - 4 == other - 5


@pytest.mark.parametrize(("u", "w", "index"), [("p", 0.2, 0), ("p", 0.9, 1), ("q", 0.2, 2), ("q", 0.5, 3)])
@pytest.mark.parametrize("class_index", [0, 1])
def test_two_features_and_the_class_are_one_index(u, w, index, class_index):
    assert item_of(CAMPAIGN, TRIPLE, {"u": u, "w": w}, class_index, NoCoins()) == 2 * index + class_index


def test_a_missing_value_of_a_triple_is_random_and_the_other_is_told():
    coins = SeededCoins(2)
    found = Counter(item_of(CAMPAIGN, TRIPLE, {"w": 0.9}, 1, coins) for _ in range(2_000))
    assert set(found) == {3, 7}
    assert abs(found[3] / 2_000 - 0.5) < 0.056  # Five standard errors.


def test_a_person_reads_what_was_asked_and_what_was_said():
    assert asked(CAMPAIGN, SIGNS) == "x (value and square) and y"
    assert asked(CAMPAIGN, TRIPLE) == "u, w and y"
    told = [said(CAMPAIGN, SIGNS, bytes([cell])) for cell in (0, 3, 5)]
    assert told[0].startswith("the lower end, its square at the lower end, a (true with probability 0.74)")
    assert told[1].startswith("the upper end, its square at the upper end, a")
    assert told[2].startswith("the lower end, its square at the upper end, b")
    assert asked(OPEN, OPEN_SIGNS) == "x (value and square) and y"
    told = [said(OPEN, OPEN_SIGNS, bytes([cell])).split(" (")[0] for cell in (4, 6, 9)]
    assert told == ["missing, a", "the lower end, its square at the upper end, b", "missing, b"]
    assert said(CAMPAIGN, TRIPLE, bytes([6])).startswith("q, 0.5 to 1, a (true")
    assert said(CAMPAIGN, TRIPLE, bytes([3])).startswith("p, 0.5 to 1, b (true")
