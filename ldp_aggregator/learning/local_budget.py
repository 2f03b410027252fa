"""The inverse of :mod:`ldp_aggregator.learning.published`: what a wanted published epsilon leaves to a device.

Every answer was checked by the bound itself, at the rounded number that is given back. The least and the largest are to
three digits: with epsilon ``ss`` changes its size and ``auto`` its choice, so that the bound is not quite monotone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, Final

from ldp_aggregator.amplification.bound import MOST_REPORTS
from ldp_aggregator.learning.published import DEFAULT_DELTA, published_together
from protocols import Campaign

MOST_LOCAL: Final = 16.0
"""Nothing is protected locally there, so that a wish for more is none."""

_STEPS: Final = 24
_PRECISION: Final = 1e-3
_DIGITS: Final = 3


def largest_local_epsilon(
    draft: Mapping[str, Any], devices: int, published: float, delta: float = DEFAULT_DELTA, colluding: int = 0
) -> float:
    """The largest local epsilon, at most 16, with which ``devices`` answers reveal (``published``, delta) at most.

    ``draft`` is taken as it is but for its epsilon. Raises DraftError for one that does not compile, ValueError where
    not even a device that nobody hides may say anything (``published`` below 1e-5).
    """
    if not published >= 1e-5:
        raise ValueError(f"a published epsilon must be at least 1e-5, not {published}")

    def holds(epsilon: float) -> bool:
        return _published(_compiled(draft, epsilon), devices, delta, colluding) <= published

    # What a device loses locally is an upper bound of what is published of it.
    sure = _rounded_down(min(published, MOST_LOCAL))
    if sure >= MOST_LOCAL or holds(MOST_LOCAL):
        return MOST_LOCAL
    growth = (MOST_LOCAL / sure) ** (1 / _STEPS)
    tried = [sure * growth**step for step in range(1, _STEPS)]
    low, high = sure, MOST_LOCAL
    for epsilon in reversed(tried):
        if holds(epsilon):
            low = epsilon
            break
        high = epsilon
    while high > low * (1 + _PRECISION):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    rounded = _rounded_down(low)
    return rounded if holds(rounded) else sure


def fewest_devices(
    campaign: Campaign, published: float, delta: float = DEFAULT_DELTA, colluding: int = 0
) -> int | None:
    """The least number of devices (to three digits) whose answers reveal (``published``, delta) at most.

    None where 2^40 are too few.
    """

    def holds(devices: int) -> bool:
        return _published(campaign, devices, delta, colluding) <= published

    if not published > 0:
        raise ValueError(f"a published epsilon must be above 0, not {published}")
    return _least(holds, 1 + colluding, MOST_REPORTS + colluding)


def _least(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    if holds(low):
        return low
    if not holds(high):
        return None
    while high - low > max(1, _PRECISION * low):
        middle = round((low * high) ** 0.5)
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _published(campaign: Campaign, devices: int, delta: float, colluding: int) -> float:
    found = published_together([(campaign, devices)], delta, colluding).epsilon
    if found is None:
        raise AssertionError("a campaign has a local guarantee at least")
    return found


def _compiled(draft: Mapping[str, Any], epsilon: float) -> Campaign:
    return Campaign.compile({**draft, "privacy": {**draft["privacy"], "epsilon": _rounded_down(epsilon)}})


def _rounded_down(epsilon: float) -> float:
    return float(Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal(Decimal(epsilon)))
