"""Stores that earlier versions wrote are opened where they are, with a copy beside them and a way back."""

import asyncio
import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from cells import count
from keep_store import REPORTS, has_all

from ldp_aggregator.__main__ import main
from ldp_aggregator.store import SqliteStore, StoreError, open_store
from ldp_aggregator.store.backup import copy_store, restore_store
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.store.sql.tables import EARLIER, VERSION
from ldp_aggregator.store.sqlite import upgrade
from ldp_aggregator.store.sqlite.database import FILE_NAME, folder_of
from ldp_aggregator.store.sqlite.upgrade import KEPT, take_back
from ldp_protocols import Campaign

STORES = Path(__file__).resolve().parents[3] / "stores"
VERSIONS = (*EARLIER, VERSION)


@pytest.fixture
def data(tmp_path):
    """A function: a store of a version in a folder of its own."""

    def copied(version):
        return Path(shutil.copytree(STORES / str(version), tmp_path / "data"))

    return copied


def contents(folder):
    return {path.name: path.read_bytes() for path in (folder / FILE_NAME, *folder_of(folder / FILE_NAME).iterdir())}


def version_of(folder):
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def dump(folder):
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:
        return list(db.iterdump())


def test_a_store_of_every_version_is_kept():
    assert sorted(int(folder.name) for folder in STORES.iterdir()) == sorted(VERSIONS)
    assert [version_of(STORES / str(version)) for version in VERSIONS] == list(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_store_of_an_earlier_version_has_all_that_it_had_and_goes_on(version, data):
    folder = data(version)
    ids = json.loads((folder / "campaigns.json").read_text())
    store = await open_store(folder, create=False)
    try:
        await has_all(store, ids)
    finally:
        await store.close()
    assert version_of(folder) == VERSION


@pytest.mark.parametrize("version", EARLIER)
async def test_what_it_was_is_kept_and_gone_back_to_until_something_was_written(version, data, capsys):
    folder = data(version)
    before = contents(folder)
    ids = json.loads((folder / "campaigns.json").read_text())
    await (await open_store(folder)).close()
    assert version_of(folder / KEPT) == version
    assert await asyncio.to_thread(main, ["restore", "--before-upgrade", "--data", str(folder)]) == 0
    assert "what it was before the upgrade" in capsys.readouterr().out
    assert version_of(folder) == version
    assert not (folder / KEPT).exists()
    assert {name: one for name, one in contents(folder).items() if name != FILE_NAME} == {
        name: one for name, one in before.items() if name != FILE_NAME
    }
    store = await open_store(folder)
    with pytest.raises(StoreError, match="another process uses the store"):
        take_back(folder)
    campaign = Campaign.parse(await store.document(ids["open"]), ids["open"])
    assert (await count(store, campaign, [REPORTS + 9])).counted == 1
    await store.close()
    with pytest.raises(StoreError, match="something was written since"):
        take_back(folder)
    assert version_of(folder) == VERSION


@pytest.mark.parametrize("version", EARLIER)
@pytest.mark.parametrize("at", ["_keep", "carry", "make_tables", "written", "write_new"])
def test_whatever_fails_the_store_is_as_it_was_and_the_next_try_goes_well(version, at, data, monkeypatch):
    folder = data(version)
    before = dump(folder)

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(upgrade, at, fails)
        with pytest.raises(StoreError, match=r"No space left on device; nothing was changed"):
            SqliteStore(folder / FILE_NAME)
    assert version_of(folder) == version
    assert dump(folder) == before
    assert not (folder / KEPT).exists()
    asyncio.run(SqliteStore(folder / FILE_NAME).close())
    assert version_of(folder) == VERSION


@pytest.mark.parametrize("version", EARLIER)
def test_a_store_of_an_earlier_version_that_is_damaged_is_told_of_and_left_alone(version, data):
    folder = data(version)
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:
        db.execute("UPDATE parts SET sums = 1")
        db.commit()
    before = dump(folder)
    with pytest.raises(StoreError, match="a row of parts has a value that no store writes; restore a backup; nothing"):
        SqliteStore(folder / FILE_NAME)
    assert dump(folder) == before


@pytest.mark.parametrize("version", EARLIER)
async def test_a_store_that_is_only_read_stays_and_a_backup_is_restored_to_this_version(version, data, tmp_path):
    folder = data(version)
    before = contents(folder)
    with pytest.raises(StoreError, match=f"has version {version}.*'ldp-aggregator serve'.* brings it to that"):
        await open_store(folder, read_only=True)
    assert contents(folder) == before
    copy_store(folder, tmp_path / "backup")
    assert version_of(folder) == version
    restore_store(tmp_path / "backup", tmp_path / "restored", now=utc_now())
    store = await open_store(tmp_path / "restored")
    assert await store.check() == []
    assert len(await store.campaigns()) == 3
    await store.close()


@pytest.mark.parametrize("version", EARLIER)
def test_a_backup_of_an_earlier_version_is_restored_and_never_changed(version, data, tmp_path, capsys):
    folder = data(version)
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:
        db.execute("UPDATE origin SET is_copy = 1")
        db.commit()
    before = contents(folder)
    with pytest.raises(StoreError, match="this is a backup"):
        SqliteStore(folder / FILE_NAME)
    assert contents(folder) == before
    assert main(["restore", str(folder), "--data", str(tmp_path / "new")]) == 0
    assert main(["fsck", "--data", str(tmp_path / "new")]) == 0
    assert "3 campaigns checked: nothing is wrong" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_version_that_is_not_known_is_refused_and_left_alone(data):
    folder = data(VERSION)
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = contents(folder)
    with pytest.raises(StoreError, match="use the release that made it"):
        SqliteStore(folder / FILE_NAME)
    assert contents(folder) == before
