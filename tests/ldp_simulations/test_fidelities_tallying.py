"""What is drawn for many devices at once has the law of the device's own code: payloads, tallies, coins."""

import itertools
from fractions import Fraction

import credit_draft
import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.counting.payloads import cells as tally_length
from ldp_aggregator.counting.payloads import count, refusals
from ldp_aggregator.learning.series import series_of
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.analysis import MomentBatch, Rows
from ldp_aggregator.mechanisms.noisy_vector import noise_sums
from ldp_aggregator.mechanisms.onebit import multiply_shift
from ldp_aggregator.mechanisms.sampling import bernoulli, bernoulli_bits, bernoulli_each, discrete_laplace
from ldp_protocols import Campaign, Question, exact
from ldp_protocols.document.questions import INDEX, LABEL, MOMENT, VALUE
from ldp_protocols.mechanisms import DISCRETE, MOMENTS, AnyMechanism, Moment, NoisyVector, SubsetSelection
from ldp_simulations import SeededCoins
from ldp_simulations.columns import Columns, Items
from ldp_simulations.fidelities import simulate

ONE = 2**64
VALUE_BITS = 52
UNIT = 2**52

DEVICES, SIMULATED = 6_000, 60_000
DRAWN, COUNTED = 2_000, 10_000
DISCRETE_CASES = [
    *((name, size, Fraction(1)) for name in DISCRETE for size in (2, 5)),
    ("ss", 11, Fraction(1, 2)),
    ("oue", 9, Fraction(3)),
    ("de", 300, Fraction(6)),
]


def outcomes(mechanism: AnyMechanism, rows: Rows) -> list[object]:
    """A payload as something to count: its bytes; noisy cells in steps of half a scale, with their lowest bit."""
    if not isinstance(mechanism, NoisyVector):
        return [row.tobytes() for row in rows]
    cells = np.ascontiguousarray(rows).view("<i4")[:, :2]
    coarse = np.clip(np.floor(2 * cells / float(mechanism.scale)), -4, 4).astype(int)
    return [tuple(row) for row in np.concatenate([coarse, cells & 1], axis=1).tolist()]


def compare(mechanism: AnyMechanism, item: int | Moment, many: Items, same_distribution) -> None:
    coins = SeededCoins(20261121)
    payloads = b"".join(mechanism.perturb(item, coins) for _ in range(DEVICES))
    real = np.frombuffer(payloads, dtype=np.uint8).reshape(DEVICES, mechanism.width)
    drawn = analysis_of(mechanism).perturb(many, np.random.default_rng(11))
    assert drawn.shape == (SIMULATED, mechanism.width)
    assert drawn.dtype == np.uint8
    same_distribution(outcomes(mechanism, real), outcomes(mechanism, drawn))


@pytest.mark.parametrize(("name", "size", "epsilon"), DISCRETE_CASES)
@pytest.mark.parametrize("place", ["first", "last"])
def test_an_index_is_perturbed_as_on_the_device(name, size, epsilon, place, same_distribution):
    mechanism = DISCRETE[name].make(size, epsilon)
    item = 0 if place == "first" else size - 1
    compare(mechanism, item, np.full(SIMULATED, item), same_distribution)


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.parametrize("value", [-1.0, -0.3, 0.0, 0.7123, 1.0])
def test_a_moment_is_perturbed_as_on_the_device(name, value, same_distribution):
    mechanism = MOMENTS[name].make(3, Fraction(2))
    fixed = int(value * UNIT)
    many = MomentBatch(np.full(SIMULATED, 1), np.full(SIMULATED, fixed), np.zeros(SIMULATED, dtype=bool))
    compare(mechanism, Moment(1, fixed), many, same_distribution)


def test_rounding_to_the_grid_keeps_the_expectation():
    """Rounding noise alone: at a vast epsilon the Laplace noise is zero, and every value lies between grid points."""
    mechanism = MOMENTS["laplace"].make(2, Fraction(2**20))
    fixed = int(0.3 * UNIT)
    many = MomentBatch(np.zeros(200_000, dtype=int), np.full(200_000, fixed), np.zeros(200_000, dtype=bool))
    rows = analysis_of(mechanism).perturb(many, np.random.default_rng(5))
    steps = np.ascontiguousarray(rows).view("<i4")[:, 0]
    exact = fixed / 2.0 ** (VALUE_BITS - mechanism.grid)
    share = exact - np.floor(exact)
    assert set(np.unique(steps)) == {int(np.floor(exact)), int(np.ceil(exact))}
    standard_error = np.sqrt(share * (1 - share) / len(steps))
    assert abs(steps.mean() - exact) < 5 * standard_error  # False alarm: 6e-7.


def test_every_payload_is_one_that_a_device_can_have_sent(make_everything, make_people):
    frame, labels = make_people(2_000, 8)
    rng = np.random.default_rng(8)
    for discrete, continuous in itertools.product(DISCRETE, ("laplace", "onebit", "sign")):
        campaign = make_everything(continuous=continuous, discrete=discrete)
        columns = Columns.of(campaign, frame, labels)
        for question in campaign.questions:
            rows = analysis_of(question.mechanism).perturb(columns.items(question, np.arange(2_000), rng), rng)
            assert refusals(question, rows) == {}
            question.mechanism.check(rows[0].tobytes())


def test_the_product_in_halves_is_the_exact_integer():
    rng = np.random.default_rng(1)
    values = np.append(rng.integers(0, 2**53 + 1, size=500, dtype=np.uint64), np.array([0, 1, 2**53], dtype=np.uint64))
    for factor in (1, 2**32 - 1, 2**32, 2**63 + 12345, 2**64 - 1):
        assert multiply_shift(factor, values).tolist() == [factor * int(value) >> 53 for value in values]


def question_with(mechanism, kind: str, encoding: str) -> Question:
    return Question(0, kind, None, None, 0, encoding, mechanism, 1.0, 1)


def assert_same_tallies(question: Question, items, drawn: list[np.ndarray], same_distribution) -> None:
    """``items`` are reported together, over and over; noisy cells are compared in steps of half a scale."""
    reports = analysis_of(question.mechanism).perturb(items, np.random.default_rng(1))
    real = np.array([count(question, rows) for rows in reports.reshape(COUNTED, -1, question.mechanism.width)])
    made = np.array(drawn)
    assert real.shape[1] == made.shape[1] == tally_length(question)
    if isinstance(question.mechanism, NoisyVector):
        step = max(1, int(question.mechanism.scale / 2))
        real, made = (np.clip(tallies // step, -6, 6)[:, :2] for tallies in (real, made))
    same_distribution(map(tuple, real.tolist()), map(tuple, made.tolist()))


@pytest.mark.parametrize(
    ("name", "size", "epsilon"), [*((name, 5, Fraction(1)) for name in DISCRETE), ("ss", 6, Fraction(1, 3))]
)
def test_three_reports_of_an_index_add_up_as_drawn(name, size, epsilon, same_distribution):
    mechanism = DISCRETE[name].make(size, epsilon)
    rng = np.random.default_rng(2)
    cells = np.zeros(size, dtype=np.int64)
    cells[[1, size - 1]] = 1, 2
    drawn = [analysis_of(mechanism).tally(cells, rng) for _ in range(DRAWN)]
    question = question_with(mechanism, LABEL, INDEX)
    assert_same_tallies(question, np.tile([1, size - 1, size - 1], COUNTED), drawn, same_distribution)


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.parametrize("classes", [1, 3])
def test_three_reports_of_moments_add_up_as_drawn(name, classes, same_distribution):
    mechanism = MOMENTS[name].make(classes, Fraction(3))
    rng = np.random.default_rng(3)
    values = np.array([int(0.8 * UNIT), int(-0.35 * UNIT)])
    moments = MomentBatch(np.array([0, classes - 1]), values, np.zeros(2, dtype=bool))
    drawn = [analysis_of(mechanism).tally_moments(moments, np.array([2, 1]), rng) for _ in range(DRAWN)]
    cells, values = (np.tile(one[[0, 0, 1]], COUNTED) for one in (moments.cells, moments.values))
    together = MomentBatch(cells, values, np.zeros(len(cells), dtype=bool))
    assert_same_tallies(question_with(mechanism, VALUE, MOMENT), together, drawn, same_distribution)


def test_subsets_of_two_billion_devices_are_tallied_and_every_one_counts():
    mechanism = SubsetSelection.make(12, Fraction(1, 2))
    cells = np.full(12, 2_000_000_000 // 12)
    counts = analysis_of(mechanism).tally(cells, np.random.default_rng(4))
    assert counts.sum() == mechanism.subset_size * cells.sum()
    expected = cells * float(mechanism.p) + (cells.sum() - cells) * float(mechanism.q)
    # No count varies more than a binomial one; 12 counts, false alarm below 1e-6.
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()


def test_noise_of_no_report_is_none_and_of_many_has_the_stated_variance():
    scale = Fraction(7, 3)
    assert noise_sums(scale, 0, 3, np.random.default_rng(0)).tolist() == [0, 0, 0]
    sums = noise_sums(scale, 1_000, 20_000, np.random.default_rng(5))
    a = np.exp(-1 / float(scale))
    expected = 1_000 * 2 * a / (1 - a) ** 2
    # A variance of 20,000 nearly normal sums has a relative standard error of 1 %; false alarm below 1e-6.
    assert abs(sums.var() / expected - 1) < 0.05
    assert abs(sums.mean()) < 5 * np.sqrt(expected / 20_000)


SERIES = Campaign.compile(
    {
        **credit_draft.DRAFT,
        "closes": None,
        "features": [{"name": "age", "kind": "categorical", "values": ["young", "old"], "missing": False}],
        "privacy": {"epsilon": 1.0},
        "windows": {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 52},
    }
)
PEOPLE = pd.DataFrame({"age": ["young"] * 3 + ["old"]})
LABELS = [SERIES.label.classes[place] for place in (0, 0, 1, 1)]


@pytest.mark.parametrize(("fidelity", "devices"), [("counts", 5_200_000), ("vector", 52_000), ("device", 2_600)])
def test_devices_are_spread_over_windows_and_each_has_the_shares_of_all(fidelity, devices):
    """A window's number is binomial; 5.5 deviations in any of 52 windows are rarer than two in a million."""
    tally = simulate(SERIES, PEOPLE, LABELS, 3, fidelity=fidelity, devices=devices)
    numbers = np.array([one.n.sum() for one in tally.windows])
    assert numbers.sum() == devices
    assert (np.abs(numbers - devices / 52) < 5.5 * np.sqrt(devices / 52) + 3).all()
    (ages,) = (one for one in series_of(SERIES, tally) if one.question.kind == "pair")
    truth = np.array([0.5, 0.25, 0.0, 0.25])
    smoothed = ages.levels.smoothed
    assert (np.abs(smoothed.value - truth) < 5.5 * np.sqrt(smoothed.variance) + 1e-9).all()
    if fidelity == "counts":  # 52 windows of 100,000 devices each.
        assert np.sqrt(np.mean((smoothed.value - truth) ** 2)) < 0.002


def test_a_series_needs_to_be_told_how_many_devices_there_are():
    with pytest.raises(ValueError, match="number of devices"):
        simulate(SERIES, PEOPLE, LABELS, 3, fidelity="counts")


@pytest.mark.parametrize("probability", [0, 1 << 50, 1 << 56, (1 << 63) + 12345, ONE - (1 << 50), 3 << 54, ONE // 3])
def test_flags_are_set_as_often_as_their_probability_says(probability):
    """2**50 is a 16384th: only the words after a first byte of zero can decide it."""
    flags = bernoulli(probability, (1000, 1000), np.random.default_rng(2))
    p = probability / ONE
    assert abs(flags.mean() - p) <= 5 * np.sqrt(p * (1 - p) / flags.size)  # False alarm: 6e-7.
    each = bernoulli_each(np.full(1_000_000, probability, dtype=np.uint64), np.random.default_rng(2))
    assert abs(each.mean() - p) <= 5 * np.sqrt(p * (1 - p) / each.size)
    assert bernoulli(ONE, 100, np.random.default_rng(0)).all()


@pytest.mark.parametrize("probability", [1, 1 << 50, 1 << 56, (1 << 63) + 12345, ONE - (1 << 50), 3 << 54, ONE // 3])
def test_bits_are_set_as_often_as_their_probability_says_in_every_place(probability):
    """Eight places, false alarm 5e-6 together."""
    found = np.unpackbits(bernoulli_bits(probability, 250_001, np.random.default_rng(2)).reshape(-1, 1), axis=1)
    p = probability / ONE
    assert found.shape == (250_001, 8)
    assert (np.abs(found.mean(axis=0) - p) < 5 * np.sqrt(p * (1 - p) / 250_001) + 1e-15).all()


def test_a_bit_tells_nothing_about_its_neighbours():
    """Correlations of each place with the next, in the byte and across bytes; false alarm 5e-6 together."""
    bits = np.unpackbits(bernoulli_bits(ONE // 5, 200_000, np.random.default_rng(6)))
    for distance in (1, 2, 8, 64, 512):
        correlation = np.corrcoef(bits[:-distance], bits[distance:])[0, 1]
        assert abs(correlation) < 5 / np.sqrt(len(bits))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(8192, 5)])
def test_noise_is_the_discrete_laplace_law_of_the_device(scale, same_distribution):
    coins = SeededCoins(3)
    step = max(1, int(scale / 2))
    real = [exact.discrete_laplace(scale, coins) // step for _ in range(6_000)]
    drawn = discrete_laplace(scale, 60_000, np.random.default_rng(3)) // step
    same_distribution(real, drawn.tolist())
