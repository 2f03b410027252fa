"""The table, the plot and the page of honest accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from simulations.figures.figure import Figure
from simulations.figures.honest_accuracy import (
    BASE,
    DATASETS,
    DEFAULT,
    DEVICES,
    EPSILONS,
    EVALUATED,
    RUNS,
    VARIANTS,
    measure,
)
from simulations.figures.pages.comparisons import markdown_table
from simulations.figures.pages.curves import BLUE, ORANGE, PINK, Style, add_legend, draw_curve, finish_panel
from simulations.studies.plots import make_figure, save

NAME: Final = "honest-accuracy"
COMMAND: Final = f"python -m simulations reproduce {NAME}"

_STYLES: Final = {
    BASE: Style("base: nearest probabilities", BLUE),
    DEFAULT: Style("default: shrunk by the known noise", ORANGE, marker="s"),
    EVALUATED: Style("evaluated: a tenth of the devices tell how good it is", PINK, marker="v"),
}
_TICKS: Final[Mapping[float, str]] = {1_000: "1k", 5_000: "5k", 20_000: "20k", 80_000: "80k", 320_000: "320k"}

TOLERATED: Final = 0.01
"""Below the base: what a setting has to be by, and by two standard errors, to be named."""


def draw(table: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw a panel for each table and epsilon."""
    figure, axes = make_figure(len(DATASETS), len(EPSILONS), (10, 24))
    for row, name in enumerate(DATASETS):
        for column, epsilon in enumerate(EPSILONS):
            here = table[(table["dataset"] == name) & (table["epsilon"] == epsilon)]
            panel = axes[row][column]
            for variant, style in _STYLES.items():
                draw_curve(panel, here[here["variant"] == variant], "devices", style)
            most = float(here["majority"].mean())
            panel.axhline(most, color="grey", linewidth=1, linestyle=":", label="majority class")
            finish_panel(panel, f"{name}, epsilon {epsilon:g}", _TICKS, logarithmic=True)
    add_legend(figure, axes.ravel(), 2)
    path = folder / f"{NAME}.svg"
    save(figure, f"{int(table['splits'].min())} splits; bands of 95 %. `{COMMAND}`", path)
    return [path]


def make_page(table: pd.DataFrame) -> str:
    """Return the page, from the table alone."""
    return "\n".join(
        [
            "# Honest accuracy",
            "",
            "How good a model is at a *total* epsilon, over the number of devices. *Base* takes the nearest "
            "probabilities (`train --post norm_sub`), *default* shrinks by the known noise, both from the same reports "
            "of the same devices to what a draft asks. *Evaluated* learns from nine tenths of the devices; the others "
            "tell how good that model is, and its threshold is moved where that is clearly better (with two classes). "
            f"Drawn by `{COMMAND}`; {int(table['splits'].min())} splits of each table, devices drawn with replacement "
            "from four fifths of the people. Constants were chosen with these tables in view "
            "([accuracy](../accuracy.md#constants)): what they win on others is told there.",
            "",
            "![accuracy over devices](honest-accuracy.svg)",
            "",
            "## Accuracy gained over the base",
            "",
            "Means over the ten tables, with the standard error of the mean over splits.",
            "",
            _gains(table),
            "",
            "## Accuracy: base, default, evaluated",
            "",
            _accuracies(table),
            "",
            f"## Where the default is more than {TOLERATED:g} and two standard errors below the base",
            "",
            *(losses_of(table) or ["Nowhere."]),
            "",
        ]
    )


def _gains(table: pd.DataFrame) -> str:
    rows = []
    for variant in (DEFAULT, EVALUATED):
        for epsilon in EPSILONS:
            of = table[(table["variant"] == variant) & (table["epsilon"] == epsilon)]
            cells = []
            for devices in DEVICES:
                here = of[of["devices"] == devices]
                error = float((here["above_base_error"] ** 2).sum() ** 0.5 / len(here))
                cells.append(f"{here['above_base'].mean():+.3f} ± {error:.3f}")
            rows.append([variant, f"{epsilon:g}", *cells])
    return markdown_table(["", "epsilon", *(_TICKS[devices] for devices in DEVICES)], rows)


def _accuracies(table: pd.DataFrame) -> str:
    found = {(row["dataset"], row["epsilon"], row["devices"], row["variant"]): row for row in table.to_dict("records")}
    rows = []
    for name in DATASETS:
        for epsilon in EPSILONS:
            cells = [
                " · ".join(_three(found[name, epsilon, devices, one]["accuracy"]) for one in VARIANTS)
                for devices in DEVICES
            ]
            any_row = found[name, epsilon, DEVICES[0], BASE]
            rows.append([name, f"{epsilon:g}", *cells, _three(any_row["majority"]), _three(any_row["non_private"])])
    heads = ["table", "epsilon", *(_TICKS[devices] for devices in DEVICES), "majority class", "without privacy"]
    return markdown_table(heads, rows)


def losses_of(table: pd.DataFrame) -> list[str]:
    """Return a line for every setting in which the default is clearly below the base."""
    rows: list[dict[Any, Any]] = table[table["variant"] == DEFAULT].to_dict("records")
    return [
        f"* {row['dataset']}, epsilon {row['epsilon']:g}, {row['devices']:,} devices: {row['above_base']:+.3f} ± "
        f"{row['above_base_error']:.3f}"
        for row in rows
        if row["above_base"] < -max(TOLERATED, 2 * row["above_base_error"])
    ]


def _three(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


FIGURE: Final = Figure(
    name=NAME,
    about="accuracy over devices at a total epsilon: base, default, evaluated",
    runs=RUNS,
    of_runs="splits",
    measure=measure,
    draw=draw,
    make_page=make_page,
)
