"""The statements of the SQLite store about campaigns and tallies. Each runs inside a transaction of the store's."""

from __future__ import annotations

import logging
import os
import sqlite3
from datetime import datetime
from typing import Final

from ldp_aggregator.counting.parts import part_of_tally
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.store.clock import from_text, to_text
from ldp_aggregator.store.consistency import tally_or_refuse
from ldp_aggregator.store.contract import SALT_BYTES, CampaignState, Life, StoreError, UnknownCampaignError
from ldp_aggregator.store.decisions import OF_CAMPAIGNS, CampaignRow, not_closed, was_deleted
from ldp_aggregator.store.failures import kind_of
from ldp_aggregator.store.sqlite import schema
from protocols import Campaign

LOG: Final = logging.getLogger("ldp_aggregator")

_ROWS: Final = (
    "SELECT number, id, title, opens, closes, created, closed, max_reports, salt, uploads_need FROM campaigns"
)


def rows(db: sqlite3.Connection) -> list[CampaignRow]:
    """All campaigns, oldest first."""
    return [_row(found) for found in db.execute(f"{_ROWS} ORDER BY number").fetchall()]


def find(db: sqlite3.Connection, campaign_id: str) -> CampaignRow | None:
    found = db.execute(f"{_ROWS} WHERE id = ?", (campaign_id,)).fetchone()
    return None if found is None else _row(found)


def row(db: sqlite3.Connection, campaign_id: str) -> CampaignRow:
    """Raises UnknownCampaignError."""
    found = find(db, campaign_id)
    if found is None:
        raise UnknownCampaignError(campaign_id)
    return found


def _row(found: sqlite3.Row) -> CampaignRow:
    life = Life(*(found[name] and from_text(found[name]) for name in ("opens", "closes", "closed")))
    names = ("number", "id", "title", "max_reports", "salt", "uploads_need")
    return CampaignRow(life=life, created=from_text(found["created"]), **{name: found[name] for name in names})


def document(db: sqlite3.Connection, campaign_id: str) -> bytes:
    """Raises UnknownCampaignError."""
    found = db.execute("SELECT document FROM campaigns WHERE id = ?", (campaign_id,)).fetchone()
    if found is None:
        raise UnknownCampaignError(campaign_id)
    return bytes(found["document"])


def state(db: sqlite3.Connection, row: CampaignRow) -> CampaignState:
    version = db.execute("SELECT max(version) FROM models WHERE campaign = ?", (row.number,)).fetchone()[0]
    shares = db.execute("SELECT count(*) FROM shares WHERE campaign = ?", (row.number,)).fetchone()[0]
    return row.state(reports=reports(db, row.number), model_version=version, shares=shares)


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
    if db.execute("SELECT 1 FROM deleted WHERE id = ?", (campaign.id,)).fetchone() is not None:
        raise was_deleted(campaign.id)
    number = db.execute(
        "INSERT INTO campaigns (id, title, document, opens, closes, created, max_reports, salt, uploads_need) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
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
    ).fetchone()[0]
    db.execute(schema.create_ids(number))
    return True


def close(db: sqlite3.Connection, campaign_id: str, now: datetime) -> CampaignState:
    """The final tally, then no more need to tell old ids from new ones."""
    found = row(db, campaign_id)
    if found.life.closed is None:
        compact(db, found)
        db.execute("UPDATE campaigns SET closed = ? WHERE number = ?", (to_text(now), found.number))
        db.execute(f"DROP TABLE {schema.ids_table(found.number)}")
    return state(db, row(db, campaign_id))


def set_uploads_need(db: sqlite3.Connection, campaign_id: str, scope: str | None) -> CampaignState:
    number = row(db, campaign_id).number
    db.execute("UPDATE campaigns SET uploads_need = ? WHERE number = ?", (scope, number))
    return state(db, row(db, campaign_id))


def delete(db: sqlite3.Connection, campaign_id: str, now: datetime) -> None:
    """Everything that is kept of a closed campaign, but that there was one."""
    found = row(db, campaign_id)
    if found.life.closed is None:
        raise not_closed(campaign_id)
    for table in OF_CAMPAIGNS:
        db.execute(f"DELETE FROM {table} WHERE campaign = ?", (found.number,))
    db.execute(f"DROP TABLE IF EXISTS {schema.ids_table(found.number)}")
    db.execute("DELETE FROM campaigns WHERE number = ?", (found.number,))
    db.execute("INSERT INTO deleted (id, moment) VALUES (?, ?)", (campaign_id, to_text(now)))


def reports(db: sqlite3.Connection, number: int) -> int:
    return int(db.execute("SELECT coalesce(sum(reports), 0) FROM parts WHERE campaign = ?", (number,)).fetchone()[0])


def parts(db: sqlite3.Connection, number: int) -> list[bytes]:
    return [bytes(found[0]) for found in db.execute("SELECT sums FROM parts WHERE campaign = ?", (number,)).fetchall()]


def number_of_parts(db: sqlite3.Connection, number: int) -> int:
    return int(db.execute("SELECT count(*) FROM parts WHERE campaign = ?", (number,)).fetchone()[0])


def add_part(db: sqlite3.Connection, number: int, reports: int, sums: bytes) -> None:
    db.execute("INSERT INTO parts (campaign, reports, sums) VALUES (?, ?, ?)", (number, reports, sums))


def tally(db: sqlite3.Connection, campaign_id: str) -> Tally:
    """Raises StoreError where the parts are damaged."""
    return tally_or_refuse(campaign_id, document(db, campaign_id), parts(db, row(db, campaign_id).number))


def compact(db: sqlite3.Connection, row: CampaignRow) -> bool:
    """Replace the parts of a campaign by their sum; False, and no change, where they are damaged.

    That only saves readers some work, so it fails nobody's commit: what is damaged is for fsck to tell.
    """
    try:
        total = tally(db, row.id)
    except StoreError as error:
        LOG.error("a tally was not compacted", extra={"campaign": row.id, "reason": kind_of(error)})
        return False
    db.execute("DELETE FROM parts WHERE campaign = ?", (row.number,))
    add_part(db, row.number, int(total.n.sum()), part_of_tally(total))
    return True
