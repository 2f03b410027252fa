"""The end of a campaign: close, reopen, seal and delete."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ldp_aggregator.cli.common import CommandError, add_command, add_store_options, say, settings_of, with_store
from ldp_aggregator.service.archiving import archive_of, goes_along
from ldp_aggregator.service.rights import local_actor, recorded
from ldp_aggregator.service.settings import SettingsError
from ldp_aggregator.store import RefusedError, Store, StoreError
from ldp_aggregator.store.clock import to_text, utc_now

Result = TypeVar("Result")


def add_ending(commands: Any) -> None:
    for name, text, command in (
        ("close", "accept no more reports; 'reopen' takes it back until it is sealed", _close),
        ("reopen", "take a closing back", _reopen),
        ("seal", "drop the ids of a closed campaign, for good; merge the stores of other regions before", _seal),
        ("delete", "drop a closed campaign with its reports and models, for good; its id is never used again", _delete),
    ):
        parser = add_command(commands, name, text, command, "ID")
        add_store_options(parser)
        parser.add_argument("id", metavar="ID", help="the campaign's id")
        if name == "seal":
            parser.add_argument("--now", action="store_true", help="even if it was closed less than a day ago")
        if name == "delete":
            parser.add_argument(
                "--leave-archive", action="store_true", help="leave its archived reports where they are"
            )


def _close(options: argparse.Namespace) -> None:
    state = _recorded(options, "close campaign", lambda store: store.close_campaign(options.id))
    say(f"closed with {state.shares} shares" if state.federated else f"closed with {state.reports} reports")


def _reopen(options: argparse.Namespace) -> None:
    state = _recorded(options, "reopen campaign", lambda store: store.reopen_campaign(options.id))
    closes = state.life.closes
    over = "" if closes is None or utc_now() < closes else f"; its document ends it at {to_text(closes)}"
    say(f"reopened with {state.reports} reports{over}")


def _seal(options: argparse.Namespace) -> None:
    state = _recorded(options, "seal campaign", lambda store: store.seal_campaign(options.id, at_once=options.now))
    say(f"sealed with {state.reports} reports; their ids are gone")


def _delete(options: argparse.Namespace) -> None:
    settings = settings_of(options)

    async def delete(store: Store) -> bool:
        archive = None if options.leave_archive else await archive_of(store, settings)
        if archive is not None:
            goes_along(store, archive)
        await store.delete_campaign(options.id)
        return archive is not None

    try:
        along = _recorded(options, "delete campaign", delete)
    except (SettingsError, StoreError) as error:
        if options.leave_archive or isinstance(error, RefusedError):
            raise
        raise CommandError(f"{error} (--leave-archive deletes the campaign and leaves its archived reports)") from error
    say(f"campaign {options.id} is deleted{', and its archived reports' if along else ''}")


def _recorded(options: argparse.Namespace, act: str, work: Callable[[Store], Awaitable[Result]]) -> Result:
    """Acts on a campaign that is there; of another nothing is written down."""

    async def acted(store: Store) -> Result:
        await store.state(options.id)
        async with recorded(store, local_actor(), act, options.id):
            return await work(store)

    return with_store(options, acted)
