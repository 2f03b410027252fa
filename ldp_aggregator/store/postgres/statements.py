"""The statements of the PostgreSQL store: what is asked inside its transactions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from ldp_aggregator.counting.digest import DIGEST_BYTES
from ldp_aggregator.counting.rows import Rows
from ldp_aggregator.store.batch import RECORD_BYTES, Batch, Settlement
from ldp_aggregator.store.contract import CLOSED, CampaignState, Life, UnknownCampaignError
from ldp_aggregator.store.postgres import schema
from protocols.wire.reports import ID_BYTES

Connection = Any
"""asyncpg has no types."""

STATES: Final = (
    "SELECT number, id, title, created, opens, closes, closed, max_reports, salt, salt IS NOT NULL AS federated, "
    "(SELECT count(*) FROM shares WHERE campaign = number) AS shares, "
    "(SELECT coalesce(sum(reports), 0) FROM parts WHERE campaign = number)::bigint AS reports, "
    "(SELECT max(version) FROM models WHERE campaign = number) AS model_version FROM campaigns"
)


async def row(db: Connection, campaign_id: str) -> Any:
    row = await db.fetchrow(f"{STATES} WHERE id = $1", campaign_id)
    if row is None:
        raise UnknownCampaignError(campaign_id)
    return row


def state(row: Any) -> CampaignState:
    life = Life(row["opens"], row["closes"], row["closed"])
    names = ("id", "title", "created", "max_reports", "reports", "model_version", "federated", "shares")
    return CampaignState(life=life, **{name: row[name] for name in names})


def is_over(state: CampaignState, now: datetime) -> bool:
    full = state.max_reports is not None and state.reports >= state.max_reports
    return full or state.life.refusal(now) == CLOSED


async def reports(db: Connection, number: int) -> int:
    return int(await db.fetchval("SELECT coalesce(sum(reports), 0)::bigint FROM parts WHERE campaign = $1", number))


async def parts(db: Connection, number: int) -> list[bytes]:
    return [row["sums"] for row in await db.fetch("SELECT sums FROM parts WHERE campaign = $1", number)]


async def lock(db: Connection, number: int, *, shared: bool) -> None:
    """Until the transaction ends. Locks of our own name space, so that no other program's are met."""
    kind = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    await db.execute(f"SELECT {kind}($1, $2)", schema.LOCKS, number)


async def insert(db: Connection, number: int, batch: Batch, room: int | None) -> Settlement:
    """Store the ids that are new. Nearly always all are, and one statement without an answer does it."""
    records = batch.candidates
    if room is not None and len(records) > room:
        known = await known_digests(db, number, records, range(len(records)))
        chosen = batch.earliest(known, max(room, 0))
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
