"""``ldp-simulate demo``: the whole flow in a minute, on a table everybody has or on one of your own."""

from __future__ import annotations

import argparse
import math
import signal
import threading
import time
from contextlib import AbstractContextManager
from typing import Any, Final

from ldp_aggregator.cli.common import add_reading, reading_of
from ldp_client import Classifier
from ldp_client.words import said
from ldp_protocols import Campaign, decode_upload
from ldp_protocols.command_line import Groups, add_json, at_least, between, say, say_json, warn
from ldp_simulations.benchmarks import demonstration_source
from ldp_simulations.commands.tables import say_errors
from ldp_simulations.devices import Network
from ldp_simulations.experiment import MARKS, Aggregator, Plan, Result, Watcher, run, temporary_aggregator
from ldp_simulations.parties import Parties, running_parties
from ldp_simulations.tables import TABLE_HELP, Source, records, source_without_schema

DEFAULT_DEVICES: Final = 20_000
CLIENTS: Final = 2_000
"""So many run the real client; ten times as many would take ten times as long, and show nothing more."""
DERIVED_EPSILON: Final = 2.0
CROWD_EPSILON: Final = 1.0
DERIVED_BINS: Final = 4
SHOWN: Final = 4
_SURE: Final = 0.99
"""A probability above this is said no more exactly: what a model is that sure of is right less often."""
PAGE: Final = "http://localhost:5173"
"""The address at which examples/javascript/serve.mjs serves its page."""

_LOOK_SECONDS: Final = 0.5
"""A wait without end is not woken by signals everywhere."""

DESCRIPTION: Final = """\
Start an aggregator in a temporary folder, publish a campaign, let simulated devices answer it over real HTTP, train,
classify people who were held out on a device, and stop the aggregator. The first 2,000 devices run the real client; the
answers of the others are drawn at once, by the same laws, and come in as a relay's uploads. A table without --label is
asked for statistics: nothing is learned of a class, and what was estimated is printed beside what is true.

Prints the privacy that each device got, what the server saw of one of them, and the model's accuracy beside that of the
most frequent class and of the same model learned without privacy. With --json one object with the same figures. With
--keep it stays after that, with the example's page to answer on. Progress, with the dashboard's address, an admin token
that opens it and how good the model is meanwhile, goes to standard error, as notes do."""


def add_demo(groups: Groups, text: str) -> None:
    parser = groups.add_parser(
        "demo",
        help=text,
        description=DESCRIPTION,
        examples=("--devices 5000", "--data people.csv --label words --epsilon 2 --json"),
    )
    parser.set_defaults(command=_run)
    parser.add_argument(
        "--devices", type=at_least(1), default=DEFAULT_DEVICES, metavar="N", help="default: %(default)s"
    )
    parser.add_argument("--data", metavar="TABLE", help=f"a table of your own; {TABLE_HELP}")
    parser.add_argument("--label", metavar="COLUMN", help="the column of --data to learn (default: statistics of all)")
    parser.add_argument(
        "--epsilon", type=between(0, 64), metavar="E", help=f"total loss of a device (default: {DERIVED_EPSILON:g})"
    )
    parser.add_argument("--seed", type=at_least(0), help="makes split, people and devices' coins repeatable")
    add_json(parser)
    parser.add_argument(
        "--crowd",
        action="store_true",
        help="promise a crowd's guarantee: with an issuer, a relay and a gateway, each a process of its own",
    )
    parser.add_argument(
        "--keep", action="store_true", help="then stay: print the dashboard's address and a token for it until Ctrl-C"
    )
    parser.add_argument(
        "--page",
        default=PAGE,
        metavar="ORIGIN",
        help="with --keep: where `node examples/javascript/serve.mjs` serves its page (default: %(default)s)",
    )
    add_reading(parser)


def _run(options: argparse.Namespace) -> None:
    source = _source(options)
    if source.notes:
        warn("This campaign was derived from the table itself, which is fine for a demonstration and nothing else:")
    for note in source.notes:
        warn(f"  {note}")
    plan = Plan(options.devices, options.seed, clients=CLIENTS)
    network = Network(seed=options.seed)
    watch = _Watch(plan, is_crowd=options.crowd)
    watch.say("an aggregator starts, in a temporary folder")
    with _parties(options) as aggregator:
        result = run(aggregator, source, plan, network, watch)
        upload = aggregator.first_upload[0] if isinstance(aggregator, Parties) else network.first_upload
        figures = _figures(source, result, upload, _classify(aggregator, result) if result.campaign.label else [])
        if options.json:
            say_json(figures)
        else:
            _print(figures)
        if options.keep:
            _stay(aggregator, result.campaign, options.page)
    if not options.json:
        say("  The aggregator has stopped and its folder is gone.")
        say()


def _parties(options: argparse.Namespace) -> AbstractContextManager[Aggregator]:
    origins = [options.page] if options.keep else []
    if not options.crowd:
        return temporary_aggregator(origins)
    if options.devices <= CLIENTS:
        raise argparse.ArgumentTypeError(f"--crowd takes more than {CLIENTS:,} --devices: few hide nobody")
    return running_parties(options.devices, options.epsilon or CROWD_EPSILON, origins)


class _Watch(Watcher):
    """Tells what happens, as it happens, with the seconds since the start."""

    def __init__(self, plan: Plan, *, is_crowd: bool) -> None:
        # Of a crowd nothing is known before all of it has answered.
        self.marks = () if is_crowd else (*MARKS, CLIENTS)
        self._is_crowd = is_crowd
        self._devices = plan.devices or 0
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        """A line on standard error."""
        warn(f"  {time.monotonic() - self._started:5.1f} s  {text}")

    def published(self, aggregator: Aggregator, campaign: Campaign) -> None:
        """Say where to look on, and what happens now."""
        self.say(f"it is ready: dashboard {aggregator.admin_url}/campaigns/{campaign.id}")
        self.say(f"             which opens with {aggregator.token}")
        if self._is_crowd:
            self.say(f"an issuer and a relay are there, too; nothing is shown before {self._devices:,} have answered")
        clients = min(CLIENTS, self._devices)
        self.say(f"{clients:,} devices answer, each with the real client over HTTP")

    def learned(self, devices: int, right: float) -> None:
        """Say how good the model is."""
        self.say(f"{devices:9,} devices: the model is right for {right:.1%} of the people held out")
        if devices == CLIENTS < self._devices:
            self.say(f"{self._devices - CLIENTS:,} more answers are drawn at once and come in as a relay's uploads")


def _stay(aggregator: Aggregator, campaign: Campaign, page: str) -> None:
    """Until SIGINT or SIGTERM. What is printed opens the dashboard and the page of a device, on this machine only."""
    stopped = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    warn("")
    warn(f"  Public page  {aggregator.url}/c/{campaign.id}")
    warn(f"  A device     {page}/?url={aggregator.url}&campaign={campaign.id}")
    warn("               served by: node examples/javascript/serve.mjs (after make javascript)")
    warn("  Ctrl-C stops the aggregator and deletes its folder.")
    try:
        while not stopped.wait(_LOOK_SECONDS):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _source(options: argparse.Namespace) -> Source:
    if options.data is None and options.label is not None:
        raise argparse.ArgumentTypeError("--label names a column of --data TABLE, which is missing")
    if options.data is None:
        source = demonstration_source()
        return source if options.epsilon is None else source.with_epsilon(options.epsilon)
    return source_without_schema(
        options.data,
        options.label or None,  # make demo gives an empty one
        epsilon=options.epsilon or DERIVED_EPSILON,
        bins=DERIVED_BINS,
        reading=reading_of(options),
    )


def _classify(aggregator: Aggregator, result: Result) -> list[dict[str, Any]]:
    """A device that never answered anything downloads the model and classifies the people who were held out."""
    classifier = Classifier.fetch(aggregator.url, result.campaign.id)
    return [
        {"predicted": classifier.predict(record), "probabilities": classifier.predict_proba(record), "true": true}
        for record, true in zip(records(result.held_out.frame), result.held_out.labels.tolist(), strict=True)
    ]


def _figures(source: Source, result: Result, upload: bytes | None, classified: list[dict[str, Any]]) -> dict[str, Any]:
    crowd = result.campaign.privacy.crowd
    right = sum(one["predicted"] == one["true"] for one in classified)
    on_device = {"classified": len(classified), "right": right, "first": classified[:SHOWN]}
    return {
        "title": result.campaign.title,
        "table": source.name,
        **result.to_json(),
        **({"majority_class": result.majority_class} if result.campaign.label else {"estimates": result.estimates}),
        **({"crowd": crowd.to_json(), "told": str(crowd)} if crowd else {}),
        "one_report": _first_report(result.campaign, upload),
        **({"on_a_device": on_device} if result.campaign.label else {}),
    }


def _with_error(accuracy: float, figures: dict[str, Any]) -> str:
    """An accuracy and its standard error on so many people."""
    return f"{accuracy:.3f} ± {math.sqrt(accuracy * (1 - accuracy) / figures['held_out']):.3f}"


def _first_report(campaign: Campaign, upload: bytes | None) -> dict[str, Any]:
    """Bytes that the server got from one device: the bytes of its upload, and what its first report says."""
    if upload is None:
        raise AssertionError("an experiment has at least one device")
    block = decode_upload(upload, campaign)[0]
    question = campaign.counted[block.question]
    return {
        "upload_hexadecimal": upload.hex(),
        "question": question.feature or campaign.label.name,
        "mechanism": question.mechanism.name,
        "payload_hexadecimal": block.payloads.hex(),
        "says": said(campaign, question, block.payloads),
    }


def _print(figures: dict[str, Any]) -> None:
    report, is_labelled = figures["one_report"], "accuracy" in figures
    people, devices = figures["people"], figures["devices"]
    drawn = f"{people} of its people answer"
    if figures["resampled"]:
        drawn = f"{people} of its people are resampled to {devices:,} devices (the same person answers on several)"
    say()
    say(f"  Campaign    {figures['title']}")
    say(f"  Table       {figures['table']}")
    say(f"              {drawn}" + (f", {figures['held_out']} are held out" if is_labelled else ""))
    size = f"{figures['bytes_per_report']:.0f} bytes a report, {figures['retries']} retries"
    say(f"  Devices     {figures['clients']:,} with the real client over HTTP in {figures['seconds']:.1f} s")
    if devices > figures["clients"]:
        way = "sealed, each with its tokens" if "told" in figures else "in a relay's uploads"
        say(f"              {devices - figures['clients']:,} drawn at once by the same laws, {way}")
    say(f"              {figures['accepted']:,} reports accepted")
    say(f"              {size}")
    for code, number in figures["refused"].items():
        say(f"              {number:,} reports were refused: {code}")
    say()
    say("  Privacy of each device")
    if "told" in figures:
        say(f"    promised  {figures['told']}")
        say(f"              epsilon {figures['epsilon']:g} where relay and server work together")
    else:
        say(f"    promised  epsilon {figures['epsilon']:g} in total, whatever it is asked")
    say(f"    asked     {figures['answers_per_device']} of {figures['questions']} questions, drawn by lot, once")
    say(f"    realised  {figures['realised_epsilon']:.12g}, recomputed by every device before it answered")
    say(f"    the server saw of one device {len(report['upload_hexadecimal']) // 2} bytes, with this answer:")
    say(f"              {report['says']}")
    say()
    if is_labelled:
        _print_learned(figures)
    else:
        say_errors(figures["statistics"] or ())
        say()


def _print_learned(figures: dict[str, Any]) -> None:
    accuracy, on_device = figures["accuracy"], figures["on_a_device"]
    say(f"  Accuracy on the {figures['held_out']} people held out")
    say(f"    {_with_error(accuracy['majority'], figures)}  always {figures['majority_class']}")
    say(f"    {_with_error(accuracy['private'], figures)}  learned from the devices' reports")
    expected, best = figures["expected"], figures["expected"]["best_feature"]
    if best:
        say(f"              which told beforehand: {best['feature']} alone {best['low']:.3f} to {best['high']:.3f}")
    if not expected["tells_something"]:
        say("              and that the features are not known to tell anything of the class")
    say(f"    {_with_error(accuracy['non_private'], figures)}  the same, learned without privacy from the records")
    say()
    say(f"  On a device, with the downloaded model: {on_device['right']} of {on_device['classified']} right")
    for number, one in enumerate(on_device["first"], start=1):
        share = one["probabilities"][one["predicted"]]
        sure = f"> {_SURE:g}" if share > _SURE else f"{share:.2f}"
        say(f"    person {number}  {one['predicted']}, probability {sure} by the model; in truth {one['true']}")
    say()
