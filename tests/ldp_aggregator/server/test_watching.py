"""The look of every half minute: room, files, backups, ends."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from cells import cell_campaign

from ldp_aggregator.server.keeper import observed
from ldp_aggregator.service.rights import local_actor, recorded
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.service.signing import public_key, sign_directory
from ldp_aggregator.store import SqliteStore


async def test_room_files_backups_and_ends_are_observed(tmp_path, certificate):
    store = SqliteStore(tmp_path / "store.sqlite3")
    try:
        await store.create_campaign(cell_campaign())
        (tmp_path / "draft-1.run").write_bytes(bytes(7))
        (tmp_path / "2.run").write_bytes(bytes(5))
        archive = tmp_path / "archive"
        (archive / "A" / "pending").mkdir(parents=True)
        (archive / "A" / "pending" / "x.parquet").touch()
        tls = {"tls_certificate": certificate(10), "tls_key": tmp_path / "key.pem"}
        settings = Settings(data=tmp_path, archive=str(archive), **tls)
        assert ("ldp_last_backup_timestamp_seconds", "") not in await observed(store, settings)
        async with recorded(store, local_actor(), "back up store"):
            pass
        key, expires = public_key(bytes(32)), datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=9)
        async with recorded(store, local_actor(), "publish directory", None, f"{key} version 1"):
            await store.put_directory(key, 1, sign_directory(bytes(32), 1, expires, {}))
        values = await observed(store, settings)
    finally:
        await store.close()
    assert values["ldp_free_bytes", ""] > 0
    assert values["ldp_store_bytes", "database"] > 1000
    assert (values["ldp_store_bytes", "drafts"], values["ldp_store_bytes", "runs"]) == (7, 5)
    assert (values["ldp_store_files", "drafts"], values["ldp_store_files", "runs"]) == (1, 1)
    assert values["ldp_archive_pending_files", ""] == 1
    assert values["ldp_damaged_campaigns", ""] == 0
    now = datetime.now(timezone.utc).timestamp()
    assert abs(values["ldp_last_backup_timestamp_seconds", ""] - now) < 60
    assert values["ldp_directory_expires_timestamp_seconds", key] == expires.timestamp()
    assert 9 * 86400 < values["ldp_certificate_expires_timestamp_seconds", ""] - now < 11 * 86400
