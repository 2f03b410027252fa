"""``ldp-aggregator node``: what a node of a federated campaign runs next to its own table."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ldp_aggregator.cli.common import CommandError, Groups, add_command, read_file, say
from ldp_aggregator.trainers.base import sound_guarantee
from ldp_aggregator.trainers.federation import node_statistics
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.tables import read_table
from protocols import Campaign


def add_commands(groups: Groups) -> None:
    text = "take part in a federated campaign with a table of one's own"
    commands = groups.add_parser("node", help=text, description=text).add_subparsers(
        title="commands", metavar="COMMAND", required=True
    )
    statistics = add_command(
        commands, "statistics", "compute this node's noisy share; a second share spends epsilon again", _statistics
    )
    statistics.add_argument("table", type=Path, metavar="TABLE.csv", help="the node's table, with a header row")
    statistics.add_argument(
        "--campaign", type=Path, required=True, metavar="DOC", help="the campaign document, as published"
    )
    statistics.add_argument("--id", metavar="ID", help="the campaign's id, where it is known, to verify the document")
    statistics.add_argument("--output", type=Path, required=True, metavar="FILE", help="where to write the share")


def _statistics(options: argparse.Namespace) -> None:
    if options.output.exists():
        raise CommandError(
            f"{options.output} exists: send that share again, or move it away to spend epsilon once more"
        )
    campaign = Campaign.parse(read_file(options.campaign), options.id)
    try:
        share = node_statistics(campaign, *read_table(options.table, Schema.of_campaign(campaign)))
    except ValueError as error:
        raise CommandError(str(error)) from None
    _write_once(options.output, share)
    say(f"{options.output} holds {len(share)} bytes for campaign {campaign.id}")
    say(f"guarantee: {sound_guarantee(campaign.privacy.epsilon, ADD_REMOVE)}")


def _write_once(path: Path, share: bytes) -> None:
    """On disk before it is reported: the noise must not be drawn twice."""
    try:
        with path.open("xb") as file:
            file.write(share)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
