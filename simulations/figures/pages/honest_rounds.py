"""What the page of honest accuracy says of bits, of a second round, and of an evaluation round."""

from __future__ import annotations

from typing import Final

import pandas as pd

from simulations.figures.honest_accuracy import BASE, DATASETS, DEFAULT, EPSILONS, WEIGHED
from simulations.figures.honest_rounds import ASKED_DEVICES, ASKED_OF, TWO_ROUNDS, VOTED, VOTED_DEVICES, VOTES_CAST
from simulations.figures.pages.comparisons import markdown_table
from simulations.figures.pages.ratios import ratio, times
from simulations.figures.pages.settings import row_of, three
from simulations.studies.evaluating import VOTING

_LEAST_GAIN: Final = 1.0
"""Standard errors of what was voted on, that it may be below the better of the others."""


def rounds_of(table: pd.DataFrame) -> list[str]:
    """The lines of the section."""
    names = (DEFAULT, TWO_ROUNDS, VOTED)
    default, asked, voted = (int(table.loc[table["variant"] == one, "splits"].max()) for one in names)
    below = [name for name in DATASETS for epsilon in EPSILONS if epsilon == 1.0 and _below(table, name, epsilon)]
    held = "on every table" if not below else f"but on {', '.join(below)}"
    return [
        "## A second round, and a vote",
        "",
        f"*R* learns in two rounds. How far S W, S W X ({default} splits) and S W X R ({asked}) are above the base of "
        "the same splits:",
        "",
        _asked(table),
        "",
        "Devices that the base needs for the accuracy of S W, S W X and S W X R, over the devices asked:",
        "",
        _saved(table),
        "",
        f"*V* learns from {1 - VOTING:.0%} of {VOTED_DEVICES:,} devices and lets the others vote; {voted} splits, on "
        f"each the mean of {VOTES_CAST} votes. Base, S W X of all the devices, the same ones, and V with its standard "
        f"error; at epsilon 1 it is as good as the better of the two within one of these {held}.",
        "",
        _voted(table),
    ]


def _asked(table: pd.DataFrame) -> str:
    rows = []
    for name in ASKED_OF:
        for epsilon in EPSILONS:
            cells = [
                " · ".join(
                    f"{row_of(table, name, epsilon, devices, one)['above_base']:+.3f}"
                    for one in (WEIGHED, DEFAULT, TWO_ROUNDS)
                )
                for devices in ASKED_DEVICES
            ]
            rows.append([name, f"{epsilon:g}", *cells])
    return markdown_table(["table", "epsilon", *(f"{devices // 1000}k" for devices in ASKED_DEVICES)], rows)


def _saved(table: pd.DataFrame) -> str:
    main = table[table["devices"] != VOTED_DEVICES]
    rows = []
    for name in ASKED_OF:
        for epsilon in EPSILONS:
            cells = [
                " · ".join(times(ratio(main, name, epsilon, devices, one)) for one in (WEIGHED, DEFAULT, TWO_ROUNDS))
                for devices in ASKED_DEVICES
            ]
            rows.append([name, f"{epsilon:g}", *cells])
    return markdown_table(["table", "epsilon", *(f"{devices // 1000}k" for devices in ASKED_DEVICES)], rows)


def _voted(table: pd.DataFrame) -> str:
    rows = []
    for name in DATASETS:
        cells = []
        for epsilon in EPSILONS:
            found = [_accuracy(table, name, epsilon, VOTED_DEVICES, one) for one in (BASE, DEFAULT, VOTED)]
            cells.append(f"{' · '.join(map(three, found))} ± {three(_error(table, name, epsilon))}")
        rows.append([name, *cells])
    return markdown_table(["table", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)], rows)


def _below(table: pd.DataFrame, name: str, epsilon: float) -> bool:
    better = max(_accuracy(table, name, epsilon, VOTED_DEVICES, one) for one in (BASE, DEFAULT))
    error = _LEAST_GAIN * _error(table, name, epsilon)
    return _accuracy(table, name, epsilon, VOTED_DEVICES, VOTED) < better - error


def _accuracy(table: pd.DataFrame, name: str, epsilon: float, devices: int, variant: str) -> float:
    return float(row_of(table, name, epsilon, devices, variant)["accuracy"])


def _error(table: pd.DataFrame, name: str, epsilon: float) -> float:
    return float(row_of(table, name, epsilon, VOTED_DEVICES, VOTED)["standard_error"])
