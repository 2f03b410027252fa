"""What a mechanism promises, against the coins of the code that runs on devices."""

import itertools
import math
import struct
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import pytest
from exact_coins import enumerate_outcomes
from mechanism_grid import ALL, DOMAINS, EPSILONS, NOISY, UNIT, exact_distributions

from ldp_protocols import ScriptedCoins, exact
from ldp_protocols.exact import exact_epsilon, exp_bounds, log_upper
from ldp_protocols.mechanisms import (
    DISCRETE,
    PURE,
    LaplaceVector,
    Moment,
    OneBit,
    SubsetSelection,
    UnaryEncoding,
    from_parameters,
)
from ldp_protocols.mechanisms.pure import pack_indices

ONE = 2**64


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ALL)
def test_the_realised_loss_never_exceeds_the_promise_and_hardly_stays_below_it(name, epsilon):
    promised = exact_epsilon(epsilon)
    for size in DOMAINS:
        mechanism = ALL[name].make(size, promised)
        assert mechanism.worst_case().stays_within(promised)
        assert mechanism.loss() == mechanism.worst_case().loss <= promised
        assert mechanism.loss() <= Fraction(mechanism.realised_epsilon) <= Fraction(epsilon)
        if name != "the":
            assert promised - mechanism.loss() < Fraction(1, 10**9)


@pytest.mark.parametrize("theta", [None, Fraction(1, 4), Fraction(1, 1000), Fraction(1)])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_loss_of_a_threshold_is_that_of_the_two_bits_it_tells(epsilon, theta):
    mechanism = DISCRETE["the"].make(8, exact_epsilon(epsilon), theta)
    if theta is None:
        p, q = float(mechanism.p), float(mechanism.q)
    else:
        p = 1 - math.exp(epsilon * (float(theta) - 1) / 2) / 2
        q = math.exp(-epsilon * float(theta) / 2) / 2
        assert (float(mechanism.p), float(mechanism.q)) == pytest.approx((p, q), rel=1e-14)
    assert mechanism.loss() <= exact_epsilon(epsilon)
    assert mechanism.realised_epsilon == pytest.approx(math.log(p * (1 - q) / (q * (1 - p))), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "theta"), [(0.5, 0.562), (1.0, 0.619), (2.0, 0.710), (4.0, 0.816)])
def test_the_best_threshold_is_the_published_one(epsilon, theta):
    best = DISCRETE["the"].make(8, exact_epsilon(epsilon))
    assert float(best.q) == pytest.approx(math.exp(-epsilon * theta / 2) / 2, rel=2e-3)


@pytest.mark.parametrize("epsilon", [64.0, 65.0, 1000.0, 1e300])
@pytest.mark.parametrize("name", ALL)
def test_an_epsilon_beyond_every_probability_still_makes_a_mechanism_that_a_document_can_name(name, epsilon):
    mechanism = ALL[name].make(3, exact_epsilon(epsilon))
    assert mechanism.loss() <= exact_epsilon(epsilon)
    assert from_parameters(name, 3, mechanism.parameters()) == mechanism


def unnoised(mechanism, item, coins, monkeypatch):
    """The integer cells to which a noisy vector adds its draws."""
    with monkeypatch.context() as patch:
        patch.setattr(exact, "discrete_laplace", lambda scale, coins: 0)
        return struct.unpack(f"<{mechanism.domain_size}i", mechanism.perturb(item, coins))


@pytest.mark.parametrize(("name", "epsilon"), list(itertools.product(NOISY, (0.01, 1.0, 8.0))))
def test_the_loss_of_a_noisy_vector_is_its_largest_l1_distance_over_the_scale(name, epsilon, monkeypatch):
    mechanism = NOISY[name].make(3, exact_epsilon(epsilon))
    items = (
        list(range(3))
        if name == "she"
        else [Moment(cell, value) for cell in range(3) for value in (-UNIT, -UNIT + 1, -1, 0, 1, UNIT - 1, UNIT)]
    )
    vectors = {unnoised(mechanism, item, ScriptedCoins([word]), monkeypatch) for item in items for word in (0, ONE - 1)}
    distance = max(
        sum(abs(a - b) for a, b in zip(one, other, strict=True)) for one, other in itertools.combinations(vectors, 2)
    )
    # Per cell the log ratio of discrete Laplace masses is at most distance / scale, and reaches it.
    assert mechanism.loss() == distance / mechanism.scale


@pytest.mark.parametrize("name", NOISY)
def test_every_cell_gets_a_draw_of_its_own_at_the_mechanisms_scale(name, monkeypatch):
    mechanism = NOISY[name].make(4, Fraction(1))
    scales, draws = [], iter([1, 2, 3, 4])

    def sample(scale, coins):
        scales.append(scale)
        return next(draws)

    monkeypatch.setattr(exact, "discrete_laplace", sample)
    item, unit = (2, 1) if name == "she" else (Moment(2, UNIT), 1 << mechanism.grid)
    payload = mechanism.perturb(item, ScriptedCoins([0]))
    assert struct.unpack("<4i", payload) == (1, 2, 3 + unit, 4)
    assert scales == [mechanism.scale] * 4


@pytest.mark.parametrize("value", [-UNIT, -UNIT + 1, -12345678901, -1, 0, 1, 12345678901, UNIT // 3, UNIT - 1, UNIT])
def test_the_laplace_grid_keeps_the_expectation_of_a_value_exactly(value, monkeypatch):
    mechanism = LaplaceVector.make(2, Fraction(1))
    distribution = enumerate_outcomes(lambda coins: unnoised(mechanism, Moment(1, value), coins, monkeypatch))
    assert all(first == 0 for first, _ in distribution)
    mean = sum(share * steps for (_, steps), share in distribution.items()) / (1 << mechanism.grid)
    assert mean == Fraction(value, UNIT)
    assert max(steps for _, steps in distribution) - min(steps for _, steps in distribution) <= 1


@pytest.mark.parametrize("name", NOISY)
def test_a_draw_beyond_the_reach_is_clamped_and_never_wraps_at_the_least_epsilon_of_a_question(name, monkeypatch):
    mechanism = NOISY[name].make(2, Fraction(1, 10**6))
    assert mechanism.bound <= 2**31 - 1
    assert from_parameters(name, 2, mechanism.parameters()) == mechanism
    item = 0 if name == "she" else Moment(0, UNIT)
    for extreme in (1 << 40, -(1 << 40)):
        monkeypatch.setattr(exact, "discrete_laplace", lambda scale, coins, extreme=extreme: extreme)
        payload = mechanism.perturb(item, ScriptedCoins([0]))
        assert struct.unpack("<2i", payload) == (math.copysign(mechanism.bound, extreme),) * 2
        mechanism.check(payload)


SOME_EPSILONS = (0.1, 1.0, 4.0)
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


@pytest.mark.parametrize("epsilon", SOME_EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("name", PURE)
def test_the_code_of_a_pure_mechanism_has_the_law_of_its_definition(name, size, epsilon):
    mechanism = PURE[name].make(size, exact_epsilon(epsilon))
    for upper in (False, True):
        laws = exact_distributions(mechanism, upper)
        assert laws == [defined(mechanism, item) for item in range(size)]
    assert largest_ratio(laws) == mechanism.worst_case().ratio <= exp_bounds(exact_epsilon(epsilon))[1]
    assert log_upper(largest_ratio(laws)) == mechanism.loss()


@pytest.mark.parametrize("epsilon", SOME_EPSILONS)
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
            assert (law[bytes((cell, 1))], law[bytes((cell, 0))]) == (one / classes, (1 - one) / classes)
        assert len(law) == 2 * classes
        laws.append(law)
        second_moment = sum(
            share * (classes / (2 * p - 1)) ** 2 for payload, share in law.items() if payload[0] == item
        )
        assert mechanism.noise_variance(0.5) == pytest.approx(float(second_moment), rel=1e-12)
    assert largest_ratio(laws) == mechanism.worst_case().ratio
    assert log_upper(largest_ratio(laws)) == mechanism.loss()
