"""A database for each load, on a PostgreSQL server that is already there: what was counted before slows what comes."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import asyncpg


@contextmanager
def fresh_database(address: str | None) -> Iterator[str | None]:
    """The address of an empty database on the server of ``address``, whose role may create databases; it is dropped
    afterwards, whatever happened. None, for the embedded store, stays None. Not inside a running event loop.
    """
    if address is None:
        yield None
        return
    name = f"ldp_load_{secrets.token_hex(8)}"
    asyncio.run(_execute(address, f"CREATE DATABASE {name}"))
    try:
        yield urlunsplit(urlsplit(address)._replace(path=f"/{name}"))
    finally:
        asyncio.run(_execute(address, f"DROP DATABASE {name} WITH (FORCE)"))


async def _execute(address: str, statement: str) -> None:
    connection = await asyncpg.connect(address)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
