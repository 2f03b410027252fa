"""The ids of reports on PostgreSQL: what tells a retry from a new report, and all that knows how they are kept.

One table has those of all campaigns. Inserting is in :mod:`ldp_aggregator.store.postgres.counting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ldp_aggregator.counting.rows import Rows
from ldp_aggregator.store.postgres.sessions import Connection, Sessions
from protocols.wire.reports import ID_BYTES

PIECE: Final = 20_000
"""Ids that are dropped in one transaction: nobody waits long for it, and its log stays small."""


async def drop(sessions: Sessions, number: int) -> None:
    """Those of a campaign that is sealed, a piece at a time. What is interrupted is gone on with by the next call."""
    last: bytes | None = b""
    while last is not None:
        last = await sessions.run(lambda db, after=last: _drop_piece(db, number, after))  # type: ignore[misc]


async def _drop_piece(db: Connection, number: int, after: bytes) -> bytes | None:
    """Returns the last id that was dropped, None where there are no more."""
    last: bytes | None = await db.fetchval(
        "WITH piece AS (SELECT id FROM ids WHERE campaign = $1 AND id > $2 ORDER BY id LIMIT $3), "
        "gone AS (DELETE FROM ids USING piece WHERE ids.campaign = $1 AND ids.id = piece.id) "
        "SELECT id FROM piece ORDER BY id DESC LIMIT 1",
        number,
        after,
        PIECE,
    )
    return last


async def stored(db: Connection, number: int) -> int:
    """How many there are."""
    return int(await db.fetchval("SELECT count(*) FROM ids WHERE campaign = $1", number))


async def known_digests(db: Connection, number: int, records: Rows, positions: Sequence[int]) -> dict[int, bytes]:
    """Position to stored digest of those records whose id is in the store."""
    if not len(positions):
        return {}
    wanted = records[np.asarray(positions, dtype=np.int64), :ID_BYTES].tobytes()
    rows = await db.fetch(
        "SELECT wanted.position, ids.digest FROM (SELECT position, "
        f"substring($1::bytea FROM position * {ID_BYTES} + 1 FOR {ID_BYTES}) AS id "
        "FROM generate_series(0, $2::integer - 1) AS position) AS wanted "
        "JOIN ids ON ids.campaign = $3 AND ids.id = wanted.id",
        wanted,
        len(positions),
        number,
    )
    return {int(positions[position]): digest for position, digest in rows}
