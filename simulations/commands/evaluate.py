"""``python -m simulations evaluate``: does an evaluation round pay, and how well would the accuracy be known?"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Final

from simulations.commands.common import (
    Groups,
    add_json,
    add_table_options,
    at_least,
    between,
    give_json,
    say,
    source_of,
    warn,
)
from simulations.studies.evaluating import EVALUATING, Study, Summary, run_study, study_id, summarise_study
from simulations.studies.journal import Journal
from simulations.studies.workers import run_trials

DESCRIPTION: Final = """\
Simulate the whole flow on a table: most devices are learned from, the others tell how good the model is, and it is
published with that, and with another threshold where that is clearly better.

Prints the mean accuracy of what is published, on people who took no part, beside that of publishing without the round
what all devices were learned from; the accuracy that was told, how wide its interval is and how often it holds the true
one; and how often the threshold was moved. With --json one object with the same figures and every trial."""


def add_command(groups: Groups) -> None:
    parser = groups.add_parser(
        "evaluate",
        help="learn, evaluate, publish: whether the round pays",
        description=DESCRIPTION,
        examples=("--data people.csv --label income --devices 100000",),
    )
    parser.set_defaults(command=_run)
    add_table_options(parser)
    parser.add_argument("--devices", type=at_least(10), required=True, metavar="N", help="in all rounds together")
    parser.add_argument("--epsilon", type=between(0, 64), metavar="E", help="total loss of a device, not the draft's")
    parser.add_argument(
        "--evaluating",
        type=between(0, 1),
        default=EVALUATING,
        metavar="SHARE",
        help="of the devices (default: %(default)s)",
    )
    parser.add_argument("--repeats", type=at_least(2), default=20, metavar="R", help="default: %(default)s")
    parser.add_argument("--seed", type=at_least(0), default=0, help="of the first trial; the next ones count on")
    parser.add_argument("--workers", type=at_least(1), metavar="N", help="processes (default: one for each core)")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="keep finished trials there, and go on from it")
    add_json(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _run(options: argparse.Namespace) -> None:
    source = source_of(options)
    if options.epsilon is not None:
        source = source.with_epsilon(options.epsilon)
    for note in source.notes:
        warn(f"note: {note}")
    study = Study(options.devices, options.evaluating)
    rows = run_trials(
        partial(run_study, source, study),
        range(options.seed, options.seed + options.repeats),
        Journal(options.journal, study_id(source, study)),
        workers=options.workers,
        progress=not options.quiet,
    )
    summary = summarise_study(rows)
    if options.json:
        epsilon = source.draft["privacy"]["epsilon"]
        give_json({"table": source.name, "epsilon": epsilon, **summary.to_json(), "rows": rows}, options.json)
    else:
        _print(summary, study, source.draft["privacy"]["epsilon"])


def _print(summary: Summary, study: Study, epsilon: float) -> None:
    evaluating = round(study.devices * study.evaluating)
    say(
        f"{study.devices:,} devices at a total epsilon of {epsilon:g}, {evaluating:,} of them evaluate; "
        f"{summary.trials} trials"
    )
    say()
    say(f"  {summary.published:.4f}  published with the round")
    say(f"  {summary.alone:.4f}  published without, learned from all devices")
    say(f"  {summary.majority:.4f}  the most frequent class")
    say(f"  {summary.gain:+.4f}  +- {summary.gain_error:.4f}  the round's gain")
    say()
    say(
        f"told: {summary.told:.4f}, in an interval {summary.width:.4f} wide, which held the true one in "
        f"{summary.covered:.0%}"
    )
    say(f"the threshold was moved in {summary.moved:.0%}")
    say(summary.verdict)
