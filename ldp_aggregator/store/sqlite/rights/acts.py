"""The statements of the SQLite store about the log of administrative acts."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from ldp_aggregator.store.clock import from_text, to_text
from ldp_aggregator.store.rights import ASKED, Act, LoggedAct


def begin(db: sqlite3.Connection, act: Act, now: datetime) -> int:
    entry = db.execute(
        "INSERT INTO acts (moment, actor, act, campaign, detail, outcome) VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
        (to_text(now), act.actor, act.act, act.campaign, act.detail, ASKED),
    )
    return int(entry.fetchone()[0])


def end(db: sqlite3.Connection, number: int, outcome: str) -> None:
    db.execute("UPDATE acts SET outcome = ? WHERE number = ?", (outcome, number))


def listed(db: sqlite3.Connection, campaign_id: str | None, last: int | None) -> list[LoggedAct]:
    """Oldest first."""
    found = db.execute(
        "SELECT * FROM acts WHERE ?1 IS NULL OR campaign = ?1 ORDER BY number DESC LIMIT ?2",
        (campaign_id, -1 if last is None else last),
    ).fetchall()
    return [
        LoggedAct(
            row["number"],
            from_text(row["moment"]),
            Act(row["actor"], row["act"], row["campaign"], row["detail"]),
            row["outcome"],
        )
        for row in reversed(found)
    ]
