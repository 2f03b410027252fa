"""The delivery of a device's queues: the same bytes, at the right time, by one sender, until they expire."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from holding import Failing
from records import RECORD

import ldp_client.delivery.queue
from ldp_client import Device, Event, MemoryStorage, Policy, StorageError, TransportError
from ldp_client.delivery import sender
from ldp_client.delivery.schedule import Idle, Place, Wait
from ldp_client.manual import ManualDelivery
from ldp_client.network.stdlib import HttpTransport
from ldp_client.network.transport import Cancellation, Response
from ldp_client.testing import Answer, FakeClock
from ldp_protocols import LdpError


def test_a_retry_sends_the_same_bytes(join, server, campaign):
    answers = [Answer(503), Answer(drop=True), Answer(drop=True, commit=True), Answer(500), Answer(429, "overloaded")]
    server.answer_with = lambda number: answers[number] if number < len(answers) else None
    device, part = join(answered=True)
    assert device.run_once(1e6)
    assert len(server.uploads) == len(answers) + 1
    assert len(set(server.uploads)) == 1
    assert server.counted(campaign.id) == 1
    assert part.status().retries == len(answers)


def test_an_address_that_a_stricter_policy_refuses_stops_that_campaign_alone(join, server, campaign, all_campaign):
    storage, clock, told = MemoryStorage(), FakeClock(), []
    plain = {"url": "http://aggregator.example", "limits": {"allow_plain_http": True}}
    loose, insecure = join(storage=storage, clock=clock, answered=True, **plain)
    join(of=all_campaign, device=loose, answered=True)

    stricter = Device(storage, clock=clock, max_total_epsilon=8, on_event=told.append)
    assert not stricter.run_once(60)
    assert server.counted(all_campaign.id) == 4
    assert insecure.status().queued == 1
    assert {event.code for event in told if event.campaign_id == campaign.id} == {"bad-url"}

    clock.advance(stricter.policy.report_age)
    assert stricter.run_once(1e7)
    assert insecure.status().fate == "expired"
    assert server.counted(campaign.id) == 0


def test_beyond_its_quota_the_quarantine_drops_and_counts(join, server, all_campaign, monkeypatch):
    monkeypatch.setattr("ldp_client.delivery.queue.MOST_QUARANTINED_REPORTS", 1)
    server.answer_with = lambda _: Answer(400, "malformed-upload")
    device, part = join(of=all_campaign, answered=True)
    assert device.run_once(1e6)
    assert (part.status().quarantined, part.status().dropped) == ({"malformed-upload": 1}, {"malformed-upload": 3})
    assert len(device.quarantined()) == 1
    server.answer_with = lambda _: Answer(422, "wrong-width")
    part.requeue()
    assert device.run_once(1e6)
    assert part.status().quarantined == {"wrong-width": 1}


def test_the_quota_of_the_quarantine_is_of_all_codes_together(join, server, all_campaign, monkeypatch):
    monkeypatch.setattr("ldp_client.delivery.queue.MOST_QUARANTINED_REPORTS", 3)
    codes = iter(("malformed-upload", "malformed-upload", "wrong-width"))
    server.answer_with = lambda _: Answer(400, next(codes, "unknown-question"))
    device, part = join(of=all_campaign, answered=True)
    assert device.run_once(1e6)
    assert sum(part.status().quarantined.values()) == len(device.quarantined()) == 3, "of two codes"
    assert sum(part.status().dropped.values()) == 1


def test_a_host_that_chooses_the_moment_itself_has_everything_sent_at_once(join, server, clock, campaign, all_campaign):
    device, part = join(max_epsilon=4, answered=True)
    join(device=device, of=all_campaign, answered=True)
    totals = (part.status().total_epsilon, device.status().total_epsilon, device.ledger().total_epsilon)
    assert (part.status().epsilon, totals) == (1, (5, 5, 5))
    assert isinstance(ManualDelivery(device).next_task(600.0), Wait)
    clock.advance(86_400.0)
    assert device.run_once(1.0)
    assert clock.slept == []


def test_an_upload_that_ends_puts_off_the_same_persons_others_and_nobody_elses(join, clock, campaign, all_campaign):
    """What leaves as another ends would tell whose it is; of two people it tells nothing."""
    device, _ = join(granted=False)
    persons = device.scope("ann"), device.scope("bob")
    for person in persons:
        join(device=person, answered=True)
        join(device=person, of=all_campaign, answered=True)
    assert isinstance(ManualDelivery(device).next_task(600.0), Wait)
    clock.advance(601)
    told = Response(200, {}, b'{"rejected": []}')
    first = ManualDelivery(device).next_task(600.0)
    ManualDelivery(device).on_result(first, told)
    second = ManualDelivery(device).next_task(600.0)
    assert {first.place.scope, second.place.scope} == {"ann", "bob"}
    ManualDelivery(device).on_result(second, told)
    assert 0 < ManualDelivery(device).next_task(600.0).seconds <= 600


@pytest.mark.parametrize("jump", [-365 * 86_400.0, -86_400.0, 86_400.0])
def test_a_clock_that_jumps_changes_only_the_time_of_the_next_try_of_many_queues(join, server, clock, campaign, jump):
    server.answer_with = lambda _: Answer(503, "overloaded", {"Retry-After": "60"})
    device, _ = join(granted=False)
    users = [device.scope(str(user)) for user in range(20)]
    for user in users:
        join(device=user, answered=True)
    assert not device.run_once(0.1)
    clock.jump(jump)
    server.answer_with = lambda _: None
    assert device.run_once(device.policy.longest_wait + 1)
    assert server.counted(campaign.id) == 20
    assert {user.ledger().total_epsilon for user in users} == {campaign.realised_epsilon}


@pytest.mark.parametrize(("closes", "age", "seconds"), [(None, 3.0, 4 * 86_400.0), (3 * 86_400.0, 30.0, 11 * 86_400.0)])
def test_what_can_no_longer_arrive_is_given_up_and_counted_in_time(join, server, clock, draft, closes, age, seconds):
    server.answer_with = lambda _: Answer(503)
    if closes is not None:
        closing = datetime.fromtimestamp(clock.now + closes, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        draft = {**draft, "closes": closing}
    events = []
    limits = {"report_age": age * 86_400.0}
    device, part = join(of=server.publish(draft), on_event=events.append, limits=limits, answered=True)
    assert not device.run_once(seconds - 2 * 86_400.0)
    assert part.status().queued == 1
    assert device.run_once(3 * 86_400.0)
    status = part.status()
    assert (status.queued, status.dropped, status.sent, part.status().fate) == (0, {"expired": 1}, 0, "expired")
    assert status.epsilon > 0
    assert [one.reply for one in device.sent()] == [None], "nobody has said anything of it"
    assert [event.kind for event in events if event.kind != "retry"] == ["queued", "dropped"]
    tries = len(server.uploads)
    clock.advance(1e8)
    assert device.run_once(10)
    assert len(server.uploads) == tries


def test_a_clock_that_was_wrong_when_the_answer_was_given_throws_nothing_away(join, server, clock, campaign):
    clock.now = 0.0
    device, _ = join(answered=True)
    clock.jump(1.8e9)
    assert device.run_once(10)
    assert server.counted(campaign.id) == 1


def test_a_first_delay_is_drawn_once_and_survives_a_restart(join, tmp_path):
    device, _ = join(storage=tmp_path / "device.db", answered=True)
    first = ManualDelivery(device).next_task(600)
    assert 0 < first.seconds < 600
    again = ManualDelivery(join(storage=tmp_path / "device.db", granted=False)[0]).next_task(600)
    assert again.seconds == pytest.approx(first.seconds)


def test_a_storage_that_fails_is_left_alone_for_a_second_at_least_and_for_an_hour_at_most(join, monkeypatch):
    storage = Failing(StorageError("storage-full"))
    device, _ = join(storage=storage, answered=True)
    storage.fails = "read"
    for jitter, least, most in ((0.0, 1.0, 1.0), (0.999, 0.0, 3600.0)):
        monkeypatch.setattr(sender, "jitter", lambda jitter=jitter: jitter)
        waits = []
        for _ in range(20):
            task = ManualDelivery(device).next_task()
            waits.append(task.seconds)
            device._install.clock.advance(task.seconds)
        assert least <= min(waits)
        assert max(waits) <= most
    assert max(waits) > 3000


def test_whether_anything_is_due_is_asked_before_any_report_is_read(join, server, monkeypatch):
    server.answer_with = lambda _: Answer(503, "overloaded", {"Retry-After": "60"})
    device, part = join(answered=True)
    assert not device.run_once(1)
    assert part.status().next_try == 60.0
    monkeypatch.delattr(ldp_client.delivery.queue.Outbox, "front")
    assert isinstance(ManualDelivery(device).next_task(), Wait)


def test_a_host_with_its_own_network_code_drives_next_task_and_on_result(join, server, campaign):
    device, part = join()
    assert ManualDelivery(device).next_task() == Idle()
    part.contribute(RECORD, "yes")
    task = ManualDelivery(device).next_task()
    assert part.status().fate == "waiting"
    request = ManualDelivery(device).request(task)
    assert part.status().fate == "on-its-way"
    ManualDelivery(device).on_result(task, Response(503, {"retry-after": "30"}))
    waiting = ManualDelivery(device).next_task()
    assert waiting.seconds == pytest.approx(30, abs=1)
    assert device._install.sender._asked == {}, "what opens an answer is kept until it came, and no longer"
    ManualDelivery(device).on_result(task, HttpTransport().send(request, 5))
    assert ManualDelivery(device).next_task() == Idle()
    assert server.counted(campaign.id) == 1


def test_events_tell_what_happened_and_a_failing_callback_harms_nothing(join, server):
    events = []

    def note(event):
        events.append(event)
        raise ZeroDivisionError

    server.answer_with = lambda number: Answer(503, "overloaded") if number == 0 else None
    device, part = join(on_event=note, answered=True)
    assert device.run_once(1e6)
    told = [("queued", None), ("retry", "overloaded"), ("sent", None)]
    assert events == [Event(kind, code, 1, part.id) for kind, code in told]


def test_somebody_who_never_starts_the_delivery_is_told(join):
    device, part = join(answered=True)
    assert device.status().problem == part.status().problem == "delivery-not-started"
    device.start(first_delay=100.0)
    assert device.status().problem is None, "from start() on, whatever its thread has done so far"
    device.close()


def test_threads_never_send_the_same_batch_at_once(join, server, campaign):
    server.answer_with = lambda _: time.sleep(0.1)
    device, _ = join(clock=time, answered=True)
    device.start(first_delay=0.0)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(device.run_once, [10] * 4))
    device.close()
    assert len(server.uploads) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("most_reports_per_upload", 0), ("backoff_base", 0), ("first_delay", -1), ("first_delay", float("nan"))),
        *(("most_queued_reports", 1.5), ("request_timeout", "30"), ("backoff_longest", True)),
        ("report_age", float("inf")),
    ],
)
def test_a_policy_that_cannot_work_is_refused_by_name(name, value):
    with pytest.raises(LdpError, match=name):
        replace(Policy(), **{name: value})


def test_a_storage_of_an_earlier_try_is_understood_by_name(join, campaign):
    """A field that a later version added does not keep this one from going on."""
    storage = MemoryStorage()
    device, _ = join(storage=storage, answered=True)
    key = f"delivery/{campaign.id}"
    with storage.transaction(write=True) as transaction:
        stored = transaction.get(key)
        values = ldp_client.delivery.queue.unpack(key, stored)
        transaction.put(key, ldp_client.delivery.queue.pack(key, {**values, "from_the_future": 1}))
    assert device.run_once(5)


_FORGETFUL = """
import sys, time
from ldp_client import Device
device = Device(sys.argv[3], max_total_epsilon=4)
part = device.campaign(sys.argv[1], sys.argv[2], max_epsilon=4)
part.grant()
device.start(first_delay=0.0)
part.contribute({"age": "young"}, "yes")
until = time.monotonic() + 10
while not part.status().retries and time.monotonic() < until:
    time.sleep(0.01)
"""


@pytest.fixture
def make(join):
    def made(**options):
        return join(clock=time, limits={"backoff_base": 0.01}, **options)

    return made


def test_what_a_former_run_left_and_what_comes_is_delivered_and_retried_without_the_host_until_it_closes_the_device(
    make, server, campaign, tmp_path, eventually
):
    server.answer_with = lambda number: Answer(503) if number < 2 else None
    make(storage=tmp_path / "device.db", answered=True)
    device, part = make(storage=tmp_path / "device.db", granted=False)
    for users in (1, 2):
        with device:
            device.start(first_delay=0.0)
            assert eventually(lambda: part.status().sent == 1)
            assert device.status().running
            make(device=device.scope(str(users)), answered=True)
            assert eventually(lambda users=users: server.counted(campaign.id) == 1 + users)
        assert not device.status().running


def test_close_is_bounded_while_a_send_hangs(make, held_answer, eventually):
    device, part = make()
    device.start(first_delay=0.0)
    part.contribute(RECORD, "yes")
    assert held_answer.arrived.wait(10)
    device.close(0.1)
    assert not held_answer.leave.is_set()
    held_answer.leave.set()
    assert eventually(lambda: not device.status().running)
    assert part.status().sent == 1


def test_close_gives_up_a_send_of_which_nothing_has_left_yet(make, eventually):
    connecting, given_up = threading.Event(), []

    class Connecting:
        begins_body = True

        def send(self, request, timeout, cancellation=None):
            if request.method == "GET":
                return Response(404)
            connecting.set()
            given_up.append(eventually(lambda: cancellation.cancelled))
            raise TransportError("cancelled")

    device, part = make(transport=Connecting(), answered=True)
    device.start(first_delay=0.0)
    assert connecting.wait(10)
    device.close(0.1)
    assert eventually(lambda: given_up == [True])
    assert eventually(lambda: not device.status().running)
    assert (part.status().sent, part.status().retries) == (0, 0), "what was given up is no try that failed"


def test_who_wakes_the_thread_while_it_looks_has_it_look_again(eventually):
    looks = []

    class Looking:
        policy = Policy()
        used = False

        def step(self, timeout, first_delay):
            looks.append(first_delay)
            if len(looks) < 3:
                driver.wake()
            return Idle()

    driver = sender.BackgroundDriver(Looking())
    driver.start(7.0)
    assert eventually(lambda: looks == [7.0, 7.0, 7.0], 5)
    driver.close(5)
    assert not driver.running


def test_work_that_failed_may_be_asked_for_again(eventually):
    driver, done = sender.BackgroundDriver(None), []

    def work():
        done.append(None)
        raise KeyError

    for times in (1, 2):
        assert driver.later("model", work)
        assert eventually(lambda times=times: (len(done), driver._timers) == (times, {}), 5)


def test_work_that_a_close_called_off_may_be_asked_for_again(eventually, monkeypatch):
    monkeypatch.setattr(sender, "jitter", lambda: 1.0)
    done = []

    class Idling:
        policy = Policy(first_delay=3600.0)
        used = False

        def step(self, timeout, first_delay):
            return Idle()

    driver = sender.BackgroundDriver(Idling())
    driver.start(3600.0)
    assert driver.later("model", lambda: done.append("first"))
    driver.close(5)
    assert driver.later("model", lambda: done.append("second"))
    assert eventually(lambda: done == ["second"], 5)


def test_what_has_landed_is_under_way_no_more_however_it_ended():
    flight, first, second = sender.Flight(), Place("", "a"), Place("", "b")
    with suppress(KeyError), flight.of(first, Cancellation()) as attempt:
        assert (flight.place, flight.await_landing(second, 0)) == (first, True)
        attempt.begin_body()
        assert not flight.cancel(first)
        raise KeyError
    assert flight.place is None
    assert flight.cancel(first)
    assert not attempt.cancelled


def test_a_queue_whose_reports_are_gone_is_put_away_and_stops_no_other(join, server, campaign, all_campaign):
    storage = MemoryStorage()
    device, part = join(storage=storage, answered=True)
    with storage.transaction(write=True) as transaction:
        for key, _ in transaction.items(f"outbox/{campaign.id}/"):
            transaction.delete(key)
    join(device=device, of=all_campaign, answered=True)
    assert device.run_once(60)
    assert (part.status().queued, ManualDelivery(device).scopes_waiting()) == (0, ())
    assert server.counted(all_campaign.id) == 4


def test_nothing_raised_inside_reaches_the_host(make, campaign, monkeypatch, eventually):
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)

    class Broken:
        def send(self, request, timeout, cancellation=None):
            raise MemoryError

    def callback(event):
        raise KeyError(event)

    device, part = make(transport=Broken(), on_event=callback)
    part.contribute(RECORD, "yes")
    device.start(first_delay=0.0)
    assert eventually(lambda: part.status().retries >= 3)
    assert device.status().running
    device.close()
    assert not raised


def test_an_app_that_forgets_to_close_exits_quickly_and_silently(server, campaign, tmp_path):
    server.answer_with = lambda _: Answer(503, "overloaded", {"Retry-After": "3600"})
    arguments = [sys.executable, "-W", "error", "-c", _FORGETFUL, server.url, campaign.id, str(tmp_path / "device.db")]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert len(server.uploads) == 1


def test_at_exit_all_devices_together_wait_for_as_long_as_one(monkeypatch):
    now = 100.0
    waited = []

    class Hanging:
        def stop(self):
            waited.append("stopped")

        def close(self, timeout):
            nonlocal now
            waited.append(max(0.0, timeout))
            now += max(0.0, timeout)

    monkeypatch.setattr(sender, "_ALL", [Hanging(), Hanging(), Hanging()])
    monkeypatch.setattr(sender.time, "monotonic", lambda: now)
    sender._close_all()
    assert waited == ["stopped", "stopped", "stopped", 2.0, 0.0, 0.0]


def test_threads_that_contribute_first_at_once_start_one_thread(make, threads_of, eventually):
    for _ in range(30):
        device, _ = make()
        gate = threading.Barrier(4)
        device._install.driver._wanted = True

        def first(_, device=device, gate=gate):
            gate.wait()
            device._install.driver.wake()

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(first, range(4)))
        assert threads_of("ldp-client") == 1
        device.close()
        assert eventually(lambda: threads_of("ldp-client") == 0)


def test_campaigns_and_users_of_one_device_share_one_thread(make, server, campaign, threads_of, eventually):
    device, part = make()
    device.start(first_delay=0.0)
    part.contribute(RECORD, "yes")
    for user in range(3):
        scope = device.scope(str(user))
        scope.start(first_delay=0.0)
        make(device=scope, answered=True)
    assert threads_of("ldp-client") == 1
    assert eventually(lambda: server.counted(campaign.id) == 4)
    device.close()


def test_no_request_is_given_more_time_than_the_call_has(join):
    given = []

    class Silent:
        begins_body = True

        def send(self, request, timeout, cancellation=None):
            if request.body is not None:
                given.append(timeout)
            raise TransportError("timeout")

    device, _ = join(transport=Silent(), answered=True)
    device.run_once(0.7)
    assert given
    assert all(0 < timeout <= 0.7 for timeout in given)
