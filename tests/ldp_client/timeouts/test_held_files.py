"""Every call that can block takes ``timeout``, and keeps it: here against a file that another process really holds,
and a thread that does.

What is waited for never comes before a call has returned: that is the check, and no test measures how long it took.
"""

import inspect
import threading
import time

import pytest
from holding import PATIENCE, code_of, held, returned
from records import RECORD

from ldp_client import (
    Classifier,
    ClientError,
    Device,
    DeviceCampaign,
    MemoryStorage,
    NotFetchedError,
    StorageError,
    TransportError,
    Withdrawal,
)
from ldp_client.delivery.machine import Wait
from ldp_client.network.transport import Response
from ldp_client.storage.sqlite import SqliteStorage

SHORT = 0.05
NEVER = 600.0
ANSWER = Response(200, {}, b'{"rejected": []}')

IMMEDIATE = {
    DeviceCampaign: {"load"},
    Device: {"default_path", "scope", "campaign", "start", "give_up"},
    Classifier: {"from_json", "predict", "predict_proba", "joint_log_likelihood", "scores"},
}
"""Public methods that wait for nobody: they compute, or tell a thread."""


@pytest.mark.parametrize("kind", IMMEDIATE)
def test_every_public_method_takes_a_timeout_or_waits_for_nobody(kind):
    methods = {
        name
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_") and callable(member) and "timeout" not in inspect.signature(member).parameters
    }
    assert methods == IMMEDIATE[kind]


BUSY = "storage-busy"
DEVICE_CALLS = {
    "switch": (lambda device, _: device.switch(False, timeout=SHORT), BUSY),
    "ledger": (lambda device, _: device.ledger(timeout=SHORT), BUSY),
    "sent": (lambda device, _: device.sent(timeout=SHORT), BUSY),
    "quarantined": (lambda device, _: device.quarantined(timeout=SHORT), BUSY),
    "export": (lambda device, _: device.export(timeout=SHORT), BUSY),
    "erase": (lambda device, _: device.erase(timeout=SHORT), BUSY),
    "adopt": (lambda device, _: device.adopt(timeout=SHORT), BUSY),
    "scopes_waiting": (lambda device, _: device.scopes_waiting(timeout=SHORT), BUSY),
    "request": (lambda device, task: device.request(task, timeout=SHORT), BUSY),
    "next_task": (lambda device, _: isinstance(device.next_task(timeout=SHORT), Wait), True),
    "on_result": (
        lambda device, task: device.on_result(task, Response(200, {}, b'{"rejected":[]}'), timeout=SHORT),
        None,
    ),
    "run_once": (lambda device, _: device.run_once(SHORT), False),
    "status": (lambda device, _: device.status(timeout=SHORT).problem, BUSY),
    "close": (lambda device, _: device.close(timeout=SHORT), None),
}
CAMPAIGN_CALLS = {
    "next_step": (lambda part, seconds: part.next_step(timeout=seconds), BUSY),
    "refusal": (lambda part, seconds: part.refusal(timeout=seconds), BUSY),
    "grant": (lambda part, seconds: part.grant(timeout=seconds), BUSY),
    "contribute": (lambda part, seconds: part.contribute(RECORD, "yes", timeout=seconds), BUSY),
    "receipt": (lambda part, seconds: part.receipt(timeout=seconds), BUSY),
    "withdraw": (lambda part, seconds: part.withdraw(timeout=seconds), BUSY),
    "requeue": (lambda part, seconds: part.requeue(timeout=seconds), BUSY),
    "status": (lambda part, seconds: part.status(timeout=seconds).problem, BUSY),
    # The ledger's file is none of theirs.
    "fetch": (lambda part, seconds: part.fetch(timeout=seconds).id == part.id, True),
    "problems": (lambda part, seconds: part.problems(RECORD, timeout=seconds), ()),
    "classifier": (lambda part, seconds: part.classifier(timeout=seconds).predict(RECORD), "yes"),
}


def test_the_tables_name_every_method_that_takes_a_timeout():
    for kind, table in ((Device, DEVICE_CALLS), (DeviceCampaign, CAMPAIGN_CALLS)):
        methods = {name for name, member in inspect.getmembers(kind) if not name.startswith("_") and callable(member)}
        assert methods == set(table) | IMMEDIATE[kind]


@pytest.mark.parametrize("name", DEVICE_CALLS)
def test_no_call_of_a_device_waits_longer_than_its_timeout_for_a_held_file(name, join, server, tmp_path):
    device, _ = join(storage=tmp_path / "device.db", clock=time, answered=True)
    task = device.next_task()
    before = (tmp_path / "device.db").read_bytes()
    call, expected = DEVICE_CALLS[name]
    with held(tmp_path / "device.db"):
        end = returned(lambda: call(device, task))
    assert (end.code if isinstance(end, StorageError) else end) == expected
    assert (tmp_path / "device.db").read_bytes() == before
    assert device.enabled
    assert not server.uploads


@pytest.mark.parametrize("name", CAMPAIGN_CALLS)
def test_no_call_of_a_campaign_waits_longer_than_its_timeout_for_a_held_file(
    name, join, server, campaign, model, tmp_path
):
    server.publish_model(campaign.id, model)
    _, part = join(storage=tmp_path / "device.db", clock=time)
    before = (tmp_path / "device.db").read_bytes()
    call, expected = CAMPAIGN_CALLS[name]
    with held(tmp_path / "device.db"):
        end = returned(lambda: call(part, SHORT))
    assert (end.code if isinstance(end, StorageError) else end) == expected
    assert (tmp_path / "device.db").read_bytes() == before


@pytest.mark.parametrize("name", CAMPAIGN_CALLS)
def test_no_call_waits_longer_than_its_timeout_for_a_cache_that_is_held(name, join, server, campaign, model, tmp_path):
    """What can be fetched again is fetched, in the half that is left; what must not fetch says so."""
    server.publish_model(campaign.id, model)
    join(storage=tmp_path / "device.db", clock=time)
    _, part = join(storage=tmp_path / "device.db", clock=time, granted=False)
    call, expected = CAMPAIGN_CALLS[name]
    with held(tmp_path / "device.db.cache"):
        end = returned(lambda: call(part, 4 * SHORT))
    if name in {"contribute", "problems"}:
        assert isinstance(end, NotFetchedError)
        assert part.receipt() is None
    elif isinstance(end, TransportError):
        # The other half was not enough for this machine.
        assert end.code == "timeout"
    else:
        assert not isinstance(end, ClientError)
        assert expected in {BUSY, end}


def test_the_last_step_of_a_contribution_does_not_wait_longer_for_whoever_still_reads(join, server, tmp_path):
    """A reader lets a writer begin and not end."""
    device, part = join(storage=tmp_path / "device.db", clock=time)
    with held(tmp_path / "device.db", "BEGIN"):
        assert code_of(lambda: part.contribute(RECORD, "yes", timeout=SHORT)) == BUSY
        status = part.status(timeout=SHORT)
        assert (status.contributed, status.queued, status.total_epsilon) == (False, 0, 0)
    assert part.refusal() is None
    part.contribute({"age": "old"}, "no")
    assert device.run_once(20)
    assert len(server.uploads) == 1


def test_a_withdrawal_that_cannot_see_whether_an_upload_arrived_says_that_it_may_be_on_its_way(join):
    class Forgetful(MemoryStorage):
        """Cannot be read any more once an upload has begun."""

        fails = False

        def transaction(self, *, write):
            if self.fails and not write:
                raise StorageError(BUSY)
            return super().transaction(write=write)

    storage = Forgetful()
    device, part = join(storage=storage, answered=True)
    device.request(device.next_task())
    storage.fails = True
    assert part.withdraw(timeout=SHORT) == Withdrawal(deleted=1, on_its_way=1, refunded=0.0)


@pytest.mark.parametrize("of", [lambda _: MemoryStorage(), lambda folder: SqliteStorage(folder / "device.db")])
def test_no_call_waits_longer_than_its_timeout_for_another_thread(of, join, tmp_path):
    storage = of(tmp_path)
    _, part = join(storage=storage, clock=time)
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with storage.transaction(write=True):
            inside.set()
            leave.wait(PATIENCE)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert inside.wait(PATIENCE)
        assert code_of(lambda: part.contribute(RECORD, "yes", timeout=SHORT)) == BUSY
        assert code_of(lambda: part.contribute(RECORD, "yes", timeout=0)) == BUSY
        assert holder.is_alive()
    finally:
        leave.set()
        holder.join()
    assert part.receipt() is None


def test_who_waits_for_a_held_file_does_not_keep_the_process_waiting(join, tmp_path):
    """Other devices go on, and a fork would: the wait for another process is outside the process's own turn."""
    _, stuck = join(storage=tmp_path / "held.db", clock=time)
    _, part = join(storage=tmp_path / "free.db", clock=time)
    with held(tmp_path / "held.db") as holder:
        waiting = threading.Thread(target=stuck.contribute, args=(RECORD, "yes"), kwargs={"timeout": NEVER})
        waiting.start()
        assert returned(lambda: part.contribute(RECORD, "yes")).campaign_id == part.id
        assert waiting.is_alive()
        holder.communicate("")
        waiting.join(PATIENCE)
        assert stuck.receipt() is not None
        holder.poll = lambda: None  # it has let go, as it was told
