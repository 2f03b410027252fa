"""Every mechanism against its definition: by enumerating the coins of the code that runs on devices."""

from __future__ import annotations

import dataclasses
import itertools
import math
import struct
from fractions import Fraction
from functools import partial

import pytest

from protocols import DocumentError, PayloadError, ScriptedCoins
from protocols.drafting import make_continuous, make_discrete, make_sign
from protocols.errors import PAYLOAD_CODES
from protocols.exact import discrete_laplace
from protocols.exact.coins import ONE
from protocols.exact.rationals import exact_epsilon, exp_bounds, log_upper
from protocols.mechanisms import (
    DISCRETE,
    MOMENTS,
    PURE,
    VALUE_BITS,
    DirectEncoding,
    LaplaceVector,
    Moment,
    NoisyVector,
    OneBit,
    OptimalUnaryEncoding,
    SubsetSelection,
    SummingHistogramEncoding,
    UnaryEncoding,
    from_parameters,
)

DOMAINS = (2, 3, 4, 7, 8, 9, 16, 33, 64, 100, 255, 256, 257, 1000, 1024)
EPSILONS = (0.01, 0.05, 0.1, 0.3, 0.5, math.log(2), 1.0, 1.5, 2.0, 3.0, 4.0, 7.5, 10.0)
ALL = {**DISCRETE, **MOMENTS}
NOISY = {name: kind for name, kind in ALL.items() if issubclass(kind, NoisyVector)}
UNARY = {name: kind for name, kind in DISCRETE.items() if issubclass(kind, UnaryEncoding)}
UNIT = 1 << VALUE_BITS


def thresholds(mechanism):
    """What the mechanism compares words with."""
    return (mechanism.true_bit, mechanism.other_bit) if isinstance(mechanism, UnaryEncoding) else ()


def exact_distributions(mechanism, outcomes, upper=False):
    """Per item, the exact distribution of the payloads that ``perturb`` returns."""
    return [
        outcomes(partial(mechanism.perturb, item), thresholds(mechanism), upper=upper)
        for item in range(mechanism.domain_size)
    ]


SMALL = [
    pytest.param(name, size, epsilon, id=f"{name}-{size}-{epsilon}")
    for name in PURE
    for size, epsilon in ((2, 0.5), (3, 2.0), (4, 1.0), (5, 0.1), (5, 4.0))
]


# --- the promise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ALL)
def test_the_realised_loss_never_exceeds_the_promise_and_hardly_stays_below_it(name, epsilon):
    promised = exact_epsilon(epsilon)
    for size in DOMAINS:
        mechanism = ALL[name].make(size, promised)
        assert mechanism.loss() <= promised
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


@pytest.mark.parametrize(("name", "size", "epsilon"), SMALL)
def test_the_worst_likelihood_ratio_over_all_inputs_and_outputs_is_the_loss(name, size, epsilon, outcomes):
    mechanism = PURE[name].make(size, exact_epsilon(epsilon))
    for upper in (False, True):
        distributions = exact_distributions(mechanism, outcomes, upper)
        assert all(sum(distribution.values()) == 1 for distribution in distributions)
        payloads = set().union(*distributions)
        assert all(set(distribution) == payloads for distribution in distributions), "no output excludes an input"
        worst = max(
            one[payload] / other[payload]
            for one, other in itertools.permutations(distributions, 2)
            for payload in payloads
        )
        assert worst <= exp_bounds(exact_epsilon(epsilon))[1]
        assert log_upper(worst) == mechanism.loss()


@pytest.mark.parametrize(("size", "epsilon"), [(2, 0.5), (3, 1.0), (5, 4.0)])
def test_the_worst_likelihood_ratio_of_one_bit_is_the_loss(size, epsilon, outcomes):
    mechanism = OneBit.make(size, exact_epsilon(epsilon))
    values = (-UNIT, -1, 0, 1, UNIT // 3, UNIT)
    distributions = [
        outcomes(partial(mechanism.perturb, Moment(cell, value))) for cell in range(size) for value in values
    ]
    payloads = set().union(*distributions)
    assert len(payloads) == 2 * size
    worst = max(
        one[payload] / other[payload] for one, other in itertools.permutations(distributions, 2) for payload in payloads
    )
    assert log_upper(worst) == mechanism.loss()


def unnoised(mechanism, item, coins, monkeypatch):
    """The integer cells to which a noisy vector adds its draws."""
    with monkeypatch.context() as patch:
        patch.setattr(discrete_laplace, "sample", lambda scale, coins: 0)
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

    monkeypatch.setattr(discrete_laplace, "sample", sample)
    item, unit = (2, 1) if name == "she" else (Moment(2, UNIT), 1 << mechanism.grid)
    payload = mechanism.perturb(item, ScriptedCoins([0]))
    assert struct.unpack("<4i", payload) == (1, 2, 3 + unit, 4)
    assert scales == [mechanism.scale] * 4


@pytest.mark.parametrize("value", [-UNIT, -UNIT + 1, -12345678901, -1, 0, 1, 12345678901, UNIT // 3, UNIT - 1, UNIT])
def test_the_laplace_grid_keeps_the_expectation_of_a_value_exactly(value, outcomes, monkeypatch):
    mechanism = LaplaceVector.make(2, Fraction(1))
    distribution = outcomes(lambda coins: unnoised(mechanism, Moment(1, value), coins, monkeypatch))
    assert all(first == 0 for first, _ in distribution)
    mean = sum(share * steps for (_, steps), share in distribution.items()) / (1 << mechanism.grid)
    assert mean == Fraction(value, UNIT)
    assert max(steps for _, steps in distribution) - min(steps for _, steps in distribution) <= 1


@pytest.mark.parametrize("name", NOISY)
def test_a_draw_beyond_the_reach_is_clamped_and_never_wraps(name, monkeypatch):
    mechanism = NOISY[name].make(2, Fraction(1, 10**6))
    item = 0 if name == "she" else Moment(0, UNIT)
    for extreme in (1 << 40, -(1 << 40)):
        monkeypatch.setattr(discrete_laplace, "sample", lambda scale, coins, extreme=extreme: extreme)
        payload = mechanism.perturb(item, ScriptedCoins([0]))
        assert struct.unpack("<2i", payload) == (math.copysign(mechanism.bound, extreme),) * 2
        mechanism.check(payload)


# --- p, q and the estimator ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "size", "epsilon"), SMALL)
def test_p_q_and_joint_support_are_what_perturb_does(name, size, epsilon, outcomes):
    mechanism = PURE[name].make(size, exact_epsilon(epsilon))
    one_true, none_true = mechanism.joint_support
    for item, distribution in enumerate(exact_distributions(mechanism, outcomes)):
        supports = [(frozenset(mechanism.support(payload)), share) for payload, share in distribution.items()]
        for cell in range(size):
            seen = sum(share for support, share in supports if cell in support)
            assert seen == (mechanism.p if cell == item else mechanism.q)
        for pair in itertools.combinations(range(size), 2):
            both = sum(share for support, share in supports if set(pair) <= support)
            assert both == (one_true if item in pair else none_true)


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


FREQUENCIES = {
    2: (Fraction(3, 4), Fraction(1, 4)),
    3: (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)),
    4: (Fraction(2, 5), Fraction(3, 10), Fraction(1, 5), Fraction(1, 10)),
    5: (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 8), Fraction(0)),
}


@pytest.mark.parametrize(("name", "size", "epsilon"), SMALL)
def test_the_predicted_variances_are_those_of_the_estimator(name, size, epsilon, outcomes):
    mechanism = PURE[name].make(size, exact_epsilon(epsilon))
    distributions, frequencies = exact_distributions(mechanism, outcomes), FREQUENCIES[size]

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


@pytest.mark.parametrize(("size", "epsilon"), [(2, 0.5), (3, 1.0), (10, 4.0)])
def test_one_bit_is_unbiased_with_the_predicted_second_moment(size, epsilon, outcomes):
    mechanism = OneBit.make(size, exact_epsilon(epsilon))
    for value in (-UNIT, -UNIT // 7, 0, 1, UNIT // 3, UNIT):
        distribution = outcomes(partial(mechanism.perturb, Moment(1, value)))
        for cell in range(size):
            estimates = [
                (size * (2 * payload[-1] - 1) / (2 * mechanism.p - 1) if payload[0] == cell else Fraction(0), share)
                for payload, share in distribution.items()
            ]
            mean = sum(share * estimate for estimate, share in estimates)
            assert abs(mean - (Fraction(value, UNIT) if cell == 1 else 0)) < Fraction(1, 1 << 60)
            second_moment = float(sum(share * estimate**2 for estimate, share in estimates))
            assert mechanism.noise_variance(0.5) == pytest.approx(second_moment, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "continuous"), [(0.5, 32.0), (1.0, 8.0), (2.0, 2.0), (4.0, 0.5)])
def test_the_laplace_variance_is_that_of_continuous_noise_within_the_grids_correction(epsilon, continuous):
    mechanism = LaplaceVector.make(10, exact_epsilon(epsilon))
    assert mechanism.noise_variance(0.1) == pytest.approx(continuous, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "published"), [(1.0, 7.84), (4.0, 0.36)])
def test_the_integer_noise_of_she_has_less_variance_than_continuous_noise(epsilon, published):
    variance = SummingHistogramEncoding.make(5, exact_epsilon(epsilon)).noise_variance(0.2)
    assert variance == pytest.approx(published, abs=0.005)
    assert variance < 8 / epsilon**2


SECOND_MOMENT = 0.25
"""E[t^2 | class] of the values for which the published figures of one bit and sign hold, with equal classes."""

ONE_BIT_TABLE = [
    (0.5, 2, 33),
    (0.5, 10, 167),
    (1.0, 2, 9.2),
    (1.0, 10, 47),
    (2.0, 2, 3.3),
    (2.0, 10, 17),
    (4.0, 2, 2.0),
]


@pytest.mark.parametrize(("epsilon", "classes", "published"), [*ONE_BIT_TABLE, (4.0, 10, 10.7)])
def test_the_one_bit_variance_is_the_published_one(epsilon, classes, published):
    """The published figures subtract the squared mean that the prediction neglects, P(c) E[t^2 | c]."""
    predicted = OneBit.make(classes, exact_epsilon(epsilon)).noise_variance(0.5)
    assert predicted - SECOND_MOMENT / classes == pytest.approx(published, rel=0.015)


SIGN_TABLE = [
    (0.5, 2, 24.9), (0.5, 10, 29.8), (1.0, 2, 5.4), (1.0, 10, 7.0),
    (2.0, 2, 1.20), (2.0, 10, 1.36), (4.0, 2, 0.45), (4.0, 10, 0.16),
]  # fmt: skip


@pytest.mark.parametrize(("epsilon", "classes", "published"), SIGN_TABLE)
def test_the_sign_variance_is_the_published_one(epsilon, classes, published):
    """The published figures are of the whole estimate: the mechanism's noise plus that of the stochastic bit, whose
    variance, the values fixed, is P(c) (1 - E[t^2 | c]).
    """
    mechanism = make_sign(classes, exact_epsilon(epsilon))
    share = 1 / (2 * classes)
    noise = mechanism.contrast_variance(share, share)
    assert noise + (1 - SECOND_MOMENT) / classes == pytest.approx(published, rel=0.03)


# --- the choice of mechanism -----------------------------------------------------------------------------------------


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


def test_subset_selection_is_never_worse_than_the_mechanisms_it_contains():
    for size, epsilon in itertools.product((2, 4, 8, 16, 64, 200), (0.2, 0.5, 1.0, 2.0, 4.0)):
        promised = exact_epsilon(epsilon)
        subset = SubsetSelection.make(size, promised).noise_variance(1 / size)
        for name in ("de", "sue", "oue"):
            assert subset <= DISCRETE[name].make(size, promised).noise_variance(1 / size) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("size", "epsilon", "gain"),
    [
        (8, 0.5, 1.33),
        (16, 0.5, 1.15),
        (8, 1.0, 1.25),
        (16, 1.0, 1.18),
        (32, 1.0, 1.08),
        (16, 2.0, 1.14),
        (128, 4.0, 1.20),
    ],
)
def test_subset_selection_gains_what_is_documented(size, epsilon, gain):
    promised = exact_epsilon(epsilon)
    best = min(DISCRETE[name].make(size, promised).noise_variance(1 / size) for name in ("de", "sue", "oue"))
    assert best / SubsetSelection.make(size, promised).noise_variance(1 / size) == pytest.approx(gain, abs=0.02)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_auto_asks_continuous_values_by_sign_at_small_epsilon(epsilon):
    for classes in (2, 10):
        assert make_continuous("auto", classes, exact_epsilon(epsilon)).name in PURE


# --- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("name", ALL)
def test_parameters_round_trip(name, epsilon):
    for size in (2, 3, 100, 1024):
        mechanism = ALL[name].make(size, exact_epsilon(epsilon))
        assert from_parameters(name, size, mechanism.parameters()) == mechanism


@pytest.mark.parametrize("name", ALL)
def test_parameters_of_64_bits_travel_as_text_because_json_numbers_are_doubles(name):
    for value in ALL[name].make(10, Fraction(1)).parameters().values():
        assert isinstance(value, str) or value < 2**53


IMPOSSIBLE = ["", "0", "-1", "01", "+5", "1e3", " 5", "５", "9" * 41, 0, -1, 1.5, True, None, [], {}]


@pytest.mark.parametrize("name", ALL)
def test_numbers_that_are_no_positive_integers_are_refused(name):
    parameters = ALL[name].make(10, Fraction(1)).parameters()
    for key, value in itertools.product(parameters, IMPOSSIBLE):
        with pytest.raises(DocumentError) as refused:
            from_parameters(name, 10, {**parameters, key: value})
        assert refused.value.code == "invalid-parameters"


@pytest.mark.parametrize("name", ALL)
def test_missing_and_unknown_parameters_are_refused(name):
    parameters = ALL[name].make(10, Fraction(1)).parameters()
    for wrong in ({}, {**parameters, "extra": 1}, dict(list(parameters.items())[1:])):
        with pytest.raises(DocumentError, match="must be exactly") as refused:
            from_parameters(name, 10, wrong)
        assert refused.value.code == "invalid-parameters"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("de", {"p": str(ONE)}),
        ("de", {"p": str(ONE // 10)}),
        ("ss", {"w": 10, "p": str(ONE // 2)}),
        ("ss", {"w": 11, "p": str(ONE // 2)}),
        ("ss", {"w": 5, "p": str(ONE // 2)}),
        ("ss", {"w": 2, "p": str(ONE)}),
        ("oue", {"p": str(ONE), "q": "1"}),
        ("oue", {"p": "5", "q": "5"}),
        ("sue", {"p": "4", "q": "5"}),
        ("the", {"p": str(ONE - 1), "q": str(ONE)}),
        ("onebit", {"p": str(ONE // 2)}),
        ("onebit", {"p": str(ONE)}),
        ("laplace", {"grid": 13, "scale": str(1 << 53)}),
        ("laplace", {"grid": 12, "scale": str(1 << 67)}),
        ("she", {"scale": str(1 << 67)}),
    ],
)
def test_parameters_that_carry_no_signal_or_hide_nothing_are_refused(name, parameters):
    with pytest.raises(DocumentError) as refused:
        from_parameters(name, 10, parameters)
    assert refused.value.code == "invalid-parameters"


def test_an_unknown_mechanism_is_refused_with_the_known_ones():
    with pytest.raises(DocumentError, match="de, laplace, onebit") as refused:
        from_parameters("rappor", 10, {})
    assert refused.value.code == "unknown-mechanism"


# --- payloads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "index", "bitmap"),
    [(2, 1, 1), (8, 1, 1), (9, 1, 2), (256, 1, 32), (257, 2, 33), (1024, 2, 128), (65536, 2, 8192), (65537, 4, 8193)],
)
def test_the_payload_widths_are_the_documented_ones(size, index, bitmap):
    widths = {name: kind.make(size, Fraction(1)).width for name, kind in ALL.items()}
    assert widths == {
        "de": index, "sue": bitmap, "oue": bitmap, "the": bitmap, "ss": bitmap,
        "she": 4 * size, "laplace": 4 * size, "onebit": index + 1,
    }  # fmt: skip


@pytest.mark.parametrize("size", [2, 3, 8, 9, 300])
@pytest.mark.parametrize("name", ALL)
def test_a_device_sends_payloads_of_the_promised_width_that_pass_the_check(name, size, seeded):
    mechanism, coins = ALL[name].make(size, Fraction(1)), seeded(7)
    for round_number in range(20):
        cell = round_number * 13 % size
        item = cell if name in DISCRETE else Moment(cell, (round_number - 10) * UNIT // 10)
        payload = mechanism.perturb(item, coins)
        assert len(payload) == mechanism.width
        mechanism.check(payload)


def refusal(mechanism, payload):
    """The code with which ``check`` refuses a payload, None where it accepts."""
    try:
        mechanism.check(payload)
    except PayloadError as error:
        return error.code if str(error) == PAYLOAD_CODES[error.code] else f"wrong message: {error}"
    return None


def possible(mechanism, payload):
    """The same by the documented payload format, written differently."""
    bits = [byte >> bit & 1 for byte in payload for bit in range(8)]
    if mechanism.name == "de":
        return None if payload[0] < mechanism.domain_size else "index-out-of-range"
    if mechanism.name == "onebit":
        if payload[0] >= mechanism.domain_size:
            return "index-out-of-range"
        return None if payload[1] <= 1 else "bit-out-of-range"
    if any(bits[mechanism.domain_size :]):
        return "padding-bits-set"
    if mechanism.name == "ss" and sum(bits) != mechanism.subset_size:
        return "wrong-subset-size"
    return None


@pytest.mark.parametrize("name", [name for name in ALL if name not in NOISY])
def test_exactly_the_impossible_payloads_are_refused_with_the_documented_code(name):
    for size in (2, 5, 8) if name in ("de", "onebit") else (2, 5, 8, 9):
        mechanism = ALL[name].make(size, Fraction(1, 2))
        for number in range(1 << 8 * min(mechanism.width, 2)):
            payload = number.to_bytes(mechanism.width, "little")
            code = refusal(mechanism, payload)
            assert code == possible(mechanism, payload)
            if code is None and name in PURE:
                assert list(mechanism.support(payload)) == sorted(mechanism.support(payload))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", NOISY)
def test_what_clamping_takes_from_a_mean_is_lost_in_the_noise_of_a_thousand_million_reports(name, epsilon):
    mechanism = NOISY[name].make(2, exact_epsilon(epsilon))
    unit, beyond = 1 << mechanism.grid, mechanism.bound - (1 << mechanism.grid)

    def excess(steps):
        """E[max(Z - steps, 0)]: the sum over j of j P(Z = steps + j), P(z) = (1 - a) / (1 + a) a^|z|."""
        rate = 1 / float(mechanism.scale)
        return math.exp(-rate * (steps + 1)) / ((1 + math.exp(-rate)) * -math.expm1(-rate))

    bias = (excess(beyond) - excess(beyond + 2 * unit)) / unit
    assert 0 < bias < math.sqrt(mechanism.noise_variance(0.0) / 1e9) / 790


@pytest.mark.parametrize("name", PURE)
def test_the_support_of_a_payload_refuses_what_the_check_refuses(name):
    mechanism = PURE[name].make(5, Fraction(1, 2))
    with pytest.raises(PayloadError):
        mechanism.support(b"\xff")


@pytest.mark.parametrize("name", NOISY)
def test_a_cell_beyond_the_noises_reach_is_refused(name):
    mechanism = NOISY[name].make(3, Fraction(1))
    bound = mechanism.bound
    for cell in (bound, -bound, 0):
        mechanism.check(struct.pack("<3i", 0, 0, cell))
    for cell in (bound + 1, -bound - 1, 2**31 - 1, -(2**31)):
        with pytest.raises(PayloadError) as refused:
            mechanism.check(struct.pack("<3i", 0, cell, 0))
        assert refused.value.code == "value-out-of-range"


@pytest.mark.parametrize("name", NOISY)
def test_the_least_epsilon_of_a_question_still_fits_the_wire(name):
    mechanism = NOISY[name].make(2, Fraction(1, 10**6))
    assert mechanism.bound <= 2**31 - 1
    assert from_parameters(name, 2, mechanism.parameters()) == mechanism


def test_a_subsets_bitmap_keeps_no_order():
    mechanism = SubsetSelection(6, 3, ONE // 2 + 1)
    # Included, then two of the five others in either order of being drawn: the same set, the same bytes.
    include, keep = 0, ONE - 1
    assert mechanism.perturb(0, ScriptedCoins([include, 0, 1])) == mechanism.perturb(0, ScriptedCoins([include, 1, 0]))
    assert len(mechanism.support(mechanism.perturb(0, ScriptedCoins([keep, 0, 1, 2])))) == 3


def test_unary_encoding_reads_one_word_per_bit_in_index_order():
    for kind in UNARY.values():
        mechanism = kind.make(9, Fraction(1))
        words = [ONE - 1] * 9
        words[3], words[8] = 0, mechanism.true_bit - 1
        coins = ScriptedCoins(words)
        assert mechanism.perturb(8, coins) == bytes((0b1000, 0b1))
        assert coins.taken == 9


def test_no_mechanism_computes_with_floats_where_privacy_is_decided():
    for name, kind in ALL.items():
        mechanism = kind.make(6, exact_epsilon(0.7))
        assert isinstance(mechanism.loss(), Fraction), name
        numbers = [getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)]
        assert all(type(number) is int for number in numbers), name
