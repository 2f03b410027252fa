"""Copies of embedded stores, readable by their owner only."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.sqlite.connections import make_file, open_connection
from ldp_aggregator.store.sqlite.store import FILE_NAME


def copy_store(source: Path, output: Path) -> None:
    """Write a store as it is at one moment into a new folder. Other processes may write to it meanwhile."""
    if not (source / FILE_NAME).exists():
        raise StoreError(f"there is no store in {source}")
    db = open_connection(source / FILE_NAME)
    try:
        copy = new_file(output)
        try:
            db.execute("VACUUM INTO ?", (str(copy),))
        except sqlite3.Error as error:
            copy.unlink(missing_ok=True)  # No store: another try finds the folder free.
            raise StoreError(f"the copy failed: {error}") from error
    finally:
        db.close()


def new_file(folder: Path) -> Path:
    """An empty file for a store in a folder that has none; the folder is made where absent."""
    path = folder / FILE_NAME
    if path.exists():
        raise StoreError(f"there is a store in {folder} already; choose an empty folder")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    make_file(path)
    return path
