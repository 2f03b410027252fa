"""``ldp-aggregator fsck``: does what is stored agree with itself?"""

from __future__ import annotations

import argparse

from ldp_aggregator.cli.common import Groups, add_command, add_store_options, say, with_store
from ldp_aggregator.store import Finding, Store


def add_commands(groups: Groups) -> None:
    parser = add_command(
        groups,
        "fsck",
        "check that ids, counts and documents of a store agree; exit code 1 where they do not",
        _fsck,
        "--data /var/lib/ldp-aggregator",
    )
    add_store_options(parser)


def _fsck(options: argparse.Namespace) -> int:
    async def work(store: Store) -> tuple[int, list[Finding], str]:
        return len(await store.campaigns()), await store.audit(), (await store.origin()).generation

    campaigns, findings, generation = with_store(options, work, read_only=True)
    for finding in findings:
        say(str(finding))
    if not findings:
        say(f"{campaigns} campaigns are sound: each that is not sealed has an id for every report")
        say(f"this store is {generation}")
    return 1 if findings else 0
