"""The table, the plot and the page of honest accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import pandas as pd

from simulations.figures.figure import Figure
from simulations.figures.honest_accuracy import (
    BASE,
    BELIEVED,
    CHECKED,
    CHOSEN,
    DATASETS,
    DEFAULT,
    DEVICES,
    EPSILONS,
    PER_QUESTION,
    RUNS,
    VARIANTS,
    WEIGHED,
    measure,
)
from simulations.figures.honest_rounds import ASKED, ASKED_OF, TWO_ROUNDS, VOTED, VOTED_DEVICES, VOTES
from simulations.figures.pages.comparisons import markdown_table
from simulations.figures.pages.curves import BLUE, GREEN, ORANGE, PINK, SKY, Style, add_legend, draw_curve, finish_panel
from simulations.figures.pages.honest_rounds import rounds_of
from simulations.figures.pages.ratios import geometric_mean, ratio, times
from simulations.figures.pages.settings import row_of, three
from simulations.figures.pages.wanted import SHOWN, wanted_of
from simulations.studies.plots import make_figure, save

NAME: Final = "honest-accuracy"
COMMAND: Final = f"python -m simulations reproduce {NAME}"

_STYLES: Final = {
    BASE: Style("nearest probabilities", BLUE),
    BELIEVED: Style("S: shrunk", ORANGE, marker="s"),
    WEIGHED: Style("S W: shrunk and weighed", GREEN, marker="^"),
    DEFAULT: Style("S W X: asked as a draft does, the default", PINK, marker="v"),
    TWO_ROUNDS: Style("S W X R: two rounds", SKY, marker="D"),
}
_TICKS: Final[Mapping[float, str]] = {1_000: "1k", 5_000: "5k", 20_000: "20k", 80_000: "80k", 320_000: "320k"}
_TOLERATED: Final = 0.006


def draw(table: pd.DataFrame, folder: Path) -> list[Path]:
    """A panel for each table and epsilon."""
    figure, axes = make_figure(len(DATASETS), len(EPSILONS), (10, 24))
    for row, name in enumerate(DATASETS):
        for column, epsilon in enumerate(EPSILONS):
            here = table[(table["dataset"] == name) & (table["epsilon"] == epsilon)]
            panel = axes[row][column]
            for variant, style in _STYLES.items():
                draw_curve(panel, here[(here["variant"] == variant) & here["devices"].isin(DEVICES)], "devices", style)
            voted = here[here["variant"] == VOTED]
            panel.plot(voted["devices"], voted["accuracy"], "*", color="black", label="V: voted on")
            most = float(here["majority"].mean())
            panel.axhline(most, color="grey", linewidth=1, linestyle=":", label="majority class")
            finish_panel(panel, f"{name}, epsilon {epsilon:g}", _TICKS, logarithmic=True)
    add_legend(figure, axes.ravel(), 4)
    path = folder / f"{NAME}.svg"
    save(figure, f"{int(table['splits'].min())} splits; bands of 95 %. `{COMMAND}`", path)
    return [path]


def make_page(table: pd.DataFrame) -> str:
    splits = int(table.loc[table["variant"] == BELIEVED, "splits"].min())
    main = table[table["devices"] != VOTED_DEVICES]
    return "\n".join(
        [
            "# Honest accuracy",
            "",
            "How good a model is at a *total* epsilon, over the number of devices. Three ways make tables of the same "
            "reports of the same devices, each of which answers for a value and its class: *base* takes the nearest "
            "probabilities (`--post norm_sub`), *S* shrinks by the known noise, *S W* also weighs features that repeat "
            "each other. *S W X* is the default: other devices, asked what a draft asks that says nothing of it: bits "
            "of two values and two classes up to epsilon 1.25, and the class alone of a twentieth, beside bits of a "
            f"tenth. Drawn by `{COMMAND}`; {splits} splits of each table, devices drawn with replacement from four "
            "fifths of the people. Constants were chosen on the first four tables; what is believed of an order on "
            "car, seeds and tables that are not shown, how much features count that repeat each other also on adult, "
            "spect, seeds and such tables, and how much better a vote has to be also on spect. Australian, diabetes "
            "and skin are checks of everything.",
            "",
            "![accuracy over devices](honest-accuracy.svg)",
            "",
            "## Accuracy: base, S, S W, S W X",
            "",
            _accuracies(main),
            "",
            *wanted_of(main),
            "",
            "*Per question* is what the base reaches with 80,000 devices that answer every question with the full "
            "epsilon and lose as many times as much: published curves are drawn so.",
            "",
            _per_question(main),
            "",
            "## Devices that the base needs for the accuracy of S W and of S W X, over the devices asked",
            "",
            _ratios(main),
            "",
            f"## Where the default is more than {_TOLERATED:g} below",
            "",
            *_losses(main),
            "",
            *rounds_of(table),
            "",
            "## What train says of it",
            "",
            *_told(main),
            "",
        ]
    )


def _accuracies(table: pd.DataFrame) -> str:
    heads = [
        "table",
        "majority",
        *(f"{epsilon:g}, {devices // 1000}k" for epsilon, devices in SHOWN),
        "without privacy",
    ]
    rows = []
    for name in DATASETS:
        cells = []
        for epsilon, devices in SHOWN:
            found = [row_of(table, name, epsilon, devices, one) for one in (BASE, BELIEVED, WEIGHED, DEFAULT)]
            error = found[-1]["standard_error"]
            cells.append(" · ".join(three(one["accuracy"]) for one in found) + f" ± {three(error)}")
        first = row_of(table, name, 1.0, 80_000, BASE)
        rows.append([name, three(first["majority"]), *cells, three(first["non_private"])])
    return markdown_table(heads, rows)


def _per_question(table: pd.DataFrame) -> str:
    heads = ["table", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]
    rows = [
        [name, *(three(row_of(table, name, epsilon, 80_000, PER_QUESTION)["accuracy"]) for epsilon in EPSILONS)]
        for name in DATASETS
    ]
    return markdown_table(heads, rows)


def _ratios(table: pd.DataFrame) -> str:
    tried = [devices for devices in DEVICES if devices >= 5_000]
    heads = ["table", "epsilon", *(f"{devices // 1000}k" for devices in tried), "geometric means"]
    rows, everywhere = [], []
    for name in DATASETS:
        of_table: dict[str, list[float]] = {WEIGHED: [], DEFAULT: []}
        for epsilon in EPSILONS:
            found = {one: [ratio(table, name, epsilon, n, one) for n in tried] for one in of_table}
            cells = [" · ".join(map(times, both)) for both in zip(*found.values(), strict=True)]
            rows.append([name, f"{epsilon:g}", *cells, " · ".join(map(geometric_mean, found.values()))])
            for one, own in found.items():
                of_table[one] += own
        everywhere.append(f"{name} {' · '.join(map(geometric_mean, of_table.values()))}")
    return (
        markdown_table(heads, rows)
        + "\n\n*all*: the base does not get there with 5,120,000 devices. The means leave these out. Over all epsilons "
        + f"and numbers of devices: {', '.join(everywhere)}."
    )


def _losses(table: pd.DataFrame) -> list[str]:
    default = table[table["variant"] == DEFAULT]
    lines = []
    for column, what in (("above_base", "the base"), ("above_majority", "the majority class")):
        below = default[default[column] < -_TOLERATED]
        rows = [
            [
                row["dataset"],
                f"{row['epsilon']:g}",
                f"{row['devices']:,}",
                f"{row[column]:+.3f} ± {row[f'{column}_error']:.3f}",
                f"{row['published']:.0%}",
                "-" if pd.isna(row["published_above_majority"]) else f"{row['published_above_majority']:+.3f}",
            ]
            for row in below.to_dict("records")
        ]
        lines += [
            f"Below {what} in {len(rows)} of {len(default)} settings, *published* being the share of the models that "
            "`train` publishes without `--anyway`, and the last column how far these are above the majority class:",
            "",
        ]
        heads = ["table", "epsilon", "devices", "difference", "published", "published, above the majority class"]
        lines += [markdown_table(heads, rows) if rows else "nowhere.", ""]
    return lines[:-1]


def _told(table: pd.DataFrame) -> list[str]:
    default = table[table["variant"] == DEFAULT]
    chosen, checked = (default[default["dataset"].isin(names)]["in_range"].mean() for names in (CHOSEN, CHECKED))
    counted = (default["published"] * default["published_above_majority"].fillna(0)).to_numpy()
    expected = float(counted.min())
    worst = default.to_dict("records")[int(counted.argmin())]
    rows = [
        [name, f"{own['in_range'].mean():.0%}", f"{(own['high'] - own['low']).mean():.2f}"]
        for name in DATASETS
        for own in [default[default["dataset"] == name]]
    ]
    return [
        f"The accuracy, on the people asked, lies in the range that `train` tells in {chosen:.0%} of the runs on the "
        f"tables on which the range was chosen, and in {checked:.0%} on the others. Where a model that `train` refuses "
        f"counts as saying the majority class, the default is at worst {expected:+.3f} above it "
        f"({worst['dataset']}, epsilon {worst['epsilon']:g}, {worst['devices']:,} devices).",
        "",
        markdown_table(["table", "inside", "mean width"], rows),
    ]


FIGURE: Final = Figure(
    name=NAME,
    about="accuracy at a total epsilon over devices: the base, shrinking, weights, bits, and further rounds",
    runs=RUNS,
    of_runs="splits of each table",
    measure=partial(measure, groups=((VARIANTS, DATASETS), (VOTES, DATASETS), (ASKED, ASKED_OF))),
    draw=draw,
    make_page=make_page,
)
