"""Copies of embedded stores, stores made of copies, and of two stores a third. All files are for their owner only.

Two are added up exactly: the sum of two shards is what one node had counted. A report that both shards hold is in the
sum twice, and a tally cannot be taken apart again. So it is told how many there are: exactly where both still have
their ids, and at most how many where one was sealed, if the caller says so. Shares of nodes have their node's name: the
same share of the same node in both is one. What a node ever sent to either counts in the sum.
"""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from ldp_aggregator.store.contract import DONE, UPLOADING, Act, Restored, StoreError, to_text, utc_now
from ldp_aggregator.store.decisions import takes_reports
from ldp_aggregator.store.durable import make_folder, sync_file, sync_folder
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.published import highest_version, renew
from ldp_aggregator.store.sql.rights import begin_act, forget_rights
from ldp_aggregator.store.sql.tables import Row
from ldp_aggregator.store.sqlite import database
from ldp_aggregator.store.sqlite.database import FILE_NAME, SqliteConnection, finish, open_connection, transaction
from ldp_aggregator.store.sqlite.run_files import copy_runs
from ldp_protocols import Campaign

_MADE: Final = ("campaigns", "models", "tokens")
COPIES: Final = 5
"""Times that a copy begins again that a merge of runs came between."""


def copy_store(source: Path, output: Path) -> None:
    """Write a store as it is at one moment into a new folder. Other processes may write to it meanwhile.

    The copy takes nothing, and can be read, checked and merged; :func:`restore_store` makes a store of it.
    """
    with _copied(source, output) as copy:
        copy.execute("UPDATE origin SET is_copy = 1")


def restore_store(source: Path, output: Path, *, keep_shares: bool = False, now: datetime | None = None) -> Restored:
    """Make a store of a copy, in a folder that has none.

    Nobody knows what was revoked, withdrawn or published since the copy: every token is revoked, every share dropped
    (unless ``keep_shares`` says that none was withdrawn), and models get versions above all that can have been used.
    Raises StoreError, and leaves nothing, also where the copy is damaged.
    """
    moment = now or utc_now()
    with _copied(source, output) as copy:
        damage = [row[0] for row in copy.execute("PRAGMA integrity_check").fetchall() if row[0] != "ok"]
        if damage:
            raise StoreError(f"the copy in {source} is damaged: {damage[0]}")
        made = [row[0] for table in _MADE for row in copy.execute(f"SELECT created FROM {table}")]
        if (newest := max(made, default=moment)) > moment:
            raise StoreError(
                f"the clock says {to_text(moment)}, and the copy has something of {to_text(newest)}; set the clock: "
                "versions of models are told apart by the time of the restore"
            )
        with transaction(copy):
            db = SqliteConnection(copy)
            restored = finish(forget_rights(db, moment, keep_shares=keep_shares))
            finish(renew(db, moment))
    return restored


@contextmanager
def _copied(source: Path, output: Path) -> Iterator[sqlite3.Connection]:
    """A copy to change."""
    if not (source / FILE_NAME).exists():
        raise StoreError(f"there is no store in {source}")
    with drafted(output) as draft:
        try:
            _copy_at_one_moment(source / FILE_NAME, draft)
            with closing(open_connection(draft)) as copy:
                database.check_file(copy)
                yield copy
        except sqlite3.Error as error:
            raise StoreError(f"the copy failed: {error}") from error


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """An empty file that becomes the store of a folder that has none, once the block is done: until then there is none,
    whatever happens. The folder is made where absent.
    """
    draft = _make_folder(folder) / f"{FILE_NAME}.{secrets.token_hex(8)}"
    database.make_file(draft)
    try:
        yield draft
        target = _make_folder(folder) / FILE_NAME
        sync_file(draft)  # VACUUM INTO need not have.
        if database.folder_of(draft).exists():
            database.folder_of(draft).rename(database.folder_of(target))
            sync_folder(folder)
        draft.rename(target)
        sync_folder(folder)
    except OSError as error:
        raise StoreError(f"the store in {folder} cannot be written: {error}") from error
    finally:
        for file in folder.glob(f"{draft.name}*"):  # SQLite keeps others beside it, and runs have a folder.
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink()


def _copy_at_one_moment(source: Path, draft: Path) -> None:
    """Database and runs. Runs never change, but may be merged away meanwhile: then everything is copied again."""
    for attempt in range(COPIES):
        draft.unlink()
        database.make_file(draft)
        with closing(open_connection(source, read_only=True)) as db:
            db.execute("VACUUM INTO ?", (str(draft),))
        with closing(open_connection(draft)) as copy:
            listed = database.listed_runs(copy)
        try:
            copy_runs(database.folder_of(source), database.folder_of(draft), listed)
        except FileNotFoundError:
            if attempt == COPIES - 1:
                raise
        else:
            return


def _make_folder(folder: Path) -> Path:
    if (folder / FILE_NAME).exists():
        raise StoreError(f"there is a store in {folder} already; choose an empty folder")
    try:
        make_folder(folder)
    except OSError as error:
        raise StoreError(f"the folder {folder} cannot be made: {error.strerror}") from error
    return folder


@dataclass(frozen=True, slots=True)
class Combined:
    """A campaign of the sum: its reports or shares, and of the reports those that are in it twice, or may be."""

    id: str
    count: int
    overlap: int = 0
    unchecked: int = 0


@dataclass(frozen=True)
class _Source:
    """A campaign as one store has it."""

    db: SqliteConnection
    row: Row
    number: int


def combine_stores(
    first: Path,
    second: Path,
    output: Path,
    *,
    assume_disjoint: bool = False,
    now: datetime | None = None,
    act: Act | None = None,
) -> list[Combined]:
    """Write the campaigns of two data folders into a new one.

    Models and tokens are left behind: a model is trained anew, a token is made where it is used. A campaign that is
    closed or sealed in either store is so in the output, whose log begins with ``act``. Raises StoreError, and writes
    nothing, where it cannot be told how many reports are in both unless ``assume_disjoint``, where a node has two
    shares, and where a store is damaged.
    """
    for folder in (first, second):
        if not (folder / FILE_NAME).exists():
            raise StoreError(f"there is no store in {folder}")
    moment = now or utc_now()
    with drafted(output) as draft, ExitStack() as opened:
        db = SqliteConnection(opened.enter_context(closing(open_connection(draft))))
        database.prepare_file(db.raw)
        sources = []
        for folder in (first, second):
            raw = opened.enter_context(closing(open_connection(folder / FILE_NAME, read_only=True)))
            database.check_file(raw)
            opened.enter_context(transaction(raw, "BEGIN"))
            sources.append(SqliteConnection(raw))
        with transaction(db.raw):
            return finish(_combine(db, sources, assume_disjoint, moment, act))


async def _combine(
    db: SqliteConnection, sources: Sequence[SqliteConnection], assume_disjoint: bool, now: datetime, act: Act | None
) -> list[Combined]:
    found: dict[str, list[_Source]] = {}
    for source in sources:
        for row in await source.fetch("SELECT * FROM campaigns"):
            found.setdefault(row["id"], []).append(_Source(source, row, row["number"]))
    oldest_first = sorted(found, key=lambda name: (min(one.row["created"] for one in found[name]), name))
    combined = [await _combine_campaign(db, found[name], assume_disjoint) for name in oldest_first]
    # The sum publishes under versions that neither has used, and never what either has deleted.
    await renew(db, now, *[await highest_version(source) for source in sources])
    for source in sources:
        for gone in await source.fetch("SELECT id, deleted FROM deleted"):
            if gone["id"] not in found:
                await db.execute("INSERT INTO deleted VALUES ($1, $2) ON CONFLICT DO NOTHING", *gone)
    if act is not None:
        await begin_act(db, act, DONE, now)
    return combined


async def _combine_campaign(db: SqliteConnection, sources: Sequence[_Source], assume_disjoint: bool) -> Combined:
    sample = sources[0].row
    takes_shares = any(one.row["salt"] is not None for one in sources)
    counts = [await campaigns.reports(one.db, one.number) for one in sources]
    kinds = [takes_reports(one.row["salt"], one.row["max_reports"], n) for one, n in zip(sources, counts, strict=True)]
    if takes_shares and any(kinds):
        raise StoreError(f"campaign {sample['id']} takes reports in one store and shares in the other")
    sealed = any(one.row["sealed"] is not None for one in sources)
    if len(sources) == 2 and sealed and not assume_disjoint and not takes_shares:
        raise StoreError(
            f"campaign {sample['id']} is sealed in a store, so its ids are gone and nobody can tell whether "
            "both counted the same report; merge with --assume-disjoint if no device can have sent to both"
        )
    number = await _insert_campaign(db, [one.row for one in sources])
    campaign = Campaign.parse(sample["document"], sample["id"])
    await _add_parts(db, campaign, number, sources)
    await _add_publications(db, campaign, number, sources)
    overlap, unchecked, lost = (sum(one.row[name] for one in sources) for name in ("overlap", "unchecked", "lost_ids"))
    if sealed:
        unchecked += min(counts) if len(sources) == 2 else 0
    else:
        overlap += sum(database.copy_ids(db.raw, number, one.db.raw, one.number) for one in sources)
    statement = "UPDATE campaigns SET overlap = $2, unchecked = $3, lost_ids = $4 WHERE number = $1"
    await db.execute(statement, number, overlap, unchecked, lost)
    count = await _add_shares(db, campaign.id, number, sources) if takes_shares else sum(counts)
    return Combined(campaign.id, count, overlap, unchecked)


async def _insert_campaign(db: SqliteConnection, rows: Sequence[Row]) -> int:
    """The later end of each that has one: what is over in a store is over in the sum. What either asks of uploads; of
    two, what fewer tokens open.
    """
    values = {
        name: [row[name] for row in rows if row[name] is not None]
        for name in ("created", "closed", "sealed", "max_reports", "salt", "uploads_need")
    }
    made = await db.fetchrow(
        "INSERT INTO campaigns (id, title, document, opens, closes, created, closed, sealed, max_reports, salt, "
        "uploads_need) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING number",
        *(rows[0][name] for name in ("id", "title", "document", "opens", "closes")),
        min(values["created"]),
        *(max(values[name], default=None) for name in ("closed", "sealed", "max_reports")),
        next(iter(values["salt"]), None),
        min(values["uploads_need"], key=lambda scope: len(UPLOADING[scope]), default=None),
    )
    return int(made[0]) if made is not None else 0


async def _add_parts(db: SqliteConnection, campaign: Campaign, number: int, sources: Sequence[_Source]) -> None:
    """One part with the sum of all."""
    statement = "SELECT reports, vouched, least_batch, sums FROM parts WHERE campaign = $1"
    parts = [part for one in sources for part in await one.db.fetch(statement, one.number)]
    await campaigns.add_sum(db, number, campaigns.sum_or_refuse(campaign, [part["sums"] for part in parts]), parts)


async def _add_publications(db: SqliteConnection, campaign: Campaign, number: int, sources: Sequence[_Source]) -> None:
    """Count as published what either store published: the next release waits for reports that are in neither."""
    published = [
        row["sums"]
        for one in sources
        for row in await one.db.fetch("SELECT sums FROM publications WHERE campaign = $1", one.number)
    ]
    if published:
        await campaigns.publish_tally(db, number, campaigns.sum_or_refuse(campaign, published))


async def _add_shares(db: SqliteConnection, campaign_id: str, number: int, sources: Sequence[_Source]) -> int:
    kept: dict[str, bytes] = {}
    for one in sources:
        # What is declared to be of other rows in one store only is not believed.
        for sent in await one.db.fetch("SELECT node, digest, other_rows FROM releases WHERE campaign = $1", one.number):
            await db.execute(
                "INSERT INTO releases (campaign, node, digest, other_rows) VALUES ($1, $2, $3, $4) "
                "ON CONFLICT (campaign, node, digest) DO UPDATE SET other_rows = min(other_rows, excluded.other_rows)",
                *(number, *sent),
            )
        for share in await one.db.fetch("SELECT * FROM shares WHERE campaign = $1", one.number):
            node = share["node"]
            if kept.setdefault(node, share["digest"]) != share["digest"]:
                raise StoreError(
                    f"campaign {campaign_id}: node {node!r} has another share in each store; withdraw one of them first"
                )
            await db.execute(
                "INSERT INTO shares (campaign, node, share, digest, received) VALUES ($1, $2, $3, $4, $5) "
                "ON CONFLICT DO NOTHING",
                number,
                *(share[name] for name in ("node", "share", "digest", "received")),
            )
    return len(kept)
