"""``ldp-simulate series``: one loss for life over many windows, and what each way to spend it is worth."""

from __future__ import annotations

import argparse
import os
import platform
from functools import partial
from typing import Final

import numpy as np
import pandas as pd

from ldp_protocols.command_line import Groups, add_json, at_least, between, say, say_json
from ldp_simulations.studies.series import CELLS, CHANGES, run_series, summarise
from ldp_simulations.studies.trials import Journal, run_trials

DESCRIPTION: Final = """\
Ask a simulated population of devices over many windows, in every way at the same claimed loss for life: every window
with a part of it, lasting answers that are randomised again, or one answer by lot, as it is, filtered and smoothed.

Prints for every population and way the loss as it truly is (of lasting answers at least), the root mean squared error
of a cell's frequency in the later three quarters of the windows with its standard error over the runs, and how many of
the 95 % intervals hold. Filtered is what is known of each window from those up to it. With --json one object with the
same figures."""


def add_series(groups: Groups, text: str) -> None:
    parser = groups.add_parser(
        "series", help=text, description=DESCRIPTION, examples=("--windows 52 --epsilon 1 --population slow",)
    )
    parser.set_defaults(command=_run)
    parser.add_argument("--windows", type=at_least(4), default=52, metavar="T", help="default: %(default)s")
    parser.add_argument("--epsilon", type=between(0, 64), default=1.0, metavar="E", help="default: %(default)g")
    parser.add_argument("--devices", type=at_least(1), default=100_000, metavar="N", help="default: %(default)s")
    parser.add_argument("--population", choices=CHANGES, metavar="P", help=f"one of {', '.join(CHANGES)}, not all")
    parser.add_argument("--runs", type=at_least(2), default=4, metavar="R", help="populations (default: %(default)s)")
    parser.add_argument("--seed", type=at_least(0), default=0, metavar="S", help="of the first run (default: 0)")
    add_json(parser)


def _run(options: argparse.Namespace) -> None:
    rows, seeds = [], range(options.seed, options.seed + options.runs)
    for population in [options.population] if options.population else CHANGES:
        trial = partial(run_series, population, options.windows, (options.epsilon,), options.devices)
        rows += run_trials(trial, seeds, Journal(None, ""), description=population)
    summary = summarise(rows)
    machine = (
        f"Python {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} processors, {platform.machine()}"
    )
    if options.json:
        cells = summary.astype(object).where(summary.notna(), None).to_dict("records")
        say_json({"devices": options.devices, "cells": CELLS, "seed": options.seed, "machine": machine, "ways": cells})
    else:
        _print(summary, options.devices)
        say(machine)


def _print(summary: pd.DataFrame, devices: int) -> None:
    first = summary.iloc[0]
    say(
        f"{devices:,} devices, {first['windows']} windows, {CELLS} cells, a claimed loss of {first['epsilon']:g} for "
        f"life; {first['runs']} runs"
    )
    say()
    say(f"{'population':10} {'way':23} {'true loss':>9} {'error':>8} {'+-':>7} {'covered':>8}")
    for row in summary.to_dict("records"):
        covered = "" if pd.isna(row["covered"]) else f"{row['covered']:.1%}"
        say(
            f"{row['population']:10} {row['way']:23} {row['loss']:9.4g} {row['error']:8.4f} "
            f"{row['standard_error']:7.4f} {covered:>8}"
        )
    say()
