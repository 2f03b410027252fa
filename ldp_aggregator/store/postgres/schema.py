"""The tables of the PostgreSQL store, in a schema of their own, and the check that they are of this version."""

from __future__ import annotations

from typing import Any, Final

import asyncpg

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.origin import wrong_version

NAME: Final = "ldp_aggregator"
MIGRATION_SECONDS: Final = 86_400.0
"""A step may write every id anew."""

_FIRST: Final = """
CREATE TABLE schema_version (version integer NOT NULL);
CREATE TABLE campaigns (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    title text NOT NULL,
    opens timestamptz,
    closes timestamptz,
    created timestamptz NOT NULL,
    closed timestamptz,
    max_reports bigint,
    document bytea NOT NULL
);
CREATE TABLE parts (
    campaign integer NOT NULL REFERENCES campaigns (number),
    reports bigint NOT NULL,
    sums bytea NOT NULL
);
CREATE INDEX parts_of_campaign ON parts (campaign);
CREATE TABLE models (
    campaign integer NOT NULL REFERENCES campaigns (number),
    version integer NOT NULL,
    document text NOT NULL,
    created timestamptz NOT NULL,
    PRIMARY KEY (campaign, version)
);
CREATE TABLE tokens (
    name text PRIMARY KEY,
    scope text NOT NULL,
    digest bytea NOT NULL UNIQUE,
    created timestamptz NOT NULL,
    revoked timestamptz
);
INSERT INTO schema_version VALUES (1);
"""
_SHARES: Final = """
ALTER TABLE campaigns ADD COLUMN salt bytea;
CREATE TABLE shares (
    campaign integer NOT NULL REFERENCES campaigns (number),
    node text COLLATE "C" NOT NULL,
    share bytea NOT NULL,
    digest bytea NOT NULL,
    received timestamptz NOT NULL,
    PRIMARY KEY (campaign, node)
);
"""
"""A campaign has a salt if and only if it is federated."""

_RELEASES: Final = """
CREATE TABLE releases (
    campaign integer NOT NULL REFERENCES campaigns (number),
    node text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    other_rows boolean NOT NULL,
    PRIMARY KEY (campaign, node, digest)
);
INSERT INTO releases SELECT campaign, node, digest, false FROM shares;
"""
"""Every share that a node ever sent, by its digest, and whether it is of rows that none before it had."""

_PUBLICATIONS: Final = """
CREATE TABLE publications (
    campaign integer PRIMARY KEY REFERENCES campaigns (number),
    reports bigint NOT NULL,
    sums bytea NOT NULL
);
"""
"""What was last published of a campaign whose document fixes when."""

_OPERATION: Final = """
ALTER TABLE parts ADD COLUMN vouched bigint NOT NULL DEFAULT 0, ADD COLUMN least_batch bigint;
ALTER TABLE campaigns
    ADD COLUMN over_since timestamptz,
    ADD COLUMN sealed timestamptz,
    ADD COLUMN overlap bigint NOT NULL DEFAULT 0,
    ADD COLUMN unchecked bigint NOT NULL DEFAULT 0;
UPDATE campaigns SET sealed = closed;
ALTER TABLE models ALTER COLUMN version TYPE bigint;
CREATE TABLE deleted (id text PRIMARY KEY, deleted timestamptz NOT NULL);
CREATE TABLE origin (generation text NOT NULL, version_floor bigint NOT NULL);
INSERT INTO origin VALUES (gen_random_uuid()::text, 0);
"""
"""How reports came; what a campaign's end leaves; and where the store comes from: a name drawn for it, the version that
its models are above (a restored store cannot know what was published since).

Until then closing dropped the ids.
"""

_RIGHTS: Final = """
ALTER TABLE campaigns ADD COLUMN uploads_need text;
ALTER TABLE tokens ADD COLUMN expires timestamptz;
ALTER TABLE tokens ADD COLUMN campaigns text[];
ALTER TABLE tokens ADD COLUMN speaks_for text;
CREATE TABLE acts (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    moment timestamptz NOT NULL,
    actor text NOT NULL,
    act text NOT NULL,
    campaign text,
    detail text NOT NULL,
    outcome text NOT NULL
);
CREATE TABLE directories (
    key text PRIMARY KEY,
    version bigint NOT NULL,
    document bytea NOT NULL
);
"""
"""An act outlives its campaign, and names it by its id."""

_ONE_TABLE: Final = """
CREATE TABLE ids (
    campaign integer NOT NULL,
    id bytea NOT NULL,
    digest bytea NOT NULL,
    PRIMARY KEY (campaign, id)
);
ALTER TABLE parts ADD COLUMN part bigint GENERATED ALWAYS AS IDENTITY;
ALTER TABLE parts ADD PRIMARY KEY (campaign, part);
DROP INDEX parts_of_campaign;
ALTER TABLE campaigns
    ADD COLUMN held_until timestamptz,
    ADD COLUMN takes_reports boolean NOT NULL DEFAULT false,
    ADD COLUMN least_map bigint NOT NULL DEFAULT 0,
    ADD COLUMN moved bigint NOT NULL DEFAULT 0;
CREATE TABLE membership (store text NOT NULL, number smallint NOT NULL, least_map bigint NOT NULL);
CREATE TABLE shards (number smallint PRIMARY KEY);
CREATE TABLE slots (
    slot smallint PRIMARY KEY,
    shard smallint NOT NULL REFERENCES shards (number),
    target smallint REFERENCES shards (number),
    cleaning smallint REFERENCES shards (number)
);
CREATE TABLE slot_map (version bigint NOT NULL);
"""
"""The ids of all campaigns in one table, and what makes several databases one store (:mod:`..sharded`): of each
database which it is, and in the first one which of them holds the ids that begin with a byte, and where they are going.

A campaign that somebody is about to have for himself is held: nobody else takes its lock meanwhile. ``least_map`` is
the oldest map of slots that reports may be brought by, ``moved`` the ids that came without their counts, less those
that went.
"""

STEPS: Final = (_FIRST, _SHARES, _RELEASES, _PUBLICATIONS, _OPERATION, _RIGHTS, _ONE_TABLE)
"""What brings a database from each version to the next; an empty one has version 0. Steps are added, never changed."""
VERSION: Final = len(STEPS)

MADE_MEANWHILE: Final = (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateSchemaError)


async def version_of(db: Any) -> int:
    """0 where there are no tables."""
    if not await db.fetchval("SELECT to_regclass($1) IS NOT NULL", f"{NAME}.schema_version"):
        return 0
    return int(await db.fetchval("SELECT version FROM schema_version"))


async def check(db: Any) -> None:
    """Refuse what has no tables, or not those of this version; nothing is changed."""
    version = await version_of(db)
    if not version:
        raise StoreError("there is no store in this database; 'ldp-aggregator serve' or 'campaign create' makes one")
    if version != VERSION:
        raise wrong_version("database", version, VERSION)


async def prepare(db: Any) -> None:
    """Make the tables where there are none; refuse those of another version.

    Of two instances that make them at once, one fails with :data:`MADE_MEANWHILE`, and finds them when it tries again.
    """
    if not await version_of(db):
        await db.execute(f"CREATE SCHEMA IF NOT EXISTS {NAME}")
        await _take_steps(db, 0)
    await check(db)


async def migrate(db: Any) -> int:
    """Bring the tables of an older version up to date, all or nothing; returns the version that it was."""
    if not await version_of(db):
        await check(db)
    version = int(await db.fetchval("SELECT version FROM schema_version FOR UPDATE"))
    if version < VERSION:
        await _take_steps(db, version)
    await check(db)
    return version


async def _take_steps(db: Any, version: int) -> None:
    for step in STEPS[version:]:
        await db.execute(step, timeout=MIGRATION_SECONDS)
        if step is _ONE_TABLE and version:
            await _gather_ids(db)
    await db.execute("UPDATE schema_version SET version = $1", VERSION)


async def _gather_ids(db: Any) -> None:
    """Until then each campaign had a table of its own."""
    for campaign in await db.fetch("SELECT number FROM campaigns ORDER BY number"):
        table = f"{NAME}.ids_{campaign['number']}"
        if await db.fetchval("SELECT to_regclass($1) IS NOT NULL", table):
            await db.execute(
                f"INSERT INTO ids (campaign, id, digest) SELECT {campaign['number']}, id, digest FROM {table} "
                "ORDER BY id",
                timeout=MIGRATION_SECONDS,
            )
            await db.execute(f"DROP TABLE {table}")
