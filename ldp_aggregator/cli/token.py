"""``ldp-aggregator token``: access to what is not for everybody."""

from __future__ import annotations

import argparse
import sys

from ldp_aggregator.cli.common import (
    CommandError,
    Groups,
    add_command,
    add_store_options,
    say,
    with_store,
)
from ldp_aggregator.store import SCOPES
from ldp_aggregator.store.clock import to_text, utc_now
from ldp_aggregator.tokens import make_token


def add_commands(groups: Groups) -> None:
    text = "create access tokens"
    commands = groups.add_parser("token", help=text, description=text).add_subparsers(
        title="commands", metavar="COMMAND", required=True
    )
    create = add_command(commands, "create", "make a token and print it; it cannot be shown again", _create)
    add_store_options(create)
    create.add_argument("--scope", required=True, choices=SCOPES, help="what the token opens")
    create.add_argument("--name", help="what to call it (default: its scope and the time)")


def _create(options: argparse.Namespace) -> None:
    now = utc_now()
    try:
        text, token = make_token(options.name or f"{options.scope} {to_text(now)}", options.scope, now)
    except ValueError as error:
        raise CommandError(str(error)) from None
    with_store(options, lambda store: store.add_token(token), create=True)
    sys.stderr.write(f"token {token.name!r}, shown this once:\n")
    say(text)
