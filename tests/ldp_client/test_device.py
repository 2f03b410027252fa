"""The install: paths, scopes, the person's switch, copy and eraser, the log of what left."""

import json
import stat
import sys
import threading
import time

import pytest
from crowds import crowd_draft
from forking import holds_in_a_child, needs_fork
from records import RECORD

from ldp_client import ConsentError, Device, MemoryStorage, RefusedError, StorageError
from ldp_client.delivery.schedule import Send
from ldp_client.ledger import read_installation
from ldp_client.manual import ManualDelivery
from ldp_client.testing import Answer
from ldp_protocols import Campaign, LdpError, decode_upload

URL = "https://collect.example.org"


def test_a_relative_path_is_the_same_device_wherever_the_process_goes(join, server, campaign, tmp_path, monkeypatch):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    device, part = join(storage="ldp.sqlite")
    receipt = part.contribute(RECORD, "yes")
    monkeypatch.chdir(tmp_path / "b")
    assert part.contribute(RECORD, "no") == receipt
    assert device.run_once(5)
    assert list((tmp_path / "b").iterdir()) == []
    assert server.counted(campaign.id) == 1


def test_a_home_that_cannot_be_written_is_told_by_the_storage_when_it_is_used(tmp_path, monkeypatch, join):
    (tmp_path / "home").write_bytes(b"")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    _, part = join(storage=Device.default_path("my-app"), granted=False)
    assert part.next_step() == ("nothing", "storage-unavailable")


def test_the_default_path_is_for_its_owner_and_for_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    homes = {"linux": "state", "darwin": "Library/Application Support", "win32": "local"}
    for platform, home in homes.items():
        monkeypatch.setattr(sys, "platform", platform)
        path = Device.default_path("my-app")
        assert path == tmp_path / home / "my-app" / "ldp.sqlite"
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert list(path.parent.iterdir()) == []
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert Device.default_path("my-app") == tmp_path / ".local/state/my-app/ldp.sqlite"


def test_users_of_a_backend_have_ledgers_of_their_own_and_share_cache_and_sender(join, server, campaign, tmp_path):
    device, _ = join(storage=tmp_path / "users.db", granted=False)
    for user in range(5):
        _, part = join(device=device.scope(f"user-{user}"), granted=False)
        part.grant()
        part.contribute(RECORD, "yes")
    assert len(server.requests) == 2
    restarted, _ = join(storage=tmp_path / "users.db", granted=False)
    assert set(ManualDelivery(restarted).scopes_waiting()) == {f"user-{user}" for user in range(5)}
    assert restarted.run_once(5)
    assert ManualDelivery(device).scopes_waiting() == ()
    assert server.counted(campaign.id) == 5
    assert device.status().total_epsilon == 0
    for user in range(5):
        assert device.scope(f"user-{user}").ledger().total_epsilon == campaign.realised_epsilon
    ids = {block.ids for upload in server.uploads for block in decode_upload(upload, campaign)}
    assert len(ids) == 5


@pytest.mark.parametrize(
    ("act", "counted"),
    [
        (lambda _, part: part.withdraw(), 1),
        (lambda scope, _: scope.erase(), 1),
        (lambda scope, _: scope.switch(False), 2),
    ],
    ids=["withdraws", "erases", "switches off for a while"],
)
def test_a_user_who_leaves_takes_nobody_along(join, server, campaign, act, counted):
    device, _ = join(granted=False)
    (scope, part), (_, other) = (join(device=device.scope(name), answered=True) for name in ("1", "10"))
    act(scope, part)
    assert device.run_once(5)
    assert (other.status().sent, part.status().sent, server.counted(campaign.id)) == (1, 0, 1)
    scope.switch(True)
    assert device.run_once(5)
    assert server.counted(campaign.id) == counted


@pytest.mark.parametrize("scope", ["", "a/b", "é", "a\nb"])
def test_a_scope_that_could_reach_into_another_is_refused(join, scope):
    with pytest.raises(LdpError, match="scope"):
        join(granted=False)[0].scope(scope)


def test_many_queues_with_different_fates_are_delivered_by_one_sender(join, server, draft):
    """The one that a server refuses for now does not hold up the others."""
    device, _ = join(granted=False)
    campaigns = [server.publish({**draft, "title": f"Campaign {number}"}) for number in range(4)]
    for one in campaigns:
        join(device=device, of=one, answered=True)
    server.answer_with = lambda number: Answer(503, "overloaded", {"Retry-After": "60"}) if number == 0 else None
    assert not device.run_once(1)
    assert sum(server.counted(one.id) for one in campaigns) == 3
    assert device.run_once(100)
    assert sum(server.counted(one.id) for one in campaigns) == 4


def test_switched_off_nothing_is_asked_answered_or_sent_until_it_is_switched_on_again(
    join, server, campaign, tmp_path, code_of
):
    path = tmp_path / "device.db"
    device, _ = join(storage=path, answered=True)
    device.enabled = False
    restarted, again = join(storage=path, granted=False)
    assert not restarted.enabled
    assert restarted.status().enabled is False
    assert restarted.run_once(5)
    assert not server.uploads
    _, of_user = join(device=restarted.scope("user"), granted=False)
    assert code_of(RefusedError, of_user.grant) == of_user.refusal().code == "switched-off"
    assert of_user.next_step().step == "nothing"
    assert restarted.scope("user").ledger().total_epsilon == 0
    restarted.enabled = True
    assert restarted.run_once(5)
    assert server.counted(campaign.id) == 1
    assert again.status().fate == "arrived"


@pytest.mark.parametrize(
    ("discrete", "continuous"),
    [*zip(["de", "sue", "oue", "the", "ss", "she"], ["laplace", "onebit", "sign"] * 2, strict=True)],
)
def test_the_log_says_of_every_kind_of_answer_what_was_asked_what_was_said_when_and_to_whom(
    join, server, draft, clock, discrete, continuous
):
    privacy = {"epsilon": 4.0, "answers": "all", "discrete": discrete, "continuous": continuous}
    campaign = server.publish({**draft, "privacy": privacy})
    device, _ = join(of=campaign, answered=True)
    assert device.sent() == ()
    assert device.run_once(5)
    log = device.sent()
    assert len(log) == len(campaign.groups)
    assert len(server.uploads) == 1
    assert {one.asked.split(" ")[0] for one in log} == {"missed_payment", "age", "income", "hours"}
    assert {(one.title, one.url, one.at) for one in log} == {(campaign.title, server.url, clock.now)}
    assert all(one.said for one in log)
    assert {one.payload for one in log} == set(server.reports(campaign.id).values())


@pytest.mark.parametrize(
    ("discrete", "says"), [("de", "(true with"), ("ss", "(true with"), ("oue", "answers are marked")]
)
def test_a_mechanism_that_never_marks_two_cells_names_its_answer_and_any_other_says_how_many(
    join, server, draft, discrete, says
):
    """At this epsilon ``ss`` marks one."""
    (age,) = (feature for feature in draft["features"] if feature["name"] == "age")
    asks = {"features": [age], "privacy": {"epsilon": 4.0, "discrete": discrete}}
    device, _ = join(of=server.publish({**draft, **asks}), answered=True)
    assert device.run_once(5)
    (one,) = device.sent()
    assert says in one.said


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (Answer(410, "gone", commit=True), "gone"),
        (Answer(410, "campaign-deleted", commit=True), "campaign-deleted"),
        (Answer(409, "campaign-closed", commit=True), None),
        (Answer(422, "malformed-upload", commit=True), "malformed-upload"),
        (Answer(400, "\u202eevil", commit=True), "unreadable-code"),
        (Answer(503, commit=True), None),
        (Answer(drop=True, commit=True), None),
        (Answer(commit=True, body=b'{"rejected": []}'), "arrived"),
    ],
)
def test_the_log_holds_what_left_whatever_the_server_says_of_it(join, server, campaign, answer, reply):
    """A server that counts a report and says that it refused it is whom the log is for."""
    server.answer_with = lambda _: answer
    device, part = join(answered=True)
    device.run_once(0.5)
    (one,) = device.sent()
    assert (one.reply, one.payload) == (reply, *server.reports(campaign.id).values())
    assert device.export()["sent"][0]["reply"] == reply
    part.withdraw()
    assert [one.payload for one in device.sent()] == [one.payload]


def test_a_report_that_is_refused_by_name_in_a_success_stands_in_the_log_with_its_code(join, server, all_campaign):
    def refuse_one(number):
        first = decode_upload(server.uploads[number], all_campaign)[0].ids
        return Answer(body=json.dumps({"rejected": [[first.hex(), "conflicting-report"]]}).encode(), commit=True)

    server.answer_with = refuse_one
    device, part = join(of=all_campaign, answered=True)
    assert device.run_once(5)
    assert sorted(str(one.reply) for one in device.sent()) == ["arrived"] * 3 + ["conflicting-report"]
    assert (part.status().sent, part.status().dropped) == (3, {"conflicting-report": 1})


def test_the_log_tells_when_a_report_left_first_and_nothing_of_what_never_left(join, server, clock):
    server.answer_with = [Answer(503), None].__getitem__
    device, _ = join(answered=True)
    began = clock.now
    assert device.run_once(1e6)
    assert clock.now > began
    assert [(one.at, one.reply) for one in device.sent()] == [(began, "arrived")]
    other, unsent = join(answered=True)
    unsent.withdraw()
    assert other.sent() == ()


def test_the_log_is_in_the_order_in_which_reports_left(join, server, draft, clock):
    campaigns = [server.publish({**draft, "title": f"number {number}"}) for number in range(5)]
    device, _ = join(granted=False, max_total_epsilon=99)
    for campaign in campaigns:
        join(device=device, of=campaign, answered=True)
        assert device.run_once(5)
        clock.advance(60)
    assert [one.campaign_id for one in device.sent()] == [campaign.id for campaign in campaigns]


def test_of_answers_that_leave_one_by_one_each_stands_in_the_log(join, server, all_campaign):
    device, part = join(of=all_campaign, answered=True, limits={"most_reports_per_upload": 1})
    assert device.run_once(1e6)
    assert len(server.uploads) == 4
    assert [one.reply for one in device.sent()] == ["arrived"] * 4
    assert part.status().fate == "arrived"


def test_the_copy_holds_everything_but_the_secret_and_is_json(join, server, all_campaign):
    server.answer_with = lambda _: Answer(400, "malformed-upload")
    storage = MemoryStorage()
    device, _ = join(of=all_campaign, storage=storage, answered=True)
    copy = json.loads(json.dumps(device.export()))
    assert len(copy["waiting"]) == 4
    assert copy["receipts"][0]["fate"] == "waiting"
    assert device.run_once(1e6)
    copy = json.loads(json.dumps(device.export()))
    assert (len(copy["waiting"]), len(copy["quarantined"])) == (0, 4)
    with storage.transaction(write=False) as transaction:
        secret = read_installation(transaction).secret
    assert secret.hex() not in json.dumps(copy)


def test_the_eraser_leaves_nothing_and_what_follows_is_a_new_device(join, server, campaign, tmp_path):
    path = tmp_path / "device.db"
    device, part = join(storage=path, answered=True)
    join(device=device.scope("user"), answered=True)
    device.erase()
    assert device.export() == Device(":memory:", max_total_epsilon=8).export()
    assert campaign.id.encode() not in path.read_bytes() + (tmp_path / "device.db.cache").read_bytes()
    assert not (tmp_path / "device.db.here").exists()
    with pytest.raises(ConsentError):
        part.contribute(RECORD, "yes")
    assert device.run_once(5)
    assert not server.uploads
    part.grant()
    part.contribute(RECORD, "yes")
    assert device.run_once(5)
    assert server.counted(campaign.id) == 1


def test_erasing_the_device_waits_for_an_upload_of_any_of_its_scopes(join, held_answer):
    device, _ = join(granted=False, clock=time)
    join(device=device.scope("ann"), answered=True)
    thread = threading.Thread(target=device.run_once, args=(5,))
    thread.start()
    assert held_answer.arrived.wait(10)
    threading.Timer(0.2, held_answer.leave.set).start()
    device.erase(timeout=10)
    assert held_answer.leave.is_set(), "it had begun to leave, and was waited for"
    thread.join(10)


def test_erasing_while_something_is_sent_stops_it_or_waits_and_leaves_no_trace(join, held_answer, tmp_path):
    device, _ = join(storage=tmp_path / "device.db", clock=time, answered=True)
    thread = threading.Thread(target=device.run_once, args=(5,))
    thread.start()
    assert held_answer.arrived.wait(10)
    device.erase(timeout=0.1)
    held_answer.leave.set()
    thread.join(10)
    assert device.export() == Device(":memory:", max_total_epsilon=8).export()
    assert device.status().problem is None


def test_what_a_server_would_not_take_is_listed_and_can_be_tried_again(join, server, campaign):
    server.answer_with = lambda _: Answer(400, "malformed-upload")
    device, part = join(answered=True)
    assert device.run_once(5)
    assert [(one.campaign_id, one.code) for one in device.quarantined()] == [(campaign.id, "malformed-upload")]
    server.answer_with = lambda _: None
    assert part.requeue() == 1
    assert isinstance(ManualDelivery(device).next_task(600.0), Send), "what was tried already waits for no first delay"
    assert device.run_once(5)
    assert (device.quarantined(), part.status().quarantined) == ((), {})
    assert (server.counted(campaign.id), part.status().fate) == (1, "arrived")
    assert len(set(server.uploads)) == 1


@needs_fork
def test_a_device_in_memory_refuses_to_answer_in_a_forked_child(join, server, code_of):
    device, part = join(clock=time)

    def is_refused():
        code = code_of(StorageError, part.contribute, RECORD, "yes")
        return (code, device.status().problem, device.run_once(0.1)) == ("storage-forked", "storage-forked", False)

    assert holds_in_a_child(is_refused)
    part.contribute(RECORD, "yes")
    assert device.run_once(5)
    assert len(server.uploads) == 1


def test_a_campaign_with_a_crowd_is_answered_under_its_own_caps_and_both_numbers_are_kept(code_of):
    campaign = Campaign.compile(crowd_draft(issuer=None))
    device = Device(MemoryStorage(), max_total_epsilon=8, relay="https://relay.example")
    caps = {"max_crowd_epsilon": 1, "max_if_both_collude": 4}
    for wrong in ({}, {"max_crowd_epsilon": 1}, {"max_if_both_collude": 4}):
        refused = device.campaign(URL, campaign.id, max_epsilon=64, **wrong)
        refused.load(campaign.document)
        assert refused.refusal().code == "crowd-cap-missing"
    assert code_of(LdpError, device.campaign, URL, campaign.id, max_epsilon=1, max_crowd_epsilon=0) == "bad-cap"
    asked = device.campaign(URL, campaign.id, max_epsilon=0.1, **caps)
    asked.load(campaign.document)
    asked.grant()
    receipt = asked.contribute({"colour": "red"}, "a")
    assert (receipt.epsilon, receipt.crowd_epsilon, receipt.crowd_delta) == (campaign.realised_epsilon, 1, 1e-9)
    assert (device.ledger().crowd_epsilon, device.ledger().total_epsilon) == (1, campaign.realised_epsilon)
