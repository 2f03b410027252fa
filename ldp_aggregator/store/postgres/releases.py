"""The statements of the PostgreSQL store that count what nodes have sent, also where a share is replaced or gone."""

from __future__ import annotations

import hashlib
from typing import Any

from ldp_aggregator.counting.shares import Releases, has_other_rows


async def keep(db: Any, number: int, node: str, share: bytes) -> None:
    """Count a share once, whatever became of it since. A node's first one has nothing to differ from.

    Of two first ones that meet, neither sees the other, and neither is believed to be of other rows.
    """
    await db.execute(
        "INSERT INTO releases (campaign, node, digest, other_rows) SELECT $1, $2, $3, "
        "$4 AND EXISTS (SELECT 1 FROM releases WHERE campaign = $1 AND node = $2) ON CONFLICT DO NOTHING",
        number,
        node,
        hashlib.sha256(share).digest(),
        has_other_rows(share),
    )


async def read(db: Any, number: int) -> tuple[tuple[str, Releases], ...]:
    """Of every node that ever sent a share to the campaign, sorted."""
    found = await db.fetch(
        "SELECT node, count(*) FILTER (WHERE NOT other_rows) - 1, count(*) FILTER (WHERE other_rows) FROM releases "
        "WHERE campaign = $1 GROUP BY node ORDER BY node",
        number,
    )
    return tuple((node, Releases(replacements, other_rows)) for node, replacements, other_rows in found)
