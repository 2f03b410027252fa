"""``python -m simulations reproduce FIGURE``: run a published experiment, write its table, plots and page."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from simulations.commands import Groups, at_least, say, say_json
from simulations.figures import continuous, continuous_page, discrete, discrete_page
from simulations.figures.parallel import run_all

DESCRIPTION: Final = """\
Reproduce a figure of the papers on the tables in the folder LDP_BAYES_DATA.

Writes a CSV table, plots, and a page that compares what the paper says with what is measured. Prints the paths of the
files, with --json as a list. Progress goes to standard error."""


def add_command(groups: Groups) -> None:
    parser = groups.add_parser(
        "reproduce",
        help="reproduce a figure of the papers; writes a table, plots and a page, and prints their paths",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("figure", choices=FIGURES, metavar="FIGURE", help=f"one of {', '.join(FIGURES)}")
    parser.add_argument("--output", type=Path, default=Path("docs/figures"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--runs", type=at_least(2), default=continuous.RUNS, metavar="R", help="default: %(default)s")
    parser.add_argument("--workers", type=at_least(1), metavar="N", help="processes (default: one for each core)")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="keep finished trials there, and go on from it")
    parser.add_argument("--json", action="store_true", help="print the paths as a JSON list")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(command=_reproduce)


def _reproduce(options: argparse.Namespace) -> None:
    paths = [str(path) for path in FIGURES[options.figure](options)]
    if options.json:
        say_json(paths)
        return
    for path in paths:
        say(path)


def _continuous(options: argparse.Namespace) -> list[Path]:
    rows = run_all(
        continuous.run_once,
        [(dataset, seed) for dataset in continuous.DATASETS for seed in range(options.runs)],
        description=options.figure,
        workers=options.workers,
        progress=not options.quiet,
    )
    return continuous_page.write(continuous.summarise(rows), options.output)


def _discrete(options: argparse.Namespace) -> list[Path]:
    summary = discrete.run(options.runs, journal=options.journal, workers=options.workers, progress=not options.quiet)
    return discrete_page.write(summary, options.output)


FIGURES: Final[Mapping[str, Callable[[argparse.Namespace], list[Path]]]] = {
    discrete_page.NAME: _discrete,
    continuous_page.NAME: _continuous,
}
