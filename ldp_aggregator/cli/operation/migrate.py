"""``ldp-aggregator migrate``: the one command that changes the tables of a store that an older version made."""

from __future__ import annotations

import argparse
import asyncio

from ldp_aggregator.cli.common import Groups, add_command, add_store_options, say, settings_of
from ldp_aggregator.store.location import migrate_store


def add_commands(groups: Groups) -> None:
    text = "bring a store of an older version up to date; stop the servers and make a backup before"
    add_store_options(add_command(groups, "migrate", text, _migrate, "--data /var/lib/ldp-aggregator"))


def _migrate(options: argparse.Namespace) -> None:
    settings = settings_of(options)
    before, now = asyncio.run(migrate_store(settings.data, settings.database_address))
    said = "has schema version" if before == now else f"had schema version {before} and has"
    say(f"the store {said} {now}")
