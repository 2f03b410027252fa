"""The perturbation code has exactly the law that is proved: every path through its coins, with rational weights.

The law is written here by definition, payload by payload, and compared with what enumerating the coins of ``perturb``
gives, for every item; the largest ratio is then compared with the proof.
"""

import math
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import pytest
from exact_coins import enumerate_outcomes
from mechanism_grid import UNIT, exact_distributions

from protocols.exact import ONE, exact_epsilon, exp_bounds, log_upper
from protocols.mechanisms import PURE, Moment, OneBit, SubsetSelection, UnaryEncoding
from protocols.mechanisms.pure import pack_indices

EPSILONS = (0.1, 1.0, 4.0)
VALUES = (-UNIT, -UNIT // 2 - 12345, -1, 0, 1, 7_777_777_777, UNIT - 1, UNIT)
"""The ends of the range, what lies next to them, and between."""


def defined(mechanism, item):
    """Payload to probability, by the definition of direct encoding, unary encoding or subset selection."""
    d, p, q = mechanism.domain_size, mechanism.p, mechanism.q
    if isinstance(mechanism, UnaryEncoding):
        law = {}
        for bits in product((False, True), repeat=d):
            told = [(p if place == item else q) for place in range(d)]
            share = math.prod(one if bit else 1 - one for bit, one in zip(bits, told, strict=True))
            law[pack_indices([place for place, bit in enumerate(bits) if bit], d)] = share
        return law
    if isinstance(mechanism, SubsetSelection):
        w = mechanism.subset_size
        inside, outside = p / math.comb(d - 1, w - 1), (1 - p) / math.comb(d - 1, w)
        return {pack_indices(s, d): inside if item in s else outside for s in combinations(range(d), w)}
    return {bytes([index]): p if index == item else (1 - p) / (d - 1) for index in range(d)}


def largest_ratio(laws):
    """The largest ratio of two items' probabilities of one payload."""
    assert len({frozenset(law) for law in laws}) == 1, "no payload excludes an item"
    return max(max(law[payload] for law in laws) / min(law[payload] for law in laws) for payload in laws[0])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("name", PURE)
def test_the_code_of_a_pure_mechanism_has_the_law_of_its_definition(name, size, epsilon):
    mechanism = PURE[name].make(size, exact_epsilon(epsilon))
    for upper in (False, True):
        laws = exact_distributions(mechanism, upper)
        assert laws == [defined(mechanism, item) for item in range(size)]
    assert largest_ratio(laws) == mechanism.worst_case().ratio <= exp_bounds(exact_epsilon(epsilon))[1]
    assert log_upper(largest_ratio(laws)) == mechanism.loss()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("classes", [1, 2, 3, 5])
def test_the_code_of_one_bit_has_the_law_of_its_definition(classes, epsilon):
    """The cell is uniform; its bit has P(1) between 1 - p and p, linear in the value and cut to a multiple of 2^-64."""
    mechanism = OneBit.make(classes, exact_epsilon(epsilon))
    p = mechanism.p
    laws = []
    for item, value in product(range(classes), VALUES):
        law = enumerate_outcomes(partial(mechanism.perturb, Moment(item, value)))
        for cell in range(classes):
            t = Fraction(value, UNIT) if cell == item else Fraction(0)
            one = Fraction(math.floor(((1 - p) + (2 * p - 1) * (t + 1) / 2) * ONE), ONE)
            assert law.pop(bytes((cell, 1))) == one / classes
            assert law.pop(bytes((cell, 0))) == (1 - one) / classes
        assert law == {}
        laws.append(enumerate_outcomes(partial(mechanism.perturb, Moment(item, value))))
    assert largest_ratio(laws) == mechanism.worst_case().ratio
    assert log_upper(largest_ratio(laws)) == mechanism.loss()
