"""Do the databases of a store agree with each other? What each of them finds wrong, and what none could see alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ldp_aggregator.store.consistency import Finding
from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.decisions import CampaignRow
from ldp_aggregator.store.postgres import campaigns
from ldp_aggregator.store.postgres.sessions import Connection
from ldp_aggregator.store.postgres.store import PostgresStore
from ldp_aggregator.store.sharded.slot_map import FIRST, SlotMap

if TYPE_CHECKING:
    from ldp_aggregator.store.sharded.store import ShardedStore

LOOKS: Final = 5
"""How often the databases are looked at again because a slot was moved meanwhile."""


@dataclass(frozen=True)
class _Seen:
    """Of one database: its campaigns, the ids by campaign and slot, and what moved without its count."""

    rows: dict[str, CampaignRow]
    slots: dict[str, dict[int, int]]
    moved: dict[str, int]


async def audit(store: ShardedStore, findings: list[Finding]) -> list[Finding]:
    """``findings`` are those of the first database."""
    for number, other in store.others.items():
        findings += [
            Finding(one.campaign, f"in database {number} of the store: {one.problem}") for one in await other.audit()
        ]
    for _ in range(LOOKS):
        before = await store.slots()
        seen = {number: await _look(store.shard(number)) for number in before.shards}
        if (await store.slots()).version == before.version:
            return findings + _compare(before, seen)
    raise StoreError("slots are being moved from one database to another; try again when that has ended")


async def _look(store: PostgresStore) -> _Seen:
    async def work(db: Connection) -> tuple[list[tuple[str, int, int]], dict[str, int]]:
        ids = await db.fetch(
            "SELECT campaigns.id, get_byte(ids.id, 0) AS slot, count(*) FROM ids "
            "JOIN campaigns ON number = campaign GROUP BY 1, 2"
        )
        moved = await db.fetch("SELECT id, moved FROM campaigns WHERE sealed IS NULL")
        return [tuple(row) for row in ids], dict(moved)

    ids, moved = await store.do(work, isolation="repeatable_read")
    slots: dict[str, dict[int, int]] = {}
    for campaign_id, slot, count in ids:
        slots.setdefault(campaign_id, {})[slot] = count
    return _Seen({row.id: row for row in await store.do(campaigns.rows)}, slots, moved)


def _compare(found: SlotMap, seen: dict[int, _Seen]) -> list[Finding]:
    findings = [
        Finding(None, f"slot {slot.number} is on its way; 'ldp-aggregator shards move' completes what was interrupted")
        for slot in found.slots
        if not slot.is_settled
    ]
    first = seen[FIRST]
    for number, one in seen.items():
        if number != FIRST:
            findings += _compare_lives(number, first, one)
        findings += [
            Finding(campaign, f"in database {number} of the store: {count} ids of slot {slot}, which is not its")
            for campaign, slots in one.slots.items()
            if campaign in first.rows and first.rows[campaign].max_reports is None
            for slot, count in sorted(slots.items())
            if number not in (found.slots[slot].shard, found.slots[slot].target, found.slots[slot].cleaning)
        ]
    if not findings:
        for campaign in first.moved:
            total = sum(one.moved.get(campaign, 0) for one in seen.values())
            if total:
                findings.append(Finding(campaign, f"{total} more ids arrived in databases of the store than had left"))
    return findings


def _compare_lives(number: int, first: _Seen, one: _Seen) -> Sequence[Finding]:
    findings = []
    for campaign, row in one.rows.items():
        known = first.rows.get(campaign)
        place = f"in database {number} of the store"
        if known is None:
            if any(one.slots.get(campaign, {}).values()):
                findings.append(Finding(campaign, f"{place}: reports of a campaign that the first does not have"))
        elif (known.life.closed is None) != (row.life.closed is None):
            said = "open" if row.life.closed is None else "closed"
            remedy = "close" if row.life.closed is None else "reopen"
            findings.append(Finding(campaign, f"{place}: it is {said}, but not in the first; '{remedy}' it once more"))
        elif (known.life.sealed is None) != (row.life.sealed is None):
            findings.append(Finding(campaign, f"{place}: sealed in one of it and the first; 'seal' it once more"))
    return findings
