"""The last number that is taken and the first that is not, where losses and parameters are decided."""

import itertools
import math
from fractions import Fraction

import pytest
from mechanism_grid import ALL

from ldp_protocols import DocumentError
from ldp_protocols.exact import exp_bounds
from ldp_protocols.mechanisms import MOMENTS, from_parameters
from ldp_protocols.mechanisms.base import WorstCase

ONE = 2**64
SCALE_BITS = 40


LARGEST_INT32 = 2**31 - 1
RATIO, REST = exp_bounds(Fraction(1))
IMPOSSIBLE = ["", "0", "-1", "01", "+5", "1e3", " 5", "５", "9" * 41, 0, -1, 1.5, True, None, [], {}]


@pytest.mark.parametrize(
    ("epsilon", "within", "beyond"),
    [
        (0, [], [(Fraction(101, 100), 0)]),
        (
            1,
            [(RATIO, 0), (1, 1)],
            [((RATIO + REST) / 2, 0), (REST, 0), (1, 1 + Fraction(1, 10**60)), (Fraction(3, 2), 1), (1, 70)],
        ),
        (2, [(2, 1)], [(3, 1)]),
        (64, [(2**92, 0)], [(2**93, 0)]),
        (70, [(2**100, 0)], [(2**101, 0)]),
    ],
)
def test_a_loss_is_within_epsilon_only_where_that_is_certain(epsilon, within, beyond):
    for worst in within:
        assert WorstCase(*map(Fraction, worst)).stays_within(Fraction(epsilon))
    for worst in beyond:
        assert not WorstCase(*map(Fraction, worst)).stays_within(Fraction(epsilon))


@pytest.mark.parametrize(
    ("name", "cells", "parameters", "told"),
    [
        ("de", 4, {"p": str(ONE // 4)}, "p must be above 1 / domain_size"),
        ("ss", 4, {"w": 2, "p": str(ONE // 2)}, "p must be above w / domain_size"),
        ("ss", 4, {"w": 4, "p": str(ONE - 1)}, "w must be below the domain size 4, not 4"),
        ("oue", 4, {"p": str(ONE // 2), "q": str(ONE // 2)}, "p must be above q"),
        ("onebit", 4, {"p": str(ONE // 2)}, "p must be above 1/2"),
        ("de", 4, {"p": str(ONE)}, "probability p must be below 2\\*\\*64"),
        ("de", 4, {"p": "1" * 41}, 'parameter p must be a positive integer, not "1111'),
        ("de", 4, {"p": "9" * 40}, "probability p must be below 2\\*\\*64, not 9999"),
        ("de", 4, {"p": "1", "q": "2"}, 'parameters must be exactly p; got .*"q"'),
        ("oue", 4, {"p": "1"}, "parameters must be exactly p, q; got"),
        ("ss", 4, {"w": 2, "p": str(ONE)}, "probability p must be below"),
        ("oue", 4, {"p": str(ONE), "q": "1"}, "probability p must be below"),
        ("sue", 4, {"p": "4", "q": "5"}, "p must be above q"),
        ("the", 4, {"p": str(ONE - 1), "q": str(ONE)}, "probability q must be below"),
        ("onebit", 4, {"p": str(ONE)}, "probability p must be below"),
        ("laplace", 4, {"grid": 13, "scale": "1"}, "grid must be at most 12, not 13"),
    ],
)
def test_what_defines_no_mechanism_is_refused_with_what_would_be_right(name, cells, parameters, told):
    with pytest.raises(DocumentError, match=told) as refused:
        ALL[name].from_parameters(cells, parameters)
    assert refused.value.code == "invalid-parameters"


@pytest.mark.parametrize(
    ("name", "cells", "parameters"),
    [
        ("de", 4, {"p": str(ONE // 4 + 1)}),
        ("ss", 4, {"w": 2, "p": str(ONE // 2 + 1)}),
        ("ss", 4, {"w": 3, "p": str(ONE - 1)}),
        ("oue", 4, {"p": str(ONE // 2 + 1), "q": str(ONE // 2)}),
        ("onebit", 4, {"p": str(ONE // 2 + 1)}),
        ("laplace", 4, {"grid": 12, "scale": "1"}),
    ],
)
def test_the_next_number_defines_one(name, cells, parameters):
    assert ALL[name].from_parameters(cells, parameters).parameters() == parameters


@pytest.mark.parametrize(("name", "grid"), [("she", 0), ("laplace", 3)])
def test_noise_fits_the_wire_to_the_last_step(name, grid):
    widest = (LARGEST_INT32 - (1 << grid)) * (1 << SCALE_BITS) // 16
    more = {"grid": grid} if name == "laplace" else {}
    kind = ALL[name]
    assert kind.from_parameters(3, {**more, "scale": str(widest)}).bound == LARGEST_INT32
    with pytest.raises(DocumentError, match="beyond 32-bit integers"):
        kind.from_parameters(3, {**more, "scale": str(widest + 1)})


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 2**k) for k in range(9, 25)] + [Fraction(2**13, 2**25), Fraction(3, 2**14)]
)
def test_the_laplace_grid_is_the_finest_whose_noise_is_narrow_enough(epsilon):
    made = MOMENTS["laplace"].make(2, epsilon)
    widest = 2**25
    assert made.grid == 1 or (2 << made.grid) / epsilon <= widest
    assert made.grid == 12 or (2 << made.grid + 1) / epsilon > widest


@pytest.mark.parametrize("name", ["she", "laplace"])
def test_independent_noise_adds_up_over_cells(name):
    made = ALL[name].make(5, Fraction(1))
    assert made.sum_variance(3, 0.5) == pytest.approx(3 * made.noise_variance(0.1))
    assert made.signs_variance(3, 0.5) == made.sum_variance(3, 0.5)
    assert math.isfinite(made.sum_variance(1, 0.0))


@pytest.mark.parametrize("name", ALL)
def test_numbers_that_are_no_positive_integers_and_missing_and_unknown_parameters_are_refused(name, code_of):
    parameters = ALL[name].make(10, Fraction(1)).parameters()
    for key, value in itertools.product(parameters, IMPOSSIBLE):
        assert code_of(DocumentError, from_parameters, name, 10, {**parameters, key: value}) == "invalid-parameters"
    for wrong in ({}, {**parameters, "extra": 1}, dict(list(parameters.items())[1:])):
        with pytest.raises(DocumentError, match="must be exactly") as refused:
            from_parameters(name, 10, wrong)
        assert refused.value.code == "invalid-parameters"


def test_an_unknown_mechanism_is_refused_with_the_known_ones():
    with pytest.raises(DocumentError, match="de, laplace, onebit") as refused:
        from_parameters("rappor", 10, {})
    assert refused.value.code == "unknown-mechanism"
