"""``python -m simulations reproduce FIGURE``: run a published experiment, write its table, plots and page."""

from __future__ import annotations

import argparse
from pathlib import Path

from simulations.commands import Groups, at_least, say
from simulations.figures import continuous, continuous_page
from simulations.figures.parallel import run_all

FIGURES = (continuous_page.NAME,)


def add_command(groups: Groups) -> None:
    text = "reproduce a figure of the papers: writes a CSV table, plots and a page, and prints their paths"
    parser = groups.add_parser("reproduce", help=text, description=text)
    parser.add_argument("figure", choices=FIGURES, metavar="FIGURE", help=f"one of {', '.join(FIGURES)}")
    parser.add_argument("--output", type=Path, default=Path("docs/figures"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--runs", type=at_least(2), default=continuous.RUNS, metavar="R", help="default: %(default)s")
    parser.add_argument("--workers", type=at_least(1), metavar="N", help="processes (default: one for each core)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(command=_reproduce)


def _reproduce(options: argparse.Namespace) -> None:
    rows = run_all(
        continuous.run_once,
        [(dataset, seed) for dataset in continuous.DATASETS for seed in range(options.runs)],
        description=options.figure,
        workers=options.workers,
        progress=not options.quiet,
    )
    for path in continuous_page.write(continuous.summarise(rows), options.output):
        say(str(path))
