"""The numbers of a mechanism in a document: there and back, and what is refused."""

import itertools
from fractions import Fraction

import pytest
from mechanism_grid import ALL

from protocols import DocumentError
from protocols.exact.rationals import exact_epsilon
from protocols.mechanisms import from_parameters

IMPOSSIBLE = ["", "0", "-1", "01", "+5", "1e3", " 5", "５", "9" * 41, 0, -1, 1.5, True, None, [], {}]


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("name", ALL)
def test_parameters_round_trip_and_those_of_64_bits_are_text_because_json_numbers_are_doubles(name, epsilon):
    for size in (2, 3, 100, 1024):
        mechanism = ALL[name].make(size, exact_epsilon(epsilon))
        assert from_parameters(name, size, mechanism.parameters()) == mechanism
        assert all(isinstance(value, str) or value < 2**53 for value in mechanism.parameters().values())


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
