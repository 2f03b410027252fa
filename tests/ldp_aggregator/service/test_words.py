"""Numbers as people read them: signs, dashes, plurals, and bounds that are never rounded down."""

import math

import pytest

from ldp_aggregator.learning.published import LOCAL_RELATION, Guarantee
from ldp_aggregator.service import words


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
