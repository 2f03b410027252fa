"""Nothing runs unsupervised, from the queue on: what ends ends the server, what fails alone fails nobody else."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest
from cells import cell_campaign, submission
from queueing import submit
from raw_http import dial, document_of

from ldp_aggregator.server import upload_queue as ingest_module
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.process import end_connections, running, serve
from ldp_aggregator.server.sockets.listener import Listeners
from ldp_aggregator.server.upload_queue import Ingest
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import Outcome, StoreError

STALE_SECONDS = 30.0


async def readiness(server):
    answer = await server.ask("GET", server.operations + "/readyz")
    return answer.status, answer.json.get("code")


async def becomes(server, wanted):
    for _ in range(500):
        if (seen := await readiness(server)) == wanted:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"{seen} and not {wanted}")


def broken(kind=StoreError):
    return AsyncMock(side_effect=kind("disk full"))


@pytest.fixture
def heartbeat(monkeypatch):
    monkeypatch.setattr(ingest_module, "HEARTBEAT_SECONDS", 0.02)


async def test_readiness_follows_the_heartbeat_of_an_idle_server(heartbeat, server):
    assert await readiness(server) == (200, None)
    works, server.store.beat = server.store.beat, broken()
    await becomes(server, (503, "store-unavailable"))
    answer = await server.ask("GET", server.operations + "/readyz")
    assert b"disk full" not in answer.content
    assert answer.headers["Retry-After"]
    assert (await server.ask("GET", server.operations + "/healthz")).status == 200
    server.store.beat = works
    await becomes(server, (200, None))


async def test_asking_whether_a_server_is_ready_waits_for_no_commit(server):
    server.store.beat = asyncio.Event().wait  # It hangs.
    assert await asyncio.wait_for(readiness(server), 10) == (200, None)


async def test_a_store_that_commits_nothing_fails_every_upload_and_makes_a_server_unready_at_once(server, monkeypatch):
    monkeypatch.setattr(ingest_module, "LEAST_BEAT_SECONDS", 0.0)
    campaign = await server.publish()
    with monkeypatch.context() as patch:
        for name in ("count", "beat"):
            patch.setattr(server.store, name, broken())
        answers = await asyncio.gather(*(server.refused(campaign, [number]) for number in range(10)))
        assert set(answers) == {(503, "store-unavailable")}
        await becomes(server, (503, "store-unavailable"))
    assert "ldp_store_errors_total 0.0" not in await server.metrics()
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


async def test_a_store_that_has_not_written_for_long_is_not_well(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("ldp_aggregator.server.upload_queue.time.monotonic", lambda: now[0])
    ingest = Ingest(AsyncMock(), Metrics(), group_reports=1)
    assert not ingest.is_well, "nothing was written yet"
    await ingest.beat()
    now[0] += STALE_SECONDS - 1
    assert ingest.is_well
    now[0] += 1
    assert not ingest.is_well


class ScriptedStore:
    """Counts what it is given; a commit waits until ``gate`` is set and fails where ``failure`` says so."""

    def __init__(self, failure=lambda _: None):
        self.groups = []
        self.gate = asyncio.Event()
        self.failure = failure

    async def count(self, submissions):
        self.groups.append(len(submissions))
        await self.gate.wait()
        if error := self.failure(submissions):
            raise error
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


async def outcomes_where(is_poisoned, submissions):
    """The codes of uploads of which some cannot be counted, as after a bug or damage, and the sizes of the groups."""
    store = ScriptedStore(lambda group: ValueError("a part ends early") if any(map(is_poisoned, group)) else None)
    store.gate.set()
    async with ingesting(store) as ingest:
        answers = await asyncio.gather(*(submit(ingest, one) for one in submissions), return_exceptions=True)
    return [getattr(answer, "code", None) for answer in answers], store.groups


async def test_a_damaged_campaign_fails_no_upload_to_another_and_an_upload_that_cannot_be_counted_no_other(upload):
    damaged, sound = cell_campaign(), cell_campaign(title="sound")
    uploads = [submission(c, [n]) for n in range(5) for c in (damaged, sound)]
    codes, groups = await outcomes_where(lambda one: one.campaign.id == damaged.id, uploads)
    assert codes == ["internal-error", None] * 5
    assert groups[:2] == [10, 5], "first all, then campaign by campaign"
    uploads = [upload(number) for number in range(20)]
    codes, groups = await outcomes_where(lambda one: one.blocks == uploads[13].blocks, uploads)
    assert codes == [None] * 13 + ["internal-error"] + [None] * 6
    assert len(groups) <= 2 * 5 + 1, "found in halves, not one by one"


async def test_metrics_that_cannot_be_written_end_nothing(server, monkeypatch):
    campaign = await server.publish()
    monkeypatch.setattr(Metrics, "observe_commit", Mock(side_effect=OSError(28, "No space left on device")))
    for number in range(3):
        assert (await server.upload(campaign, [number]))[0] == 200
    assert (await server.store.state(campaign.id)).reports == 3


@pytest.fixture
def settings(tmp_path):
    return Settings(data=tmp_path, listen="127.0.0.1:0", listen_admin="0", listen_operations="0")


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("writer", "ldp_aggregator.server.upload_queue.Ingest.write"),
        ("housekeeping", "ldp_aggregator.server.housekeeping.close_due"),
        ("door", "ldp_aggregator.server.sockets.listener.TlsListener._accept"),
    ],
)
async def test_a_server_of_which_a_part_ends_ends_too(settings, monkeypatch, name, work):
    monkeypatch.setattr(work, broken(RuntimeError))
    if name == "door":
        async with running(settings, Listeners.bind(settings), tls=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)) as ended:
            assert await asyncio.wait_for(ended, 10) == name
    else:
        assert await asyncio.wait_for(serve(settings, Listeners.bind(settings), lambda: None), 30) == name


async def test_a_stop_waits_the_drain_time_in_all_and_not_for_each_listener():
    cancelled = []

    async def cleanup():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    endless = SimpleNamespace(cleanup=cleanup)
    await asyncio.wait_for(end_connections([endless, endless], [], 0.05), 10)
    assert len(cancelled) == 2


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


async def test_what_waits_during_a_commit_is_committed_together_up_to_a_greatest_size_and_one_upload_at_least(upload):
    store = ScriptedStore()
    big = submission(cell_campaign(), range(10))
    async with ingesting(store, group_reports=3) as ingest:
        first = asyncio.create_task(submit(ingest, upload(20)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        others = [asyncio.create_task(submit(ingest, one)) for one in (big, *map(upload, range(10, 17)))]
        await asyncio.sleep(0)
        store.gate.set()
        assert [outcome.counted for outcome in await asyncio.gather(first, *others)] == [1, 10] + [1] * 7
    assert store.groups == [1, 1, 3, 3, 1]


async def test_several_that_upload_wait_for_each_other_a_moment_and_who_uploads_alone_waits_for_nobody(
    upload, monkeypatch
):
    monkeypatch.setattr("ldp_aggregator.server.upload_queue.LONGEST_SECONDS", 3600.0)
    store = ScriptedStore()
    store.gate.set()
    async with asyncio.timeout(30), ingesting(store) as ingest:
        for number in range(3):
            await submit(ingest, upload(number))
        await asyncio.gather(*(submit(ingest, upload(number)) for number in (3, 4)))
        waiting = [asyncio.create_task(submit(ingest, upload(number % 20))) for number in range(31)]
        await asyncio.sleep(0.05)
        assert len(store.groups) == 4
        assert not any(task.done() for task in waiting)
        await asyncio.gather(submit(ingest, upload(19)), *waiting)
    assert len(store.groups) == 5, "32 are enough"


async def test_a_stop_does_not_wait_for_more_uploads(upload, monkeypatch):
    monkeypatch.setattr("ldp_aggregator.server.upload_queue.LONGEST_SECONDS", 3600.0)
    store = ScriptedStore()
    store.gate.set()
    async with asyncio.timeout(30), ingesting(store) as ingest:
        await asyncio.gather(*(submit(ingest, upload(number)) for number in (1, 2)))
        last = asyncio.create_task(submit(ingest, upload(3)))
        await asyncio.sleep(0.05)
        assert not last.done()
        ingest.drain()
        assert (await last).counted == 1


async def test_the_age_of_the_queue_is_that_of_the_upload_that_waits_longest(upload):
    store = ScriptedStore()
    async with ingesting(store, group_reports=1) as ingest:
        assert ingest.queue_age == 0
        waiting = [asyncio.create_task(submit(ingest, upload(number))) for number in range(2)]
        await asyncio.sleep(0.05)
        assert ingest.queue_age >= 0.04, "also of what is being committed"
        store.gate.set()
        await asyncio.gather(*waiting)
        assert ingest.queue_age == 0


async def test_who_waits_for_a_writer_that_ends_gets_an_answer(upload):
    store = ScriptedStore(lambda _: KeyboardInterrupt())
    store.gate.set()
    ingest = Ingest(store, Metrics(), group_reports=1)
    waiting = [asyncio.create_task(submit(ingest, upload(number))) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(KeyboardInterrupt):
        await ingest.write()
    answers = await asyncio.gather(*waiting, submit(ingest, upload(0)), return_exceptions=True)
    assert [answer.code for answer in answers] == ["stopping"] * 4
