"""Commands for tables that somebody holds: ``ldp-aggregator fit``, a private model of it; ``node``, what a node of a
federated campaign runs next to its own; ``project``, a projection from a public one or a private round, into a draft.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from ldp_aggregator.cli.common import (
    CommandError,
    add_command,
    add_group,
    add_id,
    add_reading,
    read_draft,
    read_file,
    reading_of,
    say_table,
    with_store,
    write_file,
)
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.learning.projections import (
    InputMoments,
    add_to_draft,
    fit_projection,
    moments_of_round,
    moments_of_table,
)
from ldp_aggregator.node_statistics import decode_share, has_other_rows
from ldp_aggregator.store import Store
from ldp_aggregator.store.durable import sync_folder, write_new
from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    PrivacyWarning,
    PrivateKMeans,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
)
from ldp_aggregator.trainers.base import PrivateNaiveBayes, sound_guarantee
from ldp_aggregator.trainers.federation import node_statistics
from ldp_aggregator.trainers.node_ledger import ABOVE_CAP, NodeLedger
from ldp_aggregator.trainers.reading import Reading
from ldp_aggregator.trainers.schemas import Schema, joined, read_chunks, read_table
from ldp_aggregator.trainers.sensitivities import ADD_REMOVE, RELATIONS
from ldp_aggregator.trainers.share_delivery import Aggregator, send_share, withdraw_share
from ldp_aggregator.trainers.statistics import SilentFeatureWarning, SilentLabelWarning
from ldp_aggregator.trainers.table_report import TableReport
from ldp_protocols import Campaign, DocumentError, LdpError
from ldp_protocols.command_line import Groups, add_json, at_least, between, say, say_json, warn
from ldp_protocols.document.schema import METHODS

_METHODS: Final = {
    "sums": (SufficientStatisticsNB, "Naive Bayes from noisy counts and sums; the most accurate, reads in pieces"),
    "global": (GlobalSensitivityNB, "Naive Bayes with noise for the global sensitivity (Vaidya et al. 2013)"),
    "smooth": (SmoothSensitivityNB, "Naive Bayes with noise for the smooth sensitivity (Zafarani, Clifton 2020)"),
    "federated": (FederatedNB, "Naive Bayes from the noisy sums of several nodes (Marchioro et al. 2022)"),
    "kmeans": (PrivateKMeans, "k-means on the numbers without bins, from noisy counts and sums"),
}
_DEFAULT: Final = "sums"

_TAKEN_BY: Final = {
    "relation": ("sums", "global", "smooth"),
    "nodes": ("federated",),
    "n_clusters": ("kmeans",),
    "test": ("sums", "global", "smooth", "federated"),
}
"""Flags that not every method takes; all but ``test`` are the trainer's parameters."""


def add_commands(groups: Groups) -> None:
    methods = "\n".join(f"  {name:11}{about}" for name, (_, about) in _METHODS.items())
    example = "table.csv --schema draft.json --epsilon 1"
    fit = add_command(
        groups,
        "fit",
        _fit,
        f"{example} --output model.json",
        f"{example} --method global --test test.csv --json",
        f"{example} --method kmeans --clusters 4",
        store=False,
    )
    fit.description = f"Learn a private model from a table.\n\nmethods:\n{methods}"
    fit.add_argument("table", type=Path, metavar="TABLE.csv", help="the private table, with a header row")
    fit.add_argument("--method", choices=_METHODS, default=_DEFAULT, help="default: %(default)s")
    fit.add_argument("--schema", type=Path, required=True, metavar="DRAFT", help="label, features and bounds")
    fit.add_argument(
        "--epsilon", type=between(0, np.inf), required=True, metavar="E", help="total privacy loss of this fit"
    )
    fit.add_argument("--relation", choices=tuple(RELATIONS), help=f"of sums, global and smooth (default: {ADD_REMOVE})")
    fit.add_argument("--nodes", type=at_least(1), metavar="N", help="of federated: nodes to deal the rows to (1)")
    fit.add_argument(
        "--clusters", type=at_least(1), dest="n_clusters", metavar="K", help="of kmeans: centres to find (3)"
    )
    fit.add_argument("--test", type=Path, metavar="TEST.csv", help="print the accuracy on this table; not of kmeans")
    fit.add_argument("--output", type=Path, metavar="FILE", help="write the model document to a file")
    fit.add_argument("--seed", type=int, metavar="N", help="repeatable noise, for experiments and never for release")
    add_json(fit)
    _add_anyway(fit)
    add_reading(fit)
    example = "--url https://collect.example.org --token-file token"
    command = "table.csv --campaign document.json --output share.msgpack"
    commands = add_group(groups, "node", f"submit {command} {example}")
    text = "draw this node's noisy share, once, keep it in a file, and send it where --url says"
    submit = add_command(commands, "submit", _submit, command, f"{command} {example}", text=text, store=False)
    text = "print how a node's table fits a campaign's questions, without noise; nothing is drawn or sent"
    check = add_command(commands, "check", _check, "table.csv --campaign document.json", text=text, store=False)
    for parser in (submit, check):
        parser.add_argument("table", type=Path, metavar="TABLE.csv", help="the node's table, with a header row")
        parser.add_argument("--campaign", type=Path, required=True, metavar="DOC", help="the document, as published")
        add_reading(parser)
    _add_anyway(submit)
    submit.add_argument("--id", metavar="ID", help="the campaign's id, where it is known, to verify the document")
    submit.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="file of the share; an existing one is sent as it is, since a second share spends epsilon again",
    )
    submit.add_argument(
        "--other-rows",
        action="store_true",
        help="declare that no row of the table was in an earlier share of this node: epsilon is not spent again",
    )
    submit.add_argument(
        "--ledger",
        type=Path,
        metavar="FILE",
        help="what this node has spent (default: .ledger beside the token, or the table)",
    )
    submit.add_argument(
        "--max-epsilon",
        type=between(0, np.inf),
        metavar="E",
        help="the most that this node spends on all campaigns in its ledger (default: what this campaign costs)",
    )
    text = "take this node's share out of a campaign's model"
    withdraw = add_command(commands, "withdraw", _withdraw, f"ID {example}", text=text, store=False)
    add_id(withdraw)
    for parser, required in ((submit, False), (withdraw, True)):
        where = parser.add_argument_group("aggregator" if required else "aggregator; without it nothing is sent")
        where.add_argument("--url", required=required, metavar="URL", help="such as https://collect.example.org")
        text = "a file with this node's token, of scope node"
        where.add_argument("--token-file", type=Path, required=required, metavar="FILE", help=text)
        where.add_argument("--allow-plain-http", action="store_true", help="send the token unencrypted beyond loopback")
    project = add_command(
        groups,
        "project",
        _project,
        "public.csv --draft draft.json --method dca --components 1",
        "--round ID --draft draft.json --method pca --components 2 --output projected.json",
    )
    project.add_argument(
        "table", nargs="?", type=Path, metavar="PUBLIC.csv", help="a table that is public, with the classes"
    )
    project.add_argument(
        "--round", metavar="ID", help="instead of a table: the id of a campaign that asked for moments"
    )
    project.add_argument(
        "--draft", type=Path, required=True, metavar="DRAFT", help="the draft; rewritten in place if JSON"
    )
    project.add_argument("--output", type=Path, metavar="FILE", help="write the new draft, JSON, here; DRAFT stays")
    project.add_argument("--method", choices=METHODS, required=True)
    project.add_argument("--components", type=int, required=True, metavar="K", help="number of outputs")
    project.add_argument("--inputs", metavar="A,B,...", help="features to project (default: all that are numbers)")
    project.add_argument("--bins", type=int, metavar="N", help="discretise the outputs (default: Gaussian)")
    add_reading(project)


def _add_anyway(parser: argparse.ArgumentParser) -> None:
    text = "go on even if less than half of a column is as declared"
    parser.add_argument("--anyway", action="store_true", help=text)


def _seen(
    table: Path, schema: Schema, reading: Reading, *, anyway: bool
) -> Iterator[tuple[pd.DataFrame, pd.Series[Any]]]:
    """The pieces of a private table, and after the last its report on the operator's screen. Raises CommandError then,
    before any noise is drawn, where a column is not as declared.
    """
    report = TableReport(schema)
    yield from read_chunks(table, schema, reading=reading, seen=report.add)
    warn("\n  ".join([f"{table}, as it stands (exact, for the eyes of who holds it):", *report.lines()]))
    if report.problems and not anyway:
        raise CommandError(
            f"{table}: nothing was drawn, and nothing spent: {'; '.join(report.problems)}; correct the table or the "
            "schema; --anyway draws all the same"
        )


def _check(options: argparse.Namespace) -> None:
    schema = Schema.of_campaign(Campaign.parse(read_file(options.campaign)))
    try:
        joined(_seen(options.table, schema, reading_of(options), anyway=False))
    except ValueError as error:
        raise CommandError(str(error)) from None


def _fit(options: argparse.Namespace) -> None:
    given = {name: value for name in _TAKEN_BY if (value := getattr(options, name)) is not None}
    for name, methods in _TAKEN_BY.items():
        if name in given and options.method not in methods:
            flag = name.removeprefix("n_")
            raise argparse.ArgumentTypeError(
                f"--{flag} goes with --method {' or '.join(methods)}, not with {options.method}"
            )
    draft, schema = _read_schema(options.schema)
    reading = reading_of(options)
    test = given.pop("test", None)
    kind: Any = _METHODS[options.method][0]
    trainer = kind(draft, epsilon=options.epsilon, random_state=options.seed, **given)
    try:
        with _told_warnings():
            pieces = _seen(options.table, schema, reading, anyway=options.anyway)
            if isinstance(trainer, SufficientStatisticsNB):
                trainer.fit_chunks(pieces)
            else:
                trainer.fit(*joined(pieces))
        accuracy, undeclared = (None, 0) if test is None else _accuracy(trainer, test, schema, reading)
    except (ValueError, OverflowError) as error:
        raise CommandError(str(error)) from None
    if options.output:
        write_file(options.output, trainer.to_json())
    names = [feature.name for feature in schema.gaussians]
    centres = trainer.cluster_centers_.tolist() if isinstance(trainer, PrivateKMeans) else []
    if options.json:
        values = {
            "trainer": type(trainer).__name__,
            "guarantee": trainer.guarantee_.to_json(),
            "budget": trainer.budget_,
        }
        learned = {"classes": schema.label.classes, "accuracy": accuracy, "undeclared_labels": undeclared}
        say_json(
            values | ({"centres": [dict(zip(names, one, strict=True)) for one in centres]} if centres else learned)
        )
        return
    say(f"guarantee: {trainer.guarantee_}")
    say_table(("query", "epsilon"), [(query, f"{spent:.6g}") for query, spent in trainer.budget_.items()])
    if centres:
        say_table(names, [[f"{value:.6g}" for value in centre] for centre in centres])
    if accuracy is not None:
        say(f"accuracy on {test}: {accuracy:.4f}")
    if options.output:
        say(f"the model is in {options.output}")


def _accuracy(trainer: PrivateNaiveBayes, path: Path, schema: Schema, reading: Reading) -> tuple[float, int]:
    """Share of the rows whose declared class is predicted, and how many labels are not declared, which are told; the
    table to test with is not protected.
    """
    names = np.array([*schema.label.classes, None], dtype=object)
    right = rows = 0
    undeclared: Counter[str] = Counter()
    for frame, labels in read_chunks(path, schema, reading=reading):
        classes = schema.classes_of(labels, len(frame))
        right += int((trainer.predict(frame) == names[classes]).sum())
        rows += len(frame)
        undeclared.update(labels[classes < 0].fillna("").map(repr))
    if rows == 0:
        raise CommandError(f"{path}: holds no rows; a table to test with has at least one")
    if undeclared:
        some = ", ".join(text for text, _ in undeclared.most_common(3))
        warn(
            f"warning: {path}: {undeclared.total()} of {rows} labels are not declared, such as {some}; "
            f"the schema has {', '.join(schema.label.classes)}"
        )
    return right / rows, undeclared.total()


def _read_schema(path: Path) -> tuple[dict[str, Any], Schema]:
    draft = read_draft(path)
    wanted = {name: draft.get(name) for name in ("label", "features", "projection")}
    return wanted, Schema.read(wanted)


@contextmanager
def _told_warnings() -> Iterator[None]:
    """The trainers' warnings as lines on standard error, also where warnings are errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyWarning)
        warnings.simplefilter("always", SilentFeatureWarning)
        warnings.simplefilter("always", SilentLabelWarning)
        yield
    for warning in caught:
        sys.stderr.write(f"warning: {warning.message}\n")


def _submit(options: argparse.Namespace) -> None:
    if (options.url is None) != (options.token_file is None):
        raise argparse.ArgumentTypeError(
            "--url and --token-file go together; without both the share is kept, and not sent"
        )
    to = _addressed(options) if options.url else None
    campaign = Campaign.parse(read_file(options.campaign), options.id)
    share = _share(options, campaign)
    if to is None:
        say("nothing is sent; the same command with --url and --token-file sends this share")
        return
    try:
        node = send_share(to, share)
    except ConnectionError as error:
        raise CommandError(f"{error} (the share stays in {options.output})") from None
    say(f"the share is kept as that of {node!r}")


def _share(options: argparse.Namespace, campaign: Campaign) -> bytes:
    """Find this node's share in its file, else in the ledger, where an interrupted run may have booked it, or draw one.

    Noise is not drawn twice, and a share is in the ledger and in its file before anything else is done with it.
    """
    output: Path = options.output
    path: Path = options.ledger or (options.token_file or options.table).with_suffix(".ledger")
    if path == output:
        raise argparse.ArgumentTypeError("the ledger and the share are two files; name another --ledger")
    ledger, epsilon = NodeLedger(path), campaign.privacy.epsilon
    cap = epsilon if options.max_epsilon is None else options.max_epsilon
    keep = partial(ledger.keep, f"{campaign.id} {output.name}", epsilon, max_epsilon=cap)
    try:
        if (share := _kept(options, campaign)) is not None:
            if keep(share, other_rows=has_other_rows(share)) != share:
                raise CommandError(
                    f"{output} holds another share than the one that {path} has by this name; without the file that "
                    "one is written again"
                )
        elif (share := ledger.share(f"{campaign.id} {output.name}")) is not None:
            _write_share(output, share)
            say(f"the share of {output} is in {path}, and was written there again")
        if share is not None:
            _tell_other_table(options.table, ledger.digest(share))
            return share
        if not output.absolute().parent.is_dir():
            raise CommandError(f"{output} cannot be written: there is no such folder")
        digest = _digest(options.table)
        share = keep(_drawn(options, campaign), other_rows=options.other_rows, digest=digest)
        spent = float(ledger.spent)
    except LdpError as error:
        if error.code != ABOVE_CAP:
            raise
        raise CommandError(
            f"{path}: {error}; nothing left this node. --max-epsilon E allows more, where all agree to it"
        ) from None
    except OSError as error:
        raise CommandError(f"{error}; --ledger FILE names another") from None
    _write_share(output, share)
    say(f"{output} holds {len(share)} bytes for campaign {campaign.id}")
    say(f"guarantee: {sound_guarantee(epsilon, ADD_REMOVE)}")
    say(f"ledger: {path}: epsilon {spent:g} of {cap:g} is spent")
    if options.other_rows:
        say("declared: no row of it was in a share that this node sent before for this campaign")
    return share


def _kept(options: argparse.Namespace, campaign: Campaign) -> bytes | None:
    """The share in the file, None without one. Raises CommandError where it is none for this campaign."""
    output: Path = options.output
    try:
        share = output.read_bytes()
        if not share:
            raise CommandError(f"{output} is empty, and holds no share: delete it, and nothing is lost")
        decode_share(share, campaign)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"{output} cannot be read: {error.strerror}") from None
    except DocumentError as error:
        raise CommandError(
            f"{output} is there and is no share for this campaign ({error}); name another --output"
        ) from None
    if options.other_rows and not has_other_rows(share):
        raise CommandError(f"{output} holds a share without --other-rows; name another --output for other rows")
    say(f"{output} is there: its share is taken as it is, and {options.table} is not read")
    return share


def _tell_other_table(table: Path, digest: bytes | None) -> None:
    """Warn where the table has changed since its share was drawn."""
    if digest is not None and table.is_file() and _digest(table) != digest:
        warn(
            f"warning: {table} is another table than the one this share was drawn from: what has changed in it is not "
            "in the share. Rows that were in no share are sent with --other-rows and another --output"
        )


def _digest(table: Path) -> bytes:
    """SHA-256 of a file, which stays at the node; of nothing where there is none, which is told by who reads it."""
    digest = hashlib.sha256()
    try:
        with table.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError:
        pass
    return digest.digest()


def _drawn(options: argparse.Namespace, campaign: Campaign) -> bytes:
    """A new share of the table."""
    schema = Schema.of_campaign(campaign)
    try:
        frame, labels = joined(_seen(options.table, schema, reading_of(options), anyway=options.anyway))
        with _told_warnings():
            return node_statistics(campaign, frame, labels, other_rows=options.other_rows)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _write_share(output: Path, share: bytes) -> None:
    """Write a share whole or not at all, and never over another file."""
    fresh = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        try:
            write_new(fresh, share)
            _name(fresh, output)
            sync_folder(output.absolute().parent)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}") from None


def _name(fresh: Path, output: Path) -> None:
    """Name a file as no other is named. Some file systems have no links."""
    try:
        os.link(fresh, output)
    except FileExistsError:
        raise
    except OSError:
        fresh.rename(output)


def _withdraw(options: argparse.Namespace) -> None:
    try:
        withdraw_share(_addressed(options), options.id)
    except ConnectionError as error:
        raise CommandError(str(error)) from None
    say("this node has no share in the campaign any more")


def _addressed(options: argparse.Namespace) -> Aggregator:
    """Other users of a machine read command lines, so that the token comes from a file."""
    token = read_file(options.token_file).decode("utf-8", "replace").strip()
    try:
        return Aggregator(options.url, token, options.allow_plain_http)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _project(options: argparse.Namespace) -> None:
    if (options.table is None) == (options.round is None):
        raise argparse.ArgumentTypeError("name either a public table or --round ID")
    if options.table and {"config", "data", "database"} & vars(options).keys():
        raise argparse.ArgumentTypeError("a public table needs no store; leave out --config, --data and --database")
    target = options.output or options.draft
    if target.suffix.lower() == ".toml":
        raise argparse.ArgumentTypeError("the new draft is JSON; name it with --output")
    draft = read_draft(options.draft)
    try:
        moments, study = _moments_of_round(options) if options.round else (_moments_of_public(options, draft), None)
        projection = fit_projection(moments, options.method, options.components, bins=options.bins)
        fitted = add_to_draft(draft, projection, study)
    except ValueError as error:
        raise CommandError(str(error)) from None
    campaign = Campaign.compile(fitted)
    write_file(target, json.dumps(fitted, ensure_ascii=False, indent=2) + "\n")
    say(
        f"{options.method} with {options.components} of {len(moments.features)} components, fitted on "
        f"{moments.fitted_on}, is in {target}; it asks {len(campaign.questions)} questions"
    )


def _moments_of_public(options: argparse.Namespace, draft: dict[str, Any]) -> InputMoments:
    campaign = Campaign.compile({**draft, "projection": None})
    numbers = {f.name: f.number for f in campaign.features if f.number}
    names = options.inputs.split(",") if options.inputs else list(numbers)
    unknown = [name for name in names if name not in numbers]
    if unknown or not names:
        raise ValueError(f"{', '.join(unknown) or 'no feature'} is not a number of the draft")
    inputs = [numbers[name] for name in names]
    frame, labels = read_table(options.table, Schema(campaign.label, tuple(inputs)), reading_of(options))
    return moments_of_table(inputs, campaign.label, frame.assign(**{campaign.label.name: labels}))


def _moments_of_round(options: argparse.Namespace) -> tuple[InputMoments, str | None]:
    if options.inputs:
        raise argparse.ArgumentTypeError("--inputs goes with a public table; a round's inputs are its features")

    async def read(store: Store) -> tuple[bytes, Tally]:
        return await store.document(options.round), await store.tally(options.round)

    document, tally = with_store(options, read, read_only=True)
    campaign = Campaign.parse(document, options.round)
    return moments_of_round(campaign, tally), campaign.study
