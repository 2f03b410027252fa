"""``ldp-aggregator node``: what a node of a federated campaign runs next to its own table."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ldp_aggregator.cli.common import ABOUT, CommandError, UsageError, add_command, add_group, add_id, read_file
from ldp_aggregator.node_statistics import ShareError, decode_share, has_other_rows
from ldp_aggregator.store.runs.run_files import sync_folder
from ldp_aggregator.trainers.base import sound_guarantee
from ldp_aggregator.trainers.federation.delivery import Aggregator, DeliveryError, send_share, withdraw_share
from ldp_aggregator.trainers.federation.state import node_statistics
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.schemas import Schema, read_table
from protocols import Campaign
from protocols.shell import Groups, say


def add_commands(groups: Groups) -> None:
    example = "--url https://collect.example.org --token-file token"
    command = "table.csv --campaign document.json --output share.msgpack"
    commands = add_group(groups, "node", ABOUT["node"], f"submit {command} {example}")
    text = "draw this node's noisy share, once, keep it in a file, and send it where --url says"
    submit = add_command(commands, "submit", text, _submit, command, f"{command} {example}", store=False)
    submit.add_argument("table", type=Path, metavar="TABLE.csv", help="the node's table, with a header row")
    submit.add_argument("--campaign", type=Path, required=True, metavar="DOC", help="the document, as published")
    submit.add_argument("--id", metavar="ID", help="the campaign's id, where it is known, to verify the document")
    submit.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="where the share is kept; one that is there is sent as it is: a second one spends epsilon again",
    )
    submit.add_argument(
        "--other-rows",
        action="store_true",
        help="declare that no row of the table was in a share that this node sent before: epsilon is not spent again",
    )
    text = "take this node's share out of a campaign's model"
    withdraw = add_command(commands, "withdraw", text, _withdraw, f"ID {example}", store=False)
    add_id(withdraw)
    for parser, required in ((submit, False), (withdraw, True)):
        where = parser.add_argument_group("aggregator" if required else "aggregator; without it nothing is sent")
        where.add_argument("--url", required=required, metavar="URL", help="such as https://collect.example.org")
        text = "a file with this node's token, of scope node"
        where.add_argument("--token-file", type=Path, required=required, metavar="FILE", help=text)
        where.add_argument("--allow-plain-http", action="store_true", help="send the token unencrypted beyond loopback")


def _submit(options: argparse.Namespace) -> None:
    if (options.url is None) != (options.token_file is None):
        raise UsageError("--url and --token-file go together; without both the share is kept, and not sent")
    to = _aggregator(options) if options.url else None
    campaign = Campaign.parse(read_file(options.campaign), options.id)
    share = _kept(options, campaign) or _drawn(options, campaign)
    if to is None:
        say("nothing is sent; the same command with --url and --token-file sends this share")
        return
    try:
        node = send_share(to, share)
    except DeliveryError as error:
        raise CommandError(f"{error} (the share stays in {options.output})") from None
    say(f"the share is kept as that of {node!r}")


def _kept(options: argparse.Namespace, campaign: Campaign) -> bytes | None:
    """The share that an earlier run has kept, None without one: the noise must not be drawn twice."""
    try:
        share: bytes = options.output.read_bytes()
        decode_share(share, campaign)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"{options.output} cannot be read: {error.strerror}") from None
    except ShareError as error:
        raise CommandError(
            f"{options.output} is there and is no share for this campaign ({error}); name another --output"
        ) from None
    if options.other_rows and not has_other_rows(share):
        raise CommandError(f"{options.output} holds a share without --other-rows; name another --output for other rows")
    say(f"{options.output} is there: its share is taken as it is, and {options.table} is not read")
    return share


def _drawn(options: argparse.Namespace, campaign: Campaign) -> bytes:
    """A new share. It is on disk before anything else is done with it."""
    try:
        frame, labels = read_table(options.table, Schema.of_campaign(campaign))
        share = node_statistics(campaign, frame, labels, other_rows=options.other_rows)
    except ValueError as error:
        raise CommandError(str(error)) from None
    try:
        with options.output.open("xb") as file:
            file.write(share)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(options.output.parent)
    except OSError as error:
        raise CommandError(f"{options.output} cannot be written: {error.strerror}") from None
    say(f"{options.output} holds {len(share)} bytes for campaign {campaign.id}")
    say(f"guarantee: {sound_guarantee(campaign.privacy.epsilon, ADD_REMOVE)}")
    if options.other_rows:
        say("declared: no row of it was in a share that this node sent before for this campaign")
    return share


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
