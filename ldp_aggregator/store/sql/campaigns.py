"""Campaigns, their ends, and their tallies: what both databases are asked about them."""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timezone
from typing import Any, Final

from ldp_aggregator.counting.parts import compactable, part_of_tally, tally_of_parts
from ldp_aggregator.counting.tally import Arrivals, Tally, devices_counted
from ldp_aggregator.store import contract
from ldp_aggregator.store.clocks import Moment
from ldp_aggregator.store.contract import (
    DAMAGED,
    DELETED,
    CampaignState,
    Life,
    Standing,
    StoreError,
    Terms,
    deleted_campaign,
    unknown_campaign,
)
from ldp_aggregator.store.decisions import CampaignRow, check_closed, check_reopening, check_sealing, ending, standing
from ldp_aggregator.store.sql.checks import change, check_of, digest_of, insert, insert_numbered, legible, sound
from ldp_aggregator.store.sql.tables import OF_CAMPAIGNS, Row, SqlConnection, Transactions, reading, writing
from ldp_protocols import Campaign, DocumentError

_TIMES: Final = ("opens", "closes", "closed", "sealed")
_NAMES: Final = (
    *("number", "id", "title", "created", "max_reports", "salt"),
    *("over_since", "overlap", "unchecked", "lost_ids", "uploads_need"),
)
_FIELDS: Final = (*_TIMES, *_NAMES, "held_until", "checked")
_COLUMNS: Final = ", ".join(_FIELDS)
"""Columns of a campaign but its document, which its id checks."""
_HEAD: Final = "reports, vouched, least_batch, digest, checked"
"""Columns of a part but its sums."""
_RELEASED: Final = "reports, digest, checked, sums"
VERSION_COLUMNS: Final = "version, created, digest, checked"
"""Columns of a model but its document."""

ALONE: Final = "FOR UPDATE"
"""Lock under which nobody else counts, puts a share, or has any of these locks."""
IN_TURN: Final = "FOR NO KEY UPDATE"
"""Lock of one process at a time, while others go on counting."""
TOGETHER: Final = "FOR KEY SHARE"
"""Lock of any number at once, while nobody has the campaign alone."""


class Campaigns(Transactions):
    """Campaigns, their ends, and what was counted."""

    _go_along: tuple[Callable[[str], Awaitable[None]], ...] = ()
    """Functions that forget the rest of a deleted campaign."""
    _settled: tuple[Callable[[str], Awaitable[None]], ...] = ()
    """Checks before a campaign is sealed, which refuse by raising StoreError."""

    async def _claim(self, campaign_id: str) -> None:
        """Announce a transaction that needs a campaign :data:`ALONE`. May raise StoreError."""

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

        Raises StoreError if it was deleted: its ids are gone, and what was counted would count again.
        """
        absent = await absence(db, campaign.id)
        if absent.code == DELETED:
            raise absent
        made = await insert_numbered(
            db,
            "campaigns",
            {
                **{name: getattr(campaign, name) for name in ("id", "title", "document", "opens", "closes")},
                "created": await db.now(),
                "max_reports": max_reports,
                "uploads_need": uploads_need,
                "salt": os.urandom(contract.SALT_BYTES) if federated else None,
                **dict.fromkeys(("overlap", "unchecked", "lost_ids"), 0),
            },
            "ON CONFLICT (id) DO NOTHING",
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
    async def standing(self, db: SqlConnection, campaign_id: str) -> Standing:
        """Tell everybody how it stands. Raises StoreError, also while the clock is not settled and would decide."""
        found = await find(db, campaign_id)
        if found is None:
            absent = await absence(db, campaign_id)
            if absent.code != DELETED:
                raise absent
            return Standing("deleted")
        counted = await reports(db, found) if found.max_reports is not None else 0
        return standing(found, counted, await db.moment())

    @reading
    async def moment(self, db: SqlConnection) -> Moment:
        """The time by which this store decides."""
        return await db.moment()

    @reading
    async def terms(self, db: SqlConnection, campaign_id: str) -> Terms:
        """The terms that requests have to keep to. Every upload asks: nothing that was counted is looked at."""
        found = await row(db, campaign_id)
        return Terms(found.salt is not None, found.uploads_need)

    @reading
    async def campaigns(self, db: SqlConnection) -> list[CampaignState]:
        """All campaigns, oldest first; of one that is damaged, that it is, and nothing that was counted."""
        return await _states(db)

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
        found, moment = await row(db, campaign_id, ALONE), await db.moment()
        changes = ending(found, await reports(db, found), moment)
        if at_once and found.life.closed is None:
            changes = {"closed": moment.now, "over_since": None}
        await put(db, found, **changes, held_until=None)
        return await state(db, campaign_id)

    @writing
    async def reopen_campaign(self, db: SqlConnection, campaign_id: str) -> CampaignState:
        """Take a closing back. Raises StoreError if the campaign is sealed."""
        found = await row(db, campaign_id, ALONE)
        check_reopening(found)
        await put(db, found, closed=None, over_since=None)
        return await state(db, campaign_id)

    @writing
    async def set_uploads_need(self, db: SqlConnection, campaign_id: str, scope: str | None) -> CampaignState:
        """Ask uploads for a token of a scope, or no longer."""
        await put(db, await row(db, campaign_id), uploads_need=scope)
        return await state(db, campaign_id)

    async def seal_campaign(self, campaign_id: str, *, at_once: bool = False) -> CampaignState:
        """Drop the ids of a campaign that has been closed for the grace period (or is, with ``at_once``), for good.

        Raises StoreError if it has not, StoreError if somebody reads the ids: nothing waits for a reader.
        """
        if (await self.state(campaign_id)).life.sealed is None:
            for check in self._settled:
                await check(campaign_id)
        await self._drop_ids(await self._seal(campaign_id, at_once=at_once))
        return await self.state(campaign_id)

    @writing
    async def _seal(self, db: SqlConnection, campaign_id: str, *, at_once: bool) -> int:
        """Mark a campaign as sealed: from here on its ids count for nothing, and may be dropped."""
        found = await row(db, campaign_id, ALONE)
        now = await db.now()
        check_sealing(found, now, at_once=at_once)
        return await self._sealed(db, found, now)

    async def _sealed(self, db: SqlConnection, found: CampaignRow, now: datetime) -> int:
        if found.life.sealed is None:
            await put(db, found, sealed=now)
            await self._forget_ids(db, found.number)
        return found.number

    def when_sealing(self, check: Callable[[str], Awaitable[None]]) -> None:
        """Have ``check`` raise where something else is left of a campaign that needs its ids; it is not sealed then."""
        self._settled = (*self._settled, check)

    def when_deleting(self, forget: Callable[[str], Awaitable[None]]) -> None:
        """Have whatever else is kept of a campaign forgotten before it is dropped. If that fails it is not."""
        self._go_along = (*self._go_along, forget)

    async def delete_campaign(self, campaign_id: str) -> None:
        """Drop a closed campaign with all that was counted and published; its id can never be used again.

        Raises StoreError if it is not closed, StoreError if somebody reads the ids.
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
        await insert(db, "deleted", {"id": campaign_id, "deleted": await db.now()})

    @reading
    async def tally(self, db: SqlConnection, campaign_id: str) -> Tally:
        """The exact sums of all reports counted so far. Raises StoreError if what is stored is no tally of it."""
        found = await row(db, campaign_id)
        try:
            campaign = Campaign.parse(await document(db, campaign_id), campaign_id)
        except DocumentError as error:
            raise _damaged(campaign_id, error) from error
        return sum_or_refuse(campaign, await parts(db, found))

    @writing
    async def released_tally(self, db: SqlConnection, campaign: Campaign, every: int) -> Tally:
        """The sums as of the last release: those of now, durably, where at least ``every`` devices' reports are new in
        it, to every group where a device answers all of them.
        """
        # Two instances that release at once wait for each other, and whoever counts for neither of them.
        found = await row(db, campaign.id, IN_TURN)
        released = sum_or_refuse(campaign, await publication(db, found), "publications")
        if await reports(db, found) - int(released.n.sum()) < every:
            return released
        tally = sum_or_refuse(campaign, await parts(db, found))
        if devices_counted(campaign, (tally.n - released.n).tolist()) < every:
            return released
        await publish_tally(db, found, tally)
        return tally


def sum_or_refuse(campaign: Campaign, parts: Sequence[Row], table: str = "parts") -> Tally:
    """The sum of parts that were read whole. Raises StoreError if one is damaged, or is none of this campaign."""
    for part in parts:
        sound(table, part, campaign.id)
    try:
        tally = tally_of_parts(campaign, [part["sums"] for part in parts])
    except ValueError as error:
        raise _damaged(campaign.id, error) from error
    if int(tally.n.sum()) != sum(part["reports"] for part in parts):
        raise _damaged(campaign.id, ValueError("its sums are of another number of reports than were counted"))
    return tally


def _damaged(campaign_id: str, error: Exception) -> StoreError:
    return StoreError(f"campaign {campaign_id} is damaged: {error}; 'ldp-aggregator fsck' tells what else is", DAMAGED)


async def rows(db: SqlConnection) -> list[CampaignRow]:
    """All campaigns, oldest first. Raises StoreError if one is damaged."""
    return [row_of(found) for found in await listed(db)]


async def listed(db: SqlConnection) -> Sequence[Row]:
    """All rows but their documents, oldest first, as they stand there."""
    return await db.fetch(f"SELECT {_COLUMNS} FROM campaigns ORDER BY number")


async def find(db: SqlConnection, campaign_id: str, lock: str = "") -> CampaignRow | None:
    found = await db.fetchrow(f"SELECT {_COLUMNS} FROM campaigns WHERE id = $1 {lock}", campaign_id)
    return None if found is None else row_of(found)


async def row(db: SqlConnection, campaign_id: str, lock: str = "") -> CampaignRow:
    """The row, with a ``lock`` as it is once that is held: a campaign that was being closed is closed now, one that was
    deleted is gone. Raises StoreError.
    """
    found = await find(db, campaign_id, lock)
    if found is None:
        raise await absence(db, campaign_id)
    return found


async def absence(db: SqlConnection, campaign_id: str) -> StoreError:
    """Say why there is no campaign of this id: it was deleted, or is not known here."""
    deleted = await db.fetchrow("SELECT * FROM deleted WHERE id = $1", campaign_id)
    if deleted is None:
        return unknown_campaign(campaign_id)
    return deleted_campaign(campaign_id, sound("deleted", deleted)["deleted"])


async def document(db: SqlConnection, campaign_id: str) -> bytes:
    """The document of a campaign. Raises StoreError."""
    found = await db.fetchrow("SELECT document FROM campaigns WHERE id = $1", campaign_id)
    if found is None:
        raise await absence(db, campaign_id)
    if not isinstance(found[0], bytes):
        raise StoreError(f"campaign {campaign_id} is damaged: its document is not one", contract.DAMAGED)
    return found[0]


async def state(db: SqlConnection, campaign_id: str) -> CampaignState:
    """The state of a campaign. Raises StoreError."""
    found = await row(db, campaign_id)
    [only] = await _states(db, found.number)
    if only.damaged:
        await reports(db, found)
        await versions(db, found)
        raise _damaged(campaign_id, ValueError("a row of it does not agree with its check"))
    return only


async def _states(db: SqlConnection, number: int | None = None) -> list[CampaignState]:
    """The states of one campaign, or of all."""
    which, values = ("", ()) if number is None else ("WHERE campaign = $1", (number,))
    heads, models = [
        _by_campaign(await db.fetch(f"SELECT campaign, {columns} FROM {table} {which}", *values))
        for table, columns in (("parts", _HEAD), ("models", VERSION_COLUMNS))
    ]
    counted = await db.fetch(f"SELECT campaign, count(*) FROM shares {which} GROUP BY campaign", *values)
    shares = {campaign: number for campaign, number in counted}  # noqa: C416 - rows, no pairs
    found = await db.fetch(
        f"SELECT {_COLUMNS} FROM campaigns {which.replace('campaign', 'number')} ORDER BY number", *values
    )
    keys = [one["number"] for one in found]
    return [
        _state(one, heads.get(key, ()), models.get(key, ()), shares.get(key, 0))
        for one, key in zip(found, keys, strict=True)
    ]


def _by_campaign(found: Sequence[Row]) -> dict[int, list[Row]]:
    members: dict[int, list[Row]] = {}
    for one in found:
        members.setdefault(one["campaign"], []).append(one)
    return members


async def put(db: SqlConnection, row: CampaignRow, **changes: datetime | str | bytes | int | None) -> None:
    """Change columns of a campaign."""
    await change(db, "campaigns", ("number", row.number), changes)


async def arrivals(db: SqlConnection, row: CampaignRow) -> Arrivals:
    """Tell how its reports came."""
    return _arrivals(row, await _heads(db, row))


async def reports(db: SqlConnection, row: CampaignRow) -> int:
    """Count the reports of a campaign."""
    return sum(part["reports"] for part in await _heads(db, row))


async def room(db: SqlConnection, row: CampaignRow) -> int | None:
    """The number of reports that the campaign still takes; None if nothing limits it."""
    return None if row.max_reports is None else max(row.max_reports - await reports(db, row), 0)


async def _heads(db: SqlConnection, row: CampaignRow) -> list[Row]:
    found = await db.fetch(f"SELECT {_HEAD} FROM parts WHERE campaign = $1", row.number)
    return [sound("parts", part, row.id) for part in found]


async def parts(db: SqlConnection, row: CampaignRow) -> Sequence[Row]:
    """The parts of a campaign whole, for :func:`sum_or_refuse`."""
    return await db.fetch(f"SELECT {_HEAD}, sums FROM parts WHERE campaign = $1", row.number)


async def versions(db: SqlConnection, row: CampaignRow) -> list[int]:
    """The versions of its models, in increasing order. None is the latest before all were seen to be sound."""
    found = await db.fetch(f"SELECT {VERSION_COLUMNS} FROM models WHERE campaign = $1 ORDER BY version", row.number)
    return [sound("models", one, row.id)["version"] for one in found]


ADD_PART: Final = (
    "INSERT INTO parts (campaign, reports, vouched, least_batch, digest, checked, sums) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7)"
)


def part_of(campaign_id: str, reports: int, sums: bytes, vouched: int, least_batch: int | None) -> dict[str, Any]:
    """A part with its check, as it is written."""
    values = {"reports": reports, "vouched": vouched, "least_batch": least_batch, "digest": digest_of(sums)}
    return {**values, "checked": check_of("parts", values, campaign_id), "sums": sums}


async def add_part(
    db: SqlConnection, row: CampaignRow, reports: int, sums: bytes, vouched: int = 0, least_batch: int | None = None
) -> None:
    """Add a part to what was counted."""
    await db.execute(ADD_PART, row.number, *part_of(row.id, reports, sums, vouched, least_batch).values())


async def add_sum(db: SqlConnection, row: CampaignRow, tally: Tally, members: Sequence[Row]) -> None:
    """Add a tally as one part, with what its ``members`` say of how the reports came."""
    least = min((part["least_batch"] for part in members if part["least_batch"] is not None), default=None)
    counted, vouched = (sum(part[name] for part in members) for name in ("reports", "vouched"))
    await add_part(db, row, counted, part_of_tally(tally), vouched, least)


async def compact(db: SqlConnection, campaign: Campaign, row: CampaignRow) -> None:
    """Replace small parts that nobody else is replacing by their sum. Raises StoreError where they are damaged."""
    smallest_first = "SELECT part, length(sums) AS size FROM parts WHERE campaign = $1 ORDER BY size, part"
    sizes = await db.fetch(f"{smallest_first} FOR UPDATE SKIP LOCKED", row.number)
    chosen = [found["part"] for found in sizes[: compactable([found["size"] for found in sizes])]]
    members = await db.fetch(f"DELETE FROM parts WHERE part IN ({', '.join(map(str, chosen))}) RETURNING {_HEAD}, sums")
    await add_sum(db, row, sum_or_refuse(campaign, members), members)


async def publication(db: SqlConnection, row: CampaignRow) -> Sequence[Row]:
    """The last publication of a campaign that fixes when, for :func:`sum_or_refuse`; at most one row."""
    return await db.fetch(f"SELECT {_RELEASED} FROM publications WHERE campaign = $1", row.number)


async def publish_tally(db: SqlConnection, row: CampaignRow, tally: Tally) -> None:
    """Note what is published of a campaign that fixes when."""
    sums = part_of_tally(tally)
    values = {"reports": int(tally.n.sum()), "digest": digest_of(sums), "sums": sums}
    replaced = ", ".join(f"{name} = excluded.{name}" for name in (*values, "checked"))
    more = f"ON CONFLICT (campaign) DO UPDATE SET {replaced}"
    await insert(db, "publications", values, (row.number, row.id), more)


def row_of(found: Row) -> CampaignRow:
    """A campaign's row, checked. Raises StoreError."""
    return _row(tuple(found))


@functools.lru_cache(maxsize=4096)
def _row(values: tuple[Any, ...]) -> CampaignRow:
    """The row of the values of :data:`_FIELDS`; every commit has the same ones, which need no other check."""
    found = sound("campaigns", dict(zip(_FIELDS, values, strict=True)))
    return CampaignRow(life=Life(*(found[name] for name in _TIMES)), **{name: found[name] for name in _NAMES})


def _arrivals(row: CampaignRow, heads: Sequence[Row]) -> Arrivals:
    least = min((part["least_batch"] for part in heads if part["least_batch"] is not None), default=None)
    return row.arrivals(sum(part["reports"] for part in heads), sum(part["vouched"] for part in heads), least)


def _state(found: Row, heads: Sequence[Row], models: Sequence[Row], shares: int) -> CampaignState:
    try:
        row = row_of(found)
        arrived = _arrivals(row, [sound("parts", part, row.id) for part in heads])
        latest = max((sound("models", one, row.id)["version"] for one in models), default=None)
    except StoreError:
        beginning = datetime.fromtimestamp(0, timezone.utc)
        return CampaignState(legible(found["id"]), "", beginning, Life(None, None, None), None, 0, None, damaged=True)
    return CampaignState(
        *(row.id, row.title, row.created, row.life, row.max_reports, arrived.reports, latest),
        *(row.salt is not None, shares, arrived, row.over_since, row.uploads_need),
    )
