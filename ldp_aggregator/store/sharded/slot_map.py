"""Which database holds which ids: 256 slots, one for each first byte of an id, and the statements that keep them.

The map is in the first database. Every change of it has a version, and every database knows the oldest version that
reports may be brought by: who has an older map is refused there, and reads it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.postgres.sessions import Connection

SLOTS: Final = 256
FIRST: Final = 0
"""The number of the database that everything but reports is in."""
PAUSED: Final = -1
"""In place of a database's number: the slot is on its way from one to another."""


@dataclass(frozen=True)
class Slot:
    """``shard`` has the ids; ``target`` is where they are going, ``cleaning`` where copies are to be dropped."""

    number: int
    shard: int
    target: int | None = None
    cleaning: int | None = None

    @property
    def is_settled(self) -> bool:
        return self.target is None and self.cleaning is None


@dataclass(frozen=True)
class SlotMap:
    """The map as it was read."""

    version: int
    shards: tuple[int, ...]
    slots: tuple[Slot, ...]

    @property
    def places(self) -> NDArray[np.int16]:
        """The database of each slot, :data:`PAUSED` where none takes reports; shape (256,)."""
        return np.array([slot.shard if slot.target is None else PAUSED for slot in self.slots], dtype=np.int16)

    def counts(self) -> dict[int, int]:
        """How many slots each database has."""
        return {shard: sum(slot.shard == shard for slot in self.slots) for shard in self.shards}


async def read(db: Connection) -> SlotMap:
    """Raises StoreError where there is none."""
    version = await db.fetchval("SELECT version FROM slot_map")
    rows = await db.fetch("SELECT slot AS number, shard, target, cleaning FROM slots ORDER BY slot")
    shards = await db.fetch("SELECT number FROM shards ORDER BY number")
    if version is None or len(rows) != SLOTS:
        raise StoreError("the first database has no map of slots")
    return SlotMap(version, tuple(row["number"] for row in shards), tuple(Slot(**row) for row in rows))


async def found(db: Connection, store: str, shards: Iterable[int]) -> None:
    """Make the first database of a new store of so many, with the slots spread evenly."""
    numbers = sorted(shards)
    await claim(db, store, FIRST)
    await db.executemany("INSERT INTO shards (number) VALUES ($1)", [(number,) for number in numbers])
    await db.executemany(
        "INSERT INTO slots (slot, shard) VALUES ($1, $2)",
        [(slot, numbers[slot * len(numbers) // SLOTS]) for slot in range(SLOTS)],
    )
    await db.execute("INSERT INTO slot_map (version) VALUES (1)")


async def claim(db: Connection, store: str, number: int) -> None:
    """Write into a database which one of which store it is."""
    await db.execute("DELETE FROM membership")
    await db.execute("INSERT INTO membership (store, number, least_map) VALUES ($1, $2, 0)", store, number)


async def membership(db: Connection) -> tuple[str, int] | None:
    """The store, and the number in it, of a database; None for one that is a store alone."""
    found = await db.fetchrow("SELECT store, number FROM membership")
    return None if found is None else (found["store"], found["number"])


async def change(db: Connection, slot: Slot) -> int:
    """Put a slot in place of the one that was read; returns the new map's version. Raises StoreError where another
    command has changed it meanwhile.
    """
    version = await db.fetchval("UPDATE slot_map SET version = version + 1 RETURNING version")
    await db.execute(
        "UPDATE slots SET shard = $2, target = $3, cleaning = $4 WHERE slot = $1",
        slot.number,
        slot.shard,
        slot.target,
        slot.cleaning,
    )
    return int(version)


async def locked(db: Connection, number: int) -> Slot:
    """A slot as it stays until the transaction ends. Who changes slots waits for who else does."""
    await db.execute("SELECT version FROM slot_map FOR UPDATE")
    return Slot(
        **await db.fetchrow("SELECT slot AS number, shard, target, cleaning FROM slots WHERE slot = $1", number)
    )
