"""Every call that can block takes ``timeout``, and keeps it, whatever it does one after the other: here against a file
that another process really holds, a thread that does, and a server that is silent.

What is waited for never comes before a call has returned: that is the check, and no test measures how long it took.
"""

import inspect
import threading
import time

import pytest
from holding import PATIENCE, Failing, code_of, held, returned, silent_server
from records import RECORD

import ldp_client.storage.contract
import ldp_client.storage.sqlite
from ldp_client import (
    Classifier,
    Device,
    DeviceCampaign,
    MemoryStorage,
    RefusedError,
    StorageError,
    TransportError,
    Withdrawal,
)
from ldp_client.delivery.schedule import Wait
from ldp_client.manual import ManualDelivery
from ldp_client.network.transport import Response
from ldp_client.storage.sqlite import SqliteStorage
from ldp_protocols import LdpError

SHORT = 0.02
PATIENT = 20.0
NEVER = 600.0
"""Seconds, more than any test takes; what waits so long has not kept its timeout."""

ANSWER = Response(200, {}, b'{"rejected": []}')
IMMEDIATE = {
    DeviceCampaign: {"load"},
    Device: {"default_path", "scope", "campaign", "start"},
    ManualDelivery: set(),
    Classifier: {"from_json", "predict", "predict_proba", "joint_log_likelihood", "scores"},
}
"""Public methods that wait for nobody: they compute, or tell a thread."""

BUSY = "storage-busy"
ASKED = ("ledger", "sent", "quarantined", "export", "erase", "adopt")
DECIDED = ("refusal", "grant", "withdraw", "requeue")
DEVICE_CALLS = {
    **{name: (lambda device, _, name=name: getattr(device, name)(timeout=SHORT), BUSY) for name in ASKED},
    "switch": (lambda device, _: device.switch(False, timeout=SHORT), BUSY),
    "run_once": (lambda device, _: device.run_once(SHORT), False),
    "status": (lambda device, _: device.status(timeout=SHORT).problem, BUSY),
    "close": (lambda device, _: device.close(timeout=SHORT), None),
}
MANUAL_CALLS = {
    "request": (lambda manual, task: manual.request(task, timeout=SHORT), BUSY),
    "next_task": (lambda manual, _: isinstance(manual.next_task(timeout=SHORT), Wait), True),
    "on_result": (lambda manual, task: manual.on_result(task, ANSWER, timeout=SHORT), None),
    "scopes_waiting": (lambda manual, _: manual.scopes_waiting(timeout=SHORT), BUSY),
}
CAMPAIGN_CALLS = {
    **{name: (lambda part, seconds, name=name: getattr(part, name)(timeout=seconds), BUSY) for name in DECIDED},
    "next_step": (lambda part, seconds: part.next_step(timeout=seconds).reason, BUSY),
    "decide": (lambda part, seconds: part.decide(agreed=True, timeout=seconds).reason, BUSY),
    "contribute": (lambda part, seconds: part.contribute(RECORD, "yes", timeout=seconds), BUSY),
    "status": (lambda part, seconds: part.status(timeout=seconds).problem, BUSY),
    "obtain_token": (lambda part, seconds: part.obtain_token(bytes, timeout=seconds), BUSY),
    # The ledger's file is none of theirs.
    "fetch": (lambda part, seconds: part.fetch(timeout=seconds).id == part.id, True),
    "preview": (lambda part, seconds: part.preview(RECORD, timeout=seconds).problems, ()),
    "explained": (lambda part, seconds: part.explained(timeout=seconds).policy.key, "policy"),
    "classifier": (lambda part, seconds: part.classifier(timeout=seconds).predict(RECORD), "yes"),
}
CALLS = {DeviceCampaign: CAMPAIGN_CALLS, Device: DEVICE_CALLS, ManualDelivery: MANUAL_CALLS, Classifier: {"fetch"}}


@pytest.fixture(autouse=True)
def no_timeout_but_the_calls(monkeypatch):
    """The limit of a call that is given none would hide one that is not kept."""
    for module in (ldp_client.storage.sqlite, ldp_client.storage.contract):
        monkeypatch.setattr(module, "STORAGE_WAIT", NEVER)


@pytest.mark.parametrize("name", [*DEVICE_CALLS, *MANUAL_CALLS])
def test_no_call_of_a_device_waits_longer_than_its_timeout_for_a_held_file(name, join, server, tmp_path):
    device, _ = join(storage=tmp_path / "device.db", clock=time, answered=True)
    manual = ManualDelivery(device)
    task = manual.next_task()
    before = (tmp_path / "device.db").read_bytes()
    (call, expected), of = (DEVICE_CALLS[name], device) if name in DEVICE_CALLS else (MANUAL_CALLS[name], manual)
    with held(tmp_path / "device.db"):
        end = returned(lambda: call(of, task))
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
    seconds = PATIENT if name in ("fetch", "classifier") else SHORT  # These ask the server, and get its answer.
    with held(tmp_path / "device.db"):
        end = returned(lambda: call(part, seconds))
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
        end = returned(lambda: call(part, 5 * SHORT))
    if name in {"contribute", "explained", "obtain_token", "preview"}:
        assert isinstance(end, RefusedError)
        assert end.code == "not-fetched"
        assert not part.status().contributed
    elif isinstance(end, TransportError):
        # The other half was not enough for this machine.
        assert end.code == "timeout"
    else:
        assert not isinstance(end, LdpError)
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
    storage = Failing(StorageError(BUSY))
    device, part = join(storage=storage, answered=True)
    ManualDelivery(device).request(ManualDelivery(device).next_task())
    storage.fails = "read"
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
    assert not part.status().contributed


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
        assert stuck.status().contributed
        holder.poll = lambda: None  # it has let go, as it was told


def test_no_fetch_waits_longer_than_its_timeout_for_a_silent_server(join, campaign, tmp_path):
    with silent_server() as url:
        device, part = join(storage=tmp_path / "device.db", clock=time, url=url, granted=False)
        for call in (part.fetch, part.refusal, part.grant, part.classifier):
            assert code_of(lambda call=call: call(timeout=SHORT)) == "timeout"
        assert code_of(lambda: Classifier.fetch(url, campaign.id, timeout=SHORT)) == "timeout"
        assert not list(tmp_path.iterdir())
        part.load(campaign.document)
        part.grant()
        part.contribute(RECORD, "yes")
        assert returned(lambda: device.run_once(SHORT)) is False
        assert part.status().queued == 1


def test_a_try_whose_seconds_were_over_before_it_began_is_no_try_that_failed(join, server, clock):
    """Ten that failed let a report expire; a slow disk and a short timeout must not make them up."""

    def slow(_):
        clock.advance(10)
        return {}

    device, part = join(headers=slow, answered=True)
    assert not device.run_once(5)
    assert (part.status().retries, part.status().fate, server.uploads) == (0, "waiting", [])
    assert device.run_once(30)
    assert len(server.uploads) == 1


@pytest.mark.parametrize("kind", CALLS)
def test_every_public_method_takes_a_timeout_and_stands_in_a_table_or_waits_for_nobody(kind):
    members = inspect.getmembers(kind, callable)
    methods = {name: inspect.signature(member).parameters for name, member in members if not name.startswith("_")}
    assert {name for name, parameters in methods.items() if "timeout" not in parameters} == IMMEDIATE[kind]
    assert methods.keys() == {*CALLS[kind], *IMMEDIATE[kind]}
