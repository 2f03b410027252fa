"""The vectorised perturbation draws from the distribution of the device's own code, and sends possible payloads."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from ldp_aggregator.counting.tally import refusals
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.analysis import Rows
from ldp_aggregator.mechanisms.onebit import multiply_shift
from protocols.mechanisms import DISCRETE, MOMENTS, VALUE_BITS, AnyMechanism, Moment, NoisyVector
from simulations import SeededCoins
from simulations.fidelities import Columns, Items, MomentBatch

DEVICES = 6_000
SIMULATED = 60_000

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
    fixed = int(value * (1 << VALUE_BITS))
    many = MomentBatch(np.full(SIMULATED, 1), np.full(SIMULATED, fixed), np.zeros(SIMULATED, dtype=bool))
    compare(mechanism, Moment(1, fixed), many, same_distribution)


def test_rounding_to_the_grid_keeps_the_expectation():
    """Rounding noise alone: at a vast epsilon the Laplace noise is zero, and every value lies between grid points."""
    mechanism = MOMENTS["laplace"].make(2, Fraction(2**20))
    fixed = int(0.3 * (1 << VALUE_BITS))
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
