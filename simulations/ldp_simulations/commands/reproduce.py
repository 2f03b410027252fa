"""``ldp-simulate reproduce FIGURE``: run a published experiment, write its table, plots and page."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ldp_protocols.command_line import Groups, at_least, between, say, say_json
from ldp_simulations.figures.figure import Execution, Figure
from ldp_simulations.figures.honest_accuracy import HONEST_ACCURACY
from ldp_simulations.figures.ldp_naive_bayes import DISCRETE, NUMERIC
from ldp_simulations.figures.series import SERIES
from ldp_simulations.figures.trainers import CENTRAL, FEDERATED

FIGURES: Final[Mapping[str, Figure]] = {
    figure.name: figure for figure in (DISCRETE, NUMERIC, CENTRAL, FEDERATED, HONEST_ACCURACY, SERIES)
}
"""Experiments that reproduce the papers' figures: each writes a table, plots and a page."""

DESCRIPTION: Final = """\
Reproduce figures of the papers on the tables in the folder LDP_BAYES_DATA.

Writes a CSV table, plots, and the tables of a page, whose text stays. Prints the paths of the files, with --json as a
list. Progress goes to standard error. With --only or --epsilon a part is measured, and nothing written: prints its rows
as CSV, with what the table in DIR has for each, or as JSON.

figures:
""" + "\n".join(f"  {name:28}{figure.about}" for name, figure in FIGURES.items())


def add_reproduce(groups: Groups, text: str) -> None:
    parser = groups.add_parser(
        "reproduce",
        help=text,
        description=DESCRIPTION,
        examples=(
            f"{DISCRETE.name} --output figures",
            f"{DISCRETE.name} --only mushroom --epsilon 0.5 --runs 5",
        ),
    )
    defaults = ", ".join(f"{figure.runs} {figure.of_runs} for {name}" for name, figure in FIGURES.items())
    parser.add_argument("figure", choices=FIGURES, metavar="FIGURE", help=f"one of {', '.join(FIGURES)}")
    parser.add_argument("--output", type=Path, default=Path("docs/figures"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--runs", type=at_least(1), metavar="R", help=f"default: {defaults}")
    parser.add_argument("--only", metavar="TABLE", help="measure one of its tables of people alone")
    parser.add_argument("--epsilon", type=between(0, 1000), metavar="E", help="measure one of its epsilons alone")
    parser.add_argument("--workers", type=at_least(1), metavar="N", help="processes (default: one for each core)")
    parser.add_argument(
        "--journal", type=Path, metavar="FILE", help="keep finished trials there, and go on from it with the same code"
    )
    parser.add_argument(
        "--peer",
        metavar="PYTHON",
        help="an interpreter with diffprivlib (python -m venv F; F/bin/pip install diffprivlib 'scikit-learn<1.7'); "
        "its GaussianNB takes part in the same splits",
    )
    parser.add_argument("--redraw", action="store_true", help="measure nothing: plots and page from the table in DIR")
    parser.add_argument("--json", action="store_true", help="print the paths as a JSON list")
    parser.set_defaults(command=_reproduce)


def _reproduce(options: argparse.Namespace) -> None:
    figure = FIGURES[options.figure]
    execution = Execution(
        options.runs or figure.runs, options.journal, options.workers, options.peer, options.only, options.epsilon
    )
    if options.redraw and execution.partial:
        raise argparse.ArgumentTypeError("--redraw makes the whole figure; leave --only and --epsilon out")
    if execution.partial:
        rows = figure.part(execution, options.output)
        if options.json:
            say_json(rows.astype(object).where(rows.notna(), None).to_dict("records"))
        else:
            say(rows.to_csv(index=False).rstrip())
        return
    written = figure.redraw(options.output) if options.redraw else figure.run(execution, options.output)
    paths = [str(path) for path in written]
    if options.json:
        say_json(paths)
    else:
        say("\n".join(paths))
