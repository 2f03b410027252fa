"""``ldp-aggregator capacity``: what a million reports cost on this machine, measured on a store that is made for it."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ldp_aggregator.cli.common import (
    CommandError,
    Groups,
    add_command,
    add_store_options,
    say,
    say_json,
    say_table,
    settings_of,
)
from ldp_aggregator.store import Store, Submission, open_store
from protocols import Campaign
from protocols.wire.reports import ID_BYTES
from protocols.wire.upload import Block

CELLS: Final = 64
IN_BULK: Final = 50_000
"""Reports of an upload, where relays send many."""
TOGETHER: Final = 64
"""Uploads of one report each that one commit takes, where so many devices wait for the last one."""
MILLION: Final = 1_000_000


@dataclass(frozen=True)
class Cost:
    """``seconds`` and ``processor_seconds`` (of this process, not of a database server) are those of a million reports,
    the bytes those of one.
    """

    uploads: str
    reports: int
    per_second: int
    seconds: float
    processor_seconds: float
    bytes_kept: float


def add_commands(groups: Groups) -> None:
    text = "measure what a million reports cost on this machine, in a new folder or in an empty database"
    parser = add_command(
        groups,
        "capacity",
        text,
        _capacity,
        "--data ldp-data",
        "--reports 2000000 --json",
        "--database postgresql://localhost/empty",
    )
    add_store_options(parser)
    parser.add_argument("--reports", type=int, default=500_000, metavar="N", help="reports in bulk (default: 500000)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _capacity(options: argparse.Namespace) -> None:
    if options.reports < 1:
        raise CommandError("--reports is a number of 1 or more")
    settings = settings_of(options)
    address = settings.database_address
    # In the folder that a server would use, where there is one: disks differ.
    beside = settings.data if settings.data.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="ldp-capacity-", dir=beside) as folder:
        costs = asyncio.run(_measure(Path(folder), address, options.reports))
    machine = f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    if options.json:
        say_json({"machine": machine, "costs": [asdict(cost) for cost in costs]})
        return
    say(f"{machine}; {'PostgreSQL' if address else 'the embedded store'}")
    heads = ("uploads", "reports", "a second", "seconds a million", "of this processor", "bytes kept a report")
    say_table(heads, [tuple(asdict(cost).values()) for cost in costs])


async def _measure(folder: Path, address: str | None, reports: int) -> list[Cost]:
    store = await open_store(folder, address)
    try:
        if await store.campaigns():
            raise CommandError("the database has campaigns; measure in an empty one")
        costs = []
        for title, size, together, number in (
            (f"of {IN_BULK}", IN_BULK, 1, reports),
            (f"of one, {TOGETHER} together", 1, TOGETHER, max(1, reports // 100)),
        ):
            costs.append(await _cost(store, folder, title, list(_groups(_campaign(title), number, size, together))))
        return costs
    finally:
        for state in await store.campaigns():
            await store.close_campaign(state.id)
            await store.delete_campaign(state.id)
        await store.close()


async def _cost(store: Store, folder: Path, title: str, groups: list[list[Submission]]) -> Cost:
    await store.create_campaign(groups[0][0].campaign)
    before = await _kept(store, folder)
    wall, processor = time.perf_counter(), time.process_time()
    counted = sum([outcome.counted for group in groups for outcome in await store.count(group)])
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    kept = await _kept(store, folder) - before
    share = MILLION / counted
    return Cost(
        title,
        counted,
        round(counted / wall),
        round(wall * share, 1),
        round(processor * share, 1),
        round(kept / counted),
    )


async def _kept(store: Store, folder: Path) -> int:
    """Bytes on disk, what is to be merged included."""
    from ldp_aggregator.store.sqlite.store import SqliteStore

    if isinstance(store, SqliteStore):
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())  # noqa: ASYNC240 - nobody waits
    stores: list[Any] = [store, *getattr(store, "others", {}).values()]
    size = "SELECT pg_total_relation_size('ids') + pg_total_relation_size('parts')"
    return sum([int(await one.do(lambda db: db.fetchval(size))) for one in stores])


def _campaign(title: str) -> Campaign:
    return Campaign.compile(
        {
            "version": 1,
            "title": f"Capacity: uploads {title}",
            "label": {"name": "label", "classes": ["yes", "no"], "weight": 0},
            "features": [{"name": "x", "kind": "categorical", "values": [str(value) for value in range(CELLS // 2)]}],
            "privacy": {"epsilon": 1.0, "discrete": "de"},
        }
    )


def _groups(campaign: Campaign, reports: int, size: int, together: int) -> Iterator[list[Submission]]:
    """Groups of uploads with ids that nobody has sent before."""
    left = reports
    while left:
        group = []
        for _ in range(together):
            count = min(size, left)
            left -= count
            if count:
                payloads = bytes(number % CELLS for number in range(count))
                group.append(Submission(campaign, (Block(0, os.urandom(ID_BYTES * count), payloads),)))
        yield group
