"""Copies of embedded stores, and stores made of copies. All files are for their owner only."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from ldp_aggregator.store.clock import to_text, utc_now
from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.origin import Restored
from ldp_aggregator.store.sqlite import origin, schema
from ldp_aggregator.store.sqlite.connections import make_file, open_connection, transaction
from ldp_aggregator.store.sqlite.store import FILE_NAME


def copy_store(source: Path, output: Path) -> None:
    """Write a store as it is at one moment into a new folder. Other processes may write to it meanwhile.

    The copy takes nothing, and can be read, checked and merged; :func:`restore_store` makes a store of it.
    """
    with _copied(source, output) as copy:
        origin.mark_copy(copy)


def restore_store(source: Path, output: Path, *, keep_shares: bool = False, now: datetime | None = None) -> Restored:
    """Make a store of a copy, in a folder that has none.

    Nobody knows what was revoked, withdrawn or published since the copy: every token is revoked, every share dropped
    (unless ``keep_shares`` says that none was withdrawn), and models get versions above all that can have been used.
    Raises StoreError, and leaves nothing, also where the copy is damaged.
    """
    moment = now or utc_now()
    with _copied(source, output) as copy:
        schema.check_version(copy)
        damage = [row[0] for row in copy.execute("PRAGMA integrity_check").fetchall() if row[0] != "ok"]
        if damage:
            raise StoreError(f"the copy in {source} is damaged: {damage[0]}")
        newest = origin.newest(copy)
        if newest is not None and moment < newest:
            raise StoreError(
                f"the clock says {to_text(moment)}, and the copy has something of {to_text(newest)}; set the clock: "
                "versions of models are told apart by the time of the restore"
            )
        with transaction(copy):
            tokens, shares = origin.forget_rights(copy, moment, keep_shares=keep_shares)
            origin.renew(copy, moment)
    return Restored(tokens, shares)


@contextmanager
def _copied(source: Path, output: Path) -> Iterator[sqlite3.Connection]:
    """A copy to change."""
    if not (source / FILE_NAME).exists():
        raise StoreError(f"there is no store in {source}")
    with drafted(output) as draft:
        try:
            with closing(open_connection(source / FILE_NAME, read_only=True)) as db:
                db.execute("VACUUM INTO ?", (str(draft),))
            with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
                copy.row_factory = sqlite3.Row
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
        draft.rename(_make_folder(folder) / FILE_NAME)
        _sync_folder(folder)
    except OSError as error:
        raise StoreError(f"the store in {folder} cannot be written: {error}") from error
    finally:
        for file in folder.glob(f"{draft.name}*"):  # SQLite keeps others beside it.
            file.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the name durable, too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> Path:
    if (folder / FILE_NAME).exists():
        raise StoreError(f"there is a store in {folder} already; choose an empty folder")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(f"the folder {folder} cannot be made: {error.strerror}") from error
    return folder
