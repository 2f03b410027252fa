"""Two embedded stores into a third, exactly: the sum of two shards is what one node had counted.

A report that both shards hold would be counted twice, and a tally cannot be taken apart again. Where both still have
their ids that is checked, and refused; where one campaign was closed its ids are gone, and the caller has to know.
Shares of nodes have their node's name: the same share of the same node in both is one. What a node ever sent to either
counts in the sum.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ldp_aggregator.counting.parts import part_of_tally, tally_of_parts
from ldp_aggregator.store.backup import new_file
from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.decisions import Kind, kind_of
from ldp_aggregator.store.rights import UPLOADING
from ldp_aggregator.store.sqlite import releases, schema
from ldp_aggregator.store.sqlite.connections import open_connection, transaction
from ldp_aggregator.store.sqlite.store import FILE_NAME
from protocols import Campaign


def merge_stores(first: Path, second: Path, output: Path, *, assume_disjoint: bool = False) -> list[tuple[str, int]]:
    """Write the campaigns of two data folders into a new one; returns (campaign id, reports or shares) of each.

    Models and tokens are left behind: a model is trained anew, a token is made where it is used. A campaign that is
    closed in either store is closed in the output. Raises StoreError, and writes nothing, where a report would count
    twice, where that cannot be told unless ``assume_disjoint``, and where a node has two shares.
    """
    for folder in (first, second):
        if not (folder / FILE_NAME).exists():
            raise StoreError(f"there is no store in {folder}")
    db = open_connection(new_file(output))
    try:
        schema.prepare(db)
        for name, folder in (("a", first), ("b", second)):
            db.execute(f"ATTACH ? AS {name}", (str(folder / FILE_NAME),))
            schema.check_version(db, name)
        with transaction(db):
            merged = [_merge_campaign(db, campaign_id, assume_disjoint) for campaign_id in _campaign_ids(db)]
    except BaseException:
        db.close()
        for path in output.glob(f"{FILE_NAME}*"):
            path.unlink()
        raise
    db.close()
    return merged


def _campaign_ids(db: sqlite3.Connection) -> list[str]:
    rows = db.execute(
        "SELECT id FROM (SELECT id, created FROM a.campaigns UNION ALL SELECT id, created FROM b.campaigns) "
        "GROUP BY id ORDER BY min(created), id"
    )
    return [row["id"] for row in rows.fetchall()]


def _merge_campaign(db: sqlite3.Connection, campaign_id: str, assume_disjoint: bool) -> tuple[str, int]:
    found = {}
    for name in ("a", "b"):
        row = db.execute(f"SELECT * FROM {name}.campaigns WHERE id = ?", (campaign_id,)).fetchone()
        if row is not None:
            found[name] = row
    closings = [row["closed"] for row in found.values() if row["closed"] is not None]
    salts = [row["salt"] for row in found.values() if row["salt"] is not None]
    if salts and any(_takes_reports(db, name, row) for name, row in found.items()):
        raise StoreError(f"campaign {campaign_id} takes reports in one store and shares in the other")
    if len(found) == 2 and closings and not assume_disjoint and not salts:
        raise StoreError(
            f"campaign {campaign_id} is closed in a store, so its ids are gone and nobody can tell whether "
            "both counted the same report; merge with --assume-disjoint if no device can have sent to both"
        )
    sample = next(iter(found.values()))
    limits = [row["max_reports"] for row in found.values() if row["max_reports"] is not None]
    number = db.execute(
        "INSERT INTO main.campaigns (id, title, document, opens, closes, created, closed, max_reports, salt) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (
            campaign_id,
            sample["title"],
            sample["document"],
            sample["opens"],
            sample["closes"],
            min(row["created"] for row in found.values()),
            max(closings, default=None),
            max(limits, default=None),
            salts[0] if salts else None,
        ),
    ).fetchone()[0]
    _keep_uploads_need(db, number, {row["uploads_need"] for row in found.values()})
    campaign = Campaign.parse(bytes(sample["document"]), campaign_id)
    parts = [
        bytes(part["sums"])
        for name, row in found.items()
        for part in db.execute(f"SELECT sums FROM {name}.parts WHERE campaign = ?", (row["number"],)).fetchall()
    ]
    tally = tally_of_parts(campaign, parts)
    reports = int(tally.n.sum())
    db.execute(
        "INSERT INTO main.parts (campaign, reports, sums) VALUES (?, ?, ?)", (number, reports, part_of_tally(tally))
    )
    sources = {name: row["number"] for name, row in found.items()}
    _merge_publications(db, campaign, number, sources)
    if not closings:
        _merge_ids(db, campaign_id, number, sources, reports)
    return campaign_id, _merge_shares(db, campaign_id, number, sources) if salts else reports


def _keep_uploads_need(db: sqlite3.Connection, number: int, needs: set[str | None]) -> None:
    """What either store asks of uploads; of two, what fewer tokens open."""
    asked = [scope for scope in needs if scope is not None]
    strictest = min(asked, key=lambda scope: len(UPLOADING[scope]), default=None)
    db.execute("UPDATE main.campaigns SET uploads_need = ? WHERE number = ?", (strictest, number))


def _takes_reports(db: sqlite3.Connection, name: str, row: sqlite3.Row) -> bool:
    """Whether the campaign is one of devices already, there; before its first report it may still become federated."""
    parts = f"SELECT coalesce(sum(reports), 0) FROM {name}.parts WHERE campaign = ?"
    counted = db.execute(parts, (row["number"],)).fetchone()[0]
    return kind_of(row["salt"], row["max_reports"], counted) is Kind.REPORTS


def _merge_publications(db: sqlite3.Connection, campaign: Campaign, number: int, sources: dict[str, int]) -> None:
    """What either store published counts as published: the next release waits for reports that are in neither."""
    published = [
        row["sums"]
        for name, source in sources.items()
        for row in db.execute(f"SELECT sums FROM {name}.publications WHERE campaign = ?", (source,)).fetchall()
    ]
    if published:
        tally = tally_of_parts(campaign, published)
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


def _merge_ids(db: sqlite3.Connection, campaign_id: str, number: int, sources: dict[str, int], reports: int) -> None:
    db.execute(schema.create_ids(number))
    for name, source in sources.items():
        db.execute(
            f"INSERT OR IGNORE INTO main.{schema.ids_table(number)} "
            f"SELECT id, digest FROM {name}.{schema.ids_table(source)}"
        )
    kept = db.execute(f"SELECT count(*) FROM main.{schema.ids_table(number)}").fetchone()[0]
    if kept != reports:
        raise StoreError(
            f"campaign {campaign_id}: {reports - kept} reports are counted in both stores; "
            "their sum would count them twice"
        )
