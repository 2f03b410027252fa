"""``ldp-aggregator fsck``: does what is stored agree with itself? And taking out what is damaged."""

from __future__ import annotations

import argparse

from ldp_aggregator.cli.common import (
    CommandError,
    Groups,
    add_command,
    add_store_options,
    say,
    with_recorded,
    with_store,
)
from ldp_aggregator.store import Finding, SqliteStore, Store
from ldp_aggregator.store.sqlite.ids import TakenOut


def add_commands(groups: Groups) -> None:
    parser = add_command(
        groups,
        "fsck",
        "check that ids, counts and documents of a store agree; exit code 1 where they do not",
        _fsck,
        "--data /var/lib/ldp-aggregator",
        "--take-out-damaged --data /var/lib/ldp-aggregator",
    )
    add_store_options(parser)
    parser.add_argument(
        "--take-out-damaged",
        action="store_true",
        help="before: take damaged runs of ids out, keep what is sound of them, and say how many reports might now "
        "count twice; a server may run meanwhile",
    )


def _fsck(options: argparse.Namespace) -> int:
    async def work(store: Store) -> tuple[int, list[Finding], str]:
        return len(await store.campaigns()), await store.check(), (await store.origin()).generation

    if options.take_out_damaged:
        _take_out(options)
    campaigns, findings, generation = with_store(options, work, read_only=True)
    for finding in findings:
        say(str(finding))
    if not findings:
        say(f"{campaigns} campaigns are sound: each that is not sealed has an id for every report")
        say(f"this store is {generation}")
    return 1 if findings else 0


def _take_out(options: argparse.Namespace) -> None:
    async def work(store: Store) -> list[TakenOut]:
        if not isinstance(store, SqliteStore):
            raise CommandError("a PostgreSQL store has no runs of ids: restore its tables with PostgreSQL's own tools")
        return await store.take_out_damaged()

    for one in with_recorded(options, work, "take out damaged runs"):
        lost = one.ids - one.saved
        say(f"{one.campaign}: {one.problem.partition(';')[0]}: taken out; {one.saved} of its {one.ids} ids were saved")
        if lost:
            say(
                f"{one.campaign}: {lost} reports stay counted without an id: one that is sent again counts once more "
                f"('counted twice, at most' says so from now on). A backup from before the damage has their ids."
            )
