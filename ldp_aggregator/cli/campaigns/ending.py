"""The end of a campaign: close, reopen, seal and delete."""

from __future__ import annotations

import argparse
from typing import Any

from ldp_aggregator.cli.common import add_command, add_store_options, say, with_store
from ldp_aggregator.store.clock import to_text, utc_now


def add_ending(commands: Any) -> None:
    for name, text, command in (
        ("close", "accept no more reports; 'reopen' takes it back until it is sealed", _close),
        ("reopen", "take a closing back", _reopen),
        ("seal", "drop the ids of a closed campaign, for good; merge its shards before", _seal),
        ("delete", "drop a closed campaign with its reports and models, for good; its id is never used again", _delete),
    ):
        parser = add_command(commands, name, text, command)
        add_store_options(parser)
        parser.add_argument("id", metavar="ID", help="the campaign's id")
        if name == "seal":
            parser.add_argument("--now", action="store_true", help="even if it was closed less than a day ago")


def _close(options: argparse.Namespace) -> None:
    state = with_store(options, lambda store: store.close_campaign(options.id))
    say(f"closed with {state.shares} shares" if state.federated else f"closed with {state.reports} reports")


def _reopen(options: argparse.Namespace) -> None:
    state = with_store(options, lambda store: store.reopen_campaign(options.id))
    closes = state.life.closes
    over = "" if closes is None or utc_now() < closes else f"; its document ends it at {to_text(closes)}"
    say(f"reopened with {state.reports} reports{over}")


def _seal(options: argparse.Namespace) -> None:
    state = with_store(options, lambda store: store.seal_campaign(options.id, at_once=options.now))
    say(f"sealed with {state.reports} reports; their ids are gone")


def _delete(options: argparse.Namespace) -> None:
    with_store(options, lambda store: store.delete_campaign(options.id))
    say(f"campaign {options.id} is deleted")
