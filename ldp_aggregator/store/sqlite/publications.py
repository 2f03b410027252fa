"""The statements of the SQLite store about what was last published of a campaign that fixes when."""

from __future__ import annotations

import sqlite3

from ldp_aggregator.counting.parts import part_of_tally
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.store.consistency import sum_or_refuse
from ldp_aggregator.store.decisions import is_release
from ldp_aggregator.store.sqlite import campaigns
from protocols import Campaign


def released_tally(db: sqlite3.Connection, campaign: Campaign, every: int) -> Tally:
    row = campaigns.row(db, campaign.id)
    last = db.execute("SELECT reports, sums FROM publications WHERE campaign = ?", (row.number,)).fetchone()
    released = sum_or_refuse(campaign, [last["sums"]] if last else [])
    if campaigns.reports(db, row.number) - (last["reports"] if last else 0) < every:
        return released
    tally = sum_or_refuse(campaign, campaigns.parts(db, row.number))
    if not is_release(tally, released, every):
        return released
    db.execute(
        "INSERT INTO publications (campaign, reports, sums) VALUES (?, ?, ?) "
        "ON CONFLICT (campaign) DO UPDATE SET reports = excluded.reports, sums = excluded.sums",
        (row.number, int(tally.n.sum()), part_of_tally(tally)),
    )
    return tally
