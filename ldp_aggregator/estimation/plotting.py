"""Plots of estimates and models in a notebook, on matplotlib, which ``ldp-bayes[simulations]`` brings along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_aggregator.estimation.intervals import Array
from ldp_protocols.errors import LdpError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axes_or_new(axes: Axes | None) -> Axes:
    """Return ``axes``, or those of a new figure. Raises LdpError without matplotlib."""
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot as plt
    except ModuleNotFoundError:
        raise LdpError("not-installed", "plots need matplotlib: pip install 'ldp-bayes[simulations]'") from None
    return plt.subplots(layout="constrained")[1]


def plot_intervals(
    axes: Axes, rows: Sequence[str], classes: Sequence[str], value: Array, low: Array, high: Array
) -> None:
    """Draw a dot with its interval for every row and class, shape (rows, classes), but for those that are unknown."""
    for place, name in enumerate(classes):
        heights = np.arange(len(rows)) + 0.25 * (place - (len(classes) - 1) / 2)
        ends = np.maximum([value[:, place] - low[:, place], high[:, place] - value[:, place]], 0.0)
        known = np.isfinite(ends).all(axis=0)
        axes.errorbar(value[known, place], heights[known], xerr=ends[:, known], fmt="o", capsize=3, label=name)
    axes.set_yticks(np.arange(len(rows)), rows)
    axes.invert_yaxis()


def plot_shares(axes: Axes, values: Sequence[str], classes: Sequence[str], shares: Array) -> None:
    """Draw P(value | class), shape (values, classes), as bars side by side."""
    width = 0.8 / len(classes)
    for place, name in enumerate(classes):
        axes.barh(
            np.arange(len(values)) + width * (place - (len(classes) - 1) / 2), shares[:, place], width, label=name
        )
    axes.set_yticks(np.arange(len(values)), values)
    axes.invert_yaxis()


def plot_normals(axes: Axes, low: float, high: float, classes: Sequence[str], means: Any, variances: Any) -> None:
    """Draw the density of a number in each class, between its bounds."""
    points = np.linspace(low, high, 300)
    for name, mean, variance in zip(classes, means, variances, strict=True):
        axes.plot(points, np.exp(-((points - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance), label=name)
