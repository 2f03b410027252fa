"""``python -m simulations accuracy``: how good a model would be over mechanisms and epsilons, and how sure that is."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import pandas as pd

from protocols.document.authored import continuous_choices, discrete_choices
from protocols.shell import Groups, add_json, at_least, between, say, say_json
from simulations.commands.common import add_table_options, source_of, warn
from simulations.studies.trials import (
    ACCURACY,
    EVALUATING,
    Design,
    Journal,
    Setting,
    Study,
    Summary,
    experiment_id,
    fingerprint,
    run_study,
    run_trial,
    run_trials,
    summarise,
    summarise_study,
)
from simulations.tables.sources import Source

DESCRIPTION: Final = """\
Simulate a campaign many times on a table and score the models on people who were held out.

Prints for every mechanism and epsilon the total loss of a device, the mean accuracy with its standard error, and beside
them the accuracy of always saying the most frequent class and of the same model learned without any privacy. With
--evaluating a share of the devices is not learned from and tells how good the model is: prints the accuracy of what is
published with that round and without it, the accuracy that was told, and how often its interval held the true one. With
--json one object: the settings, the seeds, every trial and the summary. Progress and notes go to standard error."""


def add_command(groups: Groups) -> None:
    parser = groups.add_parser(
        "accuracy",
        help="simulate a campaign on a table; prints accuracies with standard errors",
        description=DESCRIPTION,
        examples=(
            "--data people.csv --label income --epsilon 0.5 1 2 --mechanism de oue",
            "--data people.csv --schema draft.toml --devices 100000 --evaluating --json",
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
    tried.add_argument(
        "--evaluating",
        type=between(0, 1),
        nargs="?",
        const=EVALUATING,
        metavar="SHARE",
        help=f"of one combination: this share of --devices tells how good the model is ({EVALUATING:g})",
    )
    how = parser.add_argument_group("how")
    how.add_argument("--devices", type=at_least(10), metavar="N", help="default: one for each training person")
    how.add_argument("--repeats", type=at_least(2), default=20, metavar="R", help="default: %(default)s")
    how.add_argument("--seed", type=at_least(0), default=0, help="of the first trial; the next ones count on")
    how.add_argument("--workers", type=at_least(1), metavar="N", help="processes (default: one for each core)")
    how.add_argument("--journal", type=Path, metavar="FILE", help="keep finished trials there, and go on from it")
    add_json(parser)


def _run(options: argparse.Namespace) -> None:
    many = options.mechanism or options.continuous or len(options.epsilon or ()) > 1
    if options.evaluating is not None and (many or options.devices is None):
        raise argparse.ArgumentTypeError(
            "--evaluating goes with --devices and one --epsilon, and without --mechanism and --continuous"
        )
    source = source_of(options)
    for note in source.notes:
        warn(f"note: {note}")
    seeds = range(options.seed, options.seed + options.repeats)
    if options.evaluating is not None:
        _evaluate(options, source, seeds)
        return
    privacy = source.draft["privacy"]
    settings = [
        Setting(mechanism, epsilon, continuous=continuous)
        for mechanism, continuous, epsilon in product(
            options.mechanism or [privacy.get("discrete") or "auto"],
            options.continuous or [privacy.get("continuous") or "auto"],
            options.epsilon or [privacy["epsilon"]],
        )
    ]
    design = Design(options.devices)
    journal = Journal(options.journal, fingerprint(source, settings, design))
    rows = run_trials(partial(run_trial, source, settings, design), seeds, journal, workers=options.workers)
    summary = summarise(rows)
    if options.json:
        found = {"summary": summary.to_dict("records"), "trials": rows}
        say_json({"table": source.name, "train_fraction": design.train_fraction, "seeds": list(seeds), **found})
    else:
        _print(summary)


def _evaluate(options: argparse.Namespace, source: Source, seeds: range) -> None:
    """Learn, evaluate and publish in every trial."""
    if options.epsilon:
        source = source.with_epsilon(options.epsilon[0])
    epsilon: float = source.draft["privacy"]["epsilon"]
    study = Study(options.devices, options.evaluating)
    journal = Journal(options.journal, experiment_id(source.people, "evaluation", source.draft, asdict(study)))
    rows = run_trials(partial(run_study, source, study), seeds, journal, workers=options.workers)
    summary = summarise_study(rows)
    if options.json:
        seen = {"table": source.name, "epsilon": epsilon, "seeds": list(seeds)}
        say_json({**seen, "summary": summary.to_json(), "trials": rows})
    else:
        _print_study(summary, study, epsilon)


def _print(summary: pd.DataFrame) -> None:
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


def _print_study(summary: Summary, study: Study, epsilon: float) -> None:
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
