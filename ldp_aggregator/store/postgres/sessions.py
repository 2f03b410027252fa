"""Connections to PostgreSQL and transactions on them, tried again where that may help."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import asyncpg

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.postgres import schema

ATTEMPTS: Final = 6
FIRST_DELAY_SECONDS: Final = 0.05
"""A failed transaction is tried again after a random time below this, doubled each time."""
GIVE_UP_SECONDS: Final = 10.0
"""No transaction is tried again after this: whoever waits is better told to come back."""
MOST_CONNECTIONS: Final = 6
CONNECT_SECONDS: Final = 5.0
COMMAND_SECONDS: Final = 30.0
LOCK_SECONDS: Final = 10
"""How long a statement waits for what somebody else holds."""


class HeldError(Exception):
    """Somebody is about to have a campaign for himself, for a moment."""


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
    asyncio.TimeoutError,
    HeldError,
)
"""Failures that another try may not meet."""

Connection = Any
"""asyncpg has no types."""
Result = TypeVar("Result")


class RefusedError(StoreError):
    """The database is there, and did not do it: another part of the same work it may do."""


class Sessions:
    """A pool of connections that runs one transaction at a time on each."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, address: str, *, read_only: bool = False) -> Sessions:
        """Raises StoreError where the database cannot be reached."""
        try:
            pool = await asyncpg.create_pool(
                address,
                min_size=1,
                max_size=MOST_CONNECTIONS,
                command_timeout=COMMAND_SECONDS,
                timeout=CONNECT_SECONDS,
                reset=_leave,
                server_settings={
                    "synchronous_commit": "on",
                    "search_path": schema.NAME,
                    "lock_timeout": f"{LOCK_SECONDS}s",
                    **({"default_transaction_read_only": "on"} if read_only else {}),
                },
            )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, asyncio.TimeoutError, ValueError) as error:
            # The message of a wrong address may hold the address, and that a password.
            raise StoreError(f"the database cannot be reached ({type(error).__name__})") from None
        return cls(pool)

    async def run(
        self,
        work: Callable[[Connection], Awaitable[Result]],
        *,
        isolation: str | None = "read_committed",
        attempts: int = ATTEMPTS,
        passing: tuple[type[Exception], ...] = (),
    ) -> Result:
        """One transaction; where ``isolation`` is None each statement is one of its own.

        Raises StoreError where the database fails, and goes on failing. What is ``passing`` is tried again, too.
        """
        give_up = time.monotonic() + GIVE_UP_SECONDS
        for attempt in range(attempts):
            try:
                async with self._transaction(isolation) as db:
                    return await work(db)
            except (*_PASSING, *passing) as error:  # noqa: PERF203 - trying again is the point
                if attempt + 1 == attempts or time.monotonic() > give_up:
                    raise StoreError(f"the database answered: {type(error).__name__}") from error
                await asyncio.sleep(random.uniform(0, FIRST_DELAY_SECONDS * 2**attempt))  # noqa: S311 - only a delay
            except asyncpg.PostgresError as error:
                raise RefusedError(f"the database answered: {error}") from error
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Whoever still works ends first, for so long as a command may take."""
        try:
            await asyncio.wait_for(self._pool.close(), COMMAND_SECONDS)
        except asyncio.TimeoutError:  # A connection was lost in a way that the pool did not notice.
            self._pool.terminate()

    @asynccontextmanager
    async def _transaction(self, isolation: str | None) -> AsyncIterator[Connection]:
        async with self._pool.acquire(timeout=CONNECT_SECONDS) as db:
            if isolation is None:
                yield db
                return
            async with db.transaction(isolation=isolation):
                yield db


def is_unique_violation(error: RefusedError) -> bool:
    """Whether what was to be stored was there."""
    return isinstance(error.__cause__, asyncpg.UniqueViolationError)


async def _leave(_: Connection) -> None:
    """Nothing is set on a connection but for a transaction: it goes back as it came, without asking the database."""
