"""``ldp-aggregator backup``: a copy of the embedded store, with or without a running server."""

from __future__ import annotations

import argparse
from pathlib import Path

from ldp_aggregator.cli.common import CommandError, Groups, add_command, add_store_options, say, settings_of
from ldp_aggregator.store.backup import copy_store


def add_commands(groups: Groups) -> None:
    text = "copy the embedded store as it is at one moment; the server may run meanwhile"
    parser = add_command(groups, "backup", text, _backup, "/backups/monday --data /var/lib/ldp-aggregator")
    add_store_options(parser)
    parser.add_argument("output", type=Path, metavar="FOLDER", help="the new data folder")


def _backup(options: argparse.Namespace) -> None:
    settings = settings_of(options)
    if settings.database is not None:
        raise CommandError(
            "the store is a PostgreSQL database, which this does not copy; use pg_dump or a base backup "
            "(for the embedded store, leave LDP_AGGREGATOR_DATABASE and database unset)"
        )
    copy_store(settings.data, options.output)
    say(f"the store is copied to {options.output}")
