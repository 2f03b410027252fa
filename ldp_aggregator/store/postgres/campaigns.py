"""The statements of the PostgreSQL store about campaigns and tallies. Each runs inside a transaction of the store's."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any, Final

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.parts import compactable, part_of_tally, tally_of_parts
from ldp_aggregator.store.campaign_state import CampaignState, Life
from ldp_aggregator.store.consistency import damaged
from ldp_aggregator.store.contract import SALT_BYTES, UnknownCampaignError
from ldp_aggregator.store.decisions import (
    CampaignRow,
    was_deleted,
)
from ldp_aggregator.store.postgres.sessions import Connection
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
ALONE: Final = "FOR UPDATE"
"""Nobody else counts, puts a share, or has any of these locks."""
IN_TURN: Final = "FOR NO KEY UPDATE"
"""One at a time, while others go on counting."""
TOGETHER: Final = "FOR KEY SHARE"
"""Any number at once, and nobody has it alone."""
HOLD_SECONDS: Final = 5
"""How long a campaign is held for whoever wants it alone, and does not come."""


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


async def locked(db: Connection, row: CampaignRow, strength: str = ALONE) -> CampaignRow:
    """The row again, read once its lock is held: a campaign that was being closed is closed now.

    Raises UnknownCampaignError where it was being deleted.
    """
    found = await db.fetchrow(f"SELECT {_COLUMNS} FROM campaigns WHERE number = $1 {strength}", row.number)
    if found is None:
        raise UnknownCampaignError(row.id)
    return _row(found)


async def hold(db: Connection, campaign_id: str) -> None:
    """Before a transaction that needs a campaign :data:`ALONE`: those who count share their lock, and where they come
    one after the other without a pause nobody else would ever get his. Waits for nobody, and ends by itself.

    Raises UnknownCampaignError.
    """
    number = (await row(db, campaign_id)).number
    await db.execute(
        f"UPDATE campaigns SET held_until = clock_timestamp() + interval '{HOLD_SECONDS} s' WHERE number = $1", number
    )


async def least_map(db: Connection, number: int) -> int:
    """The oldest map of slots that reports may be brought by."""
    return int(await db.fetchval("SELECT least_map FROM campaigns WHERE number = $1", number))


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
    # Whoever raises the least map for all campaigns comes before or after this one.
    least = await db.fetchval("SELECT least_map FROM membership FOR SHARE")
    number = await db.fetchval(
        "INSERT INTO campaigns "
        "(id, title, document, opens, closes, created, max_reports, salt, uploads_need, least_map) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (id) DO NOTHING RETURNING number",
        campaign.id,
        campaign.title,
        campaign.document,
        campaign.opens,
        campaign.closes,
        now,
        max_reports,
        os.urandom(SALT_BYTES) if federated else None,
        uploads_need,
        least or 0,
    )
    return number is not None


async def set_uploads_need(db: Connection, campaign_id: str, scope: str | None) -> CampaignState:
    await put(db, await row(db, campaign_id), "uploads_need", scope)
    return await state(db, campaign_id)


async def take_reports(db: Connection, campaign_id: str) -> bool:
    """Decide that a campaign takes reports, if it takes them now and that was open; whether it does. For good."""
    decided: bool | None = await db.fetchval("SELECT takes_reports FROM campaigns WHERE id = $1", campaign_id)
    if not decided:
        decided = await db.fetchval(
            "UPDATE campaigns SET takes_reports = true WHERE id = $1 AND salt IS NULL RETURNING true", campaign_id
        )
    return bool(decided)


async def put(db: Connection, row: CampaignRow, column: str, value: datetime | str | None) -> None:
    await db.execute(f"UPDATE campaigns SET {column} = $2 WHERE number = $1", row.number, value)


async def arrivals(db: Connection, row: CampaignRow) -> Arrivals:
    found = await db.fetchrow(f"SELECT {_ARRIVALS} FROM parts WHERE campaign = $1", row.number)
    return row.arrivals(found["reports"], found["vouched"], found["least_batch"])


async def reports(db: Connection, number: int) -> int:
    return int(await db.fetchval("SELECT coalesce(sum(reports), 0)::bigint FROM parts WHERE campaign = $1", number))


async def has_reports(db: Connection, number: int) -> bool:
    """Whether any was counted, here or, as far as that was decided, in another database of the store."""
    found: bool = await db.fetchval(
        "SELECT takes_reports OR EXISTS (SELECT 1 FROM parts WHERE campaign = number AND reports > 0) "
        "FROM campaigns WHERE number = $1",
        number,
    )
    return found


async def moved(db: Connection, number: int) -> int:
    """Ids that came here from another database without their counts, less those that went."""
    return int(await db.fetchval("SELECT moved FROM campaigns WHERE number = $1", number))


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
        "SELECT part, length(sums) AS size FROM parts WHERE campaign = $1 ORDER BY size FOR UPDATE SKIP LOCKED",
        number,
    )
    chosen = [found["part"] for found in sizes[: compactable([found["size"] for found in sizes])]]
    found = await db.fetch(
        "DELETE FROM parts WHERE campaign = $1 AND part = ANY($2::bigint[]) "
        "RETURNING reports, vouched, least_batch, sums",
        number,
        chosen,
    )
    try:
        total = tally_of_parts(campaign, [part["sums"] for part in found])
    except ValueError as error:
        raise damaged(campaign.id, error) from error
    least = min((part["least_batch"] for part in found if part["least_batch"] is not None), default=None)
    counted, vouched = (sum(part[name] for part in found) for name in ("reports", "vouched"))
    await add_part(db, number, counted, part_of_tally(total), vouched, least)
