"""Plots show the numbers they are given, each at its place: of unequal ones, in shapes that are not square."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import norm

from ldp_aggregator.estimation.cells import plot_intervals, plot_normals, plot_shares


@pytest.fixture
def axes():
    return Figure().subplots()


def test_a_density_is_that_of_the_class_between_the_bounds(axes):
    plot_normals(axes, 1.0, 9.0, ["a", "b"], [2.0, 7.0], [0.25, 4.0])
    for line, name, mean, deviation in zip(axes.lines, "ab", (2, 7), (0.5, 2), strict=True):
        x, y = line.get_data()
        assert (line.get_label(), x[0], x[-1]) == (name, 1, 9)
        assert y == pytest.approx(norm.pdf(x, mean, deviation))


def test_a_bar_is_as_long_as_its_share_beside_its_value(axes):
    shares = np.array([[0.5, 0.2], [0.4, 0.1], [0.1, 0.7]])
    plot_shares(axes, ["x", "y", "z"], ["a", "b"], shares)
    bars = [(round(bar.get_y() + bar.get_height() / 2, 3), bar.get_width()) for bar in axes.patches]
    assert bars == [(-0.2, 0.5), (0.8, 0.4), (1.8, 0.1), (0.2, 0.2), (1.2, 0.1), (2.2, 0.7)]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["x", "y", "z"]
    assert axes.yaxis_inverted()


def test_an_interval_is_around_its_dot_and_what_is_unknown_is_not_drawn(axes):
    value = np.array([[0.5, 0.2], [0.4, 0.1], [0.1, 0.7]])
    low, high = value - 0.1, value + 0.2
    high[1, 1] = np.inf
    plot_intervals(axes, ["x", "y", "z"], ["a", "b"], value, low, high)
    drawn = [segment.round(3).tolist() for lines in axes.collections for segment in lines.get_segments()]
    assert drawn == [
        *([[0.4, -0.125], [0.7, -0.125]], [[0.3, 0.875], [0.6, 0.875]], [[0.0, 1.875], [0.3, 1.875]]),
        *([[0.1, 0.125], [0.4, 0.125]], [[0.6, 2.125], [0.9, 2.125]]),
    ]
    assert [container.get_label() for container in axes.containers] == ["a", "b"]
