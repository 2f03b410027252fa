"""Housekeeping: campaigns that need not be kept are deleted in time; room, files, backups and ends are observed."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import pytest
from cells import cell_campaign, publish, submission

from ldp_aggregator.archive.locations import open_place
from ldp_aggregator.archive.recount import recount
from ldp_aggregator.archive.writer import Archive
from ldp_aggregator.server import housekeeping
from ldp_aggregator.server.gateway import GatewayKeys
from ldp_aggregator.server.housekeeping import close_due, close_once, delete_once, keep, missing_keys, observed
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.service.archives import counts_of
from ldp_aggregator.service.rights import local_actor, recorded
from ldp_aggregator.service.server_health import ServerFacts
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.service.signing import gateway_of, public_key, sign_directory
from ldp_aggregator.store import SqliteStore, StoreError
from ldp_aggregator.store.clocks import Moment
from ldp_aggregator.store.contract import unknown_campaign
from ldp_protocols import LdpError

GRACE = timedelta(days=1)


KEPT = timedelta(days=30)
DAY = 86400


@pytest.fixture
async def store(tmp_path, clock):
    opened = SqliteStore(tmp_path / "store.sqlite3", clock=clock)
    yield opened
    await opened.close()


async def test_a_campaign_is_deleted_so_long_after_it_was_closed_as_is_told_and_an_open_one_never(store, clock):
    closed, opened = await publish(store), await publish(store, title="open")
    clock.step(365 * DAY)
    await store.close_campaign(closed.id)
    clock.step(31 * DAY - 1)
    await delete_once(store, Metrics(), KEPT)
    clock.step(1)
    housekeeping = asyncio.create_task(keep(store, Metrics()))  # It is not told how long.
    await asyncio.sleep(0.1)
    housekeeping.cancel()
    assert len(await store.campaigns()) == 2
    await delete_once(store, Metrics(), KEPT)
    assert [state.id for state in await store.campaigns()] == [opened.id]
    [entry] = await store.acts()
    assert (entry.act.actor, entry.act.act, entry.act.campaign) == ("server", "delete campaign", closed.id)
    assert (entry.act.detail, entry.outcome) == ("closed for 30 days", "done")
    clock.step(365 * DAY)
    await delete_once(store, Metrics(), KEPT)
    assert len(await store.campaigns()) == 1


def failing(works, failures):
    """A method that fails for some campaigns."""

    async def end(campaign_id):
        if campaign_id in failures:
            raise failures[campaign_id]
        return await works(campaign_id)

    return end


async def test_a_campaign_that_cannot_be_closed_or_deleted_is_logged_and_keeps_no_other(store, clock, caplog):
    titles = ("not closed", "not deleted", "deleted by another instance", "sound")
    campaigns = [await publish(store, title=title, closes="2026-01-01T00:01:00Z") for title in titles]
    unclosed, undeleted, gone, _ = [campaign.id for campaign in campaigns]
    store.end_campaign = failing(store.end_campaign, {unclosed: ValueError("secret text of a client")})
    failures = {undeleted: StoreError("secret text of a database"), gone: unknown_campaign(gone)}
    store.delete_campaign = failing(store.delete_campaign, failures)
    for seconds in (61, GRACE.total_seconds()):
        clock.step(seconds)
        await close_once(store, Metrics())
    clock.step(31 * DAY)
    await delete_once(store, Metrics(), KEPT)
    closed = {state.id: state.life.closed is not None for state in await store.campaigns()}
    assert closed == {unclosed: False, undeleted: True, gone: True}
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert {(record.message, record.campaign, record.reason) for record in errors} == {
        ("campaign not closed", unclosed, "ValueError"),
        ("campaign not deleted", undeleted, "StoreError store-unavailable"),
    }


async def test_a_clock_that_jumped_closes_nothing_and_tells_of_nothing_that_it_closed(store, clock):
    over, closed = await publish(store, title="over", closes=clock.after(60)), await publish(store, title="closed")
    await store.close_campaign(closed.id)
    for moved in (-DAY, 400 * DAY):
        jumped = Moment(clock() + timedelta(seconds=moved), clock(), settled=False)
        assert (await close_due(store, jumped)).ids == ()
    assert (await store.state(over.id)).over_since is None


@pytest.mark.parametrize("error", [OSError(5, "x"), ValueError("x"), StoreError("x")], ids=["disk", "value", "store"])
async def test_what_cannot_be_looked_at_ends_no_housekeeping_and_who_says_that_it_is_due_says_so_once(
    store, tmp_path, monkeypatch, error
):
    rounds = asyncio.Queue()
    failing = iter([error])

    async def look(*_):
        rounds.put_nowait(None)
        for failure in failing:
            raise failure
        return {}

    monkeypatch.setattr(housekeeping, "observed", look)
    due = asyncio.Event()
    keeping = asyncio.create_task(keep(store, Metrics(), settings=Settings(data=tmp_path), due=due))
    for number in (1, 2, 3):
        await asyncio.wait_for(rounds.get(), 20)
        await asyncio.sleep(0.03)
        assert (rounds.empty(), keeping.done()) == (True, False), number
        due.set()
    keeping.cancel()


async def test_room_files_backups_and_ends_are_observed(tmp_path, certificate):
    store = SqliteStore(tmp_path / "store.sqlite3")
    try:
        await store.create_campaign(cell_campaign())
        (tmp_path / "draft-1.run").write_bytes(bytes(7))
        (tmp_path / "2.run").write_bytes(bytes(5))
        archive = tmp_path / "archive"
        (archive / "A" / "pending").mkdir(parents=True)
        (archive / "A" / "pending" / "x.parquet").touch()
        tls = {"tls_certificate": certificate(10), "tls_key": tmp_path / "key.pem"}
        settings = Settings(data=tmp_path, archive=str(archive), **tls)
        assert ("ldp_last_backup_timestamp_seconds", "") not in await observed(store, settings)
        async with recorded(store, local_actor(), "back up store"):
            pass
        key, expires = public_key(bytes(32)), datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=9)
        async with recorded(store, local_actor(), "publish directory", None, f"{key} version 1"):
            await store.put_directory(key, 1, sign_directory(bytes(32), 1, expires, {}))
        values = await observed(store, settings)
        tls["tls_certificate"].write_text("no certificate")
        spoiled = await observed(store, settings)
    finally:
        await store.close()
    assert spoiled["ldp_certificate_expires_timestamp_seconds", ""] == 0, "it is told, and hides nothing else"
    assert spoiled.keys() == values.keys()
    assert values["ldp_free_bytes", ""] > 0
    assert values["ldp_store_bytes", "database"] > 1000
    assert (values["ldp_store_bytes", "drafts"], values["ldp_store_bytes", "runs"]) == (7, 5)
    assert (values["ldp_store_files", "drafts"], values["ldp_store_files", "runs"]) == (1, 1)
    assert values["ldp_archive_pending_files", ""] == 1
    assert values["ldp_damaged_campaigns", ""] == 0
    now = datetime.now(timezone.utc).timestamp()
    assert abs(values["ldp_last_backup_timestamp_seconds", ""] - now) < 60
    assert values["ldp_directory_expires_timestamp_seconds", key] == expires.timestamp()
    assert 9 * 86400 < values["ldp_certificate_expires_timestamp_seconds", ""] - now < 11 * 86400


async def test_each_open_campaign_is_named_whose_gateways_key_this_process_does_not_have(store, caplog):
    here, elsewhere = (bytes([number]) * 32 for number in (1, 2))
    found = await publish(store, title="found", gateway=gateway_of(here).to_json())
    lost = await publish(store, title="lost", gateway=gateway_of(elsewhere).to_json())
    closed = await publish(store, title="closed", gateway=gateway_of(elsewhere).to_json())
    await publish(store, title="plain")
    await store.close_campaign(closed.id)
    kept = {}
    for _ in range(2):
        missing = await missing_keys(store, await store.campaigns(), GatewayKeys((here,)), kept)
        assert missing == {lost.id}
        store.document = None  # It never changes, and is read once.
    assert kept[found.id] == gateway_of(here)
    missing = await missing_keys(store, await store.campaigns(), GatewayKeys(), kept)
    assert missing == {found.id, lost.id}
    metrics = Metrics()
    for named in ({lost.id}, missing, missing, {lost.id}):
        metrics.gauges.note_missing_keys(named)
    logged = [record.campaign for record in caplog.records if record.message == "a gateway's key is missing"]
    assert logged == [lost.id, found.id], "each once"
    told = metrics.render().decode()
    assert f'ldp_gateway_key_missing{{campaign="{lost.id}"}} 1.0' in told
    assert found.id not in told


async def test_of_several_keys_one_is_missed_until_thirty_days_after_the_next_ones_time(store, clock):
    """Then nothing is sealed to it that still comes, and it may be destroyed."""
    old, new = (bytes([number]) * 32 for number in (1, 2))
    start = (clock() + timedelta(days=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    gateway = {"key": f"{gateway_of(old).key} {start} {gateway_of(new).key}"}
    campaign = await publish(store, title="two keys", gateway=gateway)

    async def missing(*seeds):
        return await missing_keys(store, await store.campaigns(), GatewayKeys(seeds), {})

    for days, needs_old in ((0, True), (34.9, True), (0.2, False)):
        clock.step(days * DAY)
        assert await missing(old, new) == set()
        assert await missing(new) == ({campaign.id} if needs_old else set())
        assert await missing(old) == {campaign.id}


async def test_each_open_campaign_is_named_that_no_directory_of_the_publishers_names(store, tmp_path, clock):
    signed, unsigned, closed = [await publish(store, title=title) for title in "abc"]
    await store.close_campaign(closed.id)
    keys = [public_key(bytes([number]) * 32) for number in (1, 2)]
    settings = Settings(data=tmp_path, publishers=keys)

    async def named():
        return {label for name, label in await observed(store, settings) if name == "ldp_campaign_unsigned"}

    assert await named() == {signed.id, unsigned.id}
    expires = clock() + timedelta(days=9)
    await store.put_directory(keys[1], 1, sign_directory(bytes([2]) * 32, 1, expires, {signed.id: None}))
    assert await named() == {unsigned.id}
    metrics = Metrics()
    metrics.gauges.observed = await observed(store, settings)
    assert ServerFacts.of(metrics.readings().told, 0.0).unsigned == [unsigned.id]
    clock.step(9 * DAY + 1)
    assert await named() == {signed.id, unsigned.id}, "a directory that ended names nobody"
    settings = Settings(data=tmp_path)
    assert await named() == set()


async def test_a_campaign_that_cannot_be_read_hides_no_other_whose_key_is_missing(store):
    gone, lost = [await publish(store, title=title, gateway=gateway_of(bytes(32)).to_json()) for title in "ab"]
    states, read = await store.campaigns(), store.document

    async def document(campaign_id):
        if campaign_id == gone.id:
            raise unknown_campaign(campaign_id)
        return await read(campaign_id)

    store.document = document
    assert await missing_keys(store, states, GatewayKeys(), {}) == {lost.id}


async def test_only_a_backup_and_a_signature_that_succeeded_are_told_and_of_several_the_last(store, tmp_path, clock):
    """An alarm about a backup that is missing must not be put out by one that failed."""
    settings, keys = Settings(data=tmp_path), [public_key(bytes([number]) * 32) for number in (1, 2)]

    async def ends(act, detail="", *, failed=False):
        with suppress(StoreError):
            async with recorded(store, local_actor(), act, None, detail):
                if failed:
                    raise StoreError("no space is left")

    async def told():
        return await observed(store, settings)

    await ends("back up store", failed=True)
    assert ("ldp_last_backup_timestamp_seconds", "") not in await told()
    await ends("back up store")
    first = clock.now.timestamp()
    clock.step(3600)
    await ends("back up store", failed=True)
    await ends("delete campaign")
    assert (await told())["ldp_last_backup_timestamp_seconds", ""] == first == 1767225600.0
    clock.step(3600)
    await ends("back up store")
    assert (await told())["ldp_last_backup_timestamp_seconds", ""] == first + 7200

    ends_of = dict(zip(keys, (clock.now + timedelta(days=9), clock.now + timedelta(days=2)), strict=True))
    for number, (key, expires) in enumerate(ends_of.items(), 1):
        document = sign_directory(bytes([number]) * 32, 1, expires, {})
        await ends("publish directory", f"{key} version 1", failed=True)
        assert ("ldp_directory_expires_timestamp_seconds", key) not in await told()
        await store.put_directory(key, 1, document)
        await ends("publish directory", f"{key} version 1")
    found = await told()
    for key, expires in ends_of.items():
        assert found["ldp_directory_expires_timestamp_seconds", key] == expires.timestamp()


async def test_uploads_of_both_ways_are_archived_before_they_are_answered(serving, tmp_path):
    folder = str(tmp_path / "archive")
    async with serving(archive=folder) as server:
        campaign = await server.publish()

        async def post(number, **headers):
            assert (await server.upload(campaign, [number], **headers))[0] == 200

        await asyncio.gather(*(post(number) for number in range(30)))
        await asyncio.gather(*(post(number, Origin="https://app.example.org") for number in range(20, 50)))
        await post(3)
        found = recount(folder, campaign.id)
        assert found.tally == await server.store.tally(campaign.id)
        assert (found.reports, found.conflicts) == (50, ())


async def test_what_a_server_left_pending_is_counted_when_the_next_one_starts(serving, tmp_path):
    folder, store = str(tmp_path / "archive"), SqliteStore(tmp_path / "kept.sqlite3")
    campaign = await publish(store)
    Archive(open_place(folder)).write([submission(campaign, range(7))])
    async with serving(store=store, archive=folder):
        assert (await store.state(campaign.id)).reports == 7
        assert recount(folder, campaign.id).tally == await store.tally(campaign.id)
    await store.close()


async def test_an_archive_that_nothing_here_opens_stops_the_start_and_says_why(server, tmp_path, monkeypatch):
    settings = Settings(data=tmp_path, archive="nosuch://bucket/reports")
    with pytest.raises(Exception, match="nosuch"):
        await counts_of(server.store, settings)
    monkeypatch.setitem(__import__("sys").modules, "ldp_aggregator.archive.writer", None)
    with pytest.raises(LdpError, match=r"pip install 'ldp-bayes\[archive\]'"):
        await counts_of(server.store, Settings(data=tmp_path, archive=str(tmp_path)))
