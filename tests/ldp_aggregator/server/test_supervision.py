"""Nothing runs unsupervised, from the queue on: what ends ends the server, what fails alone fails nobody else."""

import asyncio
import ssl
from contextlib import asynccontextmanager

import pytest
from cells import cell_campaign, submission
from queueing import submit
from raw_http import dial, document_of

from ldp_aggregator.server import ingest as ingest_module
from ldp_aggregator.server.housekeeping import Metrics, close_once
from ldp_aggregator.server.ingest import STALE_SECONDS, Ingest
from ldp_aggregator.server.process import EndedError, end_connections, running, serve
from ldp_aggregator.server.sockets.listener import Listeners
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import Outcome, SqliteStore, StoreError
from ldp_aggregator.store.decisions import GRACE


async def readiness(server):
    answer = await server.ask("GET", server.operations + "/readyz")
    return answer.status, answer.json.get("code")


async def becomes(server, wanted):
    for _ in range(500):
        if (seen := await readiness(server)) == wanted:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"{seen} and not {wanted}")


def broken(reason="disk full"):
    async def fails(*_):
        raise StoreError(reason)

    return fails


@pytest.fixture
def quick_heartbeat(monkeypatch):
    monkeypatch.setattr(ingest_module, "HEARTBEAT_SECONDS", 0.02)


async def test_readiness_follows_the_heartbeat_of_an_idle_server(quick_heartbeat, server):
    assert await readiness(server) == (200, None)
    works, server.store.beat = server.store.beat, broken()
    await becomes(server, (503, "store-unavailable"))
    answer = await server.ask("GET", server.operations + "/readyz")
    assert b"disk full" not in answer.content
    assert answer.headers["Retry-After"]
    assert (await server.ask("GET", server.operations + "/healthz")).status == 200
    server.store.beat = works
    await becomes(server, (200, None))


async def test_a_store_that_commits_nothing_makes_a_server_unready_at_once(server, monkeypatch):
    monkeypatch.setattr(ingest_module, "LEAST_BEAT_SECONDS", 0.0)
    campaign = await server.publish()
    with monkeypatch.context() as patch:
        for name in ("count", "beat"):
            patch.setattr(server.store, name, broken())
        assert (await server.upload(campaign, [1]))[0] == 503
        await becomes(server, (503, "store-unavailable"))
    assert (await server.upload(campaign, [1]))[0] == 200
    assert await readiness(server) == (200, None)


async def test_one_damaged_campaign_leaves_the_server_ready_and_has_a_metric(server, monkeypatch):
    monkeypatch.setattr(ingest_module, "LEAST_BEAT_SECONDS", 0.0)
    damaged, sound = await server.publish(), await server.publish(title="sound")
    works = server.store.count

    async def count(submissions):
        if any(submission.campaign.id == damaged.id for submission in submissions):
            raise StoreError("a run is missing")
        return await works(submissions)

    server.store.count = count
    for number in range(5):
        assert (await server.upload(damaged, [number]))[0] == 503
        assert await readiness(server) == (200, None)
        assert (await server.upload(sound, [number]))[0] == 200
    failing = 'ldp_campaign_failing{campaign="%s"} 1.0'
    assert failing % damaged.id in await server.metrics()
    assert failing % sound.id not in await server.metrics()
    server.store.count = works
    assert (await server.upload(damaged, [9]))[0] == 200
    assert failing % damaged.id not in await server.metrics()


async def test_asking_whether_a_server_is_ready_waits_for_no_commit(server):
    async def hangs():
        await asyncio.Event().wait()

    server.store.beat = hangs
    assert await asyncio.wait_for(readiness(server), 10) == (200, None)


async def test_a_store_that_has_not_written_for_long_is_not_well(monkeypatch):
    class Written:
        async def beat(self):
            if failing:
                raise StoreError("no")

    now, failing = [100.0], []
    monkeypatch.setattr("ldp_aggregator.server.ingest.time.monotonic", lambda: now[0])
    ingest = Ingest(Written(), Metrics(), group_reports=1)
    assert not ingest.is_well, "nothing was written yet"
    await ingest.beat()
    now[0] += STALE_SECONDS - 1
    assert ingest.is_well
    now[0] += 1
    assert not ingest.is_well
    await ingest.beat()
    assert ingest.is_well
    failing.append(True)
    await ingest.beat()
    assert not ingest.is_well


class PickyStore:
    """Fails on some campaigns or uploads, as a bug or a damaged campaign does."""

    def __init__(self, poisoned):
        self.poisoned = poisoned
        self.groups = []
        self.counted = []

    async def count(self, submissions):
        self.groups.append(len(submissions))
        await asyncio.sleep(0)
        if any(self.poisoned(submission) for submission in submissions):
            raise ValueError("a part ends within question 0")
        self.counted += submissions
        return [ingest_module.Outcome(counted=1) for _ in submissions]


async def outcomes_of(store, submissions):
    ingest = Ingest(store, Metrics(), group_reports=1000)
    waiting = [asyncio.create_task(submit(ingest, submission)) for submission in submissions]
    await asyncio.sleep(0)
    ingest.drain()
    await ingest.write()
    return [getattr(answer, "code", None) for answer in await asyncio.gather(*waiting, return_exceptions=True)]


async def test_a_damaged_campaign_fails_no_upload_to_another():
    damaged, sound = cell_campaign(), cell_campaign(title="sound")
    uploads = [submission(c, [n]) for n in range(5) for c in (damaged, sound)]
    store = PickyStore(lambda submission: submission.campaign.id == damaged.id)
    assert await outcomes_of(store, uploads) == ["internal-error", None] * 5
    assert store.groups[:2] == [10, 5], "first all, then campaign by campaign"


async def test_an_upload_that_cannot_be_counted_fails_alone():
    campaign = cell_campaign()
    uploads = [submission(campaign, [n]) for n in range(20)]
    store = PickyStore(lambda submission: submission.blocks == uploads[13].blocks)
    assert await outcomes_of(store, uploads) == [None] * 13 + ["internal-error"] + [None] * 6
    assert len(store.groups) <= 2 * 5 + 1, "found in halves, not one by one"


async def test_metrics_that_cannot_be_written_end_nothing(server, monkeypatch):
    campaign = await server.publish()

    def full(*_arguments, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Metrics, "observe_commit", full)
    for number in range(3):
        assert (await server.upload(campaign, [number]))[0] == 200
    assert (await server.store.state(campaign.id)).reports == 3


@pytest.fixture
def settings(tmp_path):
    return Settings(data=tmp_path, listen="127.0.0.1:0", listen_admin="0", listen_operations="0")


async def ends(*_):
    raise RuntimeError("a bug")


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("writer", "ldp_aggregator.server.ingest.Ingest.write"),
        ("housekeeping", "ldp_aggregator.server.housekeeping.close_due"),
        ("door", "ldp_aggregator.server.sockets.listener.TlsListener._accept"),
    ],
)
async def test_a_server_of_which_a_part_ends_ends_too(settings, monkeypatch, name, work):
    monkeypatch.setattr(work, ends)
    if name == "door":
        async with running(settings, Listeners.bind(settings), tls=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)) as ended:
            assert await asyncio.wait_for(ended, 10) == name
    else:
        with pytest.raises(EndedError, match=f"the {name} ended by itself"):
            await asyncio.wait_for(serve(settings, Listeners.bind(settings), lambda: None), 30)


async def test_who_waits_for_a_writer_that_ends_gets_an_answer():
    class Ends:
        async def count(self, _submissions):
            raise KeyboardInterrupt

    campaign = cell_campaign()
    ingest = Ingest(Ends(), Metrics(), group_reports=1)
    uploads = [submission(campaign, [number]) for number in range(3)]
    waiting = [asyncio.create_task(submit(ingest, upload)) for upload in uploads]
    await asyncio.sleep(0)
    with pytest.raises(KeyboardInterrupt):
        await ingest.write()
    answers = await asyncio.gather(*waiting, submit(ingest, uploads[0]), return_exceptions=True)
    assert [answer.code for answer in answers] == ["stopping"] * 4


async def test_a_stop_that_is_asked_for_is_no_failure(settings):
    async with running(settings, Listeners.bind(settings)) as ended:
        pass
    assert ended.result() == "writer", "ended after the block, because it was told to"


async def test_a_campaign_that_cannot_be_closed_is_logged_and_the_next_one_is_closed(tmp_path, caplog, clock):
    store = SqliteStore(tmp_path / "store.sqlite3", clock=clock)
    campaigns = [cell_campaign(title=title, closes="2026-01-01T00:01:00Z") for title in ("first", "second")]
    for campaign in campaigns:
        await store.create_campaign(campaign)
    clock.step(61)
    works = store.end_campaign

    async def close(campaign_id):
        if campaign_id == campaigns[0].id:
            raise ValueError("secret text of a client")
        return await works(campaign_id)

    store.end_campaign = close
    metrics = Metrics()
    await close_once(store, metrics, clock)
    clock.step(GRACE.total_seconds())
    caplog.clear()
    await close_once(store, metrics, clock)
    assert (await store.state(campaigns[1].id)).life.closed is not None
    failures = [record for record in caplog.records if record.message == "campaign not closed"]
    assert [(record.campaign, record.reason) for record in failures] == [(campaigns[0].id, "ValueError")]
    await store.close()


async def test_a_stop_waits_the_drain_time_in_all_and_not_for_each_listener():
    class Endless:
        cancelled = 0

        async def cleanup(self):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                Endless.cancelled += 1
                raise

    await asyncio.wait_for(end_connections([Endless(), Endless()], [], 0.05), 10)
    assert Endless.cancelled == 2


async def test_a_client_that_does_not_read_its_answer_does_not_hold_up_a_stop(serving):
    async with serving(limits={"drain_seconds": 0.2}) as server:
        campaign = await server.publish(20_000)
        line = await dial(server.public)
        line.stop_reading()
        line.send(document_of(campaign) * 300)
        await asyncio.sleep(0.1)
    line.reader._transport.resume_reading()
    assert len(await line.rest()) < 300 * len(campaign.document), "it was cut off"
    line.writer.close()


class ScriptedStore:
    """Counts what it is given; a commit waits until ``gate`` is set and fails while ``failure`` is one."""

    def __init__(self):
        self.groups = []
        self.gate = asyncio.Event()
        self.failure = None

    async def count(self, submissions):
        self.groups.append(len(submissions))
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return [Outcome(counted=submission.reports) for submission in submissions]


@asynccontextmanager
async def ingesting(store, *, group_reports=1000):
    ingest = Ingest(store, Metrics(), group_reports=group_reports)
    task = asyncio.create_task(ingest.write())
    try:
        yield ingest
    finally:
        store.gate.set()
        ingest.drain()
        await task


@pytest.fixture
def upload():
    campaign = cell_campaign()
    return lambda number: submission(campaign, [number])


async def test_what_waits_during_a_commit_is_committed_together(upload):
    store = ScriptedStore()
    async with ingesting(store) as ingest:
        first = asyncio.create_task(submit(ingest, upload(0)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        others = [asyncio.create_task(submit(ingest, upload(number))) for number in range(1, 6)]
        await asyncio.sleep(0)
        store.gate.set()
        assert [outcome.counted for outcome in await asyncio.gather(first, *others)] == [1] * 6
    assert store.groups == [1, 5]


async def test_a_group_has_a_greatest_size_but_takes_one_upload_at_least(upload):
    store = ScriptedStore()
    store.gate.set()
    campaign = cell_campaign()
    big = submission(campaign, range(10))
    async with ingesting(store, group_reports=3) as ingest:
        answers = await asyncio.gather(
            *(submit(ingest, submission) for submission in [big, *map(upload, range(10, 17))])
        )
    assert [outcome.counted for outcome in answers] == [10] + [1] * 7
    assert store.groups == [1, 3, 3, 1]


@pytest.mark.parametrize(
    ("failure", "code"),
    [(StoreError("disk full"), "store-unavailable"), (RuntimeError("a bug"), "internal-error")],
)
async def test_a_failed_commit_fails_every_waiter_and_the_next_one_succeeds(upload, failure, code):
    store = ScriptedStore()
    async with ingesting(store) as ingest:
        waiters = [asyncio.create_task(submit(ingest, upload(number))) for number in range(3)]
        store.failure = failure
        store.gate.set()
        results = await asyncio.gather(*waiters, return_exceptions=True)
        assert [error.code for error in results] == [code] * 3
        assert all(error.headers["Retry-After"] for error in results)
        store.failure = None
        assert await submit(ingest, upload(9)) == Outcome(counted=1)


async def test_a_waiter_that_leaves_does_not_cancel_the_commit(upload):
    store = ScriptedStore()
    async with ingesting(store) as ingest:
        leaving, staying = (asyncio.create_task(submit(ingest, upload(number))) for number in range(2))
        await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.sleep(0)
        store.gate.set()
        assert await staying == Outcome(counted=1)
        with pytest.raises(asyncio.CancelledError):
            await leaving
    assert store.groups == [2]


async def test_a_draining_queue_commits_what_it_has_and_takes_nothing_new(upload):
    store = ScriptedStore()
    async with ingesting(store) as ingest:
        waiter = asyncio.create_task(submit(ingest, upload(1)))
        await asyncio.sleep(0)
        ingest.drain()
        assert ingest.is_draining
        store.gate.set()
        assert await waiter == Outcome(counted=1)
