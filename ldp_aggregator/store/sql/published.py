"""Models, the directories that publishers have signed, and the store's origin, which keeps two stores from publishing
different things under one version.
"""

from __future__ import annotations

from datetime import datetime

from ldp_aggregator.store import contract
from ldp_aggregator.store.contract import Origin, PublishedModel, StoreError
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.tables import SqlConnection, Transactions, new_generation, reading, writing


class Published(Transactions):
    """Models and directories by version, and where the store comes from."""

    @writing
    async def publish_model(self, db: SqlConnection, campaign_id: str, document: str) -> PublishedModel:
        """Keep a model under the next version."""
        number = (await campaigns.row(db, campaign_id, campaigns.IN_TURN)).number
        last = await db.fetchrow("SELECT max(version) FROM models WHERE campaign = $1", number)
        version = max((last and last[0]) or 0, (await origin(db)).version_floor) + 1
        now = await db.now()
        statement = "INSERT INTO models (campaign, version, document, created) VALUES ($1, $2, $3, $4)"
        await db.execute(statement, number, version, document, now)
        return PublishedModel(version, document, now)

    @reading
    async def model(self, db: SqlConnection, campaign_id: str, version: int | None = None) -> PublishedModel | None:
        """A version of the model, by default the latest; None where there is none."""
        found = await db.fetchrow(
            "SELECT version, document, created FROM models WHERE campaign = $1 AND version = coalesce($2, version) "
            "ORDER BY version DESC LIMIT 1",
            (await campaigns.row(db, campaign_id)).number,
            version,
        )
        return None if found is None else PublishedModel(**found)

    @reading
    async def origin(self, db: SqlConnection) -> Origin:
        return await origin(db)

    @reading
    async def archived_at(self, db: SqlConnection) -> str | None:
        """The address that its reports were archived at last, None where they never were."""
        found = await db.fetchrow("SELECT archive FROM origin")
        return None if found is None else found[0]

    @writing
    async def note_archive(self, db: SqlConnection, address: str) -> None:
        """Remember that they are archived there: whoever deletes a campaign has to know."""
        await db.execute("UPDATE origin SET archive = $1", address)

    @writing
    async def put_directory(self, db: SqlConnection, key: str, version: int, document: bytes) -> None:
        """Keep a publisher's directory in place of an older one; the same again changes nothing.

        Raises StoreError where a newer one is kept, or another of this version.
        """
        # Two that are put at once wait for each other: reading and replacing are one.
        await db.fetch("SELECT 1 FROM origin FOR UPDATE")
        kept = await db.fetchrow("SELECT version, document FROM directories WHERE key = $1", key)
        if kept is not None and version <= kept["version"]:
            if (version, document) == (kept["version"], bytes(kept["document"])):
                return
            text = f"version {kept['version']} of this publisher's directory is kept; sign a later one"
            raise StoreError(text, contract.OLDER)
        await db.execute(
            "INSERT INTO directories (key, version, document) VALUES ($1, $2, $3) "
            "ON CONFLICT (key) DO UPDATE SET version = excluded.version, document = excluded.document",
            *(key, version, document),
        )

    @reading
    async def directory(self, db: SqlConnection, key: str) -> bytes | None:
        """The newest directory of a publisher."""
        kept = await db.fetchrow("SELECT document FROM directories WHERE key = $1", key)
        return None if kept is None else bytes(kept[0])


async def origin(db: SqlConnection) -> Origin:
    found = await db.fetchrow("SELECT generation, version_floor, is_copy FROM origin")
    return Origin(found["generation"], found["version_floor"], bool(found["is_copy"])) if found else Origin("", 0, True)


async def highest_version(db: SqlConnection) -> int:
    """The highest version that a model of any campaign was published under, or might have been."""
    found = await db.fetchrow("SELECT max(version) FROM models")
    return max((found and found[0]) or 0, (await origin(db)).version_floor)


async def renew(db: SqlConnection, now: datetime, *floors: int) -> None:
    """Make it another store: a new name, versions above all of its own and the ``floors``, and no archive: what
    another one has archived is not this one's to delete.

    What was published after a copy is not in it. Seconds since 1970 are more than any store has published that counts
    from 1, or from the seconds of an earlier restore.
    """
    floor = max(int(now.timestamp()), await highest_version(db), *floors)
    await db.execute(
        "UPDATE origin SET generation = $1, version_floor = $2, is_copy = 0, archive = NULL", new_generation(), floor
    )
