"""Shrinkage changes nothing with many reports and everything with few; it never leaves the bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from ldp_aggregator import estimate, train
from ldp_aggregator.estimation.cells import Cells
from ldp_aggregator.estimation.moments import Present, rebuild_moments, shrink_moments
from ldp_aggregator.estimation.simplex import floor, norm_sub, post_process
from ldp_protocols.features import NumericFeature
from ldp_simulations import simulate

FEATURE = NumericFeature("x", 0, 100)
ASKED = {"kind": "continuous", "missing": False, "low": 0, "high": 100}
PRIOR = Cells.normal(np.array([0.5, 0.5]), np.full(2, 1e-9))


def moments_at(noise: float):
    """Class means 40 and 60, class variances 100 and 400, in t: -0.2, 0.2, 0.04, 0.16."""
    value = Cells.normal(np.array([-0.1, 0.1]), np.full(2, noise))
    second = np.array([0.04, 0.16]) + 0.04
    square = Cells.normal(0.5 * (2 * second - 1), np.full(2, noise))
    present = Present(PRIOR, Cells.normal(np.ones(1), np.zeros(1)))
    moments = rebuild_moments(FEATURE, value, square, present)
    return moments, shrink_moments(moments, FEATURE, value, square, present, variance_floor=1e-3)


def test_without_noise_the_moments_stay_and_more_noise_draws_closer_to_those_of_all_classes():
    moments, shrunk = moments_at(0.0)
    assert moments.mean == pytest.approx([40, 60])
    assert moments.variance == pytest.approx([100, 400])
    assert shrunk.mean == pytest.approx(moments.mean, rel=1e-6)
    assert shrunk.variance == pytest.approx(moments.variance, rel=1e-5)
    distances = []
    for noise in (1e-4, 1e-2, 1e2, np.inf):
        _, shrunk = moments_at(noise)
        distances.append(abs(shrunk.mean[1] - shrunk.mean[0]))
        assert (shrunk.variance > 0).all()
        assert ((shrunk.mean >= 0) & (shrunk.mean <= 100)).all()
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] == 0


def test_the_variances_of_moments_are_those_of_their_quotients_to_the_first_order():
    """In t: of the mean .0001 / .5^2, of the second moment .0001 / (4 x .5^2), and of the variance that, and four times
    the mean's square times the mean's.
    """
    moments, _ = moments_at(1e-4)
    assert moments.mean_variance == pytest.approx([1.0, 1.0], rel=1e-3)
    assert moments.variance_variance == pytest.approx([1025, 1025], rel=1e-3)
    assert not moments.insufficient.any()


def test_a_class_that_was_hardly_seen_has_the_moments_of_all_who_have_a_value():
    """Half of the values are missing: in t the mean is .1 / .5, and the variance .08 - .2^2."""
    value, square = (Cells.normal(np.array([total, 0.0]), np.full(2, 1e-9)) for total in (0.1, 0.5 * (2 * 0.08 - 1)))
    of_class = Cells.normal(np.array([0.5, 0.0]), np.full(2, 1e-6))
    moments = rebuild_moments(FEATURE, value, square, Present(of_class, Cells.normal(np.full(1, 0.5), np.zeros(1))))
    assert moments.insufficient.tolist() == [False, True]
    assert moments.mean == pytest.approx([60, 60])
    assert moments.variance == pytest.approx([100, 100])


def test_counts_of_nothing_and_less_become_one_count_each():
    assert floor(np.array([0.0, 0.5, -0.1]), 10) == pytest.approx([1 / 7, 5 / 7, 1 / 7])
    assert floor(np.array([0.2, 0.3]), 0) == pytest.approx([0.5, 0.5])


def test_a_model_of_few_reports_gains_and_one_of_many_does_not_lose(make_campaign, gaussian_population):
    campaign = make_campaign(ASKED, continuous="laplace")
    frame, labels = gaussian_population(100_000, 2)
    gains = {}
    for devices, runs in ((400, 60), (100_000, 3)):
        scores = []
        for seed in range(runs):
            rows = np.random.default_rng(seed).choice(len(frame), size=devices, replace=False)
            tally = simulate(campaign, frame.iloc[rows], labels[rows], rng=seed)
            models = [train(campaign, tally, shrinkage=shrinkage) for shrinkage in (True, False)]
            scores.append([(model.predict(frame[:5_000]) == labels[:5_000]).mean() for model in models])
        gains[devices] = np.subtract(*np.mean(scores, axis=0))
    assert gains[400] > 0
    assert gains[100_000] > -0.002


def test_the_estimates_themselves_are_not_shrunk(make_campaign, gaussian_population):
    campaign = make_campaign(ASKED)
    frame, labels = gaussian_population(2_000, 2)
    tally = simulate(campaign, frame, labels, rng=1)
    plain = train(campaign, tally, shrinkage=False).model_.likelihoods[0]
    assert estimate(campaign, tally).moments["x"].mean.tolist() == list(plain.mean)


estimates = arrays(np.float64, st.integers(1, 12), elements=st.floats(-2, 2))


@given(estimates)
def test_norm_sub_gives_probabilities_in_the_same_order_and_changes_probabilities_not_at_all(values):
    found = norm_sub(values)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert (np.diff(found[np.argsort(values)]) >= -1e-12).all()
    assert norm_sub(found) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -2, -1])
def test_norm_sub_along_an_axis_is_norm_sub_of_every_line_along_it(axis):
    values = np.random.default_rng(axis + 2).normal(0.2, 0.5, size=(3, 4, 5))
    assert (norm_sub(values, axis=axis) == np.apply_along_axis(norm_sub, axis, values)).all()


def test_norm_sub_is_the_nearest_point_of_the_simplex():
    values = np.array([0.7, -0.2, 0.4, 0.3, -0.05])
    nearest = minimize(
        lambda x: ((x - values) ** 2).sum(),
        np.full(5, 0.2),
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        tol=1e-12,
    ).x
    assert norm_sub(values) == pytest.approx(nearest, abs=1e-6)


def test_floor_turns_negative_counts_into_one_none_leaves_all_alone_and_an_unknown_mode_is_refused():
    assert floor(np.array([0.5, -0.3, 0.8]), 100).tolist() == pytest.approx([50 / 131, 1 / 131, 80 / 131])
    assert floor(np.array([0.25, 0.25, 0.25, 0.25]), 0).tolist() == [0.25] * 4
    assert post_process(np.array([-0.5, 1.5]), 10, "none").tolist() == [-0.5, 1.5]
    with pytest.raises(ValueError, match="floor, norm_sub, none"):
        post_process(np.array([1.0]), 1, "clip")
