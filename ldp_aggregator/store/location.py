"""Which store a data folder or a database address names."""

from __future__ import annotations

from pathlib import Path

from ldp_aggregator.store.clock import Clock, utc_now
from ldp_aggregator.store.contract import Store, StoreError
from ldp_aggregator.store.sqlite.store import FILE_NAME, SqliteStore


async def open_store(data: Path, database: str | None = None, *, create: bool = True, clock: Clock = utc_now) -> Store:
    """The store at the ``database`` address, else the one in folder ``data``.

    Without ``create`` a missing folder is an error, not a new store.
    """
    if database is not None:
        try:
            from ldp_aggregator.store.postgres.store import PostgresStore
        except ModuleNotFoundError:
            raise StoreError("asyncpg is not installed; PostgreSQL needs pip install 'ldp-bayes[postgres]'") from None
        return await PostgresStore.open(database, clock=clock)
    path = data / FILE_NAME  # Local files, before anything is served: blocking here blocks nobody.
    if not create and not path.exists():
        raise StoreError(f"there is no store in {data}; 'ldp-aggregator serve' or 'campaign create' makes one")
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)  # noqa: ASYNC240
    except OSError as error:
        raise StoreError(f"the data folder {data} cannot be made: {error.strerror}") from error
    return SqliteStore(path, clock=clock)
