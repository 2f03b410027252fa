"""The statements of the SQLite store about what was last published of a campaign that fixes when."""

from __future__ import annotations

import sqlite3

from ldp_aggregator.counting.parts import part_of_tally
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.store.consistency import tally_or_refuse
from ldp_aggregator.store.sqlite import campaigns


def released_tally(db: sqlite3.Connection, campaign_id: str, every: int) -> Tally:
    number = campaigns.row(db, campaign_id).number
    last = db.execute("SELECT reports, sums FROM publications WHERE campaign = ?", (number,)).fetchone()
    if campaigns.reports(db, number) - (last["reports"] if last else 0) < every:
        return tally_or_refuse(campaign_id, campaigns.document(db, campaign_id), [last["sums"]] if last else [])
    tally = campaigns.tally(db, campaign_id)
    db.execute(
        "INSERT INTO publications (campaign, reports, sums) VALUES (?, ?, ?) "
        "ON CONFLICT (campaign) DO UPDATE SET reports = excluded.reports, sums = excluded.sums",
        (number, int(tally.n.sum()), part_of_tally(tally)),
    )
    return tally
