"""Numbers as people read them: signs, dashes, plurals, and bounds that are never rounded down."""

import math

import pytest
from drafts import draft, number, text

from ldp_aggregator.guarantees import LOCAL_RELATION, Guarantee
from ldp_aggregator.service import words
from ldp_protocols import Campaign


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
        (0, "0"),
        (12345, "12,345"),
        (-0.0123, "−0.0123"),
        (1234.5, "1,234"),
        (9000000.0, "9,000,000"),
        (-9000000.0, "−9,000,000"),
        (10000000.0, "1e+07"),
        (9.9e-05, "9.9e-05"),
    ],
)
def test_a_number(value, text):
    assert words.number(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0\u00a0things"), (1, "1\u00a0thing"), (2, "2\u00a0things")])
def test_a_plural(value, text):
    assert words.counted(value, "thing") == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1.0, 3, "1.00"),
        (1.001, 3, "1.01"),
        (0.3, 3, "0.300"),
        (2.7182818, 3, "2.72"),
        (2.711, 3, "2.72"),
        (9.999, 3, "10.0"),
        (0.1 + 0.2, 4, "0.3000"),
        (0.30001, 4, "0.3001"),
        (0.0, 3, "0"),
        (math.inf, 3, "–"),
        (-1.239, 3, "−1.24"),
    ],
)
def test_a_bound_is_rounded_up(value, digits, text):
    assert words.upward(value, digits) == text


def test_a_loss_has_its_delta_and_is_never_told_smaller_than_it_is():
    def loss(epsilon, delta):
        return words.loss(Guarantee(epsilon, delta, LOCAL_RELATION, ()))

    assert loss(1.00001, 0.0) == "ε = 1.001"
    assert loss(1.0, 1e-9) == "ε = 1.000, δ = 1e-09"
    assert words.loss(Guarantee(None, 0.0, LOCAL_RELATION, ())) == "no privacy"


@pytest.mark.parametrize(
    ("epsilon", "text"), [(0.0, "50 %"), (1.0, "74 %"), (math.log(3), "75 %"), (2.0, "89 %"), (800, "100 %")]
)
def test_what_an_even_guess_becomes(epsilon, text):
    """e / (1 + e) is 73.1 %, e^2 / (1 + e^2) is 88.1 %."""
    assert words.even_odds(epsilon) == text


@pytest.mark.parametrize(("text", "told"), [("a b", "A b."), ("A b.", "A b."), ("", ".")])
def test_a_sentence(text, told):
    assert words.sentence(text) == told


def test_bins_of_a_number_read_as_ranges_and_values_as_they_are():
    campaign = Campaign.compile(
        draft(number("income", -5, 20_000, bins=2, missing=True), number("age"), text("sky", "blue", "grey"))
    )
    income, age, sky = campaign.features
    assert words.cells(income) == ("−5 to 9,997.5", "9,997.5 to 20,000", "missing")
    assert words.cells(age) == age.cell_names
    assert words.cells(sky) == ("blue", "grey")


def test_what_is_roughly_known_is_told_to_two_digits_and_no_smaller():
    assert [words.about(value) for value in (1, 99, 101, 1_499, 15_001)] == [
        *("about 1", "about 99", "about 110", "about 1,500", "about 16,000"),
    ]
    assert words.interval(-0.1, 1.2) == "0.0 to 100.0\u00a0%"
    assert words.interval(0.123, 0.4567) == "12.3 to 45.7\u00a0%"
    assert [words.bits(value) for value in (0.234, 0.005, 0.004)] == [
        "0.23\u00a0bits",
        "0.01\u00a0bits",
        "below 0.01\u00a0bits",
    ]
