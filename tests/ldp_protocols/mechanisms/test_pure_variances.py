"""P, q and the variances of the mechanisms for discrete values, against their definition and what is published."""

import itertools
import math
from fractions import Fraction

import pytest
from mechanism_grid import SMALL, exact_distributions

from ldp_protocols.exact import exact_epsilon, exp_bounds
from ldp_protocols.mechanisms import (
    DISCRETE,
    PURE,
    SubsetSelection,
)

ONE = 2**64


FREQUENCIES = {
    2: (Fraction(3, 4), Fraction(1, 4)),
    3: (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)),
    4: (Fraction(2, 5), Fraction(3, 10), Fraction(1, 5), Fraction(1, 10)),
    5: (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 8), Fraction(0)),
}


@pytest.mark.parametrize(
    ("name", "p", "q"),
    [
        ("de", lambda e, d: e / (e + d - 1), lambda e, d: 1 / (e + d - 1)),
        ("sue", lambda e, d: e**0.5 / (e**0.5 + 1), lambda e, d: 1 / (e**0.5 + 1)),
        ("oue", lambda e, d: 0.5, lambda e, d: 1 / (e + 1)),
    ],
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_p_and_q_are_the_published_ones(name, p, q, epsilon):
    for size in (2, 10, 1000):
        mechanism = DISCRETE[name].make(size, exact_epsilon(epsilon))
        wanted = (p(math.exp(epsilon), size), q(math.exp(epsilon), size))
        assert (float(mechanism.p), float(mechanism.q)) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("size", [2, 3, 8, 100, 1024])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_subset_selection_has_the_published_p_q_and_size(size, epsilon):
    mechanism = SubsetSelection.make(size, exact_epsilon(epsilon))
    e, w = math.exp(epsilon), mechanism.subset_size
    assert max(1, math.floor(size / (e + 1))) <= w <= max(1, math.ceil(size / (e + 1)))
    assert float(mechanism.p) == pytest.approx(w * e / (w * e + size - w), rel=1e-12)
    wanted = (w * e * (w - 1) + (size - w) * w) / ((size - 1) * (w * e + size - w))
    assert float(mechanism.q) == pytest.approx(wanted, rel=1e-12)


def test_subset_selection_takes_the_better_of_the_two_sizes():
    for size, epsilon in itertools.product((5, 9, 40, 333), (Fraction(1, 2), Fraction(1), Fraction(3))):
        best = SubsetSelection.make(size, epsilon)
        e, _ = exp_bounds(epsilon)
        for w in {max(1, math.floor(size / (e + 1))), max(1, math.ceil(size / (e + 1)))}:
            other = SubsetSelection(size, w, math.floor(w * e / (w * e + size - w) * ONE))
            assert best.noise_variance(1 / size) <= other.noise_variance(1 / size) * (1 + 1e-12)


def contribution_variance(mechanism, distributions, weights, frequencies):
    """Exact n Var of sum_v weights[v] * estimate_v, the records held fixed at ``frequencies``."""
    total = Fraction(0)
    for frequency, distribution in zip(frequencies, distributions, strict=True):
        contributions = [
            (
                sum(weights[v] * ((v in support) - mechanism.q) for v in range(mechanism.domain_size))
                / (mechanism.p - mechanism.q),
                share,
            )
            for support, share in ((mechanism.support(payload), share) for payload, share in distribution.items())
        ]
        mean = sum(share * value for value, share in contributions)
        total += frequency * sum(share * (value - mean) ** 2 for value, share in contributions)
    return float(total)


@pytest.mark.parametrize(("name", "size", "epsilon"), SMALL)
def test_p_q_joint_support_and_variances_are_those_of_what_perturb_does(name, size, epsilon):
    mechanism = PURE[name].make(size, exact_epsilon(epsilon))
    distributions, frequencies = exact_distributions(mechanism), FREQUENCIES[size]
    one_true, none_true = mechanism.joint_support
    for item, distribution in enumerate(distributions):
        supports = [(frozenset(mechanism.support(payload)), share) for payload, share in distribution.items()]
        for pair in itertools.combinations(range(size), 2):
            both = sum(share for support, share in supports if set(pair) <= support)
            assert both == (one_true if item in pair else none_true)

    def variance(weights):
        return contribution_variance(mechanism, distributions, weights, frequencies)

    for cell in range(size):
        weights = [int(v == cell) for v in range(size)]
        assert mechanism.noise_variance(float(frequencies[cell])) == pytest.approx(variance(weights), rel=1e-9)
    for one, other in itertools.combinations(range(size), 2):
        weights = [(v == one) - (v == other) for v in range(size)]
        predicted = mechanism.contrast_variance(float(frequencies[one]), float(frequencies[other]))
        assert predicted == pytest.approx(variance(weights), rel=1e-9)
    for cells in range(1, size + 1):
        weights = [int(v < cells) for v in range(size)]
        predicted = mechanism.sum_variance(cells, float(sum(frequencies[:cells])))
        assert predicted == pytest.approx(variance(weights), rel=1e-9, abs=1e-9)
