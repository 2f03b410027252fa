"""The ids of reports on PostgreSQL: what tells a retry from a new report, and all that knows how they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ldp_aggregator.counting.digest import DIGEST_BYTES
from ldp_aggregator.counting.rows import Rows
from ldp_aggregator.store.batch import RECORD_BYTES, Batch, Settlement
from ldp_aggregator.store.postgres.sessions import Connection
from protocols.wire.reports import ID_BYTES

SMALL: Final = 256
PROBES: Final = 64
"""Of more than ``SMALL`` records so many are looked up before: an upload that was counted as a whole is not inserted to
find out."""


def table(number: int) -> str:
    """The name of the table that holds the ids of campaign ``number``."""
    return f"ids_{int(number)}"


async def create(db: Connection, number: int) -> None:
    await db.execute(f"CREATE TABLE {table(number)} (id bytea PRIMARY KEY, digest bytea NOT NULL)")


async def drop(db: Connection, number: int) -> None:
    """Waits for whoever reads them, a dump too."""
    await db.execute(f"DROP TABLE IF EXISTS {table(number)}")


async def stored(db: Connection, number: int) -> int:
    """How many there are."""
    return int(await db.fetchval(f"SELECT count(*) FROM {table(number)}"))


async def insert(db: Connection, number: int, batch: Batch, room: int | None) -> Settlement:
    """Store the ids that are new, ``room`` of them at most."""
    records = batch.candidates
    if room is not None and len(records) > room:
        known = await known_digests(db, number, records, range(len(records)))
        chosen = batch.earliest(known, room)
        await insert_records(db, number, records[chosen])
        return batch.settle(known, chosen)
    if len(records) > SMALL:
        probes = range(0, len(records), -(-len(records) // PROBES))
        if await known_digests(db, number, records, probes) and await _is_repeated(db, number, records):
            return batch.settle_repeated()
    inserted = await insert_records(db, number, records)
    if inserted is None:
        return batch.settle({})
    old = [position for position, (id_, _) in enumerate(pairs(records)) if id_ not in inserted]
    return batch.settle(await known_digests(db, number, records, old))


async def insert_records(db: Connection, number: int, records: Rows) -> set[bytes] | None:
    """Insert records, cut from one blob inside the database; None where all were new, else the ids that were.

    Waits for another instance that is inserting one of them.
    """
    if not len(records):
        return None
    inserted: bytes | None = await db.fetchval(
        f"WITH inserted AS (INSERT INTO {table(number)} "
        f"SELECT substring($1::bytea FROM at + 1 FOR {ID_BYTES}), "
        f"substring($1::bytea FROM at + {ID_BYTES + 1} FOR {DIGEST_BYTES}) "
        f"FROM generate_series(0, $2::integer - 1, {RECORD_BYTES}) AS at ON CONFLICT DO NOTHING RETURNING id) "
        f"SELECT CASE WHEN count(*) < $2 / {RECORD_BYTES} THEN coalesce(string_agg(id, ''), '') END FROM inserted",
        records.tobytes(),
        records.size,
    )
    if inserted is None:
        return None
    return {inserted[start : start + ID_BYTES] for start in range(0, len(inserted), ID_BYTES)}


async def known_digests(db: Connection, number: int, records: Rows, positions: Sequence[int]) -> dict[int, bytes]:
    """Position to stored digest of those records whose id is in the store."""
    if not len(positions):
        return {}
    wanted = records[np.asarray(positions, dtype=np.int64), :ID_BYTES].tobytes()
    rows = await db.fetch(
        "SELECT wanted.position, ids.digest FROM (SELECT position, "
        f"substring($1::bytea FROM position * {ID_BYTES} + 1 FOR {ID_BYTES}) AS id "
        f"FROM generate_series(0, $2::integer - 1) AS position) AS wanted JOIN {table(number)} AS ids USING (id)",
        wanted,
        len(positions),
    )
    return {int(positions[position]): digest for position, digest in rows}


async def _is_repeated(db: Connection, number: int, records: Rows) -> bool:
    """Whether every record is stored as it is."""
    found = await db.fetchval(
        f"SELECT count(*) FROM generate_series(0, $2::integer - 1, {RECORD_BYTES}) AS at JOIN {table(number)} AS ids "
        f"ON ids.id = substring($1::bytea FROM at + 1 FOR {ID_BYTES}) "
        f"AND ids.digest = substring($1::bytea FROM at + {ID_BYTES + 1} FOR {DIGEST_BYTES})",
        records.tobytes(),
        records.size,
    )
    return int(found) == len(records)


def pairs(records: Rows) -> list[tuple[bytes, bytes]]:
    text, width = records.tobytes(), records.shape[1]
    return [
        (text[start : start + ID_BYTES], text[start + ID_BYTES : start + width]) for start in range(0, len(text), width)
    ]
