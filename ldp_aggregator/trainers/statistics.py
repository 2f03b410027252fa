"""The statistics of a Naive Bayes model, as one vector of integers: class counts, tables, sums and squares.

A number is t in [-1, 1] by its public bounds, in steps of 2^-20; its square enters as 1 - t^2, in the same steps,
rounded down. Integers add up exactly, so that chunks of a table, or the shares of many nodes, give the same bits in
every order.

The vector's order is that of :mod:`ldp_aggregator.node_statistics`. Rows without a declared value are in no cell; a
missing number stands in the middle of the bounds, t = 0. Rows without a declared label are in no cell at all.

A label or a feature may say nothing: none of the rows holds a declared value, as where a column is spelt otherwise, or
a number, as where it has decimal commas. Whether that is so is a fact about the rows. An error that followed from it,
or from the dtype of a column, would tell neighbouring tables apart at any epsilon. So it is read off the noisy
statistics, which may leave anyway: a warning that costs no privacy, and that does not come where the noise hides what
it is about.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.frames import column_of, feature_indices, numbers, without_sparse_columns
from ldp_aggregator.node_statistics import CLASSES, SQUARE, SUM, TABLE, Part, parts_of
from ldp_aggregator.trainers import sensitivities
from ldp_aggregator.trainers.accountant import Accountant, allocate
from ldp_aggregator.trainers.randomness import discrete_laplace, drawable
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.sensitivities import REPLACE
from ldp_protocols.exact import Coins, discrete_laplace_variance
from ldp_protocols.features import NumericFeature

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

GRID: Final = 1 << 20
"""Steps per unit of t and of t^2."""

_CHUNK: Final = 1 << 16
"""Rows added up at once: a chunk's sums stay below 2^53 and are exact in doubles."""


class QueryNoise(NamedTuple):
    """The noise of one part: what its query spends, its scale in units of the vector's integers (0: exact)."""

    part: Part
    epsilon: Fraction
    scale: Fraction

    @property
    def variance(self) -> float:
        """Variance of the noise that is really drawn."""
        return discrete_laplace_variance(drawable(self.scale)) if self.scale else 0.0


def zero(schema: Schema) -> Integers:
    """The statistics of no rows."""
    return np.zeros(parts_of(schema.label, schema.features)[-1].stop, dtype=np.int64)


def statistics_of(schema: Schema, frame: pd.DataFrame, classes: Integers) -> Integers:
    """The exact statistics of a table: the sum of the statistics of its rows, each taken alone.

    ``statistics_of(T + row) - statistics_of(T) == statistics_of(row)`` for every table T and every row, whatever the
    row does to the dtypes of T's columns. Every sensitivity, and so every epsilon, rests on that: one row moves the
    vector by its own part and by nothing else. It holds because a cell means what it means alone
    (:mod:`ldp_protocols.values`), and because no cell is an error. ``classes`` has -1 for a label that is not declared.
    """
    labelled = classes >= 0
    if not labelled.all():
        frame, classes = without_sparse_columns(frame).loc[labelled], classes[labelled]
    table, k = schema.prepare(frame), schema.class_count
    vector = zero(schema)
    moments: dict[str, Iterator[Integers]] = {}
    for part in parts_of(schema.label, schema.features):
        place = slice(part.start, part.stop)
        if part.feature is None:
            vector[place] = np.bincount(classes, minlength=k)
        elif (number := part.feature.moments) is None:
            values = feature_indices(part.feature, column_of(table, part.feature))
            declared = values >= 0
            cells = values[declared] * k + classes[declared]
            vector[place] = np.bincount(cells, minlength=part.stop - part.start)
        else:
            if part.kind == SUM:
                moments[number.name] = iter(_moments(number, column_of(table, number), classes, k))
            vector[place] = next(moments[number.name])
    return vector


def statistics_of_chunks(schema: Schema, chunks: Iterable[tuple[pd.DataFrame, Any]]) -> tuple[Integers, int]:
    """The exact statistics of a table that comes in pieces, and its rows; memory holds one piece at a time."""
    total, rows = zero(schema), 0
    for frame, labels in chunks:
        total += statistics_of(schema, frame, schema.classes_of(labels, len(frame)))
        rows += len(frame)
    return total, rows


def plan_noise(
    schema: Schema, epsilon: float, relation: str, numerical_share: float | None = None, *, even: bool = False
) -> tuple[QueryNoise, ...]:
    """Divide ``epsilon`` among the queries; under ``replace`` the class counts are public and cost nothing.

    ``even``: as in the papers, see :func:`ldp_aggregator.trainers.accountant.allocate`. The plans for the sum
    and for the square of a feature are one query's, whose epsilon both name.
    """
    public_counts = sensitivities.checked_relation(relation) == REPLACE
    pieces = allocate(
        epsilon,
        tables=len(schema.tables),
        gaussians=len(schema.gaussians),
        label=not public_counts,
        numerical_share=numerical_share,
        even=even,
    )
    # Rounding 1 - t^2 down adds nothing to a row; the difference of two rows can grow by a step.
    steps = sensitivities.sum_and_square(relation) * GRID + (sensitivities.SQUARE_WEIGHT if public_counts else 0)
    plans = []
    for part in parts_of(schema.label, schema.features):
        if part.kind == CLASSES:
            spent, sensitivity = pieces.label, Fraction(0 if public_counts else 1)
        elif part.kind == TABLE:
            spent, sensitivity = pieces.table, sensitivities.table_cells(relation)
        elif part.kind == SUM:
            spent, sensitivity = 2 * pieces.moment, steps
        else:
            spent, sensitivity = 2 * pieces.moment, steps / sensitivities.SQUARE_WEIGHT
        plans.append(QueryNoise(part, spent if sensitivity else Fraction(0), sensitivity / spent))
    return tuple(plans)


def add_noise(vector: Integers, plans: Sequence[QueryNoise], accountant: Accountant, coins: Coins) -> Integers:
    """The statistics as they may leave: all queries are booked first and then get their noise, empty classes too."""
    noisy = vector.copy()
    book(plans, accountant)
    for plan in plans:
        if plan.scale:
            place = slice(plan.part.start, plan.part.stop)
            noisy[place] += discrete_laplace(plan.scale, plan.part.stop - plan.part.start, coins)
    return noisy


def book(plans: Iterable[QueryNoise], accountant: Accountant) -> None:
    """Spend what the plans' queries cost, each query once."""
    for query, epsilon in {plan.part.query: plan.epsilon for plan in plans if plan.scale}.items():
        accountant.spend(query, epsilon)


def grid_values(feature: NumericFeature, column: pd.Series[Any]) -> Array:
    """`t` in [-1, 1] in whole steps of 1/:data:`GRID`, as doubles; 0 where missing."""
    low, high = float(feature.low), float(feature.high)
    values = numbers(column)
    np.clip(values, low, high, out=values)
    values -= (low + high) / 2
    values *= 2 * GRID / (high - low)
    np.rint(values, out=values)
    np.clip(values, -GRID, GRID, out=values)
    if np.isnan(values.sum()):
        np.nan_to_num(values, copy=False, nan=0.0)
    return values


def _moments(feature: NumericFeature, column: pd.Series[Any], classes: Integers, k: int) -> tuple[Integers, Integers]:
    """Sums of t and of 1 - t^2 per class, in steps."""
    sums: Array = np.zeros(k)
    squares: Array = np.zeros(k)
    for start in range(0, len(classes), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        steps = grid_values(feature, column.iloc[chunk])
        sums += np.bincount(classes[chunk], weights=steps, minlength=k)
        np.multiply(steps, steps, out=steps)
        steps *= -1 / GRID
        steps += GRID
        np.floor(steps, out=steps)
        squares += np.bincount(classes[chunk], weights=steps, minlength=k)
    return sums.astype(np.int64), squares.astype(np.int64)


_CERTAIN: Final = 5.0
"""Standard deviations of the noise; a feature that all rows express is called silent less than once in 25,000 fits."""

_MUCH: Final = 0.5
"""Share of the rows that must be seen to be without a declared value."""

_LIKELY: Final = 4.0
"""Standard deviations within which the noise of a sum stays in 998 of 1,000 fits, of two classes or more."""

_FEWEST_LABELS: Final = 240
"""Rows. Noise that hides more declared labels than these tells nothing of a table of some hundred rows."""

_ONE_SIDE: Final = 3.0
"""Standard deviations of a sum of several queries' noise, beyond which one side of it is in 4 of 1,000 fits."""

_NARROW: Final = 0.028
"""Share of the rows. Noise beyond it would take a number that is spread over its bounds for one that is not."""


class SilentLabelWarning(UserWarning):
    """A model of next to nothing, since next to no row holds a declared class."""


class SilentFeatureWarning(UserWarning):
    """A feature has next to no influence on the model, since next to no row holds one of its declared values."""


def warn_of_silence(noisy: Integers, plans: Sequence[QueryNoise], copies: float = 1) -> None:
    """A warning of what :func:`silent_label`, :func:`silent_features` and :func:`silent_numbers` find, if anything."""
    compare = "compare the schema with the table"
    if hidden := silent_label(noisy, plans, copies):
        warnings.warn(
            f"as far as the noise shows, no row holds a declared class (it may hide some {hidden}): {compare}",
            SilentLabelWarning,
            stacklevel=2,
        )
    for problem, found in (
        ("no row holds a declared value of", silent_features(noisy, plans, copies)),
        ("no row holds a number, or all hold the middle of the bounds, of", silent_numbers(noisy, plans, copies)[0]),
        ("all rows hold numbers at the bounds or beyond them of", silent_numbers(noisy, plans, copies)[1]),
    ):
        if found:
            names = ", ".join(map(repr, found))
            warnings.warn(
                f"as far as the noise shows, {problem} {names}: {compare}", SilentFeatureWarning, stacklevel=2
            )


def silent_label(noisy: Integers, plans: Sequence[QueryNoise], copies: float = 1) -> int:
    """Number of rows that the noise can hide where the class counts add up to nothing beyond it, at least 1; else 0.

    An empty table counts as well. Noise that hides more than :data:`_FEWEST_LABELS` tells nothing.
    """
    total, spread = _totals(noisy, plans, copies)[CLASSES, None]
    hidden = _LIKELY * spread
    return max(1, math.ceil(hidden)) if abs(total) <= hidden <= _FEWEST_LABELS else 0


def silent_features(noisy: Integers, plans: Sequence[QueryNoise], copies: float = 1) -> tuple[str, ...]:
    """The counted features whose table adds up to nothing while the class counts do not, beyond the noise.

    A function of noisy statistics (``copies`` times the planned noise) and public numbers alone: post-processing. A
    feature that declares ``missing`` counts every row, and is never found here.
    """
    found = _totals(noisy, plans, copies)
    count, spread = found[CLASSES, None]
    rows = count - _CERTAIN * spread
    return tuple(
        name
        for (kind, name), (total, spread) in found.items()
        if kind == TABLE and name is not None
        if abs(total) <= _CERTAIN * spread <= _MUCH * rows
    )


def silent_numbers(
    noisy: Integers, plans: Sequence[QueryNoise], copies: float = 1
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The Gaussian features of which all rows stand in the middle of the bounds, as those without a number do, and
    those of which all stand at the bounds, as far as the noise shows. Post-processing, as :func:`silent_features`.
    """
    found = _totals(noisy, plans, copies)
    rows, unsure = found[CLASSES, None]
    middle, ends = [], []
    for (kind, name), (total, spread) in found.items():
        if kind != SQUARE or name is None:
            continue
        inside, spread = total / GRID, spread / GRID  # of 1 - t^2 over the rows
        square_noise = math.hypot(unsure, spread)
        # Of a number that tells of the class, each class stands on a side of its own.
        (sums,) = (one for one in plans if one.part.kind == SUM and one.part.feature and one.part.feature.name == name)
        offset = np.abs(noisy[sums.part.start : sums.part.stop]).max()
        if offset <= _CERTAIN * math.sqrt(copies * sums.variance) and rows - inside <= _ONE_SIDE * square_noise:
            middle += [name] * (square_noise <= _NARROW * rows)
        elif abs(inside) <= _LIKELY * spread <= _MUCH * (rows - _LIKELY * unsure) / 2:
            ends.append(name)
    return tuple(middle), tuple(ends)


def _totals(
    noisy: Integers, plans: Sequence[QueryNoise], copies: float
) -> dict[tuple[str, str | None], tuple[float, float]]:
    """The sum of each part and the standard deviation of its noise, by the part's kind and feature."""
    return {
        (plan.part.kind, plan.part.feature.name if plan.part.feature else None): (
            float(noisy[plan.part.start : plan.part.stop].sum()),
            math.sqrt(copies * plan.variance * (plan.part.stop - plan.part.start)),
        )
        for plan in plans
    }
