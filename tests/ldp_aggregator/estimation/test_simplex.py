"""Post-processing gives probabilities, and norm_sub the nearest ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from ldp_aggregator.estimation.simplex import floor, norm_sub, post_process

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
