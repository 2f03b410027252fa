"""How many devices one way saves beside another: ratios of devices for the same accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from simulations.figures.honest_accuracy import BASE


def ratio(table: pd.DataFrame, name: str, epsilon: float, devices: int, variant: str) -> float:
    """The devices with which the base is as good, interpolated in their logarithm, over ``devices``.

    NaN where the base is better with fewer than were tried; infinite where it is not as good with most.
    """
    base = table[(table["dataset"] == name) & (table["epsilon"] == epsilon) & (table["variant"] == BASE)]
    base = base.sort_values("devices")
    reached = np.maximum.accumulate(base["accuracy"].to_numpy())
    numbers = np.log(base["devices"].to_numpy(dtype=float))
    here = (table["dataset"] == name) & (table["epsilon"] == epsilon) & (table["devices"] == devices)
    wanted = float(table.loc[here & (table["variant"] == variant), "accuracy"].iloc[0])
    if wanted < reached[0]:
        return math.nan
    if wanted > reached[-1]:
        return math.inf
    place = int(np.searchsorted(reached, wanted))
    if place == 0:
        return float(math.exp(numbers[0]) / devices)
    gap = reached[place] - reached[place - 1]
    share = (wanted - reached[place - 1]) / gap if gap > 0 else 1.0
    return float(math.exp(numbers[place - 1] + share * (numbers[place] - numbers[place - 1])) / devices)


def geometric_mean(ratios: Sequence[float]) -> str:
    """Of those that are numbers."""
    finite = [one for one in ratios if math.isfinite(one)]
    return f"{math.exp(np.mean(np.log(finite))):.2f}" if finite else "-"


def times(value: float) -> str:
    """A ratio as the page prints it."""
    return "-" if math.isnan(value) else "all" if math.isinf(value) else f"{value:.1f}"
