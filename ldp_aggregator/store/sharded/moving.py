"""A slot moved from one database to another. Uploads to it are refused meanwhile, with a time to come again.

1. The map says that the slot is on its way. Its database refuses whoever has an older map, and waits for those who
   counted by one: from here on nobody counts in this slot.
2. Its ids are copied, piece by piece. What was copied before an interruption is found, and counted as moved once.
3. The map says that it has arrived, and its new database takes reports.
4. What is left in the old one is dropped, piece by piece.

Interrupted anywhere, the same command goes on where it was; moving the slot back undoes what was begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.postgres import campaigns
from ldp_aggregator.store.postgres.campaigns import HOLD_SECONDS
from ldp_aggregator.store.postgres.sessions import Connection
from ldp_aggregator.store.postgres.store import PostgresStore
from ldp_aggregator.store.sharded import levelling, slot_map
from ldp_aggregator.store.sharded.slot_map import FIRST, Slot
from ldp_aggregator.store.sharded.store import ShardedStore
from protocols.wire.reports import ID_BYTES

PIECE: Final = 20_000
"""Ids that are copied or dropped in one transaction."""

_IN_SLOT: Final = "campaign = $1 AND id > $2 AND id <= $3"


async def move_slot(store: ShardedStore, number: int, target: int) -> int:
    """Bring a slot to database ``target``, or complete that; returns how many ids went. Raises StoreError."""
    found = await store.slots()
    if target not in found.shards:
        raise StoreError(f"the store has no database {target}; it has {', '.join(map(str, found.shards))}")
    await _clean(store, found.slots[number])
    slot, version = await _begin(store, number, target)
    moved = 0
    if slot.target is not None:
        source = store.shard(slot.shard)
        await levelling.bring_all(store, store.shard(target))
        await _fence(source, version)
        moved = await _copy(source, store.shard(target), number)
        slot = await _arrive(store, slot)
    await _clean(store, slot)
    await store.slots()
    return moved


async def _begin(store: ShardedStore, number: int, target: int) -> tuple[Slot, int]:
    """The slot on its way, and the version of the map that says so."""

    async def work(db: Connection) -> tuple[Slot, int]:
        slot = await slot_map.locked(db, number)
        if slot.target not in (None, target) and slot.shard != target:
            raise StoreError(
                f"slot {number} is on its way from database {slot.shard} to {slot.target}; complete that first, "
                f"or undo it by moving it to {slot.shard}"
            )
        if slot.cleaning is not None:
            raise StoreError(f"somebody else is moving slot {number}")
        if slot.shard == target:
            slot = replace(slot, target=None, cleaning=slot.target)
        else:
            slot = replace(slot, target=target)
        return slot, await slot_map.change(db, slot)

    return await store.do(work)


async def _arrive(store: ShardedStore, slot: Slot) -> Slot:
    """The slot in its new database, and its copies to be dropped in the old one."""
    arrived = replace(slot, shard=slot.target or FIRST, target=None, cleaning=slot.shard)

    async def work(db: Connection) -> None:
        if await slot_map.locked(db, slot.number) != slot:
            raise StoreError(f"somebody else has moved slot {slot.number} meanwhile")
        await slot_map.change(db, arrived)

    await store.do(work)
    return arrived


async def _fence(source: PostgresStore, version: int) -> None:
    """Refuse whoever has an older map, and wait until those who counted by one have ended."""

    async def refuse(db: Connection) -> None:
        await db.execute("UPDATE membership SET least_map = greatest(least_map, $1)", version)
        await db.execute(
            "UPDATE campaigns SET least_map = greatest(least_map, $1), "
            f"held_until = clock_timestamp() + interval '{HOLD_SECONDS} s'",
            version,
        )

    async def wait(db: Connection) -> None:
        await db.fetch("SELECT number FROM campaigns ORDER BY number FOR UPDATE")
        await db.execute("UPDATE campaigns SET held_until = NULL")

    await source.do(refuse)
    await source.do(wait)


async def _copy(source: PostgresStore, target: PostgresStore, number: int) -> int:
    """All ids of a slot; returns how many there are. Raises StoreError where some did not arrive."""
    total = 0
    for row in await source.do(campaigns.rows):
        if row.life.sealed is not None or row.max_reports is not None:
            continue
        last, end = _range(number)
        here = 0
        while True:
            piece = await source.do(partial(_read, campaign=row.number, last=last, end=end))
            if not piece:
                break
            await target.do(partial(_store, campaign_id=row.id, piece=piece))
            last, here = piece[-1][0], here + len(piece)
        there = await target.do(partial(_count, campaign_id=row.id, slot=number))
        if there is not None and there != here:
            raise StoreError(f"campaign {row.id}: of {here} ids in slot {number}, {there} arrived; nothing was changed")
        total += here
    return total


async def _clean(store: ShardedStore, slot: Slot) -> None:
    """Drop the copies of a slot's ids where it is not any more."""
    if slot.cleaning is None:
        return
    old = store.shard(slot.cleaning)
    for row in await old.do(campaigns.rows):
        if row.max_reports is None:
            while await old.do(partial(_drop, campaign=row.number, slot=slot.number)):
                pass

    async def settle(db: Connection) -> None:
        now = await slot_map.locked(db, slot.number)
        if now.cleaning == slot.cleaning:
            await slot_map.change(db, replace(now, cleaning=None))

    await store.do(settle)


def _range(slot: int) -> tuple[bytes, bytes]:
    """What is below every id of a slot, and its last one. No id is shorter than others."""
    return bytes([slot]), bytes([slot]) + b"\xff" * (ID_BYTES - 1)


async def _read(db: Connection, campaign: int, last: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
    """The next ids of a slot, with their digests."""
    found = await db.fetch(
        f"SELECT id, digest FROM ids WHERE {_IN_SLOT} ORDER BY id LIMIT $4", campaign, last, end, PIECE
    )
    return [(row["id"], row["digest"]) for row in found]


async def _store(db: Connection, campaign_id: str, piece: Sequence[tuple[bytes, bytes]]) -> None:
    """Those that are not there yet. What was sealed or deleted meanwhile takes none."""
    row = await campaigns.find(db, campaign_id)
    if row is None or (await campaigns.locked(db, row, campaigns.TOGETHER)).life.sealed is not None:
        return
    await db.execute(
        "WITH stored AS (INSERT INTO ids (campaign, id, digest) SELECT $1, id, digest "
        "FROM unnest($2::bytea[], $3::bytea[]) AS piece (id, digest) ON CONFLICT DO NOTHING RETURNING 1) "
        "UPDATE campaigns SET moved = moved + (SELECT count(*) FROM stored) WHERE number = $1",
        row.number,
        [id_ for id_, _ in piece],
        [digest for _, digest in piece],
    )


async def _count(db: Connection, campaign_id: str, slot: int) -> int | None:
    """The ids of a slot; None where the campaign has none any more."""
    row = await campaigns.find(db, campaign_id)
    if row is None or row.life.sealed is not None:
        return None
    return int(await db.fetchval(f"SELECT count(*) FROM ids WHERE {_IN_SLOT}", row.number, *_range(slot)))


async def _drop(db: Connection, campaign: int, slot: int) -> int:
    """Some ids of a slot; returns how many."""
    dropped: int = await db.fetchval(
        f"WITH piece AS (SELECT id FROM ids WHERE {_IN_SLOT} ORDER BY id LIMIT $4), "
        "gone AS (DELETE FROM ids USING piece WHERE ids.campaign = $1 AND ids.id = piece.id RETURNING 1), "
        "told AS (UPDATE campaigns SET moved = moved - (SELECT count(*) FROM gone) WHERE number = $1) "
        "SELECT count(*) FROM gone",
        campaign,
        *_range(slot),
        PIECE,
    )
    return dropped
