"""``ldp-aggregator serve``: the HTTP server, in the foreground."""

from __future__ import annotations

import argparse
from pathlib import Path

from ldp_aggregator.cli.common import CommandError, Groups, add_command, add_store_options, say, settings_of
from ldp_aggregator.server.process import EndedError, run_server
from ldp_aggregator.server.sockets.listener import Addresses


def add_commands(groups: Groups) -> None:
    parser = add_command(
        groups,
        "serve",
        "serve campaigns and count reports until SIGTERM or Ctrl-C",
        _serve,
        "--data /var/lib/ldp-aggregator --port 8080",
        "--config aggregator.toml",
    )
    add_store_options(parser)
    parser.add_argument("--host", help="address of the public listener (default: every address of this machine)")
    parser.add_argument("--port", type=int, help="port of the public listener; 0 takes a free one (default: 8080)")
    parser.add_argument("--admin-host", help="address of the admin listener (default: 127.0.0.1)")
    parser.add_argument("--admin-port", type=int, help="port of the admin listener (default: 8081)")
    parser.add_argument(
        "--allow-origin",
        dest="allowed_origins",
        action="append",
        metavar="ORIGIN",
        help="a page's origin (https://app.example.org) whose scripts may upload and read models; may be repeated",
    )
    parser.add_argument("--operations-host", help="address of the listener for health and metrics (default: 127.0.0.1)")
    parser.add_argument("--operations-port", type=int, help="its port (default: 8082)")
    parser.add_argument("--tls-certificate", type=Path, metavar="FILE", help="certificate chain of the public listener")
    parser.add_argument(
        "--keep-closed-for",
        dest="keep_closed_days",
        type=int,
        metavar="DAYS",
        help="delete campaigns, their models too, so long after they were closed (default: keep them)",
    )
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key; SIGHUP reads both again")


def _serve(options: argparse.Namespace) -> None:
    settings = settings_of(options)
    try:
        run_server(settings, _say_ready)
    except EndedError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(
            f"cannot listen: {error.strerror or error}; --port, --admin-port and --operations-port take others"
        ) from None


def _say_ready(addresses: Addresses) -> None:
    say(f"ldp-aggregator is ready: public {addresses.public} admin {addresses.admin} operations {addresses.operations}")
