"""The check of every row: what is read is what was written, or a StoreError names what is damaged.

A row's check is a CRC-32 of its table's name and of all that stands in it, made before it is written. It has the id of
the campaign that the row belongs to, so a row, or a value of one, is at home in one place only. What may be large (a
document, a share, sums) is in it by its SHA-256, its ``digest``: numbers are checked without reading it. The document
of a campaign has its id for that.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgpack

from ldp_aggregator.store.contract import DAMAGED, StoreError
from ldp_aggregator.store.sql.tables import Row, SqlConnection

CONTENT: Final[Mapping[str, tuple[str, type[bytes] | type[str]]]] = {
    "parts": ("sums", bytes),
    "publications": ("sums", bytes),
    "models": ("document", str),
    "shares": ("share", bytes),
    "directories": ("document", bytes),
}
"""The column of each table that a digest stands for, and its type, which a digest does not tell."""
_APART: Final = frozenset({"checked", "part", "campaign", "document", "share", "sums"})
_NAMES: Final = ("node", "version", "name", "id", "key", "number")
"""The columns that tell which row of a table it is, as far as it has them."""


def digest_of(content: bytes | str) -> bytes:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).digest()


def check_of(table: str, values: Mapping[str, Any], campaign_id: str | None = None) -> int:
    """The check of a row that belongs to a campaign, or to none. Raises ValueError, TypeError and OverflowError for
    what no row has.
    """
    named = [(name, value) for name, value in sorted(values.items()) if value is not None and name not in _APART]
    if campaign_id is None and values.get("campaign") is not None:
        campaign_id = values["campaign"]  # An act names it by its id, and outlives it.
    return zlib.crc32(msgpack.packb([table, campaign_id, named], datetime=True))


def damage_of(table: str, row: Row, campaign_id: str | None = None) -> str | None:
    """Damage of a row, and of its content if that was read too; None if it is sound."""
    values = dict(row)
    try:
        column, kind = CONTENT.get(table, ("", bytes))
        content: Any = values.get(column)
        if check_of(table, values, campaign_id) != values["checked"]:
            damage = "it does not agree with its check"
        elif content is not None and (not isinstance(content, kind) or digest_of(content) != values["digest"]):
            damage = "its bytes are not those of its digest"
        else:
            return None
    except (ValueError, TypeError, OverflowError):
        damage = "it has a value that no store writes"
    name = next((f" {values[column]!r}" for column in _NAMES if column in values), "")
    return f"{table}{name}: {damage}"


def legible(value: Any) -> str:
    """Printable text of a value in a damaged row."""
    return str(value).encode("ascii", "backslashreplace").decode()


def sound(table: str, row: Row, campaign_id: str | None = None) -> Row:
    """The row, which was read with all that its check is of. Raises StoreError if it is damaged."""
    damage = damage_of(table, row, campaign_id)
    if damage is not None:
        whose = "the store" if campaign_id is None else f"campaign {campaign_id}"
        raise StoreError(f"{whose} is damaged: {damage}; 'ldp-aggregator fsck' tells what else is", DAMAGED)
    return row


async def insert(
    db: SqlConnection, table: str, values: Mapping[str, Any], campaign: tuple[int, str] | None = None, more: str = ""
) -> Row | None:
    """Write a row with its check; ``campaign`` is the number and the id of the one that it belongs to, ``more`` ends
    the statement.
    """
    written = {**values, "checked": check_of(table, values, campaign and campaign[1])}
    if campaign is not None:
        written["campaign"] = campaign[0]
    places = ", ".join(f"${place}" for place in range(1, len(written) + 1))
    statement = f"INSERT INTO {table} ({', '.join(written)}) VALUES ({places}) {more}"
    return await db.fetchrow(statement, *written.values())


async def insert_numbered(db: SqlConnection, table: str, values: Mapping[str, Any], more: str = "") -> int | None:
    """Write a row that the database numbers; returns the number, None if ``more`` kept it from being written."""
    made = await insert(db, table, values, more=f"{more} RETURNING number")
    if made is None:
        return None
    check = check_of(table, {**values, "number": made[0]})
    await db.execute(f"UPDATE {table} SET checked = $2 WHERE number = $1", made[0], check)
    return int(made[0])


async def change(db: SqlConnection, table: str, key: tuple[str, Any], changes: Mapping[str, Any]) -> None:
    """Change a row that is of no campaign, or is one, and its check with it. Raises StoreError if it is damaged."""
    found = await db.fetchrow(f"SELECT * FROM {table} WHERE {key[0]} = $1 FOR NO KEY UPDATE", key[1])
    if found is None:
        return
    check = check_of(table, {**sound(table, found), **changes})
    columns = {**changes, "checked": check}
    places = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, 2))
    await db.execute(f"UPDATE {table} SET {places} WHERE {key[0]} = $1", key[1], *columns.values())
