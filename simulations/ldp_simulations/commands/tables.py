"""The commands that start from a table of people: ``draft`` derives a campaign from it, with loud notes on what it took
from the data; in ``population`` its people answer one, each through the real client over HTTP; and ``accuracy``
simulates it many times: how good a model would be over mechanisms and epsilons, and how sure that is.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import pandas as pd

from ldp_aggregator.cli.common import add_reading, reading_of
from ldp_aggregator.trainers.reading import TableError
from ldp_aggregator.trainers.table_drafts import DEFAULT_BINS, draft_from_table
from ldp_protocols.command_line import Groups, add_json, at_least, between, say, say_json, warn
from ldp_protocols.document.authored import continuous_choices, discrete_choices
from ldp_simulations.devices import Behaviour, Network
from ldp_simulations.experiment import Aggregator, Plan, Result, make_token, run, temporary_aggregator
from ldp_simulations.studies.shares import ERROR, run_shares, summarise_shares
from ldp_simulations.studies.trials import (
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
from ldp_simulations.tables import TABLE_HELP, Source, read_text_table, source_with_schema, source_without_schema

DERIVED_EPSILON: Final = 1.0
"""The total loss in a draft that is derived from a table, unless a flag says otherwise."""


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """The people and the campaign: ``--data`` with ``--schema`` or ``--label``; see :func:`source_of`."""
    table = parser.add_argument_group("people and campaign")
    table.add_argument("--data", required=True, metavar="TABLE", help=TABLE_HELP)
    table.add_argument("--schema", type=Path, metavar="DRAFT", help="the campaign's draft, .json or .toml")
    table.add_argument("--label", metavar="COLUMN", help="instead of --schema: learn this column, derive the draft")
    add_reading(parser)


def source_of(options: argparse.Namespace) -> Source:
    """The people and the draft that :func:`add_table_options` names. Raises TableError or DraftError."""
    if options.schema is not None and options.label is not None:
        raise argparse.ArgumentTypeError("give either --schema DRAFT or --label COLUMN")
    if options.schema is None:
        return source_without_schema(options.data, options.label, epsilon=DERIVED_EPSILON, reading=reading_of(options))
    return source_with_schema(options.data, options.schema, reading_of(options))


ABOUT_DRAFT: Final = """\
Derive a campaign's draft from a table, as a start for experiments.

Prints the draft (JSON) on standard output, and on standard error a note for every value list and every bound: they were
read off the data, a campaign publishes them, and they must be replaced by public knowledge before anyone is asked. The
ordered columns of a Parquet file (Categoricals of pandas) give their values in their order. With --json one
object holds the draft, the notes and the columns that were left out."""


def add_draft(groups: Groups, text: str) -> None:
    parser = groups.add_parser(
        "draft", help=text, description=ABOUT_DRAFT, examples=("--data people.csv --label income --output draft.json",)
    )
    parser.set_defaults(command=_draft)
    parser.add_argument("--data", required=True, metavar="TABLE", help=TABLE_HELP)
    parser.add_argument("--label", metavar="COLUMN", help="the column to learn (default: statistics of all columns)")
    parser.add_argument(
        "--epsilon", type=between(0, 64), default=DERIVED_EPSILON, metavar="E", help="default: %(default)g"
    )
    parser.add_argument(
        "--bins", type=at_least(2), default=DEFAULT_BINS, metavar="N", help="of every number (default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the draft there instead of printing it")
    parser.add_argument(
        "--json", action="store_true", help="print one object with the draft, notes and left-out columns"
    )
    add_reading(parser)


def _draft(options: argparse.Namespace) -> None:
    table = read_text_table(options.data, options.label or "", reading_of(options))
    derived = draft_from_table(table, options.label, source=options.data, epsilon=options.epsilon, bins=options.bins)
    if options.output:
        try:
            options.output.write_text(json.dumps(derived.draft, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise TableError(f"{options.output}: cannot be written ({error.strerror})") from None
    if options.json:
        say_json({"draft": derived.draft, "notes": derived.notes, "left_out": derived.left_out})
        return
    if not options.output:
        say_json(derived.draft)
    warn("BEFORE ANYONE IS ASKED, replace by public knowledge what was read off the data:")
    for note in derived.notes:
        warn(f"  {note}")


TOKEN_VARIABLE: Final = "LDP_BAYES_ADMIN_TOKEN"  # noqa: S105 - the name of a variable, not a token

ABOUT_POPULATION: Final = """\
Let the people of a table answer a campaign, each on a device of its own: the real client, over real HTTP, with its
storage in memory. The aggregator is one that is running (--url), or one started for this alone; on one that is running
nothing is published but the campaign. Answers may get lost, and some of the devices may lie.

Prints devices, reports accepted, retries, bytes per report, seconds, and accuracies on people who were held out: of
always saying the most frequent class, of the model learned from the reports, and of the same model learned without any
privacy; without a label the errors of what was estimated, beside those to be expected. With --json one object with the
same figures. Progress and notes go to standard error."""


def add_population(groups: Groups, text: str) -> None:
    parser = groups.add_parser(
        "population",
        help=text,
        description=ABOUT_POPULATION,
        examples=(
            "--data people.csv --label income --devices 2000",
            "--data people.csv --schema draft.toml --liars 0.05 --json",
        ),
    )
    parser.set_defaults(command=_population)
    add_table_options(parser)
    parser.add_argument(
        "--epsilon", type=between(0, 64), metavar="E", help="total loss of a device, instead of the draft's"
    )
    devices = parser.add_argument_group("devices")
    devices.add_argument(
        "--devices", type=at_least(1), metavar="N", help="default: one for each person; more are drawn with replacement"
    )
    devices.add_argument("--seed", type=at_least(0), help="makes split, people and devices' coins repeatable")
    devices.add_argument(
        "--lost-answers", type=between(0, 1), default=0.0, metavar="F", help="share of answers that get lost"
    )
    devices.add_argument("--liars", type=between(0, 1), metavar="F", help="share of devices that make reports up")
    devices.add_argument(
        "--target",
        metavar="CLASS",
        help="what moves the model furthest to this class is made up (default: the answer of a random person)",
    )
    server = parser.add_argument_group("aggregator (default: one of its own, gone afterwards)")
    server.add_argument("--url", help="public address of a running aggregator")
    server.add_argument("--admin-url", default="http://127.0.0.1:8081", help="its admin address (default: %(default)s)")
    server.add_argument(
        "--aggregator-data",
        type=Path,
        metavar="DIR",
        help=f"its data folder, to make a token in (default: an admin token is in ${TOKEN_VARIABLE})",
    )
    add_json(parser)


def _population(options: argparse.Namespace) -> None:
    source = source_of(options)
    if options.epsilon is not None:
        source = source.with_epsilon(options.epsilon)
    plan = Plan(options.devices, options.seed, _behaviour(options, source))
    for note in source.notes:
        warn(f"note: {note}")
    network = Network(lost_answers=options.lost_answers, seed=options.seed)
    with _aggregator(options) as aggregator:
        result = run(aggregator, source, plan, network)
    if options.json:
        say_json(result.to_json())
    else:
        _print_population(result)


def _behaviour(options: argparse.Namespace, source: Source) -> Behaviour:
    classes = (source.draft.get("label") or {"classes": []})["classes"]
    if options.target is None:
        return Behaviour(options.liars or 0.0)
    if options.liars is None:
        raise argparse.ArgumentTypeError("--target goes with --liars")
    if options.target not in classes:
        rule = f"must be one of {', '.join(classes)}, not {options.target!r}" if classes else "is a class of a label"
        raise argparse.ArgumentTypeError(f"--target {rule}")
    return Behaviour(options.liars, classes.index(options.target))


def _aggregator(options: argparse.Namespace) -> AbstractContextManager[Aggregator]:
    if options.url is None:
        return temporary_aggregator()
    token = os.environ.get(TOKEN_VARIABLE)
    if options.aggregator_data is not None:
        token = make_token(options.aggregator_data, "admin")
    if token is None:
        raise argparse.ArgumentTypeError(f"--url needs --aggregator-data or {TOKEN_VARIABLE}")
    return nullcontext(
        Aggregator(options.url.rstrip("/"), options.admin_url.rstrip("/"), token, data=options.aggregator_data)
    )


def _print_population(result: Result) -> None:
    delivery, scores = result.delivery, result.accuracies
    drawn = f", drawn with replacement from {result.people} people" if result.resampled else ""
    say(f"devices           {delivery.devices}{drawn}")
    if delivery.liars:
        say(f"of them lying     {delivery.liars}")
    say(f"reports accepted  {delivery.accepted}")
    for code, number in delivery.refused.items():
        say(f"reports refused   {number} ({code})")
    say(f"retries           {delivery.retries}")
    say(f"bytes per report  {delivery.bytes_per_report:.1f}")
    say(f"seconds           {delivery.seconds:.1f}")
    say(f"loss of a device  at most {result.campaign.realised_epsilon:.6g} in total")
    if scores is None and result.statistics is None:
        say("errors            not looked at; they take --aggregator-data, or ldp-aggregator estimates")
    if scores is None:
        say_errors(result.statistics or ())
        return
    say(f"accuracy on {len(result.held_out)} people held out")
    say(f"  majority class  {scores.majority:.3f}")
    if scores.private is None:
        say("  this model      not looked at; it takes --aggregator-data, or ldp-aggregator train")
    else:
        say(f"  this model      {scores.private:.3f}")
    say(f"  without privacy {scores.non_private:.3f}")
    if shares := ", ".join(f"{name} {share:.3f}" for name, share in result.predicted_shares().items()):
        say(f"  it predicts     {shares}")


def say_errors(rows: Sequence[Mapping[str, Any]]) -> None:
    """The errors of statistics as a table: root mean square over a question's cells, in hundredths."""
    say(f"{'error in points (of the range, where no share is asked)':56} {'error':>7} {'expected':>8} {'inside':>7}")
    for row in rows:
        name = " and ".join(filter(None, (row["feature"], row["other"]))) + (
            "" if row["is_share"] else f" ({row['kind']})"
        )
        figures = f"{100 * row['error']:7.2f} {100 * row['expected']:8.2f} {row['covered']:7.0%}"
        say(f"  {name[:54]:54} {figures}")


ABOUT_ACCURACY: Final = """\
Simulate a campaign many times on a table and score the models on people who were held out.

Prints for every mechanism and epsilon the total loss of a device, the mean accuracy with its standard error, and beside
them the accuracy of always saying the most frequent class and of the same model learned without any privacy. Without a
label it is the error of shares, root mean square over all questions, beside the one that plan foresees. With
--evaluating a share of the devices is not learned from and tells how good the model is: prints the accuracy of what is
published with that round and without it, the accuracy that was told, and how often its interval held the true one. With
--json one object: the settings, the seeds, every trial and the summary. Progress and notes go to standard error."""


def add_accuracy(groups: Groups, text: str) -> None:
    parser = groups.add_parser(
        "accuracy",
        help=text,
        description=ABOUT_ACCURACY,
        examples=(
            "--data people.csv --label income --epsilon 0.5 1 2 --mechanism de oue",
            "--data people.csv --schema draft.toml --devices 100000 --evaluating --json",
        ),
    )
    parser.set_defaults(command=_accuracy)
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


def _accuracy(options: argparse.Namespace) -> None:
    many = options.mechanism or options.continuous or len(options.epsilon or ()) > 1
    if options.evaluating is not None and (many or options.devices is None):
        raise argparse.ArgumentTypeError(
            "--evaluating goes with --devices and one --epsilon, and without --mechanism and --continuous"
        )
    source = source_of(options)
    is_labelled = source.draft.get("label") is not None
    if options.evaluating is not None and not is_labelled:
        raise argparse.ArgumentTypeError("--evaluating is of a model, which a campaign without a label has not")
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
    trial, summarised = (run_trial, summarise) if is_labelled else (run_shares, summarise_shares)
    rows = run_trials(partial(trial, source, settings, design), seeds, journal, workers=options.workers)
    summary = summarised(rows)
    if options.json:
        found = {"summary": summary.to_dict("records"), "trials": rows}
        split = {"train_fraction": design.train_fraction} if is_labelled else {}
        say_json({"table": source.name, **split, "seeds": list(seeds), **found})
    elif is_labelled:
        _print_accuracies(summary)
    else:
        _print_errors(summary)


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


def _print_errors(summary: pd.DataFrame) -> None:
    say(f"{'mechanism':10} {'epsilon':>8} {'total loss':>10} {'error':>9} {'+-':>6} {'expected':>9} {'inside':>7}")
    for row in summary.to_dict("records"):
        say(
            f"{row['mechanism']:10} {row['epsilon']:8g} {row['total_epsilon']:10g} {row[ERROR]:9.4f} "
            f"{row['standard_error']:6.4f} {row['expected']:9.4f} {row['covered']:7.1%}"
        )
    _say_trials(summary)


def _print_accuracies(summary: pd.DataFrame) -> None:
    heads = f"{'mechanism':10} {'epsilon':>8} {'total loss':>10} {'accuracy':>9} {'+-':>6}"
    say(f"{heads} {'majority':>9} {'no privacy':>10}")
    for row in summary.to_dict("records"):
        say(
            f"{row['mechanism']:10} {row['epsilon']:8g} {row['total_epsilon']:10g} {row[ACCURACY]:9.4f} "
            f"{row['standard_error']:6.4f} {row['majority']:9.4f} {row['non_private']:10.4f}"
        )
    _say_trials(summary)


def _say_trials(summary: pd.DataFrame) -> None:
    first = summary.iloc[0]
    answers = "every question" if first["answers"] == "all" else "one question"
    say(f"{first['trials']} trials, {first['devices']:,} devices each, which answer {answers}")


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
