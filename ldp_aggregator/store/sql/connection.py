"""The connection that every shared statement is written for, and the transactions that it is made in.

Statements are PostgreSQL's as far as SQLite understands them: ``$1`` for the first value, ``FOR UPDATE`` and its like
where a row has to stay as it was read. For SQLite the placeholders are respelt and the locks left out: whoever writes
there has the whole file. Times are columns of type ``timestamptz`` and aware datetimes in Python.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

Row = Any
"""A row: its values by name or place, in their order; ``**row`` spells them out."""
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MOST: Final = (1 << 63) - 1
"""What LIMIT takes where there is none."""


class SqlConnection(Protocol):
    """A connection inside a transaction."""

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        """All rows."""
        ...

    async def fetchrow(self, statement: str, *values: Any) -> Row | None:
        """The first row, None where there is none."""
        ...

    async def execute(self, statement: str, *values: Any) -> int:
        """The number of rows that were written."""
        ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """A block that takes back what it did, and only that, where it raises."""
        ...

    async def now(self) -> datetime:
        """The time by which the store decides."""
        ...


Work = Callable[[SqlConnection], Awaitable[Result]]


class Transactions(Protocol):
    """A place to work: in one transaction, all of it or nothing. The connection puts the ``name`` into every
    statement where its database keeps a log of slow ones.

    Raises StoreError where the database fails.
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
