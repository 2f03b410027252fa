"""One bit at a time of what a store and an archive have on disk: it is named, or everybody reads what was there."""

import asyncio
import contextlib
import random
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime, timezone

import asyncpg
import numpy as np
import pytest
from cells import cell_campaign, count, publish, submission
from postgres import empty

from ldp_aggregator.archive.locations import Reports, decode_file, encode_file
from ldp_aggregator.store import SqliteStore, StoredToken, StoreError, open_store
from ldp_aggregator.store.backup import combine_stores, copy_store, restore_store
from ldp_aggregator.store.contract import Act
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.checks import digest_of
from ldp_aggregator.store.sqlite import database, run_files
from ldp_aggregator.store.sqlite.database import FILE_NAME
from ldp_aggregator.trainers import FederatedState, encode_share

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
REPORTS = range(24)
SHORT, LONG = 25, 3_333
"""Flips of each database, and a fifth of those of the archive: more than 10,000 in the long run."""
FLIPS = [SHORT, pytest.param(LONG, marks=pytest.mark.long)]


async def fill(store, settle=None):
    """Something in every table; returns the campaign that counts."""
    campaign = await publish(store, max_reports=100)
    for start in range(0, len(REPORTS), 8):
        await count(store, campaign, REPORTS[start : start + 8])
        if settle is not None and start == 8:  # The last group stays recent.
            await settle(store)
    for number in range(3):
        await store.publish_model(campaign.id, f'{{"model": {number}}}' * 20)
    released = await store.tally(campaign.id)

    async def release(db):
        await campaigns.publish_tally(db, await campaigns.row(db, campaign.id), released)

    await store._write(release)
    shared = await publish(store, 8, title="shared", federated=True)
    for number, node in enumerate(("hospital", "clinic")):
        await store.add_token(StoredToken(node, "node", digest_of(node), NOW, campaigns=(shared.id,)))
        for seed in (number, number + 2):
            sums = np.random.default_rng(seed).integers(-50, 500, len(FederatedState(shared).totals))
            assert await store.put_share(shared.id, node, encode_share(shared, sums)) is None
    gone = await publish(store, title="gone")
    await store.close_campaign(gone.id)
    await store.seal_campaign(gone.id, at_once=True)
    await store.delete_campaign(gone.id)
    await store.put_directory("key", 3, b"a directory" * 9)
    await store.end_act(await store.begin_act(Act("somebody", "did something", campaign.id, "to it")), "done")
    await store.note_archive("file:///archive")
    return campaign


async def everything(store):
    """All that a reader gets; raises StoreError, or KeyError for what the list says is damaged."""
    states = await store.campaigns()
    if any(state.damaged for state in states):
        raise StoreError("named in the list")
    found = [states, await store.tokens(), await store.acts(), await store.origin(), await store.archived_at()]
    found += [await store.token(digest_of(node)) for node in ("hospital", "clinic")]
    found.append(await store.directory("key"))
    for state in states:
        found += [await store.document(state.id), await store.state(state.id), await store.terms(state.id)]
        found += [await store.model(state.id, version) for version in (None, 1, 2, 3)]
        found += [await store.shares(state.id), await store.share_digests(state.id)]
        tally = await store.tally(state.id)
        found += [tally.n.tolist(), [counts.tolist() for counts in tally.counts]]
    return repr(found)


async def told(opening):
    """What is read of a store in which its check finds nothing wrong; None where something is named."""
    try:
        store = await opening()
    except StoreError:
        return None
    try:
        return None if await store.check() else await everything(store)
    except StoreError:
        return None
    finally:
        await store.close()


async def told_of(folder):
    async def opening():
        return SqliteStore(folder / FILE_NAME, read_only=True)

    return await told(opening)


def used_bytes(path):
    """Where a database file has what somebody may read: all but free pages, and room within pages."""
    data = path.read_bytes()
    places = list(range(100))
    with closing(sqlite3.connect(path)) as db:
        size = db.execute("PRAGMA page_size").fetchone()[0]
        pages = db.execute("SELECT pageno, pagetype, unused FROM dbstat").fetchall()
    for number, kind, unused in pages:
        start = (number - 1) * size
        if kind == "overflow":
            places += range(start, start + size - unused)
            continue
        head = start + (100 if number == 1 else 0)
        cells, content = int.from_bytes(data[head + 3 : head + 5]), int.from_bytes(data[head + 5 : head + 7]) or 65536
        places += range(head, head + (8 if kind == "leaf" else 12) + 2 * cells)
        places += range(start + content, start + size)
    return places


def flipped(path, place, bit):
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


async def settle(store):
    await store.beat()
    while store.tidying:
        await asyncio.sleep(0.001)
        await store.beat()


@pytest.fixture
async def folder(tmp_path, monkeypatch):
    """A store with a run and recent ids; the campaign that counts is the first."""
    monkeypatch.setattr(run_files, "LEAST_RUN", 10)
    store = await open_store(tmp_path / "data", clock=lambda: NOW)
    await fill(store, settle)
    await store.close()
    with closing(sqlite3.connect(tmp_path / "data" / FILE_NAME)) as db:
        assert db.execute("SELECT count(*) FROM runs").fetchone()[0]
        assert db.execute("SELECT count(*) FROM recent_ids").fetchone()[0]
    return tmp_path / "data"


async def sent_again(folder, campaign):
    """How many reports of those that were counted a store counts once more, and a flush writes down."""
    try:
        store = SqliteStore(folder / FILE_NAME)
    except StoreError:
        return 0
    try:
        outcomes = [(await store.count([submission(campaign, [number])]))[0] for number in REPORTS]
        await settle(store)
    except StoreError:
        return 0
    finally:
        await store.close()
    return sum(outcome.counted for outcome in outcomes)


async def check_flip(tmp_path, folder, file, place, bit, expected, campaign):
    """One flip, with everything that might launder it."""
    shutil.rmtree(tmp_path / "work", ignore_errors=True)
    here = tmp_path / "work" / "data"
    shutil.copytree(folder, here)
    flipped(here / file, place, bit)
    where = f"bit {bit} of byte {place} of {file}"
    found = await told_of(here)
    assert found in (None, expected["data"]), f"{where} is silent"
    made = {"copy": copy_store, "new": lambda one, other: restore_store(one, other, keep_shares=True, now=NOW)}
    made["sum"] = lambda one, other: combine_stores(one, tmp_path / "empty", other, now=NOW)
    for name, make in made.items():
        try:
            make(here, tmp_path / "work" / name)
        except StoreError:
            continue
        assert plain(await told_of(tmp_path / "work" / name)) == expected[name], f"{where} is laundered by {name}"
    again = await sent_again(here, campaign)
    if again or found is None:
        assert await told_of(here) is None, f"{where} is laundered by counting, {again} counted again"
    assert not (again and found is not None), f"{where} counts {again} again"


def plain(told):
    """Without what is drawn anew for every store."""
    return told and re.sub(r"generation='\w+'", "", told)


@pytest.mark.parametrize("flips", FLIPS)
async def test_no_flip_in_an_embedded_store_is_silent_or_laundered(tmp_path, folder, flips):
    campaign = cell_campaign()
    await (await open_store(tmp_path / "empty")).close()
    expected = {"data": await told_of(folder)}
    copy_store(folder, tmp_path / "copy")
    restore_store(folder, tmp_path / "new", keep_shares=True, now=NOW)
    combine_stores(folder, tmp_path / "empty", tmp_path / "sum", now=NOW)
    expected |= {name: plain(await told_of(tmp_path / name)) for name in ("copy", "new", "sum")}
    assert None not in expected.values()
    used = [(FILE_NAME, place) for place in used_bytes(folder / FILE_NAME)]
    runs = sorted(database.folder_of(folder / FILE_NAME).iterdir())
    in_runs = [(str(run.relative_to(folder)), place) for run in runs for place in range(run.stat().st_size)]
    draw = random.Random(51)
    for places, number in ((used, flips), (in_runs, flips // 10)):
        for file, place in draw.sample(places, min(number, len(places))):
            await check_flip(tmp_path, folder, file, place, draw.randrange(8), expected, campaign)


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_store_opens_or_says_that_it_does_not_whichever_page_is_malformed(tmp_path, folder, read_only):
    file = folder / FILE_NAME
    with closing(sqlite3.connect(file)) as db:
        size = db.execute("PRAGMA page_size").fetchone()[0]
    sound, refused = file.read_bytes(), 0
    for start in range(0, len(sound), size):
        kind = start or 100  # The first page begins with the file's own header.
        file.write_bytes(sound[:kind] + b"\xff" + sound[kind + 1 :])
        for log in ("-wal", "-shm"):
            file.with_name(FILE_NAME + log).unlink(missing_ok=True)
        try:
            await SqliteStore(file, read_only=read_only).close()
        except StoreError:
            refused += 1
    assert refused >= (1 if read_only else 2)


async def test_no_value_of_another_type_is_silent(tmp_path, folder):
    """One bit makes a blob a text of the same bytes, and a text a blob."""
    expected = await told_of(folder)
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:
        columns = db.execute(
            "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"
        ).fetchall()
    changed = set()
    for table, column in columns:
        for before, after in (("blob", "TEXT"), ("text", "BLOB")):
            here = tmp_path / "work" / f"{table}-{column}-{after}"
            shutil.copytree(folder, here)
            with closing(sqlite3.connect(here / FILE_NAME)) as db, db:
                of_type = f"typeof({column}) = '{before}'"
                done = db.execute(f"UPDATE {table} SET {column} = CAST({column} AS {after}) WHERE {of_type}").rowcount
            if done:
                changed.add(f"{table}.{column}")
                assert await told_of(here) in (None, expected), f"{table}.{column} is silent"
    assert {"campaigns.document", "directories.document", "models.document", "parts.sums", "shares.share"} <= changed


FLIPPED = {
    "bigint": "{0} # (1::bigint << {1})",
    "bytea": "set_bit({0}, {2} % (8 * length({0})), 1 - get_bit({0}, {2} % (8 * length({0}))))",
    "timestamp with time zone": "{0} + (1::bigint << {1}) * interval '1 microsecond'",
    "text": "overlay({0} placing chr(ascii(substr({0}, 1 + {2} % length({0}), 1)) # (1 << {1} % 7))"
    " from 1 + {2} % length({0}) for 1)",
}
"""How each kind of value gets another bit, by a place in it."""


@pytest.mark.parametrize("flips", FLIPS)
async def test_no_flip_in_postgresql_is_silent_or_laundered(tmp_path, database, flips):
    store = await open_store(tmp_path, database)
    campaign = await fill(store)
    expected = await told(lambda: open_store(tmp_path, database, read_only=True))
    assert expected is not None
    connection = await asyncpg.connect(database, server_settings={"search_path": "ldp_aggregator"})
    columns = await connection.fetch(
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = "
        "'ldp_aggregator' AND table_name <> 'schema_version' ORDER BY 1, 2"
    )
    assert {kind for _, _, kind in columns} == set(FLIPPED)
    draw, refused, done = random.Random(51), 0, 0
    while done < flips:
        table, column, kind = draw.choice(columns)
        rows = await connection.fetch(f"SELECT ctid FROM {table} WHERE {column} IS NOT NULL ORDER BY ctid")
        if not rows:
            continue
        done += 1
        flip = FLIPPED[kind].format(column, draw.randrange(30), draw.randrange(1 << 20))
        before = await connection.fetch(f"SELECT * FROM {table}")
        try:
            await connection.execute(f"UPDATE {table} SET {column} = {flip} WHERE ctid = $1", draw.choice(rows)[0])
        except (
            asyncpg.IntegrityConstraintViolationError,
            asyncpg.GeneratedAlwaysError,
            asyncpg.DataError,
            asyncpg.ProgramLimitExceededError,
        ):
            refused += 1
            continue
        found = await told(lambda: open_store(tmp_path, database, read_only=True))
        assert found in (None, expected), f"{flip} of {table}.{column} is silent"
        if table in ("parts", "campaigns"):
            with contextlib.suppress(StoreError):
                await store._compact(campaign)
            assert await told(lambda: open_store(tmp_path, database, read_only=True)) in (found, None)
        await put_back(connection, table, before)
    assert refused < done / 2
    assert await told(lambda: open_store(tmp_path, database, read_only=True)) == expected
    await connection.close()
    await store.close()


async def put_back(connection, table, rows):
    """What a table had, whatever refers to it."""
    async with connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(f"DELETE FROM {table}")
        for row in rows:
            names, places = ", ".join(row.keys()), ", ".join(f"${place}" for place in range(1, len(row) + 1))
            statement = f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE VALUES ({places})"
            await connection.execute(statement, *row.values())


@pytest.mark.parametrize("flips", FLIPS)
def test_no_flip_in_a_file_of_the_archive_is_silent(flips):
    campaign, draw = cell_campaign(), random.Random(51)
    ids = np.frombuffer(draw.randbytes(16 * 50), dtype=np.uint8).reshape(-1, 16)
    data = encode_file({0: Reports(ids, np.arange(50, dtype=np.uint8).reshape(-1, 1))})
    [sound] = decode_file(data, campaign).values()
    named = 0
    for _ in range(5 * flips):
        rotten = bytearray(data)
        rotten[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        try:
            found = decode_file(bytes(rotten), campaign)
        except StoreError:
            named += 1
            continue
        assert list(found) == [0]
        assert (found[0].ids.tobytes(), found[0].payloads.tobytes()) == (sound.ids.tobytes(), sound.payloads.tobytes())
    assert named > 5 * flips / 2


@pytest.fixture(params=["sqlite", "postgres"])
async def rotting(request, tmp_path):
    """A store that no check of the end finds sound."""
    address = None
    if request.param == "postgres":
        address = request.getfixturevalue("postgres").address
        await empty(address)
    store = await open_store(tmp_path / "data", database=address, clock=lambda: NOW)
    yield store
    await store.close()


SERVED = [
    ("UPDATE campaigns SET closes = created", lambda store, name: store.terms(name)),
    ("UPDATE parts SET reports = reports + 1", lambda store, name: store.state(name)),
    ("UPDATE parts SET sums = sums || sums", lambda store, name: store.tally(name)),
    ("UPDATE models SET document = 'other'", lambda store, name: store.model(name)),
    ("UPDATE models SET version = version + 100 WHERE version = 1", lambda store, name: store.model(name)),
    ("UPDATE tokens SET scope = 'admin'", lambda store, name: store.token(digest_of("clinic"))),
    ("UPDATE acts SET actor = 'another'", lambda store, name: store.acts()),
    ("UPDATE directories SET version = 2", lambda store, name: store.directory("key")),
    ("UPDATE directories SET document = digest", lambda store, name: store.put_directory("key", 4, b"later")),
    ("UPDATE origin SET is_copy = 1", lambda store, name: store.publish_model(name, "another")),
]


@pytest.mark.parametrize(("statement", "read"), SERVED)
async def test_what_was_changed_is_named_to_who_asks_for_it_and_not_served(rotting, statement, read):
    campaign = await fill(rotting)
    await rotting._write(lambda db: db.execute(statement))
    with pytest.raises(StoreError, match="is damaged") as raised:
        await read(rotting, campaign.id)
    assert raised.value.code == "damaged-store"
    assert await rotting.check() != []


async def test_a_value_that_was_moved_to_another_row_is_named(rotting):
    campaign = await fill(rotting)
    swap = "UPDATE models SET digest = (SELECT digest FROM models WHERE version = 1), document = (SELECT document"
    await rotting._write(lambda db: db.execute(f"{swap} FROM models WHERE version = 1) WHERE version = 3"))
    with pytest.raises(StoreError, match="models 3: it does not agree with its check"):
        await rotting.model(campaign.id)


async def test_a_damaged_campaign_is_listed_as_such_and_the_others_as_they_are(rotting):
    campaign = await fill(rotting)
    await rotting._write(lambda db: db.execute("UPDATE parts SET vouched = 5"))
    first, second = await rotting.campaigns()
    assert (first.id, first.status(NOW), first.reports) == (campaign.id, "damaged", 0)
    assert (second.status(NOW), second.shares) == ("open", 2)
