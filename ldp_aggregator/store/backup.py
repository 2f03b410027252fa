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

from ldp_aggregator.store.contract import DAMAGED, DONE, UPLOADING, Act, Restored, StoreError, to_text, utc_now
from ldp_aggregator.store.decisions import CampaignRow, takes_reports
from ldp_aggregator.store.durable import make_folder, sync_file, sync_folder
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.checks import insert, insert_numbered, sound
from ldp_aggregator.store.sql.published import change_origin, highest_version, renew
from ldp_aggregator.store.sql.rights import begin_act, forget_rights
from ldp_aggregator.store.sql.shares import insert_release, sent_shares, stored_shares
from ldp_aggregator.store.sql.tables import Row
from ldp_aggregator.store.sqlite import database
from ldp_aggregator.store.sqlite.database import FILE_NAME, SqliteConnection, finish, open_connection, transaction
from ldp_aggregator.store.sqlite.run_files import copy_runs
from ldp_aggregator.store.sqlite.store import all_findings
from ldp_aggregator.store.sqlite.upgrade import upgrade_file
from ldp_protocols import Campaign

_MADE: Final = ("campaigns", "models", "tokens")
COPIES: Final = 5
"""Times that a copy begins again that a merge of runs came between."""


def copy_store(source: Path, output: Path) -> None:
    """Write a store as it is at one moment into a new folder. Other processes may write to it meanwhile.

    The copy takes nothing, and can be read, checked and merged; :func:`restore_store` makes a store of it.
    """
    with _copied(source, output) as copy:
        finish(change_origin(SqliteConnection(copy), is_copy=1))


def restore_store(source: Path, output: Path, *, keep_shares: bool = False, now: datetime | None = None) -> Restored:
    """Make a store of a copy, in a folder that has none.

    Nobody knows what was revoked, withdrawn or published since the copy: every token is revoked, every share dropped
    (unless ``keep_shares`` says that none was withdrawn), and models get versions above all that can have been used.
    Raises StoreError, and leaves nothing, also if the copy is damaged.
    """
    moment = now or utc_now()
    with _copied(source, output) as copy:
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
    with new_store(output) as new_file:
        try:
            _copy_at_one_moment(source / FILE_NAME, new_file)
            with closing(open_connection(new_file)) as copy:
                _check_sound(copy, source)
                yield copy
        except database.FAILURES as error:
            raise StoreError(f"the copy failed: {error}") from error


def _check_sound(db: sqlite3.Connection, folder: Path) -> None:
    """Refuse what is damaged: nobody could tell later. Raises StoreError."""
    database.check_file(db)
    damage = finish(all_findings(SqliteConnection(db)))
    if damage:
        text = f"the store in {folder} is damaged: {damage[0]}; 'ldp-aggregator fsck' tells what else is"
        raise StoreError(text, DAMAGED)


@contextmanager
def new_store(folder: Path) -> Iterator[Path]:
    """An empty file that becomes the store of a folder that has none, once the block is done: until then there is none,
    whatever happens. The folder is made where absent.
    """
    new_file = _make_folder(folder) / f"{FILE_NAME}.{secrets.token_hex(8)}"
    database.make_file(new_file)
    try:
        yield new_file
        target = _make_folder(folder) / FILE_NAME
        sync_file(new_file)  # VACUUM INTO need not have.
        if database.folder_of(new_file).exists():
            database.folder_of(new_file).rename(database.folder_of(target))
            sync_folder(folder)
        new_file.rename(target)
        sync_folder(folder)
    except OSError as error:
        raise StoreError(f"the store in {folder} cannot be written: {error}") from error
    finally:
        for file in folder.glob(f"{new_file.name}*"):  # SQLite keeps others beside it, and runs have a folder.
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink()


def _copy_at_one_moment(source: Path, new_file: Path) -> None:
    """Database and runs. Runs never change, but may be merged away meanwhile: then everything is copied again."""
    for attempt in range(COPIES):
        new_file.unlink()
        database.make_file(new_file)
        with closing(open_connection(source, read_only=True)) as db:
            # Its pages, before a copy makes new ones of them; its rows are checked in the copy.
            damage = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if damage != "ok":
                raise StoreError(f"the store in {source.parent} is damaged: {damage}", DAMAGED)
            db.execute("VACUUM INTO ?", (str(new_file),))
        with closing(open_connection(new_file)) as copy:
            upgrade_file(copy, keep=False)
            listed = database.listed_runs(copy)
        try:
            copy_runs(database.folder_of(source), database.folder_of(new_file), listed)
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
    """A campaign as one store has it, whole and as what was checked of it."""

    db: SqliteConnection
    row: Row
    sound: CampaignRow

    @property
    def number(self) -> int:
        return self.sound.number


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
    nothing, if it cannot be told how many reports are in both unless ``assume_disjoint``, if answers of a
    campaign with an issuer are or may be in both, if a node has two shares, and if a store is damaged.
    """
    for folder in (first, second):
        if not (folder / FILE_NAME).exists():
            raise StoreError(f"there is no store in {folder}")
    moment = now or utc_now()
    with new_store(output) as new_file, ExitStack() as opened:
        db = SqliteConnection(opened.enter_context(closing(open_connection(new_file))))
        database.prepare_file(db.raw)
        sources = []
        for folder in (first, second):
            raw = opened.enter_context(closing(open_connection(folder / FILE_NAME, read_only=True)))
            opened.enter_context(transaction(raw, "BEGIN"))
            _check_sound(raw, folder)
            sources.append(SqliteConnection(raw))
        with transaction(db.raw):
            return finish(_combine(db, sources, assume_disjoint, moment, act))


async def _combine(
    db: SqliteConnection, sources: Sequence[SqliteConnection], assume_disjoint: bool, now: datetime, act: Act | None
) -> list[Combined]:
    found: dict[str, list[_Source]] = {}
    for source in sources:
        for row in await source.fetch("SELECT * FROM campaigns"):
            found.setdefault(row["id"], []).append(_Source(source, row, await campaigns.row(source, row["id"])))
    oldest_first = sorted(found, key=lambda name: (min(one.row["created"] for one in found[name]), name))
    combined = [await _combine_campaign(db, found[name], assume_disjoint) for name in oldest_first]
    # The sum publishes under versions that neither has used, and never what either has deleted.
    await renew(db, now, *[await highest_version(source) for source in sources])
    for source in sources:
        for gone in await source.fetch("SELECT id, deleted FROM deleted"):
            if gone["id"] not in found:
                await insert(db, "deleted", dict(gone), more="ON CONFLICT DO NOTHING")
    if act is not None:
        await begin_act(db, act, DONE, now)
    return combined


async def _combine_campaign(db: SqliteConnection, sources: Sequence[_Source], assume_disjoint: bool) -> Combined:
    sample = sources[0].row
    takes_shares = any(one.row["salt"] is not None for one in sources)
    counts = [await campaigns.reports(one.db, one.sound) for one in sources]
    kinds = [takes_reports(one.row["salt"], one.row["max_reports"], n) for one, n in zip(sources, counts, strict=True)]
    if takes_shares and any(kinds):
        raise StoreError(f"campaign {sample['id']} takes reports in one store and shares in the other")
    sealed = any(one.row["sealed"] is not None for one in sources)
    if len(sources) == 2 and sealed and not assume_disjoint and not takes_shares:
        raise StoreError(
            f"campaign {sample['id']} is sealed in a store, so its ids are gone and nobody can tell whether "
            "both counted the same report; merge with --assume-disjoint if no device can have sent to both"
        )
    await _insert_campaign(db, [one.row for one in sources])
    campaign, made = Campaign.parse(sample["document"], sample["id"]), await campaigns.row(db, sample["id"])
    await _add_parts(db, campaign, made, sources)
    await _add_publications(db, campaign, made, sources)
    overlap, unchecked, lost = (sum(one.row[name] for one in sources) for name in ("overlap", "unchecked", "lost_ids"))
    before = overlap
    if sealed:
        unchecked += min(counts) if len(sources) == 2 else 0
    else:
        overlap += sum(database.copy_ids(db.raw, made.number, one.db.raw, one.number) for one in sources)
    if campaign.issuer is not None and len(sources) == 2 and (sealed or overlap > before):
        found = "its ids are gone" if sealed else f"{overlap - before} of its answers are in both"
        raise StoreError(
            f"campaign {campaign.id} counts one answer of each token, and {found}: a sum of both stores would count a "
            "person twice; count both archives in one folder instead (ldp-aggregator fsck --archive), each id once"
        )
    await campaigns.put(db, made, overlap=overlap, unchecked=unchecked, lost_ids=lost)
    count = await _add_shares(db, made, sources) if takes_shares else sum(counts)
    return Combined(campaign.id, count, overlap, unchecked)


async def _insert_campaign(db: SqliteConnection, rows: Sequence[Row]) -> None:
    """The later end of each that has one: what is over in a store is over in the sum. What either asks of uploads; of
    two, what fewer tokens open.
    """
    values = {
        name: [row[name] for row in rows if row[name] is not None]
        for name in ("created", "closed", "sealed", "max_reports", "salt", "uploads_need")
    }
    await insert_numbered(
        db,
        "campaigns",
        {
            **{name: rows[0][name] for name in ("id", "title", "document", "opens", "closes")},
            "created": min(values["created"]),
            **{name: max(values[name], default=None) for name in ("closed", "sealed", "max_reports")},
            "salt": next(iter(values["salt"]), None),
            "uploads_need": min(values["uploads_need"], key=lambda scope: len(UPLOADING[scope]), default=None),
            **dict.fromkeys(("overlap", "unchecked", "lost_ids"), 0),
        },
    )


async def _add_parts(db: SqliteConnection, campaign: Campaign, made: CampaignRow, sources: Sequence[_Source]) -> None:
    """One part with the sum of all."""
    parts = [part for one in sources for part in await campaigns.parts(one.db, one.sound)]
    await campaigns.add_sum(db, made, campaigns.sum_or_refuse(campaign, parts), parts)


async def _add_publications(
    db: SqliteConnection, campaign: Campaign, made: CampaignRow, sources: Sequence[_Source]
) -> None:
    """Count as published what either store published: the next release waits for reports that are in neither."""
    published = [row for one in sources for row in await campaigns.publication(one.db, one.sound)]
    if published:
        await campaigns.publish_tally(db, made, campaigns.sum_or_refuse(campaign, published, "publications"))


async def _add_shares(db: SqliteConnection, made: CampaignRow, sources: Sequence[_Source]) -> int:
    latest: dict[str, Row] = {}
    sent: dict[tuple[str, bytes], int] = {}
    for one in sources:
        for release in await sent_shares(one.db, one.sound):
            # What is declared to be of other rows in one store only is not believed.
            key = (release["node"], release["digest"])
            sent[key] = min(sent.get(key, 1), release["other_rows"])
        for share in await stored_shares(one.db, one.number):
            node = sound("shares", share, made.id)["node"]
            if node in latest and latest[node]["digest"] != share["digest"]:
                raise StoreError(
                    f"campaign {made.id}: node {node!r} has another share in each store; withdraw one of them first"
                )
            latest[node] = share
    for (node, digest), other_rows in sent.items():
        await insert_release(db, made, {"node": node, "digest": digest, "other_rows": other_rows})
    for share in latest.values():
        values = {name: share[name] for name in ("node", "received", "digest", "share")}
        await insert(db, "shares", values, (made.number, made.id))
    return len(latest)
