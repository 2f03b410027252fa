"""``ldp-aggregator restore``: a store out of a backup, in which nothing is in use that may have been taken back."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from ldp_aggregator.cli.common import Groups, UsageError, add_command, add_store_options, say, settings_of
from ldp_aggregator.store.backup import restore_store
from ldp_aggregator.store.contract import Restored
from ldp_aggregator.store.location import check_driver


def add_commands(groups: Groups) -> None:
    text = "make a store of a backup; every token is revoked, every share of a node dropped, and versions go on higher"
    parser = add_command(
        groups,
        "restore",
        text,
        _restore,
        "/backups/monday --data /var/lib/ldp-aggregator",
        "--in-place --database postgresql://localhost/ldp",
    )
    add_store_options(parser)
    parser.add_argument(
        "backup", type=Path, nargs="?", metavar="FOLDER", help="what 'backup' wrote; --data is the new one"
    )
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="for PostgreSQL: do it to the database, once pg_restore has put it back and before a server runs on it",
    )
    parser.add_argument(
        "--keep-shares", action="store_true", help="keep the shares of nodes: none was withdrawn since the backup"
    )


def _restore(options: argparse.Namespace) -> None:
    settings = settings_of(options)
    if (options.backup is None) != options.in_place:
        raise UsageError("restore takes the folder of a backup, or --in-place for a database")
    if (settings.database_address is None) == options.in_place:
        raise UsageError(
            "--in-place is for a database; an embedded store is restored from its folder"
            if options.in_place
            else "the store is a PostgreSQL database: put it back with pg_restore, then run restore --in-place "
            "(for the embedded store, leave LDP_AGGREGATOR_DATABASE and database unset)"
        )
    if settings.database_address is None:
        restored = restore_store(options.backup, settings.data, keep_shares=options.keep_shares)
    else:
        restored = asyncio.run(_renew(settings.database_address, options.keep_shares))
    say(f"the store is restored; {restored.tokens} tokens are revoked, {restored.shares} shares dropped; run fsck")


async def _renew(address: str, keep_shares: bool) -> Restored:
    check_driver()
    from ldp_aggregator.store.postgres.store import PostgresStore

    store = await PostgresStore.open(address)
    try:
        return await store.renew(keep_shares=keep_shares)
    finally:
        await store.close()
