"""An embedded store of an earlier version becomes one of this version where it is, in one transaction, and can be gone
back from.

As it was it is kept in a folder beside the database: a copy of the file, and links to the runs of ids, which never
change.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from ldp_aggregator.store.contract import LOG, StoreError
from ldp_aggregator.store.durable import make_folder, sync_file, sync_folder, write_new
from ldp_aggregator.store.sql.checks import insert
from ldp_aggregator.store.sql.tables import EARLIER, VERSION, make_tables
from ldp_aggregator.store.sql.upgrades import NUMBERED, SHARED, carry, refuse_back, written
from ldp_aggregator.store.sqlite import database
from ldp_aggregator.store.sqlite.database import FILE_NAME, SqliteConnection, finish, open_connection, transaction

KEPT: Final = f"before-version-{VERSION}"
"""The folder in the data folder that has the store as it was."""
_WRITTEN: Final = "written.txt"
_OLD: Final = "before_"


def upgrade_file(db: sqlite3.Connection, *, keep: bool = True) -> None:
    """Bring a store of an earlier version to this one; any other is left as it is. Of two processes that do it at once
    one waits, and finds it done. Without ``keep`` nothing is kept: the file is a copy itself. Raises StoreError, and
    nothing has changed.
    """
    if not _is_earlier(db):
        return
    file = Path(db.execute("PRAGMA database_list").fetchone()["file"])
    try:
        db.execute("PRAGMA foreign_keys = OFF")
        # Renaming a table leaves alone what others say of it.
        db.execute("PRAGMA legacy_alter_table = ON")
        with transaction(db):
            if not _is_earlier(db):
                return
            if keep and db.execute("SELECT is_copy FROM origin").fetchone()[0]:
                raise StoreError("this is a backup; 'ldp-aggregator restore' makes a store of it")
            backup = _keep(file) if keep else None
            finish(_rebuild(SqliteConnection(db)))
            if backup is not None:
                write_new(backup / _WRITTEN, finish(written(SqliteConnection(db))).encode())
    except (OSError, StoreError) as error:
        if keep:
            shutil.rmtree(file.with_name(KEPT), ignore_errors=True)
        text = f"the store in {file.parent} has another version and cannot be brought to version {VERSION}: {error}"
        raise StoreError(f"{text}; nothing was changed") from error
    finally:
        db.execute("PRAGMA legacy_alter_table = OFF")
        db.execute("PRAGMA foreign_keys = ON")
    if keep:
        LOG.warning("the store was brought to this version", extra={"file": KEPT})


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _is_earlier(db: sqlite3.Connection) -> bool:
    try:
        ours = db.execute("PRAGMA application_id").fetchone()[0] == database.APPLICATION
        return ours and _version(db) in EARLIER
    except database.FAILURES:  # What is wrong with it is for check_file to tell.
        return False


def _keep(file: Path) -> Path:
    """Copy the database as it is, and link its runs; nobody writes meanwhile. Raises OSError."""
    backup = file.with_name(KEPT)
    shutil.rmtree(backup, ignore_errors=True)
    make_folder(backup)
    database.make_file(backup / FILE_NAME)
    with closing(open_connection(file, read_only=True)) as source:
        source.execute("VACUUM INTO ?", (str(backup / FILE_NAME),))
    sync_file(backup / FILE_NAME)
    _link_runs(database.folder_of(file), database.folder_of(backup / FILE_NAME))
    sync_folder(backup)
    return backup


def _link_runs(source: Path, target: Path) -> None:
    if not source.is_dir():
        return
    make_folder(target)
    for run in source.iterdir():
        if not (target / run.name).exists():
            os.link(run, target / run.name)
    sync_folder(target)


async def _rebuild(db: SqliteConnection) -> None:
    tables = (*SHARED, "recent_ids", "runs")
    counted = {row["name"]: row["seq"] for row in await db.fetch("SELECT name, seq FROM sqlite_sequence")}
    await db.execute("DROP INDEX parts_of_campaign")
    for table in tables:
        await db.execute(f"ALTER TABLE {table} RENAME TO {_OLD}{table}")
    await make_tables(db, "sqlite", database.IDS)
    ids = await carry(db, _OLD)
    for place, records in await db.fetch(f"SELECT place, records FROM {_OLD}recent_ids"):
        database.add_recent(db.raw, 0, place, records)  # The place has the campaign in it.
    for name, number, count in await db.fetch(f"SELECT name, campaign, ids FROM {_OLD}runs"):
        await insert(db, "runs", {"name": name, "ids": count}, (number, ids[number]))
    for table in reversed(tables):
        await db.execute(f"DROP TABLE {_OLD}{table}")
    for table in NUMBERED:  # Numbers of what was deleted are never given again.
        await db.execute("DELETE FROM sqlite_sequence WHERE name = $1", table)
        if table in counted:
            await db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)", table, counted[table])
    await db.execute(f"PRAGMA user_version = {VERSION}")
    database.check_file(db.raw)


def take_back(folder: Path) -> None:
    """Make the store what it was before it was brought to this version. Raises StoreError if a process uses it, or
    something was written since, and changes nothing.
    """
    file, backup = folder / FILE_NAME, folder / KEPT
    if not (backup / _WRITTEN).exists():
        raise refuse_back(f"{backup} is not there")
    with closing(open_connection(file)) as db:
        try:
            db.execute("PRAGMA busy_timeout = 1000")
            # It takes the log away, and so fails where anybody else has the file open.
            db.execute("PRAGMA journal_mode = DELETE")
            found = finish(written(SqliteConnection(db)))
        except database.FAILURES as error:
            raise refuse_back(f"another process uses the store ({error}); stop it first") from None
    if found.encode() != (backup / _WRITTEN).read_bytes():
        raise refuse_back("something was written since, and would be lost; 'ldp-aggregator backup' has it")
    try:
        _link_runs(database.folder_of(backup / FILE_NAME), database.folder_of(file))
        (backup / FILE_NAME).replace(file)
        sync_folder(folder)
        shutil.rmtree(backup)
    except OSError as error:
        raise refuse_back(f"{folder} cannot be written: {error.strerror}") from error
