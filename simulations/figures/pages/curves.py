"""How accuracy curves of several trainers are drawn: a panel for each table, bands of 95 %, one legend below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from simulations.figures.cross_validation import MAJORITY, NON_PRIVATE
from simulations.figures.pages.comparisons import Z_95

BLUE, ORANGE, GREEN, PINK, YELLOW, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
"""Okabe and Ito's colours, which colour-blind people tell apart."""

_REFERENCES: Final[Mapping[str, Mapping[str, Any]]] = {
    NON_PRIVATE: {"color": "black", "linewidth": 1, "linestyle": (0, (4, 2)), "label": "without privacy"},
    MAJORITY: {"color": "grey", "linewidth": 1, "linestyle": ":", "label": "majority class"},
}


@dataclass(frozen=True)
class Style:
    """Of one curve: published ones are dashed."""

    label: str
    colour: str
    marker: str = "o"
    dashed: bool = False


def draw_curve(axes: Any, curve: pd.DataFrame, x: str, style: Style) -> None:
    """Means over the column ``x``, with a band of 95 % where there are standard errors."""
    if curve.empty:
        return
    curve = curve.sort_values(x)
    margin = Z_95 * curve["standard_error"]
    look = {"marker": style.marker, "markersize": 4, "linewidth": 1.4, "linestyle": "--" if style.dashed else "-"}
    hollow = {"markerfacecolor": "white"} if style.dashed else {}
    axes.plot(curve[x], curve["accuracy"], color=style.colour, label=style.label, **look, **hollow)
    band = (curve["accuracy"] - margin, curve["accuracy"] + margin)
    axes.fill_between(curve[x], *band, color=style.colour, alpha=0.15, linewidth=0)


def draw_references(axes: Any, table: pd.DataFrame) -> None:
    """Lines for the model without noise and for the most frequent class; ``table`` has a row for each."""
    for name, look in _REFERENCES.items():
        axes.axhline(float(table.loc[table["trainer"] == name, "accuracy"].iloc[0]), **look)


def finish_panel(axes: Any, title: str, ticks: Mapping[float, str], *, logarithmic: bool) -> None:
    """Title, ticks and frame."""
    axes.set_title(title, fontsize=10)
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def curves_of(panels: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """What a legend of all panels shows: each curve once, with its label."""
    found: dict[str, Any] = {}
    for axes in panels:
        found |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    return list(found.values()), list(found)


def add_legend(figure: Any, panels: Iterable[Any], columns: int) -> None:
    """One legend above all panels."""
    figure.legend(*curves_of(panels), loc="outside upper center", ncols=columns, frameon=False, fontsize=9)
