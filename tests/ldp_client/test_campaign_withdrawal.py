"""A withdrawal means it: nothing leaves after it has returned, and what could not be stopped is told."""

import os
import threading
import time

import pytest
from forking import holds_in_a_child, needs_fork
from holding import Failing
from records import RECORD

from ldp_client import ConsentError, MemoryStorage, StorageError, TransportError, Withdrawal
from ldp_client.manual import ManualDelivery
from ldp_client.network.transport import Response
from ldp_client.testing import Answer


class Slow:
    """A transport that takes its time to connect for an upload; no state is to be had."""

    begins_body = True

    def __init__(self):
        self.connecting, self.connected = threading.Event(), threading.Event()
        self.left = []

    def send(self, request, timeout, cancellation=None):
        if request.method == "GET":
            raise TransportError("offline")
        self.connecting.set()
        self.connected.wait(10)
        cancellation.begin_body()
        self.left.append(request.body or b"")
        return Response(200, {}, b'{"rejected": []}')


def sending(device):
    thread = threading.Thread(target=device.run_once, args=(5,))
    thread.start()
    return thread


@pytest.mark.parametrize("from_another_process", [False, True])
def test_no_byte_leaves_after_a_withdrawal_that_came_while_connecting(join, tmp_path, from_another_process):
    transport = Slow()
    device, part = join(transport=transport, clock=time, storage=tmp_path / "device.db")
    receipt = part.contribute(RECORD, "yes")
    thread = sending(device)
    assert transport.connecting.wait(10)
    other = join(storage=tmp_path / "device.db", granted=False, clock=time)[1] if from_another_process else part
    assert other.withdraw(timeout=0.2) == Withdrawal(deleted=1, on_its_way=0, refunded=receipt.epsilon)
    transport.connected.set()
    thread.join(10)
    assert (transport.left, part.status().consent) == ([], False)
    other.grant()
    assert part.status().consent
    other.withdraw()
    assert (part.status().sent, part.status().queued, device.ledger().total_epsilon) == (0, 0, 0)


def test_an_answer_that_was_refunded_is_never_sent_beside_the_new_one(join):
    """The ids are the same: the old bytes, chosen before the withdrawal, must not pass as those agreed to anew.

    That forty answers are all the first one's is rarer than one in a million: .73^40 / 5, where the label is asked.
    """
    transport = Slow()
    device, part = join(transport=transport, answered=True)
    stale = ManualDelivery(device).next_task()
    for _ in range(40):
        part.withdraw()
        part.grant()
        part.contribute({"age": "old"}, "no")
        fresh = ManualDelivery(device).next_task()
        if fresh.body != stale.body:
            break
    assert fresh.reports[0].id == stale.reports[0].id
    with pytest.raises(TransportError, match="stopped"):
        ManualDelivery(device).request(stale)
    assert ManualDelivery(device).request(fresh).body == fresh.body


def test_before_anything_has_left_the_budget_comes_back_and_the_person_may_agree_again(join, server, campaign):
    device, part = join(max_total_epsilon=1)
    first = part.contribute(RECORD, "yes")
    assert part.withdraw() == Withdrawal(1, 0, first.epsilon)
    assert (device.ledger().receipts, part.status().contributed, device.ledger().total_epsilon) == ((), False, 0)
    with pytest.raises(ConsentError):
        part.contribute(RECORD, "yes")
    part.grant()
    part.contribute(RECORD, "yes")
    assert device.run_once(5)
    assert server.counted(campaign.id) == 1


def test_connections_that_were_never_made_do_not_count_as_a_try(join, campaign, clock):
    device, part = join(url="http://127.0.0.1:9", answered=True)
    assert not device.run_once(30)
    assert part.status().retries > 1
    assert part.withdraw().refunded == campaign.realised_epsilon


@pytest.mark.parametrize("answer", [Answer(503), Answer(413, "body-too-large"), Answer(drop=True)])
def test_after_an_upload_has_begun_the_budget_stays_spent_and_the_receipt_says_why(
    join, server, answer, perturbations, monkeypatch
):
    monkeypatch.setattr("ldp_client.delivery.queue.MOST_QUARANTINED_REPORTS", 0)
    server.answer_with = lambda _: answer
    device, part = join()
    receipt = part.contribute(RECORD, "yes")
    device.run_once(0.5)
    if answer.code:
        assert part.status().fate == "refused"
        return
    assert part.status().fate == "on-its-way"
    assert part.withdraw() == Withdrawal(deleted=1, on_its_way=1, refunded=0.0)
    assert part.status().fate == "deleted"
    part.grant()
    assert part.contribute({"age": "old"}, "no").questions == receipt.questions
    server.answer_with = lambda _: None
    sent = len(server.uploads)
    assert device.run_once(1e6)
    assert len(server.uploads) == sent
    assert len(perturbations) == 1


def test_what_has_begun_to_leave_is_waited_for_and_counted(join, server, campaign, held_answer):
    device, part = join(clock=time, answered=True)
    thread = sending(device)
    assert held_answer.arrived.wait(10)
    threading.Timer(0.1, held_answer.leave.set).start()
    assert part.withdraw(timeout=10) == Withdrawal(deleted=1, on_its_way=0, refunded=0.0)
    thread.join(10)
    assert (part.status().sent, part.status().fate, server.counted(campaign.id)) == (1, "arrived", 1)


def test_what_could_not_be_awaited_is_told_and_counted_when_it_arrives(join, server, held_answer, tmp_path):
    device, part = join(clock=time, storage=tmp_path / "device.db", answered=True)
    thread = sending(device)
    assert held_answer.arrived.wait(10)
    assert part.withdraw(timeout=0.1) == Withdrawal(deleted=1, on_its_way=1, refunded=0.0)
    assert (part.status().queued, part.status().fate) == (0, "deleted")
    held_answer.leave.set()
    thread.join(10)
    assert (part.status().sent, part.status().fate) == (1, "arrived")
    restarted = join(clock=time, storage=tmp_path / "device.db", granted=False)[0]
    assert restarted.run_once(5)
    assert len(server.uploads) == 1


def test_a_withdrawal_deletes_the_answer_from_the_file_and_survives_a_restart(join, server, tmp_path):
    path = tmp_path / "device.db"
    device, part = join(storage=path, answered=True)
    task = ManualDelivery(device).next_task()
    identifier = task.reports[0].id.hex().encode()
    assert identifier in path.read_bytes()
    part.withdraw()
    assert identifier not in path.read_bytes()
    restarted, again = join(storage=path, granted=False)
    assert restarted.run_once(5)
    assert (again.status().consent, again.status().queued) == (False, 0)
    with pytest.raises(ConsentError):
        again.contribute(RECORD, "yes")
    assert not server.uploads


@pytest.mark.parametrize("seconds", [1, 0])
def test_a_withdrawal_that_cannot_be_stored_holds_in_this_process_until_a_later_consent(join, server, clock, seconds):
    storage = Failing(StorageError("storage-read-only"))
    device, part = join(storage=storage, answered=True)
    storage.fails = "write"
    with pytest.raises(StorageError):
        part.withdraw()
    storage.fails = None
    assert not part.status().consent
    device.run_once(5)
    assert not server.uploads
    clock.advance(seconds)
    part.grant()
    assert part.status().consent


@needs_fork
@pytest.mark.parametrize("says_so", [True, False])
def test_that_an_upload_began_is_on_disk_before_its_first_byte(start, says_so):
    class Dying:
        begins_body = says_so

        def send(self, request, timeout, cancellation=None):
            if request.body is None:
                raise TransportError("unreachable")
            if says_so:
                cancellation.begin_body()
            os._exit(0)

    def dies():
        device, _ = start(transport=Dying(), granted=True, answered=True)
        device.run_once(5)

    assert holds_in_a_child(dies)
    assert start()[1].withdraw() == Withdrawal(deleted=1, on_its_way=1, refunded=0.0)


def test_an_upload_that_begins_at_a_later_try_counts_as_begun_from_then_on(join):
    fates = []

    class Flaky:
        begins_body = True

        def send(self, request, timeout, cancellation=None):
            fates.append(part.status().fate)
            if len(fates) < 3:
                raise TransportError("unreachable")
            cancellation.begin_body()
            fates.append(part.status().fate)
            raise TransportError("connection-lost")

    device, part = join(transport=Flaky(), answered=True)
    while len(fates) < 4:
        assert not device.run_once(60)
    del fates[4:]
    assert fates == ["waiting", "waiting", "waiting", "on-its-way"]
    assert part.withdraw().refunded == 0


def test_what_a_server_would_not_take_is_deleted_too_and_cannot_be_tried_again(join, server):
    server.answer_with = lambda _: Answer(400, "malformed-upload")
    device, part = join(answered=True)
    assert device.run_once(5)
    assert len(device.quarantined()) == 1
    part.withdraw()
    assert device.quarantined() == ()
    assert part.requeue() == 0


def test_who_said_no_is_not_asked_again_by_this_process_though_the_no_could_not_be_stored(join, monkeypatch):
    storage = MemoryStorage()
    _, part = join(storage=storage, granted=False)
    assert part.next_step().step == "ask"
    store = MemoryStorage.transaction

    def full(self, *, write):
        if write:
            raise StorageError("storage-full")
        return store(self, write=write)

    monkeypatch.setattr(MemoryStorage, "transaction", full)
    assert part.decide(agreed=False) == ("nothing", "storage-full")
    assert part.next_step() == ("nothing", "declined")
