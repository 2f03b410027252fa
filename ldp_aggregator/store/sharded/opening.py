"""Databases opened as the one store that they are, and never as another one."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack

from ldp_aggregator.store.clock import Clock
from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.postgres.sessions import Connection
from ldp_aggregator.store.postgres.store import PostgresStore
from ldp_aggregator.store.sharded import levelling, slot_map
from ldp_aggregator.store.sharded.slot_map import FIRST
from ldp_aggregator.store.sharded.store import ShardedStore


async def open_shards(
    addresses: Sequence[str], *, clock: Clock | None = None, read_only: bool = False
) -> PostgresStore:
    """The store in the databases at ``addresses``, the first one first. Empty ones become a new store.

    Raises StoreError where they are not all databases of one store, or not the only ones of it.
    """
    async with AsyncExitStack() as opened:
        stores = []
        for address in addresses:
            stores.append(await PostgresStore.open(address, clock=clock, read_only=read_only))
            opened.push_async_callback(PostgresStore.close, stores[-1])
        first = stores[0]
        if len(stores) > 1 and not read_only and await _member(first) is None:
            await first.do(lambda db: _found(db, stores))
        store = await _joined(stores)
        if isinstance(store, ShardedStore) and not read_only:
            for other in store.others.values():
                await levelling.bring_all(store, other)
        opened.pop_all()
        return store


async def add_shard(store: PostgresStore, address: str) -> int:
    """Make the database at ``address`` one more of the store, which has no slot yet; returns its number.

    Where that was interrupted the same again completes it.
    """
    new = await PostgresStore.open(address)
    try:
        return await store.do(lambda db: _register(db, store, new))
    finally:
        await new.close()


async def _joined(stores: Sequence[PostgresStore]) -> PostgresStore:
    """The store that opened databases are. Raises StoreError."""
    first = stores[0]
    members = [await _member(store) for store in stores]
    place = members[0]
    if place is None:
        if len(stores) == 1:
            return first
        raise StoreError("the first database is a store of its own; 'ldp-aggregator shards add' adds others to it")
    if place[1] != FIRST:
        raise StoreError(f"this is database {place[1]} of a store of several; name its first database first")
    found = await first.do(slot_map.read)
    others: dict[int, PostgresStore] = {}
    for position, (store, member) in enumerate(zip(stores[1:], members[1:], strict=True), 2):
        if member is None or member[0] != place[0] or member[1] not in found.shards:
            raise StoreError(
                f"the database named as number {position} is none of this store; 'ldp-aggregator shards add' adds it"
            )
        if member[1] == FIRST or member[1] in others:
            raise StoreError(f"the database named as number {position} is named twice")
        others[member[1]] = store
    if len(stores) != len(found.shards):
        raise StoreError(f"the store is in {len(found.shards)} databases; name all of them, not {len(stores)}")
    return first if not others else ShardedStore.of(first, others, found)


async def _found(db: Connection, stores: Sequence[PostgresStore]) -> None:
    """Whoever comes first makes one store of empty databases, while the others wait."""
    await db.execute("SELECT 1 FROM origin FOR UPDATE")
    if await slot_map.membership(db) is not None:
        return
    if await db.fetchval("SELECT EXISTS (SELECT 1 FROM campaigns)"):
        return  # It is a store of its own, and stays one until something is added.
    name = secrets.token_hex(16)
    for number, other in enumerate(stores[1:], 1):
        await _claim(other, name, number)
    await slot_map.found(db, name, range(len(stores)))


async def _register(db: Connection, store: PostgresStore, new: PostgresStore) -> int:
    await db.execute("SELECT 1 FROM origin FOR UPDATE")
    place = await slot_map.membership(db)
    name = secrets.token_hex(16) if place is None else place[0]
    if place is None:
        await slot_map.found(db, name, [FIRST])
    found = await slot_map.read(db)
    member = await _member(new)
    if member is not None and member[0] == name and member[1] in found.shards:
        raise StoreError(f"it is database {member[1]} of this store already")
    number = max(found.shards) + 1
    await _claim(new, name, number)
    await levelling.bring_all(store, new)
    await db.execute("INSERT INTO shards (number) VALUES ($1)", number)
    return number


async def _claim(store: PostgresStore, name: str, number: int) -> None:
    """Raises StoreError where a database has campaigns that it did not get from this store."""

    async def work(db: Connection) -> None:
        member = await slot_map.membership(db)
        empty = not await db.fetchval("SELECT EXISTS (SELECT 1 FROM campaigns)")
        if not empty and (member is None or member[0] != name):
            raise StoreError(f"the database that is to be number {number} has campaigns of its own; take an empty one")
        await slot_map.claim(db, name, number)

    await store.do(work)


async def _member(store: PostgresStore) -> tuple[str, int] | None:
    return await store.do(slot_map.membership)
