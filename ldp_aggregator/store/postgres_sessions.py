"""Connections to PostgreSQL and transactions on them, tried again where that may help."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg

from ldp_aggregator.store.clocks import Moment, SteadyClock
from ldp_aggregator.store.contract import LOG, STATEMENT, UNAVAILABLE, Clock, StoreError
from ldp_aggregator.store.sql.published import begin_origin
from ldp_aggregator.store.sql.tables import EARLIER, VERSION, Result, Row, check_version, make_tables
from ldp_aggregator.store.sql.upgrades import NUMBERED, SHARED, carry, refuse_back, written

SCHEMA: Final = "ldp_aggregator"
PROGRAM: Final = "ldp-aggregator"
"""Name of sessions, before the version of the tables that they write."""

ATTEMPTS: Final = 6
FIRST_DELAY_SECONDS: Final = 0.05
"""Seconds below which the first wait of a failed transaction is drawn; doubled each time."""
GIVE_UP_SECONDS: Final = 10.0
"""Seconds after which no transaction is tried again: the client is better told to come back."""
MOST_CONNECTIONS: Final = 6
CONNECT_SECONDS: Final = 5.0
COMMAND_SECONDS: Final = 30.0
PIECE: Final = 20_000
"""Ids that are read, or dropped, at once."""
LOCK_SECONDS: Final = 10
"""Seconds that a statement waits for what somebody else holds."""

_IDS: Final = """
CREATE TABLE ids (campaign bigint NOT NULL, id bytea NOT NULL, digest bytea NOT NULL, PRIMARY KEY (campaign, id));
CREATE TABLE schema_version (version bigint NOT NULL)
"""


_PASSING: Final = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # The connection was lost while the pool took it back.
    OSError,
    TimeoutError,
)
"""Failures that another try may not meet; BlockingIOError: a transaction has claimed a campaign."""

MADE_MEANWHILE: Final = (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateSchemaError)


class PostgresConnection:
    """See :class:`ldp_aggregator.store.sql.tables.SqlConnection`. ``fixed_now`` is the time, None for the database's
    own: no instance's clock decides anything for the others.
    """

    def __init__(self, raw: Any, name: str, fixed_now: datetime | None, steady: SteadyClock | None = None) -> None:
        self._raw = raw
        self.steady = steady or SteadyClock()
        self._prefix = f"/* {name} */ " if name else ""
        self.fixed_now = fixed_now

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        rows: Sequence[Row] = await self._raw.fetch(self._prefix + statement, *values)
        return rows

    async def fetchrow(self, statement: str, *values: Any) -> Row | None:
        return await self._raw.fetchrow(self._prefix + statement, *values)

    async def execute(self, statement: str, *values: Any) -> int:
        done = (await self._raw.execute(self._prefix + statement, *values)).rpartition(" ")[2]
        return int(done) if done.isdigit() else 0

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        async with self._raw.transaction():
            yield

    async def carry_ids(self, before: str, number: int, seed: int) -> None:
        """Copy the ids of a campaign from another schema, each with its check, which begins with ``seed``."""
        after: bytes | None = b""
        while after is not None:
            statement = f"SELECT id, digest FROM {before}.ids WHERE campaign = $1 AND id > $2 ORDER BY id LIMIT $3"
            piece = await self._raw.fetch(statement, number, after, PIECE)
            records = [
                (number, id_, digest + zlib.crc32(id_ + digest, seed).to_bytes(4, "little")) for id_, digest in piece
            ]
            await self._raw.copy_records_to_table("ids", records=records, schema_name=SCHEMA)
            after = piece[-1][0] if piece else None

    async def now(self) -> datetime:
        now: datetime = self.fixed_now or await self._raw.fetchval("SELECT clock_timestamp()")
        return now

    async def moment(self) -> Moment:
        return self.steady.read(await self.now())


@contextmanager
def _reaching(address: str) -> Iterator[None]:
    """A block in which a connection is made. Raises StoreError if it cannot be."""
    try:
        yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as error:
        # The message of a wrong address may hold the address, and that a password.
        raise StoreError(f"the database{_place(address)} cannot be reached ({type(error).__name__})") from None


def _place(address: str) -> str:
    """The host and port of the database, as far as no password can be a part of that."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    place = parts.netloc.rpartition("@")[2]
    is_sure = "@" not in parts.path + parts.query + parts.fragment
    if not place or not is_sure:
        return ""
    return f" at {place}" if re.search(r":\d+$", place) else f" at {place}:{os.environ.get('PGPORT', '5432')}"


class Sessions:
    """A pool of connections that runs one transaction at a time on each."""

    def __init__(self, pool: Any, clock: Clock | None, options: Mapping[str, Any]) -> None:
        self._pool = pool
        self._options = options
        self._clock = clock
        self.steady = SteadyClock.of(clock)

    @classmethod
    async def open(cls, address: str, *, clock: Clock | None = None, read_only: bool = False) -> Sessions:
        """Connect, and make the tables or check them. Raises StoreError, also if the database cannot be reached."""
        options = {
            "command_timeout": COMMAND_SECONDS,
            "timeout": CONNECT_SECONDS,
            "server_settings": {
                "application_name": f"{PROGRAM} {VERSION}",
                "synchronous_commit": "on",
                "search_path": SCHEMA,
                "lock_timeout": f"{LOCK_SECONDS}s",
                **({"default_transaction_read_only": "on"} if read_only else {}),
            },
        }
        with _reaching(address):
            pool = await asyncpg.create_pool(address, min_size=1, max_size=MOST_CONNECTIONS, reset=_leave, **options)
        sessions = cls(pool, clock, options)
        try:
            await sessions.run(_check_tables if read_only else _prepare_tables, passing=MADE_MEANWHILE)
            await sessions.run(lambda db: db.moment(), "now")
        except BaseException:
            await sessions.close()
            raise
        return sessions

    async def reconnect(self, address: str) -> None:
        """Make every further connection to this address, if one can be made. Raises StoreError."""
        with _reaching(address):
            await (await asyncpg.connect(address, **self._options)).close()
        self._pool.set_connect_args(address, **self._options)
        await self._pool.expire_connections()

    async def run(
        self,
        work: Callable[[PostgresConnection], Awaitable[Result]],
        name: str = "",
        *,
        isolation: str | None = "read_committed",
        attempts: int = ATTEMPTS,
        passing: tuple[type[Exception], ...] = (),
    ) -> Result:
        """One transaction; where ``isolation`` is None each statement is one of its own.

        Raises StoreError if the database fails, and goes on failing. What is ``passing`` is tried again, too.
        """
        give_up = time.monotonic() + GIVE_UP_SECONDS
        for attempt in range(attempts):
            try:
                async with (
                    self._pool.acquire(timeout=CONNECT_SECONDS) as raw,
                    nullcontext() if isolation is None else raw.transaction(isolation=isolation),
                ):
                    fixed_now = None if self._clock is None else self._clock()
                    return await work(PostgresConnection(raw, name, fixed_now, self.steady))
            except (*_PASSING, *passing) as error:  # Trying again is the point.
                if attempt + 1 == attempts or time.monotonic() > give_up:
                    code = STATEMENT if isinstance(error, BlockingIOError) else UNAVAILABLE
                    raise StoreError(f"the database answered: {type(error).__name__}", code) from error
                await asyncio.sleep(random.uniform(0, FIRST_DELAY_SECONDS * 2**attempt))  # noqa: S311 - only a delay
            except asyncpg.PostgresError as error:
                raise StoreError(f"the database answered: {error}", STATEMENT) from error
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Let whoever still works end first, for so long as a command may take."""
        try:
            await asyncio.wait_for(self._pool.close(), COMMAND_SECONDS)
        except TimeoutError:  # A connection was lost in a way that the pool did not notice.
            self._pool.terminate()


async def _check_tables(db: PostgresConnection) -> None:
    """Refuse what has no tables, or not those of this version; nothing is changed. Raises StoreError."""
    if not await _has_tables(db):
        raise StoreError("there is no store in this database; 'ldp-aggregator serve' or 'campaign create' makes one")
    check_version(await _version(db))


async def _prepare_tables(db: PostgresConnection) -> None:
    """Make the tables where there are none; refuse those of another version. Raises StoreError.

    Of two instances that make them at once, one fails with :data:`MADE_MEANWHILE`, and finds them when it tries again.
    """
    if not await _has_tables(db):
        await db.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        await make_tables(db, "postgres", _IDS)
        await begin_origin(db)
        await db.execute("INSERT INTO schema_version VALUES ($1)", VERSION)
    version = await _version(db)
    if version in EARLIER:
        await _upgrade(db, version)
    await _check_tables(db)


async def _version(db: PostgresConnection) -> int:
    found = await db.fetchrow("SELECT version FROM schema_version")
    return 0 if found is None else int(found[0])


async def _upgrade(db: PostgresConnection, version: int) -> None:
    """Bring the tables of an earlier version to this one, in one transaction. As they were they stay in a schema of
    their own, whose comment tells what was written into the new ones. Raises StoreError if an instance runs.
    """
    await _lock(db)
    if await _version(db) != version:  # Another instance did it meanwhile.
        return
    await _check_alone(db, f"{PROGRAM} {VERSION}")
    earlier = f"{SCHEMA}_{version}"
    await db.execute(f"DROP SCHEMA IF EXISTS {earlier} CASCADE")
    await db.execute(f"ALTER SCHEMA {SCHEMA} RENAME TO {earlier}")
    await db.execute(f"CREATE SCHEMA {SCHEMA}")
    await make_tables(db, "postgres", _IDS)
    ids = await carry(db, f"{earlier}.", "OVERRIDING SYSTEM VALUE")
    for table, column in NUMBERED.items():  # Numbers of what was deleted are never given again.
        place = f"pg_get_serial_sequence('{SCHEMA}.{table}', '{column}')"
        await db.execute(f"SELECT setval({place}, last_value, is_called) FROM {earlier}.{table}_{column}_seq")
    for number, name in ids.items():
        await db.carry_ids(earlier, number, zlib.crc32(name.encode()))
    await db.execute("INSERT INTO schema_version VALUES ($1)", VERSION)
    await db.execute(f"COMMENT ON SCHEMA {earlier} IS '{await written(db)}'")
    LOG.warning("the store was brought to this version")


async def _lock(db: PostgresConnection) -> None:
    for table in (*SHARED, "ids", "schema_version"):
        await db.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")


async def _check_alone(db: PostgresConnection, *besides: str) -> None:
    """Check that no instance runs on the database: it would go on writing to tables that are gone. Sessions named in
    ``besides`` are of instances that wait for it; those of version 1 had no name. Raises StoreError.
    """
    others = await db.fetchrow(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user "
        "AND pid <> pg_backend_pid() AND (application_name = '' OR application_name LIKE $1) "
        "AND application_name <> ALL($2::text[])",
        *(f"{PROGRAM} %", besides),
    )
    if others is not None and others[0]:
        raise StoreError("an instance runs on this database; stop all of them first, and start those of one version")


async def take_back(db: PostgresConnection) -> None:
    """Make the tables what they were before they were brought to this version. Raises StoreError if an instance
    runs, or something was written since.
    """
    await _lock(db)
    await _check_alone(db)
    schemas = [f"{SCHEMA}_{version}" for version in EARLIER]
    found = await db.fetchrow(
        "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = ANY($1::text[]) "
        "ORDER BY nspname DESC",
        schemas,
    )
    if found is None:
        raise refuse_back(f"there is no schema {' or '.join(schemas)}")
    if found[1] != await written(db):
        raise refuse_back("something was written since, and would be lost; pg_dump has it")
    await db.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
    await db.execute(f"ALTER SCHEMA {found[0]} RENAME TO {SCHEMA}")


async def _has_tables(db: PostgresConnection) -> bool:
    found = await db.fetchrow("SELECT to_regclass($1) IS NOT NULL", f"{SCHEMA}.schema_version")
    return found is not None and bool(found[0])


async def _leave(_: Any) -> None:
    """Reset of a connection, which is none: settings are of a transaction only, so the database need not be asked."""
