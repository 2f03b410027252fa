"""The store of campaigns, reports, models and tokens: one contract, SQLite or PostgreSQL behind it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ldp_aggregator.store.contract import SCOPES as SCOPES
from ldp_aggregator.store.contract import Act as Act
from ldp_aggregator.store.contract import CampaignState as CampaignState
from ldp_aggregator.store.contract import Clock
from ldp_aggregator.store.contract import Life as Life
from ldp_aggregator.store.contract import Outcome as Outcome
from ldp_aggregator.store.contract import PublishedModel as PublishedModel
from ldp_aggregator.store.contract import StoredToken as StoredToken
from ldp_aggregator.store.contract import StoreError as StoreError
from ldp_aggregator.store.contract import Submission as Submission
from ldp_aggregator.store.durable import make_folder
from ldp_aggregator.store.sql.store import Damage as Damage
from ldp_aggregator.store.sql.store import Store as Store
from ldp_aggregator.store.sqlite.database import FILE_NAME
from ldp_aggregator.store.sqlite.store import SqliteStore as SqliteStore


async def open_store(
    data: Path, database: str | None = None, *, create: bool = True, read_only: bool = False, clock: Clock | None = None
) -> Store:
    """The store at the ``database`` address, else the one in folder ``data``.

    Without ``create`` a missing folder is an error, not a new store. ``read_only`` changes nothing, whatever is asked
    of it. The time is that of ``clock``, by default the database's own, or that of the machine for an embedded store.
    """
    if database is not None:
        check_driver()
        from ldp_aggregator.store.postgres import PostgresStore

        return await PostgresStore.open(database, clock=clock, read_only=read_only)
    path = data / FILE_NAME  # Local files, before anything is served: blocking here blocks nobody.
    if (read_only or not create) and not path.exists():
        raise StoreError(f"there is no store in {data}; 'ldp-aggregator serve' or 'campaign create' makes one")
    if not read_only:
        try:
            make_folder(data)
        except OSError as error:
            raise StoreError(f"the data folder {data} cannot be made: {error.strerror}") from error
    return SqliteStore(path, clock=clock, read_only=read_only)


def check_driver() -> None:
    """Check that asyncpg is installed. Raises StoreError."""
    if find_spec("asyncpg") is None:
        raise StoreError("asyncpg is not installed; PostgreSQL needs pip install 'ldp-bayes[postgres]'")
