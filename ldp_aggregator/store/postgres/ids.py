"""The ids of reports on PostgreSQL: the statements that tell a retry from a new report."""

from __future__ import annotations

import numpy as np

from ldp_aggregator.counting.digest import DIGEST_BYTES
from ldp_aggregator.counting.rows import Rows
from ldp_aggregator.store.batch import RECORD_BYTES, Batch, Settlement
from ldp_aggregator.store.postgres import schema
from ldp_aggregator.store.postgres.sessions import Connection
from protocols.wire.reports import ID_BYTES


async def insert(db: Connection, number: int, batch: Batch, room: int | None) -> Settlement:
    """Store the ids that are new, ``room`` of them at most.

    What is there already is looked up first, so that replays cost one question more and not everything twice; only
    where another instance comes in between are the new ones told apart one by one.
    """
    records = batch.candidates
    known = await known_digests(db, number, records)
    fresh = batch.earliest(known, len(records) if room is None else room)
    attempt = db.transaction()
    await attempt.start()
    if await insert_all(db, number, records[fresh]):
        await attempt.commit()
        return batch.settle(known, fresh)
    await attempt.rollback()
    inserted = await insert_records(db, number, records[fresh])
    mine = {position for position in fresh.tolist() if records[position, :ID_BYTES].tobytes() in inserted}
    found = await known_digests(db, number, records)
    known = {position: digest for position, digest in found.items() if position not in mine}
    return batch.settle(known, np.array(sorted(mine), dtype=np.int64))


async def insert_all(db: Connection, number: int, records: Rows) -> bool:
    """Insert records, cut from one blob inside the database; False where some id was there already."""
    if not len(records):
        return True
    status: str = await db.execute(
        f"INSERT INTO {schema.ids_table(number)} "
        f"SELECT substring($1::bytea FROM at + 1 FOR {ID_BYTES}), "
        f"substring($1::bytea FROM at + {ID_BYTES + 1} FOR {DIGEST_BYTES}) "
        f"FROM generate_series(0, $2::integer - 1, {RECORD_BYTES}) AS at ON CONFLICT DO NOTHING",
        records.tobytes(),
        records.size,
    )
    return status == f"INSERT 0 {len(records)}"


async def insert_records(db: Connection, number: int, records: Rows) -> set[bytes]:
    """The ids that were not there before. Waits for another instance that is inserting one of them."""
    ids, digests = zip(*pairs(records), strict=True)
    rows = await db.fetch(
        f"INSERT INTO {schema.ids_table(number)} SELECT * FROM unnest($1::bytea[], $2::bytea[]) "
        "ON CONFLICT DO NOTHING RETURNING id",
        ids,
        digests,
    )
    return {row[0] for row in rows}


async def known_digests(db: Connection, number: int, records: Rows) -> dict[int, bytes]:
    """Position to stored digest of those records whose id is in the store."""
    if not len(records):
        return {}
    rows = await db.fetch(
        f"SELECT at / {RECORD_BYTES} AS position, ids.digest "
        f"FROM generate_series(0, $2::integer - 1, {RECORD_BYTES}) AS at JOIN {schema.ids_table(number)} AS ids "
        f"ON ids.id = substring($1::bytea FROM at + 1 FOR {ID_BYTES})",
        records.tobytes(),
        records.size,
    )
    return {row[0]: row[1] for row in rows}


def pairs(records: Rows) -> list[tuple[bytes, bytes]]:
    text, width = records.tobytes(), records.shape[1]
    return [
        (text[start : start + ID_BYTES], text[start + ID_BYTES : start + width]) for start in range(0, len(text), width)
    ]
