"""Models, the directories that publishers have signed, and the store's origin, which keeps two stores from publishing
different things under one version.
"""

from __future__ import annotations

from datetime import datetime

from ldp_aggregator.store import contract
from ldp_aggregator.store.contract import Origin, PublishedModel, StoreError
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.checks import change, digest_of, insert, sound
from ldp_aggregator.store.sql.tables import Row, SqlConnection, Transactions, new_generation, reading, writing


class Published(Transactions):
    """Models and directories by version, and where the store comes from."""

    @writing
    async def publish_model(self, db: SqlConnection, campaign_id: str, document: str) -> PublishedModel:
        """Keep a model under the next version."""
        row = await campaigns.row(db, campaign_id, campaigns.IN_TURN)
        version = max(0, (await origin(db)).version_floor, *await campaigns.versions(db, row)) + 1
        now, digest = await db.now(), digest_of(document)
        values = {"version": version, "created": now, "digest": digest, "document": document}
        await insert(db, "models", values, (row.number, row.id))
        return PublishedModel(version, document, now, digest.hex())

    @reading
    async def model(self, db: SqlConnection, campaign_id: str, version: int | None = None) -> PublishedModel | None:
        """A version of the model, by default the latest; None if there is none."""
        row = await campaigns.row(db, campaign_id)
        versions = await campaigns.versions(db, row)
        chosen = (version if version in versions else None) if version is not None else max(versions, default=None)
        found = await db.fetchrow(
            f"SELECT {campaigns.VERSION_COLUMNS}, document FROM models WHERE campaign = $1 AND version = $2",
            *(row.number, chosen),
        )
        if found is None:
            return None
        sound("models", found, row.id)
        return PublishedModel(found["version"], found["document"], found["created"], found["digest"].hex())

    @reading
    async def origin(self, db: SqlConnection) -> Origin:
        return await origin(db)

    @reading
    async def archived_at(self, db: SqlConnection) -> str | None:
        """The address that its reports were archived at last, None if they never were."""
        found = await db.fetchrow("SELECT * FROM origin")
        return None if found is None else sound("origin", found)["archive"]

    @writing
    async def note_archive(self, db: SqlConnection, address: str) -> None:
        """Remember that they are archived there: whoever deletes a campaign has to know."""
        await change_origin(db, archive=address)

    @writing
    async def put_directory(self, db: SqlConnection, key: str, version: int, document: bytes) -> None:
        """Keep a publisher's directory in place of an older one; the same again changes nothing.

        Raises StoreError if a newer one is kept, or another of this version.
        """
        # Two that are put at once wait for each other: reading and replacing are one.
        await db.fetch("SELECT 1 FROM origin FOR UPDATE")
        stored = await _directory(db, key)
        if stored is not None and version <= stored["version"]:
            if (version, document) == (stored["version"], stored["document"]):
                return
            text = f"version {stored['version']} of this publisher's directory is kept; sign a later one"
            raise StoreError(text, contract.OLDER)
        values = {"key": key, "version": version, "digest": digest_of(document), "document": document}
        replaced = ", ".join(f"{name} = excluded.{name}" for name in (*values, "checked"))
        await insert(db, "directories", values, more=f"ON CONFLICT (key) DO UPDATE SET {replaced}")

    @reading
    async def directory(self, db: SqlConnection, key: str) -> bytes | None:
        """The newest directory of a publisher."""
        stored = await _directory(db, key)
        return None if stored is None else stored["document"]


async def _directory(db: SqlConnection, key: str) -> Row | None:
    stored = await db.fetchrow("SELECT * FROM directories WHERE key = $1", key)
    return None if stored is None else sound("directories", stored)


async def origin(db: SqlConnection) -> Origin:
    found = await db.fetchrow("SELECT * FROM origin")
    if found is None:
        return Origin("", 0, True)
    sound("origin", found)
    return Origin(found["generation"], found["version_floor"], bool(found["is_copy"]))


async def begin_origin(db: SqlConnection) -> None:
    """Write it into tables that were just made."""
    await insert(db, "origin", {"generation": new_generation(), "version_floor": 0, "is_copy": 0, "archive": None})


async def change_origin(db: SqlConnection, **changes: str | int | None) -> None:
    """Change columns of it."""
    await change(db, "origin", ("generation", (await origin(db)).generation), changes)


async def highest_version(db: SqlConnection) -> int:
    """The highest version that a model of any campaign was published under, or might have been."""
    of_all = [await campaigns.versions(db, row) for row in await campaigns.rows(db)]
    return max((await origin(db)).version_floor, *(version for of_one in of_all for version in of_one), 0)


async def renew(db: SqlConnection, now: datetime, *floors: int) -> None:
    """Make it another store: a new name, versions above all of its own and the ``floors``, and no archive: what
    another one has archived is not this one's to delete.

    What was published after a copy is not in it. Seconds since 1970 are more than any store has published that counts
    from 1, or from the seconds of an earlier restore.
    """
    floor = max(int(now.timestamp()), await highest_version(db), *floors)
    await change_origin(db, generation=new_generation(), version_floor=floor, is_copy=0, archive=None)
