"""The particulars of PostgreSQL: several instances, restarts, how often it is asked, who has a campaign alone."""

import asyncio
import itertools
import json
import secrets
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from cells import cell_report, cells_of, count, publish, submission
from keep_store import has_all
from postgres import database as new_database

from ldp_aggregator.store import Outcome, StoreError, open_store, postgres_sessions
from ldp_aggregator.store import postgres as postgres_store
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.store.decisions import bar_of, gather, refuse_uploads
from ldp_aggregator.store.postgres import PostgresStore
from ldp_aggregator.store.postgres_sessions import PostgresConnection, Sessions
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.checks import change
from ldp_aggregator.store.sql.tables import EARLIER, VERSION

STORES = Path(__file__).resolve().parents[2] / "stores"


async def test_what_another_instance_counts_just_before_we_insert_counts_once(instances, monkeypatch):
    campaign = await publish(instances[0])
    at_once = postgres_store.count_at_once

    async def too_late(*given):
        monkeypatch.setattr(postgres_store, "count_at_once", at_once)
        await count(instances[1], campaign, (1, 2))
        return {}

    conflict = cell_report(campaign, 2, cell=9)
    monkeypatch.setattr(postgres_store, "count_at_once", too_late)
    outcomes = await instances[0].count([submission(campaign, (0, 1)), submission(campaign, [conflict])])
    assert outcomes == [Outcome(1, 1), Outcome(rejected=((conflict.id, "conflicting-report"),))]
    assert await cells_of(instances[0], campaign, 10) == [1, 1, 1] + [0] * 7


async def test_ids_that_another_instance_stores_while_a_group_is_stored_are_looked_up(store, monkeypatch):
    async def meets_it(*given):
        raise asyncpg.UniqueViolationError("of ids")

    campaign = await publish(store)
    await count(store, campaign, [1])
    monkeypatch.setattr(postgres_store, "count_at_once", meets_it)
    assert await count(store, campaign, [1, 2]) == Outcome(1, 1)


async def test_who_asks_whether_the_database_answers_is_told_after_one_try(store, monkeypatch):
    tries = []

    async def gone(self, *given):
        tries.append(given)
        raise asyncpg.ConnectionDoesNotExistError("gone")

    monkeypatch.setattr(PostgresConnection, "execute", gone)
    with pytest.raises(StoreError):
        await store.beat()
    assert len(tries) == 1


async def test_a_greatest_number_of_reports_holds_exactly_across_instances(instances):
    campaign = await publish(instances[0], 2048, max_reports=50)
    groups = [range(start, start + 10) for start in range(0, 200, 10)]
    outcomes = await asyncio.gather(
        *(count(instances[place % 2], campaign, group) for place, group in enumerate(groups))
    )
    assert sum(outcome.counted for outcome in outcomes) == 50
    assert (await instances[0].state(campaign.id)).reports == 50


async def test_a_database_that_was_made_read_only_fails_its_check(instances, postgres, tmp_path):
    """Providers do that where the disk is full; what was connected before notices with its next connection."""
    connection = await asyncpg.connect(postgres.address)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    store = PostgresStore(await Sessions.open(postgres.address, clock=utc_now))
    try:
        with pytest.raises(StoreError, match="read-only transaction"):
            await store.beat()
    finally:
        await store.close()
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        await connection.close()


async def test_another_schema_version_is_refused_and_an_address_that_does_not_answer_told_without_its_password(
    instances, postgres, tmp_path
):
    connection = await asyncpg.connect(postgres.address)
    await connection.execute("UPDATE ldp_aggregator.schema_version SET version = version + 1")
    await connection.close()
    with pytest.raises(StoreError, match=f"version {VERSION + 1}, and this program reads version {VERSION}"):
        await open_store(tmp_path, postgres.address)
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        await open_store(tmp_path, "postgresql://someone:geheim@127.0.0.1:1/nothing")
    assert "geheim" not in str(caught.value)


async def test_connections_go_to_another_address_once_one_there_has_worked(instances, postgres, database):
    store = instances[0]
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        await store.reconnect("postgresql://someone:geheim@127.0.0.1:1/nothing")
    assert "geheim" not in str(caught.value)
    await store.beat()
    connection = await asyncpg.connect(postgres.address)
    user = f"u{secrets.token_hex(8)}"
    await connection.execute(f"CREATE ROLE {user} LOGIN SUPERUSER")
    try:
        address = urlsplit(postgres.address)
        await store.reconnect(address._replace(netloc=f"{user}@{address.netloc.rpartition('@')[2]}").geturl())
        await store.beat()
        users = await connection.fetch("SELECT usename FROM pg_stat_activity")
        assert user in {one["usename"] for one in users}
    finally:
        await store.reconnect(postgres.address)
        await store.beat()
        await connection.execute(f"DROP ROLE {user}")
        await connection.close()


@pytest.fixture
def store(instances):
    return instances[0]


@pytest.fixture
async def asked(store):
    """Every query of the store, transactions' beginnings and ends too."""
    seen = []
    async with store._sessions._pool.acquire() as db:
        # The pool has one connection while nobody needs a second.
        connection = db._con
    connection.add_query_logger(lambda record: seen.append(" ".join(record.query.split())[:40]))
    return seen


async def test_a_group_of_new_reports_asks_the_database_once(asked, store):
    several = [await publish(store, 1024, title=title) for title in ("one", "two", "three")]
    uploads = [submission(several[number % 3], [number]) for number in range(postgres_store.SMALL + 1)]
    await store.count(uploads[:1])  # A connection asks once for the types of what it is sent.
    asked.clear()
    assert [outcome.counted for outcome in await store.count(uploads[1:])] == [1] * postgres_store.SMALL
    assert len(asked) == 1, asked
    for _ in range(2):
        asked.clear()
        assert [outcome.duplicates for outcome in await store.count(uploads[:1])] == [1]
    # Whether something was vouched for is asked where it came again, and a row is written as for what is new.
    assert len(asked) == 7, asked


async def test_a_large_upload_asks_the_database_four_times_and_a_statement_names_the_method_that_asks_it(asked, store):
    campaign = await publish(store, 4096)
    await count(store, campaign, range(3500, 4000))
    for start, fresh in ((0, 2000), (1000, 1000)):
        asked.clear()
        assert (await count(store, campaign, range(start, start + 2000))).counted == fresh
        assert len(asked) == 4, asked
    asked.clear()
    await store.tally(campaign.id)
    assert [query.partition(" */")[0] for query in asked if query.startswith("/*")] == ["/* tally"] * 3


async def test_the_statements_count_where_the_decisions_do_and_nowhere_else(store, clock):
    """Every combination of what a campaign's row may say, at every moment around it."""
    hour = timedelta(hours=1)
    moments = (None, clock() - hour, clock(), clock() + hour)
    cases = list(itertools.product(moments, moments, (None, clock()), (None, b"s" * 32), (None, 5)))
    assert len(cases) == 128
    campaign = await publish(store)
    batch = gather(campaign, [submission(campaign, [1])])

    for case in reversed(cases):  # The last leaves it open.

        async def work(db, case=case):
            columns = ("opens", "closes", "closed", "salt", "max_reports")
            await change(db, "campaigns", ("id", campaign.id), dict(zip(columns, case, strict=True)))
            row = await campaigns.row(db, campaign.id)
            found = await db.fetch(f"SELECT 1 FROM campaigns WHERE {postgres_store._OPEN}", clock())
            taken = refuse_uploads(row) is None and bar_of(row, campaign, await db.moment()) is None
            return bool(found), taken and row.max_reports is None

        guard, decided = await store._write(work)
        assert guard == decided, case
    assert await store._write(lambda db: postgres_store.count_at_once(db, {campaign.id: batch}))


async def test_a_campaign_is_closed_while_uploads_never_pause(database, store, opened, clock, monkeypatch):
    """Counting shares a lock, and here it is let go only when the next one has come: nobody else would ever get it."""
    monkeypatch.setattr("ldp_aggregator.store.postgres_sessions.LOCK_SECONDS", 2)
    campaign = await publish(store, 4096)
    other = await opened("data", database=database, clock=clock)
    numbers, entered, over, come = itertools.count(), [], asyncio.Event(), asyncio.Condition()

    async def chained(db):
        number = next(numbers)
        batch = gather(campaign, [submission(campaign, [number])])
        try:
            outcomes = await postgres_store.count_locked(db, campaign.id, batch)
        except BlockingIOError:
            over.set()
            raise
        finally:
            async with come:
                entered.append(number)
                come.notify_all()
        async with come:
            await come.wait_for(lambda: entered[-1] != number or over.is_set())
        return outcomes[0]

    async def feed():
        while not over.is_set() and (await store._write(chained)).refused is None:
            pass

    feeding = [asyncio.create_task(feed()) for _ in range(3)]
    async with come:
        await come.wait_for(lambda: len(entered) > 10)
    try:
        state = await other.close_campaign(campaign.id)
    finally:
        over.set()
        async with come:
            come.notify_all()
        await asyncio.gather(*feeding, return_exceptions=True)
    assert (await other.state(campaign.id)).reports == state.reports > 0


@pytest.fixture
async def another(postgres):
    """A connection of somebody else, in a transaction."""
    connection = await asyncpg.connect(postgres.address)
    await connection.execute("SET search_path TO ldp_aggregator; BEGIN")
    yield connection
    await connection.close()


async def test_who_closes_waits_for_what_is_being_counted(store, another):
    """Else the number of reports that closing tells is not the last."""
    campaign = await publish(store)
    await another.execute("SELECT 1 FROM campaigns FOR KEY SHARE")
    closing = asyncio.create_task(store.close_campaign(campaign.id))
    assert not (await asyncio.wait([closing], timeout=0.3))[0]
    await another.execute("COMMIT")
    assert (await closing).life.closed is not None


@pytest.mark.parametrize("most", [None, 3000])
@pytest.mark.parametrize("reports", [1, 2000])
async def test_who_counts_waits_for_who_closes(store, another, reports, most):
    campaign = await publish(store, 4096, max_reports=most)
    await another.execute("SELECT 1 FROM campaigns FOR UPDATE")
    closed = {"closed": utc_now()}
    await change(PostgresConnection(another, "", None), "campaigns", ("id", campaign.id), closed)
    counting = asyncio.create_task(count(store, campaign, range(reports)))
    assert not (await asyncio.wait([counting], timeout=0.3))[0]
    await another.execute("COMMIT")
    assert await counting == Outcome(refused="campaign-closing")


@pytest.mark.parametrize("most", [None, 50])
async def test_a_campaign_that_was_closed_takes_nothing_new_beside_what_it_knows(store, most):
    """Whether or not it has room left."""
    campaign = await publish(store, max_reports=most)
    assert await count(store, campaign, [1]) == Outcome(counted=1)
    await store.close_campaign(campaign.id)
    new = cell_report(campaign, 2)
    assert await count(store, campaign, [1, new]) == Outcome(0, 1, ((new.id, "campaign-closing"),), places=(1,))
    assert await cells_of(store, campaign, 4) == [0, 1, 0, 0]


@pytest.mark.parametrize(
    "damage", ["ids SET digest = set_bit(digest, 0, 1 - get_bit(digest, 0))", "campaigns SET checked = checked # 1"]
)
async def test_a_campaign_of_which_a_row_is_damaged_takes_nothing_and_fails_no_other(store, damage, monkeypatch):
    damaged = await publish(store, max_reports=9)
    await count(store, damaged, [1, 2])
    sound, limited = await publish(store, title="sound"), await publish(store, title="limited", max_reports=9)
    of = f"id = '{damaged.id}'"
    if damage.startswith("ids"):
        of = f"campaign = (SELECT number FROM campaigns WHERE {of})"
    await store._write(lambda db: db.execute(f"UPDATE {damage} WHERE {of}"))
    outcomes = await store.count([submission(campaign, [1]) for campaign in (damaged, sound, limited, damaged)])
    unavailable = Outcome(refused="store-unavailable")
    assert outcomes == [unavailable, Outcome(counted=1), Outcome(counted=1), unavailable]
    monkeypatch.setattr("ldp_aggregator.store.postgres.PIECE", 1)
    [finding] = await store.check()
    problem = "2 ids do not agree with their check" if damage.startswith("ids") else "it does not agree with its check"
    assert (finding.campaign, finding.problem.endswith(problem)) == (damaged.id, True)
    await store._write(lambda db: db.execute(f"UPDATE {damage} WHERE {of}"))


async def test_who_wanted_a_campaign_alone_and_died_holds_it_for_a_moment_only(store, monkeypatch):
    monkeypatch.setattr("ldp_aggregator.store.postgres_sessions.FIRST_DELAY_SECONDS", 0.001)
    campaign = await publish(store)
    await store._claim(campaign.id)
    assert await count(store, campaign, [1]) == Outcome(refused="store-unavailable")
    over = {"held_until": utc_now() - timedelta(seconds=1)}
    await store._write(lambda db: change(db, "campaigns", ("id", campaign.id), over))
    assert await count(store, campaign, [1]) == Outcome(counted=1)


async def test_ids_that_a_dying_process_left_of_a_sealed_campaign_are_told_and_dropped(store, monkeypatch):
    campaign = await publish(store, 2048)
    await count(store, campaign, range(100))
    await store.close_campaign(campaign.id)
    await store._seal(campaign.id, at_once=True)  # And it dies here.
    [finding] = await store.check()
    assert "100 ids are left" in finding.problem
    monkeypatch.setattr("ldp_aggregator.store.postgres.PIECE", 7)
    await store.seal_campaign(campaign.id)
    assert tuple(await store._read(lambda db: db.fetchrow("SELECT count(*) FROM ids"))) == (0,)


async def test_instances_that_start_at_once_on_an_empty_database_make_one_store(database, opened):
    stores = await asyncio.gather(*(opened("data", database=database) for _ in range(4)))
    assert len({(await store.origin()).generation for store in stores}) == 1


async def test_every_connection_waits_for_the_disk_and_for_no_lock_longer_than_ten_seconds(store, postgres, tmp_path):
    """An acknowledged report outlives the machine; a database or user whose own settings say otherwise is overruled."""
    address = postgres.address + ("&" if "?" in postgres.address else "?") + "options=-c%20synchronous_commit%3Doff"
    changed = await open_store(tmp_path, address)

    async def told(db):
        names = ("synchronous_commit", "lock_timeout", "search_path")
        return [(await db.fetchrow("SELECT current_setting($1)", name))[0] for name in names]

    try:
        for one in (store, changed):
            assert await one._read(told) == ["on", "10s", "ldp_aggregator"]
    finally:
        await changed.close()


async def test_a_store_that_is_opened_to_read_makes_no_tables_and_changes_nothing(database, instances):
    reader = await PostgresStore.open(database, read_only=True)
    try:
        assert await reader.campaigns() == []
        with pytest.raises(StoreError, match="read-only transaction"):
            await reader.beat()
    finally:
        await reader.close()
    connection = await asyncpg.connect(database)
    try:
        await connection.execute("ALTER SCHEMA ldp_aggregator RENAME TO elsewhere")
        with pytest.raises(StoreError, match="there is no store in this database"):
            await PostgresStore.open(database, read_only=True)
    finally:
        await connection.execute("ALTER SCHEMA elsewhere RENAME TO ldp_aggregator")
        await connection.close()


@pytest.mark.parametrize(
    "address", ["postgresql://someone:geheim@127.0.0.1:port/x", "postgresql://someone:geheim/x@127.0.0.1:1/x", "geheim"]
)
async def test_an_address_that_is_none_is_not_repeated_with_its_password(address, tmp_path):
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        await PostgresStore.open(address)
    assert "geheim" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_tally_that_cannot_be_compacted_is_counted_and_answered_all_the_same(store, monkeypatch, caplog):
    campaign = await publish(store)
    monkeypatch.setattr(postgres_store, "COMPACT_AT", 3)
    compact = campaigns.compact

    async def fails(*given):
        raise StoreError("no room")

    monkeypatch.setattr(campaigns, "compact", fails)
    for number in range(4):
        assert await count(store, campaign, [number]) == Outcome(counted=1)
    assert [record.getMessage() for record in caplog.records] == ["a tally was not compacted"]
    monkeypatch.setattr(campaigns, "compact", compact)

    async def parts(db):
        return (await db.fetchrow("SELECT count(*) FROM parts"))[0]

    for number, left in ((4, 5), (5, 1)):
        await count(store, campaign, [number])
        assert await store._read(parts) == left, "three parts of one's own become one, with those that were left"
    assert await cells_of(store, campaign, 7) == [1] * 6 + [0]


async def test_a_store_that_cannot_be_used_leaves_no_connection_behind(instances, postgres):
    connection = await asyncpg.connect(postgres.address)
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    try:
        before = await connection.fetchval(others)
        await connection.execute("UPDATE ldp_aggregator.schema_version SET version = version + 1")
        for _ in range(3):
            with pytest.raises(StoreError, match="and this program reads version"):
                await PostgresStore.open(postgres.address)
        for _ in range(500):
            if await connection.fetchval(others) <= before:
                break
            await asyncio.sleep(0.01)
        assert await connection.fetchval(others) <= before
    finally:
        await connection.execute("UPDATE ldp_aggregator.schema_version SET version = version - 1")
        await connection.close()


@pytest.mark.parametrize(
    "fault",
    [
        asyncpg.SerializationError,
        asyncpg.DeadlockDetectedError,
        asyncpg.ConnectionDoesNotExistError,
        asyncpg.CannotConnectNowError,
        asyncpg.AdminShutdownError,
        asyncpg.CrashShutdownError,
        asyncpg.InterfaceError,
        ConnectionResetError,
        TimeoutError,
    ],
)
async def test_what_another_try_may_not_meet_is_tried_again_until_time_is_over(store, fault, monkeypatch):
    monkeypatch.setattr("ldp_aggregator.store.postgres_sessions.FIRST_DELAY_SECONDS", 0.001)
    tries = []

    async def fails(db, times):
        tries.append(times)
        if len(tries) <= times:
            raise fault("secret text")
        return "done"

    assert await store._sessions.run(lambda db: fails(db, 5)) == "done"
    tries.clear()
    with pytest.raises(StoreError) as caught:
        await store._sessions.run(lambda db: fails(db, 6))
    assert (len(tries), caught.value.code) == (6, "store-unavailable")
    assert "secret" not in str(caught.value)
    tries.clear()
    monkeypatch.setattr("ldp_aggregator.store.postgres_sessions.GIVE_UP_SECONDS", -1.0)
    with pytest.raises(StoreError):
        await store._sessions.run(lambda db: fails(db, 1))
    assert len(tries) == 1, "whoever waits is better told to come back"


@pytest.fixture
async def kept():
    """A function: the address of a database that has the store of a version."""
    with new_database() as empty:

        async def filled(version):
            connection = await asyncpg.connect(empty.address)
            await connection.execute((STORES / str(version) / "database.sql").read_text(encoding="utf-8"))
            await connection.close()
            return empty.address

        yield filled


async def schemas(address):
    connection = await asyncpg.connect(address)
    found = await connection.fetch("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'ldp%' ORDER BY nspname")
    await connection.close()
    return [row[0] for row in found]


@pytest.mark.parametrize("version", [*EARLIER, VERSION])
async def test_a_store_of_an_earlier_version_has_all_that_it_had_and_can_be_gone_back_from_until_it_has_written(
    version, kept, tmp_path
):
    address = await kept(version)
    ids = json.loads((STORES / str(version) / "campaigns.json").read_text(encoding="utf-8"))
    if version != VERSION:
        with pytest.raises(StoreError, match=f"has version {version}"):
            await open_store(tmp_path, address, read_only=True)
        store = await PostgresStore.open(address)
        assert await schemas(address) == ["ldp_aggregator", f"ldp_aggregator_{version}"]
        await store.take_back()
        await store.close()
        assert await schemas(address) == ["ldp_aggregator"]
    stores = await asyncio.gather(*(PostgresStore.open(address) for _ in range(3)))
    try:
        await has_all(stores[0], ids)
        assert await stores[1].check() == []
        with pytest.raises(StoreError, match="an instance runs on this database"):
            await stores[2].take_back()
    finally:
        for store in stores[:2]:
            await store.close()
    with pytest.raises(StoreError, match="no way back"):
        await stores[2].take_back()
    await stores[2].close()


@pytest.mark.parametrize("version", EARLIER)
async def test_an_upgrade_waits_until_no_instance_runs_and_then_changes_all_or_nothing(version, kept, monkeypatch):
    address = await kept(version)
    for name in ("", f"ldp-aggregator {VERSION - 1}"):
        running = await asyncpg.connect(address, server_settings={"application_name": name})
        with pytest.raises(StoreError, match="an instance runs on this database; stop all of them first"):
            await PostgresStore.open(address)
        await running.close()

    async def fails(*_):
        raise asyncpg.DiskFullError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(postgres_sessions, "written", fails)
        with pytest.raises(StoreError, match="no space left"):
            await PostgresStore.open(address)
    assert await schemas(address) == ["ldp_aggregator"]
    await (await PostgresStore.open(address)).close()
    assert await schemas(address) == ["ldp_aggregator", f"ldp_aggregator_{version}"]
