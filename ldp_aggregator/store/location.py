"""Which store a data folder or a database address names."""

from __future__ import annotations

from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from ldp_aggregator.store.clock import Clock
from ldp_aggregator.store.contract import Store, StoreError


async def open_store(
    data: Path, database: str | None = None, *, create: bool = True, read_only: bool = False, clock: Clock | None = None
) -> Store:
    """The store at the ``database`` address, else the one in folder ``data``. Several addresses, with spaces between,
    are the databases of one store.

    Without ``create`` a missing folder is an error, not a new store. ``read_only`` changes nothing, whatever is asked
    of it. The time is that of ``clock``, by default the database's own, or that of the machine for an embedded store.
    """
    if database is not None:
        check_driver()
        from ldp_aggregator.store.sharded.opening import open_shards

        return await open_shards(database.split(), clock=clock, read_only=read_only)
    from ldp_aggregator.store.sqlite.store import FILE_NAME, SqliteStore

    path = data / FILE_NAME  # Local files, before anything is served: blocking here blocks nobody.
    if (read_only or not create) and not path.exists():
        raise StoreError(f"there is no store in {data}; 'ldp-aggregator serve' or 'campaign create' makes one")
    if not read_only:
        try:
            data.mkdir(parents=True, exist_ok=True, mode=0o700)  # noqa: ASYNC240
        except OSError as error:
            raise StoreError(f"the data folder {data} cannot be made: {error.strerror}") from error
    return SqliteStore(path, clock=clock, read_only=read_only)


def check_driver() -> None:
    """Raises StoreError where PostgreSQL cannot be spoken to."""
    if find_spec("asyncpg") is None:
        raise StoreError("asyncpg is not installed; PostgreSQL needs pip install 'ldp-bayes[postgres]'")


async def migrate_store(data: Path, database: str | None = None) -> tuple[int, int]:
    """Bring a store, or a backup, of an older version up to date; returns the versions that it had and has."""
    if database is not None:
        check_driver()
        from ldp_aggregator.store.postgres import schema as tables
        from ldp_aggregator.store.postgres.sessions import Sessions

        oldest = tables.VERSION
        for address in database.split():
            sessions = await Sessions.open(address)
            try:
                oldest = min(oldest, await sessions.run(tables.migrate))
            finally:
                await sessions.close()
        return oldest, tables.VERSION
    from ldp_aggregator.store.sqlite import schema
    from ldp_aggregator.store.sqlite.connections import open_connection
    from ldp_aggregator.store.sqlite.store import FILE_NAME

    if not (data / FILE_NAME).exists():
        raise StoreError(f"there is no store in {data}; --data names the folder of one")
    with closing(open_connection(data / FILE_NAME)) as db:
        return schema.migrate(db), schema.VERSION
