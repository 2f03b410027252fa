"""The ids of reports on PostgreSQL: the statements that tell a retry from a new report."""

from __future__ import annotations

from collections.abc import Sequence

from ldp_aggregator.counting.digest import DIGEST_BYTES
from ldp_aggregator.counting.rows import Rows
from ldp_aggregator.store.batch import RECORD_BYTES, Batch, Settlement
from ldp_aggregator.store.postgres import schema
from ldp_aggregator.store.postgres.sessions import Connection
from protocols.wire.reports import ID_BYTES


async def insert(db: Connection, number: int, batch: Batch, room: int | None) -> Settlement:
    """Store the ids that are new, ``room`` of them at most. Nearly always all are, and one statement without an answer
    does it.
    """
    records = batch.candidates
    if room is not None and len(records) > room:
        known = await known_digests(db, number, records, range(len(records)))
        chosen = batch.earliest(known, room)
        await insert_records(db, number, records[chosen])
        return batch.settle(known, chosen)
    if not len(records):
        return batch.settle({})
    attempt = db.transaction()
    await attempt.start()
    if await insert_all(db, number, records):
        await attempt.commit()
        return batch.settle({})
    await attempt.rollback()
    inserted = await insert_records(db, number, records)
    old = [position for position, (id_, _) in enumerate(pairs(records)) if id_ not in inserted]
    return batch.settle(await known_digests(db, number, records, old))


async def insert_all(db: Connection, number: int, records: Rows) -> bool:
    """Insert records, cut from one blob inside the database; False where some id was there already."""
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
    if not len(records):
        return set()
    ids, digests = zip(*pairs(records), strict=True)
    rows = await db.fetch(
        f"INSERT INTO {schema.ids_table(number)} SELECT * FROM unnest($1::bytea[], $2::bytea[]) "
        "ON CONFLICT DO NOTHING RETURNING id",
        ids,
        digests,
    )
    return {row[0] for row in rows}


async def known_digests(db: Connection, number: int, records: Rows, positions: Sequence[int]) -> dict[int, bytes]:
    """Position to stored digest of those records whose id is in the store."""
    members = pairs(records)
    position_of = {members[position][0]: position for position in positions}
    rows = await db.fetch(
        f"SELECT id, digest FROM {schema.ids_table(number)} WHERE id = ANY($1::bytea[])", list(position_of)
    )
    return {position_of[row["id"]]: row["digest"] for row in rows}


def pairs(records: Rows) -> list[tuple[bytes, bytes]]:
    text, width = records.tobytes(), records.shape[1]
    return [
        (text[start : start + ID_BYTES], text[start + ID_BYTES : start + width]) for start in range(0, len(text), width)
    ]
