"""The connection that every shared statement is written for, the transactions that it is made in, and the tables that
both databases have. What keeps the ids of reports is each database's own.

Statements are PostgreSQL's as far as SQLite understands them: ``$1`` for the first value, ``FOR UPDATE`` and its like
where a row has to stay as it was read. For SQLite the placeholders are respelt and the locks left out: whoever writes
there has the whole file. Times are columns of type ``timestamptz`` and aware datetimes in Python.
"""

from __future__ import annotations

import functools
import re
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from ldp_aggregator.store.clocks import Moment
from ldp_aggregator.store.contract import StoreError

Row = Any
"""A row: its values by name or place, in their order; ``**row`` spells them out."""
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MOST: Final = (1 << 63) - 1
"""Value of LIMIT if there is none."""


class SqlConnection(Protocol):
    """A connection inside a transaction."""

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        """All rows."""

    async def fetchrow(self, statement: str, *values: Any) -> Row | None:
        """The first row, None if there is none."""

    async def execute(self, statement: str, *values: Any) -> int:
        """The number of rows that were written."""

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """A block that takes back what it did, and only that, where it raises."""

    async def now(self) -> datetime:
        """The time, to write down."""

    async def moment(self) -> Moment:
        """The time by which the store decides, and how far to believe it."""


Work = Callable[[SqlConnection], Awaitable[Result]]


class Transactions(Protocol):
    """A place to work: in one transaction, all of it or nothing. The connection puts the ``name`` into every
    statement where its database keeps a log of slow ones.

    Raises StoreError if the database fails.
    """

    async def _read(self, work: Work[Result], name: str = "") -> Result: ...

    async def _write(self, work: Work[Result], name: str = "") -> Result: ...


Where = TypeVar("Where", bound=Transactions)
Method = Callable[Concatenate[Where, SqlConnection, Arguments], Coroutine[Any, Any, Result]]
Asked = Callable[Concatenate[Where, Arguments], Coroutine[Any, Any, Result]]


def reading(method: Method[Where, Arguments, Result]) -> Asked[Where, Arguments, Result]:
    """Make a method that takes a connection one that reads in a transaction of its own."""

    @functools.wraps(method)
    async def read(self: Where, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return await self._read(lambda db: method(self, db, *args, **kwargs), method.__name__)

    return read


def writing(method: Method[Where, Arguments, Result]) -> Asked[Where, Arguments, Result]:
    """Make a method that takes a connection one that writes in a transaction of its own."""

    @functools.wraps(method)
    async def write(self: Where, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return await self._write(lambda db: method(self, db, *args, **kwargs), method.__name__)

    return write


_FOREIGN: Final = re.compile(r"\$(\d+)|\s+FOR (?:NO KEY UPDATE|UPDATE|KEY SHARE|SHARE)(?: SKIP LOCKED)?")


@functools.lru_cache(maxsize=256)
def for_sqlite(statement: str) -> str:
    """A shared statement as SQLite takes it."""
    return _FOREIGN.sub(lambda found: f"?{found[1]}" if found[1] else "", statement)


VERSION: Final = 2
EARLIER: Final = (1,)
"""The versions that are brought to this one when they are opened to be written. In version 1 no row has a check."""

WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "sqlite": {"SERIAL": "INTEGER PRIMARY KEY AUTOINCREMENT", "NAME": "text"},
    "postgres": {"SERIAL": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "NAME": 'text COLLATE "C"'},
}
"""Each database's type of a number that it assigns, and of a text that is ordered by its bytes."""

_TABLES: Final = """
CREATE TABLE campaigns (
    number SERIAL, id text NOT NULL UNIQUE, title text NOT NULL,
    opens timestamptz, closes timestamptz, created timestamptz NOT NULL, closed timestamptz, sealed timestamptz,
    over_since timestamptz, held_until timestamptz, max_reports bigint, uploads_need text,
    overlap bigint NOT NULL, unchecked bigint NOT NULL, lost_ids bigint NOT NULL,
    salt bytea, checked bigint NOT NULL, document bytea NOT NULL
);
CREATE TABLE deleted (id text PRIMARY KEY, deleted timestamptz NOT NULL, checked bigint NOT NULL);
CREATE TABLE parts (
    part SERIAL, campaign bigint NOT NULL REFERENCES campaigns (number),
    reports bigint NOT NULL, vouched bigint NOT NULL, least_batch bigint,
    digest bytea NOT NULL, checked bigint NOT NULL, sums bytea NOT NULL
);
CREATE INDEX parts_of_campaign ON parts (campaign);
CREATE TABLE publications (
    campaign bigint PRIMARY KEY REFERENCES campaigns (number), reports bigint NOT NULL,
    digest bytea NOT NULL, checked bigint NOT NULL, sums bytea NOT NULL
);
CREATE TABLE models (
    campaign bigint NOT NULL REFERENCES campaigns (number),
    version bigint NOT NULL, created timestamptz NOT NULL,
    digest bytea NOT NULL, checked bigint NOT NULL, document text NOT NULL,
    PRIMARY KEY (campaign, version)
);
CREATE TABLE shares (
    campaign bigint NOT NULL REFERENCES campaigns (number),
    node NAME NOT NULL, received timestamptz NOT NULL,
    digest bytea NOT NULL, checked bigint NOT NULL, share bytea NOT NULL,
    PRIMARY KEY (campaign, node)
);
CREATE TABLE releases (
    campaign bigint NOT NULL REFERENCES campaigns (number),
    node NAME NOT NULL, digest bytea NOT NULL, other_rows bigint NOT NULL, checked bigint NOT NULL,
    PRIMARY KEY (campaign, node, digest)
);
CREATE TABLE tokens (
    name text PRIMARY KEY, scope text NOT NULL, digest bytea NOT NULL UNIQUE, created timestamptz NOT NULL,
    revoked timestamptz, expires timestamptz, campaigns text, speaks_for text, checked bigint NOT NULL
);
CREATE TABLE acts (
    number SERIAL, moment timestamptz NOT NULL, actor text NOT NULL, act text NOT NULL,
    campaign text, detail text NOT NULL, outcome text NOT NULL, checked bigint NOT NULL
);
CREATE TABLE directories (
    key text PRIMARY KEY, version bigint NOT NULL,
    digest bytea NOT NULL, checked bigint NOT NULL, document bytea NOT NULL
);
CREATE TABLE origin (
    generation text NOT NULL, version_floor bigint NOT NULL, is_copy bigint NOT NULL, archive text,
    checked bigint NOT NULL
)
"""
"""A campaign has a salt if and only if it is federated; a process that waits for its exclusive lock sets
``held_until``: others take none meanwhile; ``lost_ids`` counts the reports whose ids a damaged run has lost.
``releases`` has every share that a node ever sent, by its digest, and whether it is of rows that none before it had;
``publications`` the sums last published of a campaign whose document fixes the times. ``tokens.campaigns`` are ids with
blanks between them. An act outlives its campaign, and names it by its id. ``checked`` is the check of a row, ``digest``
the SHA-256 of its content (:mod:`ldp_aggregator.store.sql.checks`); what is large stands last. ``origin`` has a name
drawn for the store, the version that its models are above, whether it is a backup, and where its reports were archived
last."""

OF_CAMPAIGNS: Final = ("parts", "models", "shares", "releases", "publications")
"""The tables that hold what belongs to a campaign; each names it in a column ``campaign``."""


async def make_tables(db: SqlConnection, database: str, own: str) -> None:
    """Make the tables, and those that the database alone has."""
    text = f"{_TABLES};{own}"
    for word, meaning in WORDS[database].items():
        text = text.replace(f" {word}", f" {meaning}")
    for statement in text.split(";"):
        await db.execute(statement)


def new_generation() -> str:
    """A name for a store that no other one has."""
    return secrets.token_hex(16)


def check_version(version: int) -> None:
    """Refuse the tables of another version."""
    if version != VERSION:
        how = "use the release that made it"
        if version in EARLIER:
            how = "'ldp-aggregator serve', as every command that writes, brings it to that"
        raise StoreError(f"the store has version {version}, and this program reads version {VERSION}; {how}")
