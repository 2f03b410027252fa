"""Copies of embedded stores, and stores made of copies. All files are for their owner only."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from ldp_aggregator.store.contract import Restored, StoreError, to_text, utc_now
from ldp_aggregator.store.runs.run_files import copy_runs, sync_folder
from ldp_aggregator.store.sql.rights import forget_rights, renew
from ldp_aggregator.store.sqlite import id_tables
from ldp_aggregator.store.sqlite.connections import (
    FILE_NAME,
    SqliteConnection,
    check_file,
    finish,
    make_file,
    open_connection,
    transaction,
)

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
                check_file(copy)
                yield copy
        except sqlite3.Error as error:
            raise StoreError(f"the copy failed: {error}") from error


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """An empty file that becomes the store of a folder that has none, once the block is done: until then there is none,
    whatever happens. The folder is made where absent.
    """
    draft = _make_folder(folder) / f"{FILE_NAME}.{os.getpid()}"
    make_file(draft)
    try:
        yield draft
        target = _make_folder(folder) / FILE_NAME
        if id_tables.folder_of(draft).exists():
            id_tables.folder_of(draft).rename(id_tables.folder_of(target))
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
        make_file(draft)
        with closing(open_connection(source, read_only=True)) as db:
            db.execute("VACUUM INTO ?", (str(draft),))
        with closing(open_connection(draft)) as copy:
            listed = id_tables.listed(copy)
        try:
            copy_runs(id_tables.folder_of(source), id_tables.folder_of(draft), listed)
        except FileNotFoundError:
            if attempt == COPIES - 1:
                raise
        else:
            return


def _make_folder(folder: Path) -> Path:
    if (folder / FILE_NAME).exists():
        raise StoreError(f"there is a store in {folder} already; choose an empty folder")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(f"the folder {folder} cannot be made: {error.strerror}") from error
    return folder
