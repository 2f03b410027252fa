"""``ldp-aggregator node``: what a node of a federated campaign runs next to its own table."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ldp_aggregator.cli.common import CommandError, Groups, add_command, add_group, read_file, say
from ldp_aggregator.learning.published import Guarantee
from ldp_aggregator.trainers.base import sound_guarantee
from ldp_aggregator.trainers.csv_tables import read_table
from ldp_aggregator.trainers.federation.delivery import Aggregator, DeliveryError, send_share, withdraw_share
from ldp_aggregator.trainers.federation.state import node_statistics
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.schemas import Schema
from protocols import Campaign


def add_commands(groups: Groups) -> None:
    text = "take part in a federated campaign with a table of one's own"
    commands = add_group(groups, "node", text, "send share.bin --url https://collect.example.org --token-file token")
    statistics = add_command(
        commands,
        "statistics",
        "compute this node's noisy share; a second share spends epsilon again",
        _statistics,
        "table.csv --campaign document.json --output share.bin",
    )
    statistics.add_argument("table", type=Path, metavar="TABLE.csv", help="the node's table, with a header row")
    statistics.add_argument(
        "--campaign", type=Path, required=True, metavar="DOC", help="the campaign document, as published"
    )
    statistics.add_argument("--id", metavar="ID", help="the campaign's id, where it is known, to verify the document")
    statistics.add_argument("--output", type=Path, required=True, metavar="FILE", help="where to write the share")
    statistics.add_argument(
        "--other-rows",
        action="store_true",
        help="declare that no row of the table was in a share that this node sent before: epsilon is not spent again",
    )
    send = add_command(
        commands,
        "send",
        "send a share that was written; the same share counts once",
        _send,
        "share.bin --url https://collect.example.org --token-file token",
    )
    send.add_argument("share", type=Path, metavar="SHARE", help="the file that 'node statistics' wrote")
    _add_aggregator(send)
    withdraw = add_command(
        commands,
        "withdraw",
        "take this node's share out of a campaign's model",
        _withdraw,
        "ID --url https://collect.example.org --token-file token",
    )
    withdraw.add_argument("id", metavar="ID", help="the campaign's id")
    _add_aggregator(withdraw)


def _add_aggregator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url", required=True, metavar="URL", help="the aggregator, such as https://collect.example.org"
    )
    parser.add_argument(
        "--token-file", type=Path, required=True, metavar="FILE", help="a file with this node's token, of scope node"
    )
    parser.add_argument("--allow-plain-http", action="store_true", help="send the token unencrypted beyond loopback")


def _statistics(options: argparse.Namespace) -> None:
    if options.output.exists():
        raise CommandError(
            f"{options.output} exists: send that share again, or move it away to spend epsilon once more"
        )
    campaign = Campaign.parse(read_file(options.campaign), options.id)
    try:
        share, guarantee = _noisy_share(options, campaign)
    except ValueError as error:
        raise CommandError(str(error)) from None
    _write_once(options.output, share)
    say(f"{options.output} holds {len(share)} bytes for campaign {campaign.id}")
    say(f"guarantee: {guarantee}")
    if options.other_rows:
        say("declared: no row of it was in a share that this node sent before for this campaign")


def _noisy_share(options: argparse.Namespace, campaign: Campaign) -> tuple[bytes, Guarantee]:
    frame, labels = read_table(options.table, Schema.of_campaign(campaign))
    share = node_statistics(campaign, frame, labels, other_rows=options.other_rows)
    return share, sound_guarantee(campaign.privacy.epsilon, ADD_REMOVE)


def _send(options: argparse.Namespace) -> None:
    share = read_file(options.share)
    try:
        node = send_share(_aggregator(options), share)
    except DeliveryError as error:
        raise CommandError(str(error)) from None
    say(f"the share is kept as that of {node!r}")


def _withdraw(options: argparse.Namespace) -> None:
    try:
        withdraw_share(_aggregator(options), options.id)
    except DeliveryError as error:
        raise CommandError(str(error)) from None
    say("this node has no share in the campaign any more")


def _aggregator(options: argparse.Namespace) -> Aggregator:
    """Other users of a machine read command lines, so that the token comes from a file."""
    token = read_file(options.token_file).decode("utf-8", "replace").strip()
    try:
        return Aggregator(options.url, token, options.allow_plain_http)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _write_once(path: Path, share: bytes) -> None:
    """On disk before it is reported: the noise must not be drawn twice."""
    try:
        with path.open("xb") as file:
            file.write(share)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
