"""Directed rounding, checked with a Taylor series in rational arithmetic that shares nothing with ``decimal``."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.exact import (
    ONE,
    divide_down,
    exact_epsilon,
    exp_bounds,
    float_up,
    log_upper,
    probability_down,
    probability_up,
)

_HALVINGS = 8
_TERMS = 60
EXPONENTS = [Fraction(text) for text in ("0", "1e-9", "0.01", "1/3", "0.5", "1", "2", "10", "63.999", "64")]


def taylor_bounds(exponent):
    """Lower and upper bound of exp(exponent), |exponent| <= 256: series at exponent / 256, squared eight times."""
    small = abs(exponent) / 2**_HALVINGS
    term = low = Fraction(1)
    for n in range(1, _TERMS):
        term = _cut(term * small / n, up=False)
        low += term
    # The rest of the series and every cut are below this, because small <= 1.
    high = low + Fraction(1, 2**250)
    for _ in range(_HALVINGS):
        low, high = _cut(low * low, up=False), _cut(high * high, up=True)
    return (low, high) if exponent >= 0 else (1 / high, 1 / low)


def _cut(value, *, up):
    scaled = value * 2**300
    return Fraction(math.ceil(scaled) if up else math.floor(scaled), 2**300)


@pytest.mark.parametrize(
    ("epsilon", "promised"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (Fraction(1, 3), Fraction(3333333333333333, 10**16)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("0.30000000000000000001"), Fraction(0.3)),
        (True, Fraction(1)),
    ],
)
def test_any_real_number_is_an_epsilon_and_none_is_exceeded(epsilon, promised):
    assert exact_epsilon(epsilon) == promised <= Fraction(epsilon)


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int64", "uint8", "longdouble"])
def test_numpys_numbers_are_the_numbers_they_are(kind):
    numpy = pytest.importorskip("numpy")
    assert exact_epsilon(getattr(numpy, kind)(1)) == 1
    assert exact_epsilon(numpy.float64(0.1)) == exact_epsilon(0.1)


@pytest.mark.parametrize("epsilon", [math.nan, math.inf, -math.inf, "one", None, [1]])
def test_what_is_no_finite_number_is_no_epsilon(epsilon):
    with pytest.raises((ValueError, OverflowError, TypeError)):
        exact_epsilon(epsilon)


@pytest.mark.parametrize("exponent", EXPONENTS + [-exponent for exponent in EXPONENTS])
def test_exp_bounds_enclose_the_exponential(exponent):
    low, high = exp_bounds(exponent)
    taylor_low, taylor_high = taylor_bounds(exponent)
    assert low <= taylor_low
    assert taylor_high <= high
    assert exp_bounds(1000 * exponent) == exp_bounds(max(min(1000 * exponent, Fraction(64)), Fraction(-64)))
    assert (high - low) / low < Fraction(1, 10**56)


@given(st.fractions(min_value=-64, max_value=64, max_denominator=10**12))
def test_exp_bounds_enclose_at_any_rational_exponent(exponent):
    low, high = exp_bounds(exponent)
    taylor_low, taylor_high = taylor_bounds(exponent)
    assert low <= taylor_low <= taylor_high <= high


@given(st.fractions(min_value=1, max_value=10**12, max_denominator=10**12))
def test_log_upper_is_an_upper_bound_and_a_tight_one(ratio):
    bound = log_upper(ratio)
    assert taylor_bounds(bound)[0] >= ratio or ratio == 1
    assert taylor_bounds(bound - Fraction(1, 10**50))[1] < ratio


@pytest.mark.parametrize("bit", [1, 20, 63, 64, 127])
def test_log_upper_bounds_ratios_next_to_one_and_enormous_ones(bit):
    assert taylor_bounds(log_upper(1 + Fraction(1, 1 << bit)))[0] >= 1 + Fraction(1, 1 << bit)
    assert taylor_bounds(log_upper(Fraction(1 << bit)))[0] >= 1 << bit
    assert log_upper(Fraction(1)) == 0
    with pytest.raises(ValueError, match="at least 1"):
        log_upper(1 - Fraction(1, 1 << bit))


@given(st.floats(min_value=1e-6, max_value=1e6), st.integers(min_value=1, max_value=1001))
def test_divided_parts_never_add_up_to_more_than_the_whole(epsilon, parts):
    part = divide_down(epsilon, parts)
    assert exact_epsilon(part) * parts <= exact_epsilon(epsilon)
    assert exact_epsilon(part) * parts >= exact_epsilon(epsilon) * (1 - Fraction(2, 10**11))
    assert divide_down(epsilon, 1) == epsilon


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_exact_epsilon_is_neither_above_the_double_nor_above_its_decimal_text(epsilon):
    exact = exact_epsilon(epsilon)
    assert exact <= Fraction(epsilon)
    assert exact <= Fraction(repr(epsilon))
    assert exact in (Fraction(epsilon), Fraction(repr(epsilon)))


@given(st.fractions(min_value=0, max_value=1))
def test_probabilities_round_to_the_promised_side_by_less_than_one_step(probability):
    down, up = probability_down(probability), probability_up(probability)
    assert Fraction(down, ONE) <= probability < Fraction(down + 1, ONE) or (probability == 1 and down == ONE - 1)
    assert Fraction(up - 1, ONE) < probability <= Fraction(up, ONE) or (probability == 0 and up == 1)


@given(st.fractions())
def test_float_up_is_the_least_double_not_below(value):
    up = float_up(value)
    assert Fraction(up) >= value
    assert Fraction(math.nextafter(up, -math.inf)) < value
