"""``ldp-aggregator serve``: the HTTP server, in the foreground."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from ldp_aggregator.cli.common import CommandError, add_command, add_store_options, settings_of
from ldp_aggregator.server.process import run_server
from ldp_aggregator.server.sockets.listener import Addresses
from ldp_aggregator.service.settings import Settings
from ldp_protocols.command_line import Groups, say

_LISTENERS: Final = ("listen", "listen_admin", "listen_operations")


def add_commands(groups: Groups) -> None:
    serve = add_command(
        groups, "serve", _serve, "--data /var/lib/ldp-aggregator --listen 8080", "--config aggregator.toml", note=""
    )
    add_store_options(serve)
    for name in _LISTENERS:
        field = Settings.model_fields[name]
        text = f"{field.description} (default: {field.default})"
        serve.add_argument(f"--{name.replace('_', '-')}", metavar="[HOST:]PORT", help=text)
    serve.add_argument(
        "--allow-origin",
        dest="allowed_origins",
        action="append",
        metavar="ORIGIN",
        help="a page's origin (https://app.example.org) whose scripts may upload and read models; may be repeated",
    )


def _serve(options: argparse.Namespace) -> None:
    serve_until_stopped(settings_of(options), _say_ready)


def serve_until_stopped(settings: Settings, ready: Callable[[Addresses], None]) -> None:
    """Run the server, and tell ``ready`` where it listens. Raises CommandError where it cannot, or ended of itself."""
    try:
        ended = run_server(settings, ready)
    except OSError as error:
        raise CommandError(
            f"cannot listen: {error.strerror or error}; --listen, --listen-admin and --listen-operations take others"
        ) from None
    if ended is not None:
        raise CommandError(f"the {ended} ended by itself; the log says why")


def _say_ready(addresses: Addresses) -> None:
    say(f"ldp-aggregator is ready: public {addresses.public} admin {addresses.admin} operations {addresses.operations}")
