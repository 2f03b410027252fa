"""``ldp-aggregator shards``: the databases of a store in several, and which of them has which ids."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ldp_aggregator.cli.common import (
    CommandError,
    Groups,
    add_command,
    add_group,
    add_store_options,
    address_type,
    say,
    say_json,
    say_table,
    settings_of,
)
from ldp_aggregator.service.acting import local_actor, recorded
from ldp_aggregator.store import Store, open_store
from ldp_aggregator.store.location import check_driver

if TYPE_CHECKING:
    from ldp_aggregator.store.sharded.slot_map import SlotMap
    from ldp_aggregator.store.sharded.store import ShardedStore

Result = TypeVar("Result")


def add_commands(groups: Groups) -> None:
    text = "the databases of a store in several, and which of the 256 slots of ids each of them has"
    group = add_group(groups, "shards", text, "list", "add postgresql://db2/ldp", "move 128-255 1")
    parser = add_command(group, "list", "list the databases and their slots", _list, "--json")
    add_store_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    adding = "make an empty database one more of the store; servers have to be started again with all addresses"
    parser = add_command(group, "add", adding, _add, "postgresql://db2/ldp --database postgresql://db1/ldp")
    add_store_options(parser)
    parser.add_argument("address", type=address_type, metavar="URL", help="postgresql:// address, without password")
    moving = (
        "bring slots to a database, or complete that, while servers run: uploads to the one that is being moved are "
        "told to come again"
    )
    parser = add_command(group, "move", moving, _move, "128-255 1", "7,9,200-203 0")
    add_store_options(parser)
    parser.add_argument("slots", type=_slots, metavar="SLOTS", help="numbers from 0 to 255, and ranges: 7,9,200-203")
    parser.add_argument("target", type=int, metavar="DATABASE", help="its number, as 'shards list' tells it")


def _list(options: argparse.Namespace) -> None:
    found = _with_shards(options, _read_slots, read_only=True)
    counts = found.counts()
    on_the_way = [slot for slot in found.slots if not slot.is_settled]
    if options.json:
        moving = [
            {"slot": slot.number, "database": slot.shard, "target": slot.target, "cleaning": slot.cleaning}
            for slot in on_the_way
        ]
        databases = [{"number": number, "slots": _slots_of(found, number)} for number in found.shards]
        say_json({"version": found.version, "databases": databases, "moving": moving})
        return
    say_table(("database", "slots", "which"), [(n, counts[n], _shown(_slots_of(found, n))) for n in found.shards])
    for slot in on_the_way:
        to = slot.shard if slot.target is None else slot.target
        say(f"slot {slot.number} is on its way; 'ldp-aggregator shards move {slot.number} {to}' completes it")


async def _read_slots(store: ShardedStore) -> SlotMap:
    return await store.slots()


def _add(options: argparse.Namespace) -> None:
    address = _database(options)
    check_driver()
    from ldp_aggregator.store.postgres.store import PostgresStore
    from ldp_aggregator.store.sharded.opening import add_shard

    async def run() -> int:
        store = await open_store(settings_of(options).data, address)
        try:
            if not isinstance(store, PostgresStore):
                raise CommandError("a store in a folder has no databases; name a PostgreSQL one with --database")
            async with recorded(store, local_actor(), "add database"):
                return await add_shard(store, options.address)
        finally:
            await store.close()

    number = asyncio.run(run())
    say(f"it is database {number} of the store, and has no slot yet")
    say("start every server again with all addresses, and then bring slots there with 'ldp-aggregator shards move'")


def _move(options: argparse.Namespace) -> None:
    from ldp_aggregator.store.sharded.moving import move_slot

    async def work(store: ShardedStore) -> None:
        detail = f"{_shown(options.slots)} to database {options.target}"
        async with recorded(store, local_actor(), "move slots", None, detail):
            for slot in options.slots:
                moved = await move_slot(store, slot, options.target)
                say(f"slot {slot} is in database {options.target}; {moved} ids went")

    _with_shards(options, work)


def _with_shards(
    options: argparse.Namespace, work: Callable[[ShardedStore], Awaitable[Result]], *, read_only: bool = False
) -> Result:
    address = _database(options)
    check_driver()
    from ldp_aggregator.store.sharded.store import ShardedStore

    async def run() -> Result:
        store: Store = await open_store(settings_of(options).data, address, read_only=read_only)
        try:
            if not isinstance(store, ShardedStore):
                raise CommandError("the store is in one database; 'ldp-aggregator shards add' adds another one")
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def _database(options: argparse.Namespace) -> str:
    address = settings_of(options).database_address
    if address is None:
        raise CommandError("a store in a folder has no databases; name a PostgreSQL one with --database")
    return address


def _slots_of(found: SlotMap, number: int) -> list[int]:
    return [slot.number for slot in found.slots if slot.shard == number]


def _shown(slots: list[int]) -> str:
    """Numbers and ranges, as :func:`_slots` reads them."""
    ranges: list[list[int]] = []
    for slot in slots:
        if ranges and slot == ranges[-1][1] + 1:
            ranges[-1][1] = slot
        else:
            ranges.append([slot, slot])
    return ",".join(f"{first}-{last}" if first < last else str(first) for first, last in ranges)


def _slots(text: str) -> list[int]:
    slots: set[int] = set()
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or not int(first) <= int(last or first) <= 255:
            raise argparse.ArgumentTypeError(f"{piece!r} is no slot from 0 to 255, and no range of them like 200-203")
        slots.update(range(int(first), int(last or first) + 1))
    return sorted(slots)
