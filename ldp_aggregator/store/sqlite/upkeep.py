"""The statements of the SQLite store that look after it: a write that changes nothing, and the audit."""

from __future__ import annotations

import sqlite3

from ldp_aggregator.store.consistency import Finding, StoredCampaign, audit_campaign, unreadable
from ldp_aggregator.store.decisions import CampaignRow
from ldp_aggregator.store.sqlite import campaigns, ids, shares


def heartbeat(db: sqlite3.Connection) -> None:
    """Write a page and commit it, with nothing changed: an empty transaction would succeed on a full disk."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    db.execute(f"PRAGMA user_version = {version}")


def audit(db: sqlite3.Connection) -> list[Finding]:
    """Everything that is wrong, the file first."""
    findings = [Finding(None, str(row[0])) for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
    for row in campaigns.rows(db):
        try:
            findings += audit_campaign(_stored(db, row))
            findings += [Finding(row.id, problem) for problem in ids.problems(db, row.number)]
        except sqlite3.Error as error:  # noqa: PERF203 - the next one may be sound
            findings.append(unreadable(row.id, error))
    return findings


def _stored(db: sqlite3.Connection, row: CampaignRow) -> StoredCampaign:
    kept = ids.stored(db, row.number) if row.life.sealed is None else None
    return StoredCampaign(
        row.id,
        campaigns.document(db, row.id),
        row.salt,
        campaigns.parts(db, row.number),
        kept,
        row.overlap,
        shares.stored(db, row.number),
    )
