"""Plots a person would put into a paper: axes with units, bands, a legend, and a caption with the total epsilon."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from simulations.studies.trials import ACCURACY
from simulations.tables.frames import TableError

_MARKERS: Final = "osD^vPX*"
_CAPTION_LETTERS: Final = 14
"""Of a caption, on an inch of the figure's width."""


def plot_accuracy(summary: pd.DataFrame, caption: str, path: Path) -> None:
    """Accuracy over epsilon, a line for each mechanism with a band of two standard errors, and the two references.

    ``summary`` is that of :func:`simulations.studies.trials.summarise`. Raises TableError where ``path`` cannot be
    written.
    """
    figure, axes = make_figure(1, 1, (6.4, 4.6))
    draw_accuracy(axes[0, 0], summary)
    axes[0, 0].legend(frameon=False)
    save(figure, caption, path)


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


def plot_plan(plan: Mapping[str, Any], path: Path) -> None:
    """Relative error over devices at the epsilon and at half of it; with a pilot its accuracy over devices beside it.

    ``plan`` is that of :func:`simulations.commands.plan.make_plan`.
    """
    pilot = plan.get("pilot")
    figure, axes = make_figure(1, 2 if pilot else 1, (10 if pilot else 6.4, 4.6))
    left = axes[0, 0]
    needed = plan["devices_for_relative_error"]
    errors = [float(error) for error in needed]
    for key, name in (("epsilon", f"epsilon {plan['epsilon']:g}"), ("half", f"epsilon {plan['epsilon'] / 2:g}")):
        left.plot([needed[error][key] for error in needed], errors, marker="o", markersize=4, label=name)
    left.axvline(plan["devices"], color="gray", linewidth=1, linestyle=":", label=f"{plan['devices']:,} devices")
    left.set(xscale="log", yscale="log", xlabel="devices", ylabel="standard error / even share, worst question")
    left.set_yticks(errors, [f"{error:.0%}" for error in errors])
    left.minorticks_off()
    left.legend(frameon=False)
    if pilot:
        _draw_curve(axes[0, 1], pilot)
    for each in axes[0]:
        each.spines[["top", "right"]].set_visible(False)
    caption = f"{plan['title']} Total loss of a device: {plan['epsilon']:g}, and half of it."
    save(figure, caption, path)


def _draw_curve(axes: Any, pilot: Mapping[str, Any]) -> None:
    devices, reached = np.array(pilot["devices"]), np.array(pilot["accuracy"])
    margin = 2 * np.array(pilot["standard_error"])
    axes.plot(devices, reached, marker="o", markersize=4, label="learned from reports")
    axes.fill_between(devices, reached - margin, reached + margin, alpha=0.2)
    axes.axhline(pilot["non_private"], color="black", linewidth=1, label="without privacy")
    axes.axhline(pilot["majority"], color="gray", linewidth=1, linestyle=":", label="majority class")
    axes.set(xscale="log", xlabel="devices", ylabel="accuracy on people held out")
    axes.legend(frameon=False)


def make_figure(rows: int, columns: int, size: tuple[float, float], *, share_axes: bool = False) -> tuple[Any, Any]:
    """A figure without a screen, and its axes as an array; matplotlib is imported here, because it is slow to load."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharex=share_axes, sharey=share_axes)


def save(figure: Any, caption: str, path: Path) -> None:
    """Write a figure with its caption below; the same figure gives the same bytes. Raises TableError."""
    from matplotlib import rc_context

    letters = int(_CAPTION_LETTERS * figure.get_figwidth())
    figure.supxlabel("\n".join(textwrap.wrap(caption, letters)), fontsize=8)
    undated = {"Date": None} if path.suffix in (".svg", ".pdf") else None
    try:
        with rc_context({"svg.hashsalt": "ldp-bayes"}):
            figure.savefig(path, dpi=160, metadata=undated)
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: the plot cannot be written ({error})") from None
