"""Two embedded stores into a third, exactly: the sum of two shards is what one node had counted.

A report that both shards hold is in the sum twice, and a tally cannot be taken apart again. So it is told how many
there are: exactly where both still have their ids, and at most how many where one was sealed, if the caller says so.
Shares of nodes have their node's name: the same share of the same node in both is one. What a node ever sent to either
counts in the sum.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from ldp_aggregator.counting.parts import part_of_tally
from ldp_aggregator.store.backup import drafted
from ldp_aggregator.store.clock import utc_now
from ldp_aggregator.store.consistency import sum_or_refuse
from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.decisions import CampaignRow, Kind, kind_of
from ldp_aggregator.store.rights import DONE, UPLOADING, Act
from ldp_aggregator.store.sqlite import campaigns, ids, origin, releases, schema
from ldp_aggregator.store.sqlite.connections import open_connection, transaction
from ldp_aggregator.store.sqlite.rights import acts
from ldp_aggregator.store.sqlite.store import FILE_NAME
from protocols import Campaign


@dataclass(frozen=True, slots=True)
class Merged:
    """A campaign of the sum: its reports or shares, and of the reports those that are in it twice, or may be."""

    id: str
    count: int
    overlap: int = 0
    unchecked: int = 0


def merge_stores(
    first: Path,
    second: Path,
    output: Path,
    *,
    assume_disjoint: bool = False,
    now: datetime | None = None,
    act: Act | None = None,
) -> list[Merged]:
    """Write the campaigns of two data folders into a new one.

    Models and tokens are left behind: a model is trained anew, a token is made where it is used. A campaign that is
    closed or sealed in either store is so in the output, whose log begins with ``act``. Raises StoreError, and writes
    nothing, where it cannot be told how many reports are in both unless ``assume_disjoint``, and where a node has two
    shares.
    """
    for folder in (first, second):
        if not (folder / FILE_NAME).exists():
            raise StoreError(f"there is no store in {folder}")
    with drafted(output) as draft, closing(open_connection(draft)) as db:
        schema.prepare(db)
        for name, folder in (("a", first), ("b", second)):
            _attach(db, name, folder / FILE_NAME)
        with transaction(db):
            merged = [_merge_campaign(db, campaign_id, assume_disjoint) for campaign_id in _campaign_ids(db)]
            _merge_origins(db, now or utc_now())
            if act is not None:
                acts.end(db, acts.begin(db, act, now or utc_now()), DONE)
    return merged


def _attach(db: sqlite3.Connection, name: str, path: Path) -> None:
    try:
        db.execute(f"ATTACH ? AS {name}", (f"file:{quote(str(path.absolute()))}?mode=ro",))
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened as a store: {error}") from error
    schema.check_version(db, name)


def _campaign_ids(db: sqlite3.Connection) -> list[str]:
    rows = db.execute(
        "SELECT id FROM (SELECT id, created FROM a.campaigns UNION ALL SELECT id, created FROM b.campaigns) "
        "GROUP BY id ORDER BY min(created), id"
    )
    return [row["id"] for row in rows.fetchall()]


def _merge_origins(db: sqlite3.Connection, now: datetime) -> None:
    """The sum publishes under versions that neither has used, and never what either has deleted."""
    floors = [origin.read(db, name).version_floor for name in ("a", "b")]
    floors += [db.execute(f"SELECT coalesce(max(version), 0) FROM {name}.models").fetchone()[0] for name in ("a", "b")]
    origin.renew(db, now, *floors)
    for name in ("a", "b"):
        db.execute(
            f"INSERT OR IGNORE INTO main.deleted SELECT id, deleted FROM {name}.deleted "
            "WHERE id NOT IN (SELECT id FROM main.campaigns)"
        )


def _merge_campaign(db: sqlite3.Connection, campaign_id: str, assume_disjoint: bool) -> Merged:
    rows = {name: campaigns.find(db, campaign_id, name) for name in ("a", "b")}
    found = {name: row for name, row in rows.items() if row is not None}
    salts = [row.salt for row in found.values() if row.salt is not None]
    if salts and any(_takes_reports(db, name, row) for name, row in found.items()):
        raise StoreError(f"campaign {campaign_id} takes reports in one store and shares in the other")
    sealed = [row.life.sealed for row in found.values() if row.life.sealed is not None]
    if len(found) == 2 and sealed and not assume_disjoint and not salts:
        raise StoreError(
            f"campaign {campaign_id} is sealed in a store, so its ids are gone and nobody can tell whether "
            "both counted the same report; merge with --assume-disjoint if no device can have sent to both"
        )
    number = _insert_campaign(db, found)
    _keep_uploads_need(db, number, {row.uploads_need for row in found.values()})
    document = campaigns.document(db, campaign_id)
    campaign = Campaign.parse(document, campaign_id)
    sources = {name: row.number for name, row in found.items()}
    counted = _merge_parts(db, campaign, number, sources)
    _merge_publications(db, campaign, number, sources)
    overlap, unchecked = (sum(getattr(row, name) for row in found.values()) for name in ("overlap", "unchecked"))
    if sealed:
        unchecked += min(counted) if len(found) == 2 else 0
    else:
        overlap += _merge_ids(db, number, sources)
    db.execute("UPDATE main.campaigns SET overlap = ?, unchecked = ? WHERE number = ?", (overlap, unchecked, number))
    count = _merge_shares(db, campaign_id, number, sources) if salts else sum(counted)
    return Merged(campaign_id, count, overlap, unchecked)


def _insert_campaign(db: sqlite3.Connection, found: dict[str, CampaignRow]) -> int:
    """The later end of each that has one: what is over in a store is over in the sum."""
    name, sample = next(iter(found.items()))
    ends = {
        column: db.execute(
            " UNION ALL ".join(
                f"SELECT {column} FROM {one}.campaigns WHERE number = {row.number}" for one, row in found.items()
            )
        ).fetchall()
        for column in ("created", "closed", "sealed", "max_reports", "salt")
    }
    values = {column: [row[0] for row in rows if row[0] is not None] for column, rows in ends.items()}
    cursor = db.execute(
        "INSERT INTO main.campaigns (id, title, document, opens, closes, created, closed, sealed, max_reports, salt) "
        f"SELECT id, title, document, opens, closes, ?, ?, ?, ?, ? FROM {name}.campaigns WHERE number = ? "
        "RETURNING number",
        (
            min(values["created"]),
            max(values["closed"], default=None),
            max(values["sealed"], default=None),
            max(values["max_reports"], default=None),
            next(iter(values["salt"]), None),
            sample.number,
        ),
    )
    return int(cursor.fetchone()[0])


def _keep_uploads_need(db: sqlite3.Connection, number: int, needs: set[str | None]) -> None:
    """What either store asks of uploads; of two, what fewer tokens open."""
    asked = [scope for scope in needs if scope is not None]
    strictest = min(asked, key=lambda scope: len(UPLOADING[scope]), default=None)
    db.execute("UPDATE main.campaigns SET uploads_need = ? WHERE number = ?", (strictest, number))


def _takes_reports(db: sqlite3.Connection, name: str, row: CampaignRow) -> bool:
    """Whether the campaign is one of devices already, there; before its first report it may still become federated."""
    parts = f"SELECT coalesce(sum(reports), 0) FROM {name}.parts WHERE campaign = ?"
    return kind_of(row.salt, row.max_reports, db.execute(parts, (row.number,)).fetchone()[0]) is Kind.REPORTS


def _merge_parts(db: sqlite3.Connection, campaign: Campaign, number: int, sources: dict[str, int]) -> list[int]:
    """One part with the sum of all; returns the reports of each store."""
    parts = {
        name: db.execute(
            f"SELECT reports, vouched, least_batch, sums FROM {name}.parts WHERE campaign = ?", (source,)
        ).fetchall()
        for name, source in sources.items()
    }
    every = [part for members in parts.values() for part in members]
    tally = sum_or_refuse(campaign, [bytes(part["sums"]) for part in every])
    least = min((part["least_batch"] for part in every if part["least_batch"] is not None), default=None)
    vouched = sum(part["vouched"] for part in every)
    campaigns.add_part(db, number, int(tally.n.sum()), part_of_tally(tally), vouched, least)
    return [sum(part["reports"] for part in members) for members in parts.values()]


def _merge_publications(db: sqlite3.Connection, campaign: Campaign, number: int, sources: dict[str, int]) -> None:
    """What either store published counts as published: the next release waits for reports that are in neither."""
    published = [
        row["sums"]
        for name, source in sources.items()
        for row in db.execute(f"SELECT sums FROM {name}.publications WHERE campaign = ?", (source,)).fetchall()
    ]
    if published:
        tally = sum_or_refuse(campaign, published)
        db.execute(
            "INSERT INTO main.publications (campaign, reports, sums) VALUES (?, ?, ?)",
            (number, int(tally.n.sum()), part_of_tally(tally)),
        )


def _merge_shares(db: sqlite3.Connection, campaign_id: str, number: int, sources: dict[str, int]) -> int:
    for name, source in sources.items():
        releases.merge(db, number, name, source)
        for row in db.execute(f"SELECT * FROM {name}.shares WHERE campaign = ?", (source,)).fetchall():
            db.execute(
                "INSERT INTO main.shares (campaign, node, share, digest, received) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (campaign, node) DO NOTHING",
                (number, row["node"], row["share"], row["digest"], row["received"]),
            )
            kept = "SELECT digest FROM main.shares WHERE campaign = ? AND node = ?"
            if db.execute(kept, (number, row["node"])).fetchone()["digest"] != row["digest"]:
                raise StoreError(
                    f"campaign {campaign_id}: node {row['node']!r} has another share in each store; "
                    "withdraw one of them first"
                )
    return int(db.execute("SELECT count(*) FROM main.shares WHERE campaign = ?", (number,)).fetchone()[0])


def _merge_ids(db: sqlite3.Connection, number: int, sources: dict[str, int]) -> int:
    """All ids of both; returns how many both have."""
    return sum(ids.copy(db, number, name, source) for name, source in sources.items())
