"""``python -m simulations accuracy``: how good a model would be over mechanisms and epsilons, and how sure that is."""

from __future__ import annotations

import argparse
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import pandas as pd

from ldp_aggregator.estimation.simplex import POSTERIOR, TRAINING_MODES
from protocols.document.authored import ANSWERS, continuous_choices, discrete_choices
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
from simulations.studies.journal import Journal
from simulations.studies.plots import plot_accuracy
from simulations.studies.trials import ACCURACY, Design, Setting, fingerprint, run_trial, summarise
from simulations.studies.workers import run_trials

DESCRIPTION: Final = """\
Simulate a campaign many times on a table and score the models on people who were held out.

Prints for every mechanism and epsilon the total loss of a device, the mean accuracy with its standard error, and beside
them the accuracy of always saying the most frequent class and of the same model learned without any privacy. With
--json one object: the settings, the seeds, every trial and the summary. Progress and notes go to standard error."""

LEAST_TRIALS: Final = 2


def add_command(groups: Groups) -> None:
    parser = groups.add_parser(
        "accuracy",
        help="simulate a campaign on a table; prints accuracies with standard errors",
        description=DESCRIPTION,
        examples=(
            "--data people.csv --label income --epsilon 0.5 1 2 --mechanism de oue --plot accuracy.svg",
            "--data people.csv --schema draft.toml --json accuracy.json",
        ),
    )
    parser.set_defaults(command=_run)
    add_table_options(parser)
    tried = parser.add_argument_group("what is tried (every combination)")
    tried.add_argument(
        "--epsilon", type=between(0, 1000), nargs="+", metavar="E", help="total loss of a device (default: the draft's)"
    )
    tried.add_argument(
        "--mechanism", choices=discrete_choices(), nargs="+", metavar="M", help=f"of {', '.join(discrete_choices())}"
    )
    tried.add_argument(
        "--continuous", choices=continuous_choices(), nargs="+", metavar="M", help="of Gaussian features"
    )
    tried.add_argument("--answers", choices=ANSWERS, help="one question a device, or all (default: the draft's)")
    tried.add_argument(
        "--per-question-epsilon",
        action="store_true",
        help="for comparison with published figures: a device answers every question with the full epsilon, and its "
        "total loss is (questions) x epsilon",
    )
    how = parser.add_argument_group("how")
    how.add_argument("--repeats", type=at_least(LEAST_TRIALS), default=20, metavar="R", help="default: %(default)s")
    how.add_argument("--devices", type=at_least(1), metavar="N", help="default: one for each training person")
    how.add_argument("--train-fraction", type=between(0, 1), default=0.8, metavar="F", help="default: %(default)s")
    how.add_argument("--post", choices=TRAINING_MODES, default=POSTERIOR, help="default: %(default)s")
    how.add_argument("--fidelity", choices=("vector", "counts"), default="vector", help="default: %(default)s")
    how.add_argument("--seed", type=at_least(0), default=0, help="of the first trial; the next ones count on")
    how.add_argument("--workers", type=at_least(1), metavar="N", help="processes (default: one for each core)")
    how.add_argument("--journal", type=Path, metavar="FILE", help="keep finished trials there, and go on from it")
    add_json(parser)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw accuracy over epsilon (.png, .svg, .pdf)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _run(options: argparse.Namespace) -> None:
    source = source_of(options)
    for note in source.notes:
        warn(f"note: {note}")
    privacy = source.draft["privacy"]
    settings = [
        Setting(
            mechanism,
            epsilon,
            answers=options.answers or privacy.get("answers") or "one",
            per_question=options.per_question_epsilon,
            continuous=continuous,
        )
        for mechanism, continuous, epsilon in product(
            options.mechanism or [privacy.get("discrete") or "auto"],
            options.continuous or [privacy.get("continuous") or "auto"],
            options.epsilon or [privacy["epsilon"]],
        )
    ]
    design = Design(options.devices, options.train_fraction, options.post, options.fidelity)
    seeds = range(options.seed, options.seed + options.repeats)
    journal = Journal(options.journal, fingerprint(source, settings, design))
    trial = partial(run_trial, source, settings, design)
    rows = run_trials(trial, seeds, journal, workers=options.workers, progress=not options.quiet)
    summary = summarise(rows)
    if options.plot:
        plot_accuracy(summary, _caption(source.name, summary), options.plot)
    if options.json:
        give_json(_document(source.name, summary, rows, seeds, options), options.json)
    else:
        _print(summary, options)


def _document(
    name: str, summary: pd.DataFrame, rows: list[dict[str, Any]], seeds: range, options: argparse.Namespace
) -> dict[str, Any]:
    return {
        "table": name,
        "train_fraction": options.train_fraction,
        "post": options.post,
        "fidelity": options.fidelity,
        "seeds": list(seeds),
        "summary": summary.to_dict("records"),
        "trials": rows,
    }


def _print(summary: pd.DataFrame, options: argparse.Namespace) -> None:
    if options.per_question_epsilon:
        say("Every device answers every question with the full epsilon: its total loss is (questions) x epsilon.")
    heads = f"{'mechanism':10} {'epsilon':>8} {'total loss':>10} {'accuracy':>9} {'+-':>6}"
    say(f"{heads} {'majority':>9} {'no privacy':>10}")
    for row in summary.to_dict("records"):
        say(
            f"{row['mechanism']:10} {row['epsilon']:8g} {row['total_epsilon']:10g} {row[ACCURACY]:9.4f} "
            f"{row['standard_error']:6.4f} {row['majority']:9.4f} {row['non_private']:10.4f}"
        )
    first = summary.iloc[0]
    asked = "every question" if first["answers"] == "all" else "one question"
    say(f"{first['trials']} trials, {first['devices']:,} devices each, which answer {asked}")


def _caption(name: str, summary: pd.DataFrame) -> str:
    first = summary.iloc[0]
    asked = "every question" if first["answers"] == "all" else "one question"
    totals = ", ".join(f"{total:g}" for total in sorted(set(summary["total_epsilon"])))
    return (
        f"{Path(name).name}: {first['trials']} trials, {first['devices']:,} devices, {asked} each; "
        f"total loss of a device {totals}. Bands: 2 standard errors."
    )
