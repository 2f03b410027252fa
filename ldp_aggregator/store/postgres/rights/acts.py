"""The statements of the PostgreSQL store about the log of administrative acts."""

from __future__ import annotations

from datetime import datetime

from ldp_aggregator.store.postgres.sessions import Connection
from ldp_aggregator.store.rights import ASKED, Act, LoggedAct


async def begin(db: Connection, act: Act, now: datetime) -> int:
    number = await db.fetchval(
        "INSERT INTO acts (moment, actor, act, campaign, detail, outcome) VALUES ($1, $2, $3, $4, $5, $6) "
        "RETURNING number",
        now,
        act.actor,
        act.act,
        act.campaign,
        act.detail,
        ASKED,
    )
    return int(number)


async def end(db: Connection, number: int, outcome: str) -> None:
    await db.execute("UPDATE acts SET outcome = $2 WHERE number = $1", number, outcome)


async def listed(db: Connection, campaign_id: str | None, last: int | None) -> list[LoggedAct]:
    """Oldest first."""
    found = await db.fetch(
        "SELECT * FROM acts WHERE $1::text IS NULL OR campaign = $1 ORDER BY number DESC LIMIT $2", campaign_id, last
    )
    return [
        LoggedAct(
            row["number"],
            row["moment"],
            Act(row["actor"], row["act"], row["campaign"], row["detail"]),
            row["outcome"],
        )
        for row in reversed(found)
    ]
