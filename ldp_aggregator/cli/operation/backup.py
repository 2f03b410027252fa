"""``ldp-aggregator backup``: a copy of the embedded store, with or without a running server."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from ldp_aggregator.cli.common import CommandError, Groups, add_command, add_store_options, say, settings_of
from ldp_aggregator.service.acting import local_actor, recorded
from ldp_aggregator.store import StoreError, open_store
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
    asyncio.run(_recorded_copy(settings.data, options.output))
    say(f"the store is copied to {options.output}")


async def _recorded_copy(data: Path, output: Path) -> None:
    """The copy, in the log of a store that takes writes. One that does not (a backup, a full disk)
    is copied all the same: then above all.
    """
    begun = False
    try:
        store = await open_store(data, create=False)
        try:
            async with recorded(store, local_actor(), "back up store", detail=str(output)):
                begun = True
                copy_store(data, output)
        finally:
            await store.close()
    except (OSError, StoreError) as error:
        if begun:
            raise
        copy_store(data, output)
        say(f"this is in no log, since the store takes no entry: {error}")
