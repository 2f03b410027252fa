"""Plots a person would put into a paper: axes with units, bands, a legend, and a caption with the total epsilon."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, Final

import pandas as pd

from simulations.frames import TableError
from simulations.trials import ACCURACY

_MARKERS: Final = "osD^vPX*"
_CAPTION_WIDTH: Final = 90


def plot_accuracy(summary: pd.DataFrame, caption: str, path: Path) -> None:
    """Accuracy over epsilon, a line for each mechanism with a band of two standard errors, and the two references.

    ``summary`` is that of :func:`simulations.trials.summarise`. Raises TableError where ``path`` cannot be written.
    """
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(6.4, 4.6), layout="constrained")
    draw_accuracy(axes, summary)
    axes.legend(frameon=False)
    save(figure, caption, path)
    pyplot.close(figure)


def draw_accuracy(axes: Any, summary: pd.DataFrame) -> None:
    """The lines of :func:`plot_accuracy` on existing axes."""
    for marker, (name, lines) in zip(
        _MARKERS * len(summary), summary.groupby(["mechanism", "continuous"], sort=False), strict=False
    ):
        lines = lines.sort_values("epsilon")
        label = name[0] if summary["continuous"].nunique() == 1 else f"{name[0]} / {name[1]}"
        (line,) = axes.plot(lines["epsilon"], lines[ACCURACY], marker=marker, markersize=4, label=label)
        margin = 2 * lines["standard_error"]
        axes.fill_between(
            lines["epsilon"], lines[ACCURACY] - margin, lines[ACCURACY] + margin, alpha=0.2, color=line.get_color()
        )
    axes.axhline(summary["non_private"].mean(), color="black", linewidth=1, label="without privacy")
    axes.axhline(summary["majority"].mean(), color="gray", linewidth=1, linestyle=":", label="majority class")
    if summary["epsilon"].nunique() > 1:
        axes.set_xscale("log")
        ticks = sorted(set(summary["epsilon"]))
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    per_question = bool(summary["per_question"].any())
    axes.set_xlabel("epsilon of each question" if per_question else "epsilon (total loss of a device)")
    axes.set_ylabel("accuracy on people held out")
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Any, caption: str, path: Path) -> None:
    """Write a figure with its caption below. Raises TableError."""
    figure.supxlabel("\n".join(textwrap.wrap(caption, _CAPTION_WIDTH)), fontsize=8)
    try:
        figure.savefig(path, dpi=160)
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: the plot cannot be written ({error})") from None


def _pyplot() -> Any:
    """Matplotlib without a screen; imported here, because it is slow to load and few commands draw."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
