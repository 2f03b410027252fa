"""The tables of the PostgreSQL store, in a schema of their own, and the check that they are of this version."""

from __future__ import annotations

from typing import Any, Final

from ldp_aggregator.store.contract import StoreError

NAME: Final = "ldp_aggregator"
LOCKS: Final = 0x6C647062
"""First key of our advisory locks; the second is a campaign's number, 0 for the schema."""

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
CREATE TABLE deleted (id text PRIMARY KEY, moment timestamptz NOT NULL);
CREATE TABLE directories (
    key text PRIMARY KEY,
    version bigint NOT NULL,
    document bytea NOT NULL
);
"""
"""An act outlives its campaign, and names it by its id."""

STEPS: Final = (_FIRST, _SHARES, _RELEASES, _PUBLICATIONS, _RIGHTS)
"""What brings a database from each version to the next; an empty one has version 0. Steps are added, never changed."""
VERSION: Final = len(STEPS)


def ids_table(number: int) -> str:
    """The name of the table that holds the ids of campaign ``number``."""
    return f"ids_{int(number)}"


def create_ids(number: int) -> str:
    return f"CREATE TABLE {ids_table(number)} (id bytea PRIMARY KEY, digest bytea NOT NULL)"


async def prepare(db: Any) -> None:
    """Make the tables, bring those of an older version up to date; refuse those of a later one.

    One instance at a time, in one transaction.
    """
    await db.execute("SELECT pg_advisory_xact_lock($1, 0)", LOCKS)
    version = 0
    if await db.fetchval("SELECT to_regclass($1) IS NOT NULL", f"{NAME}.schema_version"):
        version = await db.fetchval("SELECT version FROM schema_version")
    else:
        await db.execute(f"CREATE SCHEMA IF NOT EXISTS {NAME}")
    for step in STEPS[version:]:
        await db.execute(step)
    if version < VERSION:
        await db.execute("UPDATE schema_version SET version = $1", VERSION)
    elif version > VERSION:
        raise StoreError(f"the database has schema version {version}; this program reads version {VERSION}")
