"""Features that say nothing: none of the rows holds a declared value, as where a column is spelt otherwise.

Whether that is so is a fact about the rows. An error that followed from it, or from the dtype of a column, would tell
neighbouring tables apart at any epsilon. So it is read off the noisy statistics, which may leave anyway: a warning that
costs no privacy, and that does not come where the noise hides what it is about.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Final

from ldp_aggregator.node_statistics import CLASSES, TABLE
from ldp_aggregator.trainers.statistics import Integers, QueryNoise

_CERTAIN: Final = 5.0
"""Standard deviations of the noise; a feature that all rows express is called silent less than once in 25,000 fits."""

_MUCH: Final = 0.5
"""Share of the rows that must be seen to be without a declared value."""


class SilentFeatureWarning(UserWarning):
    """A feature has next to no influence on the model, since next to no row holds one of its declared values."""


def warn_of_silence(noisy: Integers, plans: Sequence[QueryNoise], copies: float = 1) -> None:
    """A :class:`SilentFeatureWarning` for :func:`silent_features`, if there are any."""
    found = silent_features(noisy, plans, copies)
    if found:
        names = ", ".join(map(repr, found))
        warnings.warn(
            f"as far as the noise shows, no row holds a declared value of {names}: compare the schema with the table",
            SilentFeatureWarning,
            stacklevel=2,
        )


def silent_features(noisy: Integers, plans: Sequence[QueryNoise], copies: float = 1) -> tuple[str, ...]:
    """The counted features whose table adds up to nothing while the class counts do not, beyond the noise.

    A function of noisy statistics (``copies`` times the planned noise) and public numbers alone: post-processing. A
    feature that declares ``missing`` counts every row, and a Gaussian one adds rows without a number in the middle of
    its bounds; neither is ever found here.
    """
    totals = {plan.part: float(noisy[plan.part.start : plan.part.stop].sum()) for plan in plans}
    spreads = {plan.part: math.sqrt(copies * plan.variance * (plan.part.stop - plan.part.start)) for plan in plans}
    counts = next(part for part in totals if part.kind == CLASSES)
    rows = totals[counts] - _CERTAIN * spreads[counts]
    return tuple(
        part.feature.name
        for part in totals
        if part.kind == TABLE and part.feature is not None
        if abs(totals[part]) <= _CERTAIN * spreads[part] <= _MUCH * rows
    )
