"""``python -m simulations population``: a table's people answer a campaign, each through the real client over HTTP."""

from __future__ import annotations

import argparse
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

from protocols.shell import Groups, add_json, at_least, between, say, say_json
from simulations.commands.common import add_table_options, source_of, warn
from simulations.fleet.aggregator import Aggregator, make_token, temporary_aggregator
from simulations.fleet.devices import TARGET, Behaviour, Network
from simulations.fleet.experiment import Plan, Result, run
from simulations.tables.sources import Source

TOKEN_VARIABLE: Final = "LDP_BAYES_ADMIN_TOKEN"  # noqa: S105 - the name of a variable, not a token

DESCRIPTION: Final = """\
Let the people of a table answer a campaign, each on a device of its own: the real client, over real HTTP, with its
storage in memory. The aggregator is one that is running (--url), or one started for this alone; on one that is running
nothing is published but the campaign. Answers may get lost, and some of the devices may lie.

Prints devices, reports accepted, retries, bytes per report, seconds, and accuracies on people who were held out: of
always saying the most frequent class, of the model learned from the reports, and of the same model learned without any
privacy. With --json one object with the same figures. Progress and notes go to standard error."""


def add_command(groups: Groups) -> None:
    parser = groups.add_parser(
        "population",
        help="devices answer over real HTTP; prints what arrived and how good the model is",
        description=DESCRIPTION,
        examples=(
            "--data people.csv --label income --devices 2000",
            "--data people.csv --schema draft.toml --liars 0.05 --json",
        ),
    )
    parser.set_defaults(command=_run)
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


def _run(options: argparse.Namespace) -> None:
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
        _print(result)


def _behaviour(options: argparse.Namespace, source: Source) -> Behaviour:
    classes = source.draft["label"]["classes"]
    if options.target is None:
        return Behaviour(options.liars or 0.0)
    if options.liars is None:
        raise argparse.ArgumentTypeError("--target goes with --liars")
    if options.target not in classes:
        raise argparse.ArgumentTypeError(f"--target must be one of {', '.join(classes)}, not {options.target!r}")
    return Behaviour(options.liars, TARGET, classes.index(options.target))


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


def _print(result: Result) -> None:
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
    say(f"accuracy on {len(result.held_out)} people held out")
    say(f"  majority class  {scores.majority:.3f}")
    if scores.private is None:
        say("  this model      not looked at; it takes --aggregator-data, or ldp-aggregator train")
    else:
        say(f"  this model      {scores.private:.3f}")
    say(f"  without privacy {scores.non_private:.3f}")
    if shares := ", ".join(f"{name} {share:.3f}" for name, share in result.predicted_shares().items()):
        say(f"  it predicts     {shares}")
