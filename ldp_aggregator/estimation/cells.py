"""Cells: values with variances and 95 % intervals; their names, and cells as people read them: rows of a table and of a
JSON document, where an infinite number is null, and plots on matplotlib, which ``ldp-bayes[simulations]`` brings along.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_protocols import Campaign, Question
from ldp_protocols.document.questions import JOINT, PAIR, PRODUCT, RIGHT, SCORE
from ldp_protocols.errors import LdpError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Named = dict[str, str | None]

Z_95: Final = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


@dataclass(frozen=True)
class Cells:
    """Unbiased values with their variance and 95 % interval; arrays of one shape."""

    value: Array
    variance: Array
    low: Array
    high: Array

    @classmethod
    def normal(cls, value: Array, variance: Array) -> Cells:
        """A normal interval around each value."""
        reach = Z_95 * np.sqrt(variance)
        return cls(value, variance, value - reach, value + reach)


def wilson(counts: Counts, n: int, z: float = Z_95) -> tuple[Array, Array]:
    """Wilson's interval of a binomial proportion, of ``z`` standard deviations: 95 % by default."""
    share, z2 = counts / n, z**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = z / (1 + z2 / n) * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return centre - reach, centre + reach


def cell_rows(cells: Cells, per_liar: NDArray[np.float64] | float) -> list[dict[str, Any]]:
    """One row per cell."""
    reach = np.broadcast_to(per_liar, cells.value.shape)
    columns = {"estimate": cells.value, "variance": cells.variance, "low": cells.low, "high": cells.high}
    columns["per_liar"] = reach
    return [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]


def named_rows(
    places: Sequence[Named], rows: Iterable[dict[str, Any]], processed: NDArray[np.float64] | None
) -> list[dict[str, Any]]:
    """Rows of cells with what they are of, and the ``processed`` estimate."""
    use = [None] * len(places) if processed is None else processed.tolist()
    return [place | row | {"processed": one} for place, row, one in zip(places, rows, use, strict=True)]


def finite_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows for JSON, which knows no infinity: null stands for it."""
    return [{k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()} for row in rows]


def cell_names(campaign: Campaign, question: Question) -> list[str] | None:
    """The names of the values of a question's cells; of a model whether it is right, or where its score lies."""
    if question.kind == RIGHT:
        return ["wrong", "right"]
    if question.kind == SCORE and campaign.evaluation is not None:
        return [*campaign.evaluation.names]
    return [*campaign.feature(question.feature).cell_names] if question.kind in (PAIR, JOINT) else None


def cell_places(campaign: Campaign, question: Question) -> list[Named]:
    """The axes of a question's cells: value and class, or value and that of another feature."""
    values: Sequence[str | None] = cell_names(campaign, question) or [None]
    if question.kind == JOINT:
        others = campaign.feature(question.other).cell_names
        return [{"value": value, "other_value": other} for value in values for other in others]
    return places_of(values, (None,) if question.kind in (PRODUCT, RIGHT) else campaign.label.names)


def places_of(values: Iterable[str | None], classes: Sequence[str | None]) -> list[Named]:
    """Values by classes, in the order of cells."""
    return [{"value": value, "class": of_class} for value in values for of_class in classes]


def axes_or_new(axes: Axes | None) -> Axes:
    """``axes``, or those of a new figure. Raises LdpError without matplotlib."""
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
        finite = np.isfinite(ends).all(axis=0)
        axes.errorbar(value[finite, place], heights[finite], xerr=ends[:, finite], fmt="o", capsize=3, label=name)
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
