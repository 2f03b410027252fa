"""Every load of a benchmark has an empty database, and none stays behind."""

import asyncio
import importlib
from pathlib import Path
from unittest.mock import Mock

import asyncpg
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    """A module of the benchmarks, by name, as a program of theirs finds it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


async def ask(address, query):
    connection = await asyncpg.connect(address)
    try:
        return await connection.fetch(query)
    finally:
        await connection.close()


def names(address):
    return {row["datname"] for row in asyncio.run(ask(address, "SELECT datname FROM pg_database"))}


def test_a_load_has_a_database_of_its_own_which_is_gone_afterwards(own_postgres, benchmark):
    fresh_database = benchmark("databases").fresh_database
    before = names(own_postgres.address)
    with fresh_database(own_postgres.address) as one, fresh_database(own_postgres.address) as other:
        assert len({one, other, own_postgres.address}) == 3
        asyncio.run(ask(one, "CREATE TABLE counted (n int)"))
        assert asyncio.run(ask(other, "SELECT to_regclass('counted') AS found"))[0]["found"] is None
    with pytest.raises(RuntimeError, match="a load fails"), fresh_database(own_postgres.address):
        raise RuntimeError("a load fails")
    assert names(own_postgres.address) == before
    with fresh_database(None) as nothing:
        assert nothing is None, "the embedded store has a folder"


def test_loads_one_after_the_other_are_each_counted_in_a_database_without_reports(own_postgres, benchmark, monkeypatch):
    ingest = benchmark("ingest")
    seen = []

    def quiet(data, database, **environment):
        """A server that nobody asks anything."""
        seen.append(database)
        return Mock(url="http://127.0.0.1:1", rss_mebibytes=lambda: 0.0)

    monkeypatch.setattr(ingest, "Server", quiet)
    monkeypatch.setattr(ingest, "cpu_seconds", lambda pid: 0.0)
    monkeypatch.setattr(ingest, "put_on", lambda plan, url, path: benchmark("uploading").Results(seconds=1.0))
    plan = ingest.Plan(ingest.make_campaign("de", 4).document)
    for _ in range(2):
        ingest.measure_server(own_postgres.address, plan)
    assert len({*seen, own_postgres.address}) == 3
