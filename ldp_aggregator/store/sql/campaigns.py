"""Campaigns, their ends, and their tallies: what both databases are asked about them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from ldp_aggregator.counting.parts import compactable, part_of_tally, tally_of_parts
from ldp_aggregator.counting.tally import Arrivals, Tally, devices_counted
from ldp_aggregator.store import contract
from ldp_aggregator.store.contract import CampaignState, Life, StoreError, Terms, unknown_campaign
from ldp_aggregator.store.decisions import CampaignRow, check_closed, check_reopening, check_sealing, ending
from ldp_aggregator.store.sql.tables import OF_CAMPAIGNS, Row, SqlConnection, Transactions, reading, writing
from ldp_protocols import Campaign, DocumentError

_TIMES: Final = ("opens", "closes", "closed", "sealed")
_NAMES: Final = (
    *("number", "id", "title", "created", "max_reports", "salt"),
    *("over_since", "overlap", "unchecked", "lost_ids", "uploads_need"),
)
_COLUMNS: Final = ", ".join((*_TIMES, *_NAMES))
_ARRIVED: Final = {
    "reports": "CAST(coalesce(sum(reports), 0) AS bigint)",
    "vouched": "CAST(coalesce(sum(vouched), 0) AS bigint)",
    "least_batch": "min(least_batch)",
}
_STATES: Final = (
    f"SELECT {_COLUMNS}, "
    + "".join(f"(SELECT {sums} FROM parts WHERE campaign = number) AS {name}, " for name, sums in _ARRIVED.items())
    + "(SELECT count(*) FROM shares WHERE campaign = number) AS shares, "
    "(SELECT max(version) FROM models WHERE campaign = number) AS model_version FROM campaigns"
)

ALONE: Final = "FOR UPDATE"
"""Nobody else counts, puts a share, or has any of these locks."""
IN_TURN: Final = "FOR NO KEY UPDATE"
"""One at a time, while others go on counting."""
TOGETHER: Final = "FOR KEY SHARE"
"""Any number at once, and nobody has it alone."""


class Campaigns(Transactions):
    """Campaigns, their ends, and what was counted."""

    _go_along: tuple[Callable[[str], Awaitable[None]], ...] = ()
    """What else is forgotten where a campaign is deleted."""

    async def _claim(self, campaign_id: str) -> None:
        """Before a transaction that needs a campaign :data:`ALONE`. Raises StoreError where it may."""

    async def _forget_ids(self, db: SqlConnection, number: int) -> None:
        """Drop the ids of a campaign, as far as a transaction can."""
        raise NotImplementedError

    async def _drop_ids(self, number: int) -> None:
        """Drop what is left of them, after its commit; what is interrupted is gone on with by the next call."""
        raise NotImplementedError

    @writing
    async def create_campaign(
        self,
        db: SqlConnection,
        campaign: Campaign,
        *,
        max_reports: int | None = None,
        federated: bool = False,
        uploads_need: str | None = None,
    ) -> bool:
        """Keep a campaign; False (and no change) where it exists already, of whatever kind.

        Raises StoreError where it was deleted: its ids are gone, and what was counted would count again.
        """
        deleted = await db.fetchrow("SELECT deleted FROM deleted WHERE id = $1", campaign.id)
        if deleted is not None:
            raise StoreError(
                f"campaign {campaign.id} was deleted at {contract.to_text(deleted[0])}, and stays so; a draft with "
                "another title makes another campaign",
                contract.DELETED,
            )
        made = await db.fetchrow(
            "INSERT INTO campaigns (id, title, document, opens, closes, created, max_reports, salt, uploads_need) "
            "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING RETURNING number",
            *(campaign.id, campaign.title, campaign.document, campaign.opens, campaign.closes, await db.now()),
            *(max_reports, os.urandom(contract.SALT_BYTES) if federated else None, uploads_need),
        )
        return made is not None

    @reading
    async def document(self, db: SqlConnection, campaign_id: str) -> bytes:
        """The document bytes."""
        return await document(db, campaign_id)

    @reading
    async def state(self, db: SqlConnection, campaign_id: str) -> CampaignState:
        return await state(db, campaign_id)

    @reading
    async def terms(self, db: SqlConnection, campaign_id: str) -> Terms:
        """Return what requests have to keep to. Every upload asks: nothing that was counted is looked at."""
        found = await row(db, campaign_id)
        return Terms(found.salt is not None, found.uploads_need)

    @reading
    async def campaigns(self, db: SqlConnection) -> list[CampaignState]:
        """All campaigns, oldest first."""
        return [_state(found) for found in await db.fetch(f"{_STATES} ORDER BY number")]

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        """Accept no more reports. Closing twice changes nothing."""
        await self._claim(campaign_id)
        return await self._end(campaign_id, at_once=True)

    async def end_campaign(self, campaign_id: str) -> CampaignState:
        """Close a campaign that has been over, past its end or full, for the grace period; note when it was first seen
        to be, and forget that where it is not.
        """
        await self._claim(campaign_id)
        return await self._end(campaign_id, at_once=False)

    @writing
    async def _end(self, db: SqlConnection, campaign_id: str, *, at_once: bool) -> CampaignState:
        found, now = await row(db, campaign_id, ALONE), await db.now()
        changes = ending(found, await reports(db, found.number), now)
        if at_once and found.life.closed is None:
            changes = {"closed": now}
        for column, value in {**changes, "held_until": None}.items():
            await put(db, found, column, value)
        return await state(db, campaign_id)

    @writing
    async def reopen_campaign(self, db: SqlConnection, campaign_id: str) -> CampaignState:
        """Take a closing back. Raises StoreError where the campaign is sealed."""
        found = await row(db, campaign_id, ALONE)
        check_reopening(found)
        await put(db, found, "closed", None)
        await put(db, found, "over_since", None)
        return await state(db, campaign_id)

    @writing
    async def set_uploads_need(self, db: SqlConnection, campaign_id: str, scope: str | None) -> CampaignState:
        """Ask uploads for a token of a scope, or no longer."""
        await put(db, await row(db, campaign_id), "uploads_need", scope)
        return await state(db, campaign_id)

    async def seal_campaign(self, campaign_id: str, *, at_once: bool = False) -> CampaignState:
        """Drop the ids of a campaign that has been closed for the grace period (or is, with ``at_once``), for good.

        Raises StoreError where it has not, StoreError where somebody reads the ids: nothing waits for a reader.
        """
        await self._drop_ids(await self._seal(campaign_id, at_once=at_once))
        return await self.state(campaign_id)

    @writing
    async def _seal(self, db: SqlConnection, campaign_id: str, *, at_once: bool) -> int:
        """From here on its ids count for nothing, and may be dropped."""
        found = await row(db, campaign_id, ALONE)
        now = await db.now()
        check_sealing(found, now, at_once=at_once)
        return await self._sealed(db, found, now)

    async def _sealed(self, db: SqlConnection, found: CampaignRow, now: datetime) -> int:
        if found.life.sealed is None:
            await put(db, found, "sealed", now)
            await self._forget_ids(db, found.number)
        return found.number

    def when_deleting(self, forget: Callable[[str], Awaitable[None]]) -> None:
        """Have whatever else is kept of a campaign forgotten before it is dropped. Where that fails it is not."""
        self._go_along = (*self._go_along, forget)

    async def delete_campaign(self, campaign_id: str) -> None:
        """Drop a closed campaign with all that was counted and published; its id can never be used again.

        Raises StoreError where it is not closed, StoreError where somebody reads the ids.
        """
        number = await self._begin_deletion(campaign_id)
        for forget in self._go_along:
            await forget(campaign_id)
        await self._drop_ids(number)
        await self._delete(campaign_id)

    @writing
    async def _begin_deletion(self, db: SqlConnection, campaign_id: str) -> int:
        """Seal what is deleted: its ids may be dropped piece by piece, and it is not reopened meanwhile."""
        found = await row(db, campaign_id, ALONE)
        check_closed(found)
        return await self._sealed(db, found, await db.now())

    @writing
    async def _delete(self, db: SqlConnection, campaign_id: str) -> None:
        """Delete a sealed campaign's rows. Its id stays in ``deleted``, so it can never be created again."""
        found = await row(db, campaign_id, ALONE)
        for table in OF_CAMPAIGNS:
            await db.execute(f"DELETE FROM {table} WHERE campaign = $1", found.number)
        await db.execute("DELETE FROM campaigns WHERE number = $1", found.number)
        await db.execute("INSERT INTO deleted (id, deleted) VALUES ($1, $2)", campaign_id, await db.now())

    @reading
    async def tally(self, db: SqlConnection, campaign_id: str) -> Tally:
        """The exact sums of all reports counted so far. Raises StoreError where what is stored is no tally of it."""
        number = (await row(db, campaign_id)).number
        try:
            campaign = Campaign.parse(await document(db, campaign_id), campaign_id)
        except DocumentError as error:
            raise _damaged(campaign_id, error) from error
        return sum_or_refuse(campaign, await parts(db, number))

    @writing
    async def released_tally(self, db: SqlConnection, campaign: Campaign, every: int) -> Tally:
        """The sums as of the last release: those of now, durably, where at least ``every`` devices' reports are new in
        it, to every group where a device answers all of them.
        """
        # Two instances that release at once wait for each other, and whoever counts for neither of them.
        number = (await row(db, campaign.id, IN_TURN)).number
        last = await db.fetchrow("SELECT reports, sums FROM publications WHERE campaign = $1", number)
        released = sum_or_refuse(campaign, [last["sums"]] if last else [])
        if await reports(db, number) - (last["reports"] if last else 0) < every:
            return released
        tally = sum_or_refuse(campaign, await parts(db, number))
        if devices_counted(campaign, (tally.n - released.n).tolist()) < every:
            return released
        await publish_tally(db, number, tally)
        return tally


def sum_or_refuse(campaign: Campaign, parts: Iterable[bytes]) -> Tally:
    """The sum of parts. Raises StoreError where they are none of this campaign."""
    try:
        return tally_of_parts(campaign, parts)
    except ValueError as error:
        raise _damaged(campaign.id, error) from error


def _damaged(campaign_id: str, error: Exception) -> StoreError:
    return StoreError(f"campaign {campaign_id} is damaged: {error}; 'ldp-aggregator fsck' tells what else is")


async def rows(db: SqlConnection) -> list[CampaignRow]:
    """All campaigns, oldest first."""
    return [_row(found) for found in await db.fetch(f"SELECT {_COLUMNS} FROM campaigns ORDER BY number")]


async def find(db: SqlConnection, campaign_id: str, lock: str = "") -> CampaignRow | None:
    found = await db.fetchrow(f"SELECT {_COLUMNS} FROM campaigns WHERE id = $1 {lock}", campaign_id)
    return None if found is None else _row(found)


async def row(db: SqlConnection, campaign_id: str, lock: str = "") -> CampaignRow:
    """The row, with a ``lock`` as it is once that is held: a campaign that was being closed is closed now, one that was
    deleted is gone. Raises StoreError.
    """
    found = await find(db, campaign_id, lock)
    if found is None:
        raise unknown_campaign(campaign_id)
    return found


async def document(db: SqlConnection, campaign_id: str) -> bytes:
    """Raises StoreError."""
    found = await db.fetchrow("SELECT document FROM campaigns WHERE id = $1", campaign_id)
    if found is None:
        raise unknown_campaign(campaign_id)
    return bytes(found[0])


async def state(db: SqlConnection, campaign_id: str) -> CampaignState:
    """Raises StoreError."""
    found = await db.fetchrow(f"{_STATES} WHERE id = $1", campaign_id)
    if found is None:
        raise unknown_campaign(campaign_id)
    return _state(found)


async def put(db: SqlConnection, row: CampaignRow, column: str, value: datetime | str | bytes | None) -> None:
    await db.execute(f"UPDATE campaigns SET {column} = $2 WHERE number = $1", row.number, value)


async def arrivals(db: SqlConnection, row: CampaignRow) -> Arrivals:
    found = await db.fetchrow(f"SELECT {', '.join(_ARRIVED.values())} FROM parts WHERE campaign = $1", row.number)
    return row.arrivals(*found) if found is not None else row.arrivals(0, 0, None)


async def reports(db: SqlConnection, number: int) -> int:
    found = await db.fetchrow(f"SELECT {_ARRIVED['reports']} FROM parts WHERE campaign = $1", number)
    return 0 if found is None else int(found[0])


async def room(db: SqlConnection, row: CampaignRow) -> int | None:
    """Return the number of reports that the campaign still takes; None where nothing limits it."""
    return None if row.max_reports is None else max(row.max_reports - await reports(db, row.number), 0)


async def parts(db: SqlConnection, number: int) -> list[bytes]:
    return [found[0] for found in await db.fetch("SELECT sums FROM parts WHERE campaign = $1", number)]


async def add_part(
    db: SqlConnection, number: int, reports: int, sums: bytes, vouched: int = 0, least_batch: int | None = None
) -> None:
    statement = "INSERT INTO parts (campaign, reports, sums, vouched, least_batch) VALUES ($1, $2, $3, $4, $5)"
    await db.execute(statement, number, reports, sums, vouched, least_batch)


async def add_sum(db: SqlConnection, number: int, tally: Tally, members: Sequence[Row]) -> None:
    """Add a tally as one part, with what its ``members`` say of how the reports came."""
    least = min((part["least_batch"] for part in members if part["least_batch"] is not None), default=None)
    counted, vouched = (sum(part[name] for part in members) for name in ("reports", "vouched"))
    await add_part(db, number, counted, part_of_tally(tally), vouched, least)


async def compact(db: SqlConnection, campaign: Campaign, number: int) -> None:
    """Replace small parts that nobody else is replacing by their sum. Raises StoreError where they are damaged."""
    smallest_first = "SELECT part, length(sums) AS size FROM parts WHERE campaign = $1 ORDER BY size, part"
    sizes = await db.fetch(f"{smallest_first} FOR UPDATE SKIP LOCKED", number)
    chosen = [found["part"] for found in sizes[: compactable([found["size"] for found in sizes])]]
    members = await db.fetch(
        f"DELETE FROM parts WHERE part IN ({', '.join(map(str, chosen))}) RETURNING reports, vouched, least_batch, sums"
    )
    await add_sum(db, number, sum_or_refuse(campaign, [part["sums"] for part in members]), members)


async def publish_tally(db: SqlConnection, number: int, tally: Tally) -> None:
    """Note what is published of a campaign that fixes when."""
    statement = (
        "INSERT INTO publications (campaign, reports, sums) VALUES ($1, $2, $3) "
        "ON CONFLICT (campaign) DO UPDATE SET reports = excluded.reports, sums = excluded.sums"
    )
    await db.execute(statement, number, int(tally.n.sum()), part_of_tally(tally))


def _row(found: Row) -> CampaignRow:
    values: dict[str, Any] = {name: found[name] for name in _NAMES}
    return CampaignRow(life=Life(*(found[name] for name in _TIMES)), **values)


def _state(found: Row) -> CampaignState:
    row = _row(found)
    arrived = row.arrivals(found["reports"], found["vouched"], found["least_batch"])
    return CampaignState(
        *(row.id, row.title, row.created, row.life, row.max_reports, arrived.reports, found["model_version"]),
        *(row.salt is not None, found["shares"], arrived, row.over_since, row.uploads_need),
    )
