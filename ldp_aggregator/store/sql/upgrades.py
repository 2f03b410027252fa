"""The step from the tables of an earlier version to those of this one. Each database moves its old tables aside, makes
new ones, and has them filled from here, all in one transaction. The store as it was is kept until somebody removes it,
and can be gone back to for as long as nothing has been written since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ldp_aggregator.store.contract import DAMAGED, StoreError
from ldp_aggregator.store.sql.checks import CONTENT, check_of, digest_of
from ldp_aggregator.store.sql.tables import OF_CAMPAIGNS, VERSION, Row, SqlConnection

SHARED: Final = ("campaigns", "deleted", *OF_CAMPAIGNS, "tokens", "acts", "directories", "origin")
"""Every table that both databases have, those first that others refer to."""
NUMBERED: Final = {"campaigns": "number", "parts": "part", "acts": "number"}
"""The tables whose rows the database numbers, and the column that it numbers them in."""


def refuse_back(reason: str) -> StoreError:
    return StoreError(f"there is no way back to the version before: {reason}")


async def carry(db: SqlConnection, before: str, numbers: str = "") -> Mapping[int, str]:
    """Write the rows of the old tables into the new ones; ``before`` leads to an old table when its name follows, and
    ``numbers`` is said where a row keeps its number. Returns the ids of the campaigns by their numbers.
    """
    ids = {row["number"]: row["id"] for row in await db.fetch(f"SELECT number, id FROM {before}campaigns")}
    for table in SHARED:
        overriding = numbers if table in NUMBERED else ""
        of_campaign = table in OF_CAMPAIGNS
        for number in ids if of_campaign else (None,):  # What may be large is in memory for one campaign at a time.
            where, given = (" WHERE campaign = $1", (number,)) if of_campaign else ("", ())
            for row in await db.fetch(f"SELECT * FROM {before}{table}{where}", *given):
                values = _checked(table, row, None if number is None else ids[number])
                places = ", ".join(f"${place}" for place in range(1, len(values) + 1))
                statement = f"INSERT INTO {table} ({', '.join(values)}) {overriding} VALUES ({places})"
                await db.execute(statement, *values.values())
    return ids


def _checked(table: str, row: Row, campaign_id: str | None) -> dict[str, Any]:
    values = dict(row)
    try:
        if table in CONTENT:
            values["digest"] = digest_of(values[CONTENT[table][0]])
        return {**values, "checked": check_of(table, values, campaign_id)}
    except (ValueError, TypeError, OverflowError):
        raise StoreError(f"a row of {table} has a value that no store writes; restore a backup", DAMAGED) from None


async def written(db: SqlConnection) -> str:
    """Tell what was written, so that it can be compared: how many rows each table has, and the sum of their checks."""
    found = []
    for table in SHARED:
        row = await db.fetchrow(f"SELECT count(*), coalesce(sum(checked), 0) FROM {table}")
        found += [] if row is None else [f"{table} {int(row[0])} {int(row[1])}"]
    return f"version {VERSION}: {', '.join(found)}"
