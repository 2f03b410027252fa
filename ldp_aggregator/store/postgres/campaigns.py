"""The statements of the PostgreSQL store about campaigns and tallies. Each runs inside a transaction of the store's."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any, Final

from ldp_aggregator.counting.parts import part_of_tally
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.store.consistency import tally_or_refuse
from ldp_aggregator.store.contract import SALT_BYTES, CampaignState, Life, UnknownCampaignError
from ldp_aggregator.store.decisions import OF_CAMPAIGNS, CampaignRow, not_closed, was_deleted
from ldp_aggregator.store.postgres import schema
from ldp_aggregator.store.postgres.sessions import Connection, lock
from protocols import Campaign

_COLUMNS: Final = "number, id, title, created, opens, closes, closed, max_reports, salt, uploads_need"
_STATES: Final = (
    f"SELECT {_COLUMNS}, "
    "(SELECT count(*) FROM shares WHERE campaign = number) AS shares, "
    "(SELECT coalesce(sum(reports), 0) FROM parts WHERE campaign = number)::bigint AS reports, "
    "(SELECT max(version) FROM models WHERE campaign = number) AS model_version FROM campaigns"
)


async def rows(db: Connection) -> list[CampaignRow]:
    """All campaigns, oldest first."""
    return [_row(found) for found in await db.fetch(f"SELECT {_COLUMNS} FROM campaigns ORDER BY number")]


async def find(db: Connection, campaign_id: str) -> CampaignRow | None:
    found = await db.fetchrow(f"SELECT {_COLUMNS} FROM campaigns WHERE id = $1", campaign_id)
    return None if found is None else _row(found)


async def row(db: Connection, campaign_id: str) -> CampaignRow:
    """Raises UnknownCampaignError."""
    found = await find(db, campaign_id)
    if found is None:
        raise UnknownCampaignError(campaign_id)
    return found


async def locked(db: Connection, row: CampaignRow, *, shared: bool) -> CampaignRow:
    """The row again, read once its lock is held: a campaign that was being closed is closed now.

    Raises UnknownCampaignError where it was being deleted.
    """
    await lock(db, row.number, shared=shared)
    found = await db.fetchrow(f"SELECT {_COLUMNS} FROM campaigns WHERE number = $1", row.number)
    if found is None:
        raise UnknownCampaignError(row.id)
    return _row(found)


def _row(found: Any) -> CampaignRow:
    life = Life(found["opens"], found["closes"], found["closed"])
    names = ("number", "id", "title", "created", "max_reports", "salt", "uploads_need")
    return CampaignRow(life=life, **{name: found[name] for name in names})


async def document(db: Connection, campaign_id: str) -> bytes:
    """Raises UnknownCampaignError."""
    found = await db.fetchval("SELECT document FROM campaigns WHERE id = $1", campaign_id)
    if found is None:
        raise UnknownCampaignError(campaign_id)
    return bytes(found)


async def state(db: Connection, campaign_id: str) -> CampaignState:
    """Raises UnknownCampaignError."""
    found = await db.fetchrow(f"{_STATES} WHERE id = $1", campaign_id)
    if found is None:
        raise UnknownCampaignError(campaign_id)
    return _state(found)


async def states(db: Connection) -> list[CampaignState]:
    """Of all campaigns, oldest first."""
    return [_state(found) for found in await db.fetch(f"{_STATES} ORDER BY number")]


def _state(found: Any) -> CampaignState:
    return _row(found).state(**{name: found[name] for name in ("reports", "model_version", "shares")})


async def create(
    db: Connection,
    campaign: Campaign,
    now: datetime,
    *,
    max_reports: int | None,
    federated: bool,
    uploads_need: str | None,
) -> bool:
    if await db.fetchval("SELECT true FROM deleted WHERE id = $1", campaign.id):
        raise was_deleted(campaign.id)
    number = await db.fetchval(
        "INSERT INTO campaigns (id, title, document, opens, closes, created, max_reports, salt, uploads_need) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING RETURNING number",
        campaign.id,
        campaign.title,
        campaign.document,
        campaign.opens,
        campaign.closes,
        now,
        max_reports,
        os.urandom(SALT_BYTES) if federated else None,
        uploads_need,
    )
    if number is None:
        return False
    await db.execute(schema.create_ids(number))
    return True


async def close(db: Connection, campaign_id: str, now: datetime) -> CampaignState:
    """Whoever counts waits for the exclusive lock, or is waited for."""
    found = await locked(db, await row(db, campaign_id), shared=False)
    if found.life.closed is None:
        await db.execute("UPDATE campaigns SET closed = $2 WHERE number = $1", found.number, now)
        await db.execute(f"DROP TABLE {schema.ids_table(found.number)}")
    return await state(db, campaign_id)


async def set_uploads_need(db: Connection, campaign_id: str, scope: str | None) -> CampaignState:
    number = (await row(db, campaign_id)).number
    await db.execute("UPDATE campaigns SET uploads_need = $2 WHERE number = $1", number, scope)
    return await state(db, campaign_id)


async def delete(db: Connection, campaign_id: str, now: datetime) -> None:
    """Everything that is kept of a closed campaign, but that there was one."""
    # Uploads wait behind this, also to other campaigns: whoever reads the table of ids for long comes first.
    await db.execute("SET LOCAL lock_timeout = '1s'")
    found = await locked(db, await row(db, campaign_id), shared=False)
    if found.life.closed is None:
        raise not_closed(campaign_id)
    for table in OF_CAMPAIGNS:
        await db.execute(f"DELETE FROM {table} WHERE campaign = $1", found.number)
    await db.execute(f"DROP TABLE IF EXISTS {schema.ids_table(found.number)}")
    await db.execute("DELETE FROM campaigns WHERE number = $1", found.number)
    await db.execute("INSERT INTO deleted (id, moment) VALUES ($1, $2)", campaign_id, now)


async def reports(db: Connection, number: int) -> int:
    return int(await db.fetchval("SELECT coalesce(sum(reports), 0)::bigint FROM parts WHERE campaign = $1", number))


async def parts(db: Connection, number: int) -> list[bytes]:
    return [found["sums"] for found in await db.fetch("SELECT sums FROM parts WHERE campaign = $1", number)]


async def add_part(db: Connection, number: int, reports: int, sums: bytes) -> None:
    await db.execute("INSERT INTO parts (campaign, reports, sums) VALUES ($1, $2, $3)", number, reports, sums)


async def parts_of(db: Connection, campaign_id: str) -> tuple[bytes, list[bytes]]:
    """A campaign's document and parts, to be added up outside the transaction."""
    return await document(db, campaign_id), await parts(db, (await row(db, campaign_id)).number)


async def compact(db: Connection, campaign_id: str) -> None:
    """Replace the parts that nobody else is replacing by their sum. Raises StoreError where they are damaged."""
    number = (await row(db, campaign_id)).number
    found = await db.fetch("DELETE FROM parts WHERE campaign = $1 RETURNING sums", number)
    total: Tally = tally_or_refuse(campaign_id, await document(db, campaign_id), [part["sums"] for part in found])
    await add_part(db, number, int(total.n.sum()), part_of_tally(total))
