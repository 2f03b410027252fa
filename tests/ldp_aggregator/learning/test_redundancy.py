"""Weights for features that repeat each other, from what they claim to know of the class."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_aggregator.learning.redundancy import feature_weights, mutual_information
from protocols.document.schema import CategoricalFeature, ContinuousFeature
from protocols.model import DiscreteLikelihood, GaussianLikelihood

EVEN = np.array([0.5, 0.5])
UNEVEN = np.array([0.7, 0.3])


def binary(name: str, right: float) -> DiscreteLikelihood:
    return DiscreteLikelihood(CategoricalFeature(name, ("a", "b")), ((right, 1 - right), (1 - right, right)))


def entropy(right: float) -> float:
    """In bits, of the class where a binary feature says it rightly so often."""
    return -right * np.log2(right) - (1 - right) * np.log2(1 - right)


def gaussian(means, variances) -> GaussianLikelihood:
    return GaussianLikelihood(ContinuousFeature("g", -100, 100), tuple(means), tuple(variances))


def test_the_information_of_a_table_is_what_its_definition_says():
    right = 0.8
    expected = np.log(2) + right * np.log(right) + (1 - right) * np.log(1 - right)
    assert mutual_information(binary("x", right), EVEN) == pytest.approx(expected, rel=1e-12)
    assert mutual_information(binary("x", 0.5), EVEN) == 0
    assert mutual_information(binary("x", 1.0), EVEN) == pytest.approx(np.log(2))


@pytest.mark.parametrize(("means", "variances"), [((0, 2), (1, 1)), ((-3, 3), (4, 1)), ((0, 0), (1, 9))])
def test_the_information_of_gaussians_is_that_of_a_numeric_integral(means, variances):
    prior = np.array([0.3, 0.7])
    x = np.linspace(-40, 40, 200_001)
    density = np.array(
        [np.exp(-((x - m) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v) for m, v in zip(means, variances, strict=True)]
    )
    mixture = prior @ density
    ratio = np.where(density > 0, density / np.maximum(mixture, 1e-300), 1.0)
    expected = np.trapezoid((prior[:, None] * density * np.log(np.maximum(ratio, 1e-300))).sum(axis=0), x)
    assert mutual_information(gaussian(means, variances), prior) == pytest.approx(expected, abs=2e-3)


def test_features_that_claim_no_more_than_the_class_holds_count_in_full():
    assert feature_weights([binary("x", 0.7), binary("y", 0.65)], EVEN, 1.0) == [1.0, 1.0]


def test_copies_of_one_feature_count_less_against_the_prior_and_better_ones_count_more():
    features = [binary(f"x{i}", 0.9) for i in range(6)] + [binary("weak", 0.6)]
    weights = feature_weights(features, UNEVEN, 1.0)
    assert weights[:6] == [1 / 3] * 6
    assert 0 < weights[6] < 1 / 3
    even = feature_weights(features, EVEN, 1.0)  # Nothing to count against, and noise in the shares of the classes.
    assert even[:6] == [1] * 6
    assert even[6] < 1


def test_what_is_noise_does_not_count_as_repeated():
    copies = [binary(f"x{i}", 0.8) for i in range(4)]
    assert feature_weights(copies, UNEVEN, 1.0)[0] < feature_weights(copies, UNEVEN, 0.35)[0] == 1.0


@pytest.mark.parametrize(("right", "times"), [(0.85, 1.0), (0.88, 1.0), (0.93, 1.87), (0.97, 6.61), (0.999, 25.0)])
def test_the_less_the_best_feature_leaves_open_the_less_the_others_are_heard(right, times):
    weaker = [binary(f"x{i}", 0.8) for i in range(12)]
    weights = np.array(feature_weights([binary("best", right), *weaker], EVEN, 0.0))  # All noise: nothing against it.
    told, of_weaker = (1 - entropy(one) for one in (right, 0.8))
    power = (1 - 1 / (told + 12 * of_weaker)) / 2
    assert weights[0] == 1
    assert weights[1:] == pytest.approx((of_weaker / told) ** (times * power), rel=0.02)


@pytest.mark.parametrize(("explained", "known"), [(0.3, 0.0), (0.5, 0.25), (0.8, 1.0), (1.0, 1.0)])
@pytest.mark.parametrize("many", [1, 4, 30])
def test_where_a_few_of_many_features_tell_nearly_all_the_others_are_heard_less(many, explained, known):
    features = [binary("x", 0.75), binary("y", 0.75), *(binary(f"z{i}", 0.54) for i in range(many))]
    told = 1 - np.array([entropy(0.75), entropy(0.54)])
    few = (told @ (2, many)) ** 2 / (told**2 @ (2, many))
    assert 2 < few < 4
    power = {1: 0.0, 4: (1 - 2 * few / 6) / 2, 30: (1 - 2 * few / 32) / 2}[many]
    weights = np.array(feature_weights(features, EVEN, explained))
    assert weights[0] == weights[1] > 0.9
    assert weights[2:] / weights[0] == pytest.approx([(told[1] / told[0]) ** (known * power)] * many)


def test_features_as_good_as_the_best_count_as_much():
    weights = feature_weights([binary("x", 0.99), binary("y", 0.99), binary("z", 0.9)], EVEN, 1.0)
    assert weights[0] == weights[1] > 2 * weights[2]


def test_a_mixed_model_weighs_both_kinds():
    weights = feature_weights([gaussian((-5, 5), (1, 1)), binary("x", 0.95), binary("y", 0.6)], EVEN, 1.0)
    assert weights[0] > weights[1] > weights[2] > 0


@pytest.mark.parametrize("likelihoods", [[], [binary("x", 0.5)], [binary("x", 0.5), gaussian((0, 0), (1, 1))]])
def test_features_that_tell_nothing_have_weight_one(likelihoods):
    assert feature_weights(likelihoods, EVEN, 0.0) == [1.0] * len(likelihoods)


def test_a_feature_that_tells_nothing_beside_ones_that_do_keeps_a_weight_above_zero():
    weights = feature_weights([binary(f"x{i}", 0.99) for i in range(9)] + [binary("nothing", 0.5)], EVEN, 1.0)
    assert 0 < weights[-1] < weights[0] <= 1


@pytest.mark.parametrize("prior", [np.array([0.85, 0.15]), np.array([0.7, 0.2, 0.06, 0.04])])
def test_the_less_is_known_and_the_less_even_the_classes_are_the_less_features_count_against_the_prior(prior):
    table = np.full((2, prior.size), 0.5)
    table[:, 0] = 0.4, 0.6
    feature = DiscreteLikelihood(CategoricalFeature("x", ("a", "b")), tuple(map(tuple, table.tolist())))
    known, little, less, nothing = (feature_weights([feature], prior, explained)[0] for explained in (0.9, 0.2, 0.1, 0))
    assert little == pytest.approx(2 * less)
    assert known == 1 > little > less > nothing > 0
    even = np.full(prior.size, 1 / prior.size)
    assert feature_weights([feature], even, 0.1) == [1.0]


def test_gaussian_features_keep_their_own_shrinkage_whatever_discrete_ones_tell():
    uneven = np.array([0.9, 0.1])
    assert feature_weights([gaussian((0, 0.5), (1, 1))], uneven, 0.0) == [1.0]
    mixed = feature_weights([gaussian((0, 0.5), (1, 1)), binary("x", 0.6)], uneven, 0.1)
    assert mixed[0] == 1 > mixed[1]
