"""The choice of mechanism: least predicted variance."""

import math

import pytest

from protocols.drafting.choice import make_continuous, make_discrete
from protocols.exact.rationals import exact_epsilon
from protocols.mechanisms import DISCRETE, PURE, DirectEncoding, OptimalUnaryEncoding, SubsetSelection


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.7, 1.0, 1.3, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 8, 16, 32, 64, 128, 1000])
def test_auto_is_the_mechanism_of_least_predicted_variance(size, epsilon):
    promised = exact_epsilon(epsilon)
    chosen = make_discrete("auto", size, promised)
    variances = {name: kind.make(size, promised).noise_variance(1 / size) for name, kind in DISCRETE.items()}
    assert variances[chosen.name] == min(variances.values())


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
def test_direct_encoding_beats_optimal_unary_encoding_below_three_e_plus_two_cells(epsilon):
    """Wang et al. 2017, section 5: at vanishing frequency, d < 3 e + 2."""
    turn = 3 * math.exp(epsilon) + 2
    for size in range(3, 2 * math.ceil(turn)):
        direct = DirectEncoding.make(size, exact_epsilon(epsilon)).noise_variance(0.0)
        unary = OptimalUnaryEncoding.make(size, exact_epsilon(epsilon)).noise_variance(0.0)
        assert (direct < unary) == (size < turn)


GAINS = {
    (8, 0.5): 1.33,
    (16, 0.5): 1.15,
    (8, 1.0): 1.25,
    (16, 1.0): 1.18,
    (32, 1.0): 1.08,
    (16, 2.0): 1.14,
    (128, 4.0): 1.20,
}


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("size", [2, 4, 8, 16, 32, 64, 128, 200])
def test_subset_selection_is_never_worse_than_what_it_contains_and_gains_what_is_documented(size, epsilon):
    promised = exact_epsilon(epsilon)
    best = min(DISCRETE[name].make(size, promised).noise_variance(1 / size) for name in ("de", "sue", "oue"))
    gain = best / SubsetSelection.make(size, promised).noise_variance(1 / size)
    assert gain >= 1 - 1e-12
    assert gain == pytest.approx(GAINS.get((size, epsilon), gain), abs=0.02)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_auto_asks_continuous_values_by_sign_at_small_epsilon(epsilon):
    for classes in (2, 10):
        assert make_continuous("auto", classes, exact_epsilon(epsilon)).name in PURE
