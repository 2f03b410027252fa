"""The statements of the SQLite store about campaigns and tallies. Each runs inside a transaction of the store's."""

from __future__ import annotations

import logging
import os
import sqlite3
from datetime import datetime
from typing import Final

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.parts import compactable, part_of_tally, tally_of_parts
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.store.campaign_state import CampaignState, Life
from ldp_aggregator.store.clock import from_text, to_text
from ldp_aggregator.store.consistency import tally_or_refuse
from ldp_aggregator.store.contract import SALT_BYTES, UnknownCampaignError
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
from ldp_aggregator.store.failures import kind_of
from ldp_aggregator.store.sqlite import ids
from protocols import Campaign

LOG: Final = logging.getLogger("ldp_aggregator")

_TIMES: Final = ("opens", "closes", "closed", "sealed")
_NAMES: Final = ("number", "id", "title", "max_reports", "salt", "overlap", "unchecked", "uploads_need")
_COLUMNS: Final = f"{', '.join((*_TIMES, *_NAMES))}, created, over_since"


def rows(db: sqlite3.Connection) -> list[CampaignRow]:
    """All campaigns, oldest first."""
    return [_row(found) for found in db.execute(f"SELECT {_COLUMNS} FROM campaigns ORDER BY number").fetchall()]


def find(db: sqlite3.Connection, campaign_id: str, name: str = "main") -> CampaignRow | None:
    """In the store, or in one that is attached under ``name``."""
    found = db.execute(f"SELECT {_COLUMNS} FROM {name}.campaigns WHERE id = ?", (campaign_id,)).fetchone()
    return None if found is None else _row(found)


def row(db: sqlite3.Connection, campaign_id: str) -> CampaignRow:
    """Raises UnknownCampaignError."""
    found = find(db, campaign_id)
    if found is None:
        raise UnknownCampaignError(campaign_id)
    return found


def _row(found: sqlite3.Row) -> CampaignRow:
    life = Life(*(found[name] and from_text(found[name]) for name in _TIMES))
    since = found["over_since"] and from_text(found["over_since"])
    values = {name: found[name] for name in _NAMES}
    return CampaignRow(life=life, created=from_text(found["created"]), over_since=since, **values)


def document(db: sqlite3.Connection, campaign_id: str) -> bytes:
    """Raises UnknownCampaignError."""
    found = db.execute("SELECT document FROM campaigns WHERE id = ?", (campaign_id,)).fetchone()
    if found is None:
        raise UnknownCampaignError(campaign_id)
    return bytes(found["document"])


def state(db: sqlite3.Connection, row: CampaignRow) -> CampaignState:
    version = db.execute("SELECT max(version) FROM models WHERE campaign = ?", (row.number,)).fetchone()[0]
    shares = db.execute("SELECT count(*) FROM shares WHERE campaign = ?", (row.number,)).fetchone()[0]
    return row.state(arrivals(db, row), model_version=version, shares=shares)


def create(
    db: sqlite3.Connection,
    campaign: Campaign,
    now: datetime,
    *,
    max_reports: int | None,
    federated: bool,
    uploads_need: str | None,
) -> bool:
    if find(db, campaign.id) is not None:
        return False
    deleted = db.execute("SELECT deleted FROM deleted WHERE id = ?", (campaign.id,)).fetchone()
    if deleted is not None:
        raise was_deleted(campaign.id, from_text(deleted[0]))
    db.execute(
        "INSERT INTO campaigns (id, title, document, opens, closes, created, max_reports, salt, uploads_need) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            campaign.id,
            campaign.title,
            campaign.document,
            campaign.opens and to_text(campaign.opens),
            campaign.closes and to_text(campaign.closes),
            to_text(now),
            max_reports,
            os.urandom(SALT_BYTES) if federated else None,
            uploads_need,
        ),
    )
    return True


def close(db: sqlite3.Connection, campaign_id: str, now: datetime) -> CampaignState:
    found = row(db, campaign_id)
    if found.life.closed is None:
        _set(db, found, "closed", to_text(now))
    return state(db, row(db, campaign_id))


def end(db: sqlite3.Connection, campaign_id: str, now: datetime) -> CampaignState:
    found = row(db, campaign_id)
    ending = decide_ending(found, reports(db, found.number), now)
    if ending is Ending.CLOSE:
        _set(db, found, "closed", to_text(now))
    elif ending is not Ending.NOTHING:
        _set(db, found, "over_since", to_text(now) if ending is Ending.NOTE else None)
    return state(db, row(db, campaign_id))


def reopen(db: sqlite3.Connection, campaign_id: str) -> CampaignState:
    found = row(db, campaign_id)
    check_reopening(found)
    _set(db, found, "closed", None)
    _set(db, found, "over_since", None)
    return state(db, row(db, campaign_id))


def set_uploads_need(db: sqlite3.Connection, campaign_id: str, scope: str | None) -> CampaignState:
    _set(db, row(db, campaign_id), "uploads_need", scope)
    return state(db, row(db, campaign_id))


def seal(db: sqlite3.Connection, campaign_id: str, now: datetime, *, at_once: bool) -> CampaignState:
    found = row(db, campaign_id)
    check_sealing(found, now, at_once=at_once)
    if found.life.sealed is None:
        _set(db, found, "sealed", to_text(now))
        ids.drop(db, found.number)
    return state(db, row(db, campaign_id))


def delete(db: sqlite3.Connection, campaign_id: str, now: datetime) -> None:
    """Everything that is kept of a closed campaign, but that there was one."""
    found = row(db, campaign_id)
    check_deletion(found)
    if found.life.sealed is None:
        ids.drop(db, found.number)
    for table in OF_CAMPAIGNS:
        db.execute(f"DELETE FROM {table} WHERE campaign = ?", (found.number,))
    db.execute("DELETE FROM campaigns WHERE number = ?", (found.number,))
    db.execute("INSERT INTO deleted (id, deleted) VALUES (?, ?)", (campaign_id, to_text(now)))


def _set(db: sqlite3.Connection, row: CampaignRow, column: str, value: str | None) -> None:
    db.execute(f"UPDATE campaigns SET {column} = ? WHERE number = ?", (value, row.number))


def arrivals(db: sqlite3.Connection, row: CampaignRow) -> Arrivals:
    sums = "SELECT coalesce(sum(reports), 0), coalesce(sum(vouched), 0), min(least_batch) FROM parts WHERE campaign = ?"
    return row.arrivals(*db.execute(sums, (row.number,)).fetchone())


def reports(db: sqlite3.Connection, number: int) -> int:
    return int(db.execute("SELECT coalesce(sum(reports), 0) FROM parts WHERE campaign = ?", (number,)).fetchone()[0])


def parts(db: sqlite3.Connection, number: int) -> list[bytes]:
    return [bytes(found[0]) for found in db.execute("SELECT sums FROM parts WHERE campaign = ?", (number,)).fetchall()]


def number_of_parts(db: sqlite3.Connection, number: int) -> int:
    return int(db.execute("SELECT count(*) FROM parts WHERE campaign = ?", (number,)).fetchone()[0])


def add_part(
    db: sqlite3.Connection, number: int, reports: int, sums: bytes, vouched: int = 0, least_batch: int | None = None
) -> None:
    db.execute(
        "INSERT INTO parts (campaign, reports, sums, vouched, least_batch) VALUES (?, ?, ?, ?, ?)",
        (number, reports, sums, vouched, least_batch),
    )


def tally(db: sqlite3.Connection, campaign_id: str) -> Tally:
    """Raises StoreError where the parts are damaged."""
    return tally_or_refuse(campaign_id, document(db, campaign_id), parts(db, row(db, campaign_id).number))


def compact(db: sqlite3.Connection, number: int, campaign: Campaign) -> bool:
    """Replace small parts of a campaign by their sum; False, and no change, where they are damaged.

    That only saves readers some work, so it fails nobody's commit: what is damaged is for fsck to tell.
    """
    sizes = db.execute(
        "SELECT number, length(sums) FROM parts WHERE campaign = ? ORDER BY length(sums), number", (number,)
    ).fetchall()
    chosen = [found[0] for found in sizes[: compactable([found[1] for found in sizes])]]
    marks = ", ".join("?" * len(chosen))
    found = db.execute(f"SELECT reports, vouched, least_batch, sums FROM parts WHERE number IN ({marks})", chosen)
    members = found.fetchall()
    try:
        total = tally_of_parts(campaign, (bytes(member["sums"]) for member in members))
    except ValueError as error:
        LOG.error("a tally was not compacted", extra={"campaign": campaign.id, "reason": kind_of(error)})
        return False
    db.execute(f"DELETE FROM parts WHERE number IN ({marks})", chosen)
    least = min((member["least_batch"] for member in members if member["least_batch"] is not None), default=None)
    counted, vouched = (sum(member[name] for member in members) for name in ("reports", "vouched"))
    add_part(db, number, counted, part_of_tally(total), vouched, least)
    return True
