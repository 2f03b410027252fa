"""The statements of the PostgreSQL store about campaigns and tallies. Each runs inside a transaction of the store's."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

import asyncpg

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.parts import compactable, part_of_tally, tally_of_parts
from ldp_aggregator.store.campaign_state import CampaignState, Life
from ldp_aggregator.store.consistency import damaged
from ldp_aggregator.store.contract import SALT_BYTES, StoreError, UnknownCampaignError
from ldp_aggregator.store.decisions import (
    OF_CAMPAIGNS,
    CampaignRow,
    Ending,
    check_deletion,
    check_reopening,
    check_sealing,
    decide_ending,
    was_deleted,
)
from ldp_aggregator.store.postgres import ids
from ldp_aggregator.store.postgres.sessions import Connection, lock, wait_at_most
from protocols import Campaign

_TIMES: Final = ("opens", "closes", "closed", "sealed")
_NAMES: Final = (
    *("number", "id", "title", "created", "max_reports", "salt"),
    *("over_since", "overlap", "unchecked", "uploads_need"),
)
_COLUMNS: Final = ", ".join((*_TIMES, *_NAMES))
_ARRIVALS: Final = (
    "coalesce(sum(reports), 0)::bigint AS reports, coalesce(sum(vouched), 0)::bigint AS vouched, "
    "min(least_batch) AS least_batch"
)
_STATES: Final = (
    f"SELECT {_COLUMNS}, "
    "(SELECT count(*) FROM shares WHERE campaign = number) AS shares, counted.*, "
    "(SELECT max(version) FROM models WHERE campaign = number) AS model_version FROM campaigns "
    f"CROSS JOIN LATERAL (SELECT {_ARRIVALS} FROM parts WHERE campaign = number) AS counted"
)
WAIT_SECONDS: Final = 1.0
"""How long ids that are dropped may hold up whoever reads them next."""


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
    return CampaignRow(life=Life(*(found[name] for name in _TIMES)), **{name: found[name] for name in _NAMES})


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
    row = _row(found)
    arrivals = row.arrivals(found["reports"], found["vouched"], found["least_batch"])
    return row.state(arrivals, model_version=found["model_version"], shares=found["shares"])


async def create(
    db: Connection,
    campaign: Campaign,
    now: datetime,
    *,
    max_reports: int | None,
    federated: bool,
    uploads_need: str | None,
) -> bool:
    deleted = await db.fetchval("SELECT deleted FROM deleted WHERE id = $1", campaign.id)
    if deleted is not None:
        raise was_deleted(campaign.id, deleted)
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
    await ids.create(db, number)
    return True


async def close(db: Connection, campaign_id: str, now: datetime) -> CampaignState:
    """Whoever counts waits for the exclusive lock, or is waited for."""
    found = await locked(db, await row(db, campaign_id), shared=False)
    if found.life.closed is None:
        await _set(db, found, "closed", now)
    return await state(db, campaign_id)


async def end(db: Connection, campaign_id: str, now: datetime) -> CampaignState:
    found = await locked(db, await row(db, campaign_id), shared=False)
    ending = decide_ending(found, await reports(db, found.number), now)
    if ending is Ending.CLOSE:
        await _set(db, found, "closed", now)
    elif ending is not Ending.NOTHING:
        await _set(db, found, "over_since", now if ending is Ending.NOTE else None)
    return await state(db, campaign_id)


async def reopen(db: Connection, campaign_id: str) -> CampaignState:
    found = await locked(db, await row(db, campaign_id), shared=False)
    check_reopening(found)
    await _set(db, found, "closed", None)
    await _set(db, found, "over_since", None)
    return await state(db, campaign_id)


async def set_uploads_need(db: Connection, campaign_id: str, scope: str | None) -> CampaignState:
    await _set(db, await row(db, campaign_id), "uploads_need", scope)
    return await state(db, campaign_id)


async def seal(db: Connection, campaign_id: str, now: datetime, *, at_once: bool) -> CampaignState:
    async with _exclusive(db, campaign_id) as found:
        check_sealing(found, now, at_once=at_once)
        if found.life.sealed is None:
            await _set(db, found, "sealed", now)
            await ids.drop(db, found.number)
    return await state(db, campaign_id)


async def delete(db: Connection, campaign_id: str, now: datetime) -> None:
    """Everything that is kept of a closed campaign, but that there was one."""
    async with _exclusive(db, campaign_id) as found:
        check_deletion(found)
        if found.life.sealed is None:
            await ids.drop(db, found.number)
        for table in OF_CAMPAIGNS:
            await db.execute(f"DELETE FROM {table} WHERE campaign = $1", found.number)
        await db.execute("DELETE FROM campaigns WHERE number = $1", found.number)
        await db.execute("INSERT INTO deleted (id, deleted) VALUES ($1, $2)", campaign_id, now)


@asynccontextmanager
async def _exclusive(db: Connection, campaign_id: str) -> AsyncIterator[CampaignRow]:
    """The row under its lock. Waits for nobody longer than a moment: meanwhile everybody else waits for this.

    Raises StoreError where somebody reads the ids.
    """
    await wait_at_most(db, WAIT_SECONDS)
    try:
        yield await locked(db, await row(db, campaign_id), shared=False)
    except asyncpg.LockNotAvailableError:
        raise StoreError(
            f"somebody reads the ids of campaign {campaign_id}, pg_dump or fsck perhaps; nothing was changed, try later"
        ) from None


async def _set(db: Connection, row: CampaignRow, column: str, value: datetime | str | None) -> None:
    await db.execute(f"UPDATE campaigns SET {column} = $2 WHERE number = $1", row.number, value)


async def arrivals(db: Connection, row: CampaignRow) -> Arrivals:
    found = await db.fetchrow(f"SELECT {_ARRIVALS} FROM parts WHERE campaign = $1", row.number)
    return row.arrivals(found["reports"], found["vouched"], found["least_batch"])


async def reports(db: Connection, number: int) -> int:
    return int(await db.fetchval("SELECT coalesce(sum(reports), 0)::bigint FROM parts WHERE campaign = $1", number))


async def parts(db: Connection, number: int) -> list[bytes]:
    return [found["sums"] for found in await db.fetch("SELECT sums FROM parts WHERE campaign = $1", number)]


async def add_part(
    db: Connection, number: int, reports: int, sums: bytes, vouched: int = 0, least_batch: int | None = None
) -> None:
    await db.execute(
        "INSERT INTO parts (campaign, reports, sums, vouched, least_batch) VALUES ($1, $2, $3, $4, $5)",
        number,
        reports,
        sums,
        vouched,
        least_batch,
    )


async def parts_of(db: Connection, campaign_id: str) -> tuple[bytes, list[bytes]]:
    """A campaign's document and parts, to be added up outside the transaction."""
    return await document(db, campaign_id), await parts(db, (await row(db, campaign_id)).number)


async def compact(db: Connection, campaign: Campaign) -> None:
    """Replace small parts that nobody else is replacing by their sum. Raises StoreError where they are damaged."""
    number = (await row(db, campaign.id)).number
    sizes = await db.fetch(
        "SELECT ctid, length(sums) AS size FROM parts WHERE campaign = $1 ORDER BY size FOR UPDATE SKIP LOCKED", number
    )
    chosen = [found["ctid"] for found in sizes[: compactable([found["size"] for found in sizes])]]
    found = await db.fetch(
        "DELETE FROM parts WHERE ctid = ANY($1::tid[]) RETURNING reports, vouched, least_batch, sums", chosen
    )
    try:
        total = tally_of_parts(campaign, [part["sums"] for part in found])
    except ValueError as error:
        raise damaged(campaign.id, error) from error
    least = min((part["least_batch"] for part in found if part["least_batch"] is not None), default=None)
    counted, vouched = (sum(part[name] for part in found) for name in ("reports", "vouched"))
    await add_part(db, number, counted, part_of_tally(total), vouched, least)
