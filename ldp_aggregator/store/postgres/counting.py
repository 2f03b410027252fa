"""The statements of the PostgreSQL store that count reports, and all that knows how their ids are kept: one table has
those of all campaigns.

Each carries the condition under which a campaign takes them (:data:`_OPEN`), so that nothing has to be asked before.
Where it does not hold, nothing is done, and :mod:`ldp_aggregator.store.decisions` says why. Whoever counts holds a lock
on the campaign's row that others who count hold, too, and that whoever closes the campaign waits for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ldp_aggregator.counting.digest import DIGEST_BYTES
from ldp_aggregator.counting.parts import encode_part
from ldp_aggregator.mechanisms.facts import Rows
from ldp_aggregator.store.batch import RECORD_BYTES, Batch, Settlement
from ldp_aggregator.store.contract import UNKNOWN, Outcome, UnknownCampaignError
from ldp_aggregator.store.decisions import refuse_uploads, vouched_part
from ldp_aggregator.store.postgres.sessions import HeldError, PostgresConnection, Sessions
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.connection import Connection
from protocols.wire import ID_BYTES

SMALL: Final = 256
"""Reports that are looked up and counted in one statement, where all of them are new. Of more some hardly ever are not,
and looking every one up costs more than asking twice."""

_OPEN: Final = (
    "salt IS NULL AND max_reports IS NULL AND closed IS NULL "
    "AND (opens IS NULL OR opens <= coalesce($1::timestamptz, clock_timestamp())) "
    "AND (closes IS NULL OR closes > coalesce($1::timestamptz, clock_timestamp())) "
    "AND (held_until IS NULL OR held_until <= clock_timestamp())"
)
"""Whether a campaign takes reports at ``$1``, by default now.

Where the lock on its row had to be waited for, it is asked again of the row as it is then.
"""
_ID: Final = f"substring(records FROM at + 1 FOR {ID_BYTES})"
_DIGEST: Final = f"substring(records FROM at + {ID_BYTES + 1} FOR {DIGEST_BYTES})"

_AT_ONCE: Final = f"""
WITH found AS (
    SELECT number, id FROM campaigns WHERE id = ANY($2::text[]) AND {_OPEN} ORDER BY id FOR KEY SHARE
), asked AS (
    SELECT found.number, records, sums, reports, vouched, least_batch
    FROM unnest($2::text[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bigint[])
        AS given (name, records, sums, reports, vouched, least_batch) JOIN found ON found.id = given.name
), keys AS (
    SELECT number, {_ID} AS id, {_DIGEST} AS digest
    FROM asked CROSS JOIN LATERAL generate_series(0, length(records) - 1, {RECORD_BYTES}) AS at
), known AS (
    SELECT number FROM keys WHERE EXISTS (SELECT 1 FROM ids WHERE ids.campaign = keys.number AND ids.id = keys.id)
), stored AS (
    INSERT INTO ids (campaign, id, digest)
    SELECT number, id, digest FROM keys WHERE number NOT IN (SELECT number FROM known) ORDER BY number, id
), counted AS (
    INSERT INTO parts (campaign, reports, sums, vouched, least_batch)
    SELECT * FROM (SELECT number, reports, sums, vouched, least_batch FROM asked) AS part
    WHERE number NOT IN (SELECT number FROM known) RETURNING campaign
)
SELECT found.id FROM counted JOIN found ON found.number = counted.campaign
"""

_IN_BULK: Final = f"""
WITH found AS (
    SELECT number FROM campaigns WHERE id = $2 AND {_OPEN} FOR KEY SHARE
), keys AS (
    SELECT at / {RECORD_BYTES} AS position, {_ID} AS id, {_DIGEST} AS digest
    FROM (SELECT $3::bytea AS records) AS given
    CROSS JOIN LATERAL generate_series(0, length(records) - 1, {RECORD_BYTES}) AS at
), inserted AS (
    INSERT INTO ids (campaign, id, digest) SELECT number, id, digest FROM found CROSS JOIN keys
    ON CONFLICT DO NOTHING RETURNING id
), old AS (
    SELECT position, (
        SELECT digest FROM ids WHERE ids.campaign = (SELECT number FROM found) AND ids.id = keys.id
    ) AS digest
    FROM keys LEFT JOIN inserted USING (id)
    WHERE inserted.id IS NULL AND (SELECT count(*) FROM inserted) * {RECORD_BYTES} < length($3::bytea)
)
SELECT number, (SELECT array_agg(position) FROM old) AS positions, (SELECT array_agg(digest) FROM old) AS digests
FROM found
"""

_STORE: Final = (
    f"INSERT INTO ids (campaign, id, digest) SELECT $1, {_ID}, {_DIGEST} FROM (SELECT $2::bytea AS records) AS given "
    f"CROSS JOIN LATERAL generate_series(0, length(records) - 1, {RECORD_BYTES}) AS at"
)


async def at_once(db: PostgresConnection, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
    """One statement, which is a transaction of its own: the campaigns that take reports and know none of these.

    Of what is not returned nothing was counted. An id that another instance stores meanwhile fails all of it.
    """
    settled = {name: batch.settle({}) for name, batch in batches.items()}
    asked = [name for name, settlement in settled.items() if settlement.counted and not settlement.revealed]
    if not asked:
        return {}
    parts = [settled[name] for name in asked]
    counted = await db.fetch(
        _AT_ONCE,
        db.told,
        asked,
        [batches[name].candidates.tobytes() for name in asked],
        [encode_part(part.sums) for part in parts],
        [part.counted for part in parts],
        [part.vouched for part in parts],
        [part.least_batch for part in parts],
    )
    return {row["id"]: settled[row["id"]].outcomes for row in counted}


async def count(db: PostgresConnection, campaign_id: str, batch: Batch) -> Sequence[Outcome]:
    """Count what is new of a batch, inside a transaction. Waits for another instance that inserts one of its ids.

    Raises HeldError where somebody is about to have the campaign for himself.
    """
    records = batch.candidates
    found = await db.fetchrow(_IN_BULK, db.told, campaign_id, records.tobytes())
    if found is None:
        return await _count_alone(db, campaign_id, batch)
    number, positions, digests = found
    known = dict(zip(positions or (), digests or (), strict=True))
    missed = [position for position, digest in known.items() if digest is None]
    if missed:  # They were stored while this statement ran, and it does not see them.
        known |= await known_digests(db, number, records, missed)
    settlement = batch.settle(known)
    await _add(db, campaign_id, number, settlement)
    return settlement.outcomes


async def _count_alone(db: PostgresConnection, campaign_id: str, batch: Batch) -> Sequence[Outcome]:
    """Say why a campaign takes nothing, or count where there is a greatest number: nobody else counts meanwhile."""
    row = await campaigns.find(db, campaign_id)
    if row is None:
        return batch.refused(UNKNOWN)
    moment = await db.now()
    refused = refuse_uploads(row, moment)
    if refused is not None:  # Whoever closes or seals it holds its lock, and is not waited for.
        return batch.refused(refused)
    if row.max_reports is None:
        raise HeldError
    try:
        row = await campaigns.locked(db, campaign_id)
    except UnknownCampaignError:  # It was being deleted.
        return batch.refused(UNKNOWN)
    refused = refuse_uploads(row, moment)
    if refused is not None:
        return batch.refused(refused)
    records = batch.candidates
    known = await known_digests(db, row.number, records, range(len(records)))
    chosen = batch.earliest(known, await campaigns.room(db, row) or 0)
    if len(chosen):
        await db.execute(_STORE, row.number, records[chosen].tobytes())
    settlement = batch.settle(known, chosen)
    await _add(db, campaign_id, row.number, settlement)
    return settlement.outcomes


async def _add(db: PostgresConnection, campaign_id: str, number: int, settlement: Settlement) -> None:
    vouched = settlement.vouched
    if settlement.revealed and settlement.vouched == settlement.counted:  # Else it takes nothing off, whatever was.
        vouched = vouched_part(settlement, await campaigns.arrivals(db, await campaigns.row(db, campaign_id)))
    if settlement.counted or vouched:
        sums = encode_part(settlement.sums)
        await campaigns.add_part(db, number, settlement.counted, sums, vouched, settlement.least_batch)


PIECE: Final = 20_000
"""Ids that are dropped in one transaction: nobody waits long for it, and its log stays small."""


async def drop_ids(sessions: Sessions, number: int) -> None:
    """Those of a campaign that is sealed, a piece at a time. What is interrupted is gone on with by the next call."""
    last: bytes | None = b""
    while last is not None:
        last = await sessions.run(lambda db, after=last: _drop_piece(db, number, after), "seal_campaign")  # type: ignore[misc]


async def _drop_piece(db: Connection, number: int, after: bytes) -> bytes | None:
    """Returns the last id that was dropped, None where there are no more."""
    last = await db.fetchrow(
        "WITH piece AS (SELECT id FROM ids WHERE campaign = $1 AND id > $2 ORDER BY id LIMIT $3), "
        "gone AS (DELETE FROM ids USING piece WHERE ids.campaign = $1 AND ids.id = piece.id) "
        "SELECT id FROM piece ORDER BY id DESC LIMIT 1",
        number,
        after,
        PIECE,
    )
    return None if last is None else bytes(last[0])


async def stored_ids(db: Connection, number: int) -> int:
    found = await db.fetchrow("SELECT count(*) FROM ids WHERE campaign = $1", number)
    return 0 if found is None else int(found[0])


async def known_digests(db: Connection, number: int, records: Rows, positions: Sequence[int]) -> dict[int, bytes]:
    """Position to stored digest of those records whose id is in the store."""
    if not len(positions):
        return {}
    wanted = records[np.asarray(positions, dtype=np.int64), :ID_BYTES].tobytes()
    rows = await db.fetch(
        "SELECT wanted.position, ids.digest FROM (SELECT position, "
        f"substring($1::bytea FROM position * {ID_BYTES} + 1 FOR {ID_BYTES}) AS id "
        "FROM generate_series(0, $2::integer - 1) AS position) AS wanted "
        "JOIN ids ON ids.campaign = $3 AND ids.id = wanted.id",
        wanted,
        len(positions),
        number,
    )
    return {int(positions[position]): digest for position, digest in rows}
