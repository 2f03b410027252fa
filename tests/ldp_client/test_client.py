"""One device in one campaign."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ldp_client import (
    Client,
    ConsentError,
    Event,
    MemoryStorage,
    ModelUnavailableError,
    QuotaError,
    RefusedError,
    ScopedStorage,
    ServerError,
    TransportError,
)
from ldp_client.delivery.machine import Idle, Send, Wait
from ldp_client.ledger.installation import Installation, write_installation
from ldp_client.network.aggregator import read_campaign
from ldp_client.network.stdlib import HttpTransport
from ldp_client.network.transport import Request, Response
from ldp_client.storage.sqlite import SqliteStorage
from ldp_client.testing import Answer, FakeClock, FakeServer, ScriptedCoins
from protocols import Campaign, DocumentError, ModelError, RecordError, decode_upload
from protocols.document.campaign import document_id
from protocols.mechanisms import DirectEncoding, SubsetSelection, UnaryEncoding

RECORD = {"age": "young", "income": 30_000, "hours": 12}
MakeClient = Callable[..., Client]


def test_a_device_contributes_and_the_server_counts_it_once(
    make_client: MakeClient, server: FakeServer, campaign: Campaign
) -> None:
    client = make_client()
    receipt = client.contribute(RECORD, "yes")
    assert server.counted(campaign.id) == 0
    assert client.run_once(5)
    assert server.counted(campaign.id) == 1
    assert (receipt.campaign_id, receipt.title) == (campaign.id, campaign.title)
    assert receipt.epsilon == campaign.realised_epsilon
    (block,) = decode_upload(server.uploads[0], campaign)
    assert receipt.questions == (block.question,)
    status = client.status()
    assert (status.sent, status.queued, status.contributed, status.problem) == (1, 0, True, None)


def test_with_answers_all_one_upload_carries_an_answer_of_every_group(
    make_client: MakeClient, server: FakeServer, all_campaign: Campaign
) -> None:
    client = make_client(campaign_id=all_campaign.id)
    receipt = client.contribute(RECORD, "yes")
    assert client.run_once(5)
    assert len(receipt.questions) == len(all_campaign.groups) == server.counted(all_campaign.id)
    assert len(server.uploads) == 1


def test_a_second_contribution_returns_the_first_receipt_and_spends_nothing(
    make_client: MakeClient, server: FakeServer, campaign: Campaign, perturbations: list[object]
) -> None:
    client = make_client()
    first = client.contribute(RECORD, "yes")
    assert client.contribute({"age": "old"}, "no") == first
    assert client.run_once(5)
    assert client.contribute({}, "not a class") == first
    assert client.run_once(5)
    assert len(perturbations) == 1
    assert len(server.uploads) == 1
    assert client.ledger().total_epsilon == first.epsilon


def test_the_receipt_survives_a_restart(make_client: MakeClient, tmp_path: Path, perturbations: list[object]) -> None:
    path = tmp_path / "device.db"
    first = make_client(storage=path).contribute(RECORD, "yes")
    again = make_client(storage=path, granted=False)
    assert again.receipt() == first
    assert again.contribute(RECORD, "no") == first
    assert len(perturbations) == 1


def test_a_retry_sends_the_same_bytes(make_client: MakeClient, server: FakeServer, campaign: Campaign) -> None:
    answers = [Answer(503), Answer(drop=True), Answer(drop=True, commit=True), Answer(500), Answer(429, "overloaded")]
    server.answer_with = lambda number: answers[number] if number < len(answers) else None
    client = make_client()
    client.contribute(RECORD, "yes")
    assert client.run_once(1e6)
    assert len(server.uploads) == len(answers) + 1
    assert len(set(server.uploads)) == 1
    assert server.counted(campaign.id) == 1
    assert client.status().retries == len(answers)


def test_a_thousand_retries_give_one_byte_string(make_client: MakeClient, campaign: Campaign) -> None:
    class Refusing:
        def __init__(self) -> None:
            self.bodies: list[bytes | None] = []

        def send(self, request: Request, timeout: float, cancellation: object = None) -> Response:
            if request.method == "GET":
                raise TransportError("unreachable")
            self.bodies.append(request.body)
            return Response(200, {}, b'{"rejected": []}') if len(self.bodies) > 1000 else Response(503)

    transport = Refusing()
    client = make_client(transport=transport)
    client.load_campaign(campaign.document)
    client.contribute(RECORD, "yes")
    assert client.run_once(1e9)
    assert len(transport.bodies) == 1001
    assert len(set(transport.bodies)) == 1


def test_nothing_is_contributed_without_consent(
    make_client: MakeClient, server: FakeServer, perturbations: list[object]
) -> None:
    client = make_client(granted=False)
    assert not client.consented
    with pytest.raises(ConsentError):
        client.contribute(RECORD, "yes")
    assert client.run_once(5)
    assert not perturbations
    assert not server.uploads


def test_title_and_purpose_can_be_shown_before_consent(make_client: MakeClient) -> None:
    campaign = make_client(granted=False).campaign()
    assert (campaign.title, campaign.purpose) == ("Will a customer miss a payment?", "credit-risk model 3")


def test_withdrawal_deletes_the_queue_keeps_the_totals_and_survives_a_restart(
    make_client: MakeClient, server: FakeServer, tmp_path: Path, perturbations: list[object]
) -> None:
    path = tmp_path / "device.db"
    client = make_client(storage=path)
    receipt = client.contribute(RECORD, "yes")
    task = client.next_task()
    assert isinstance(task, Send)
    assert task.reports[0].id.hex().encode() in path.read_bytes()
    client.withdraw()
    assert task.reports[0].id.hex().encode() not in path.read_bytes()
    assert client.run_once(5)
    restarted = make_client(storage=path, granted=False)
    assert restarted.run_once(5)
    status = restarted.status()
    assert (status.consent, status.queued, status.total_epsilon) == (False, 0, receipt.epsilon)
    with pytest.raises(ConsentError):
        restarted.contribute(RECORD, "yes")
    restarted.grant()
    assert restarted.contribute(RECORD, "no") == receipt
    assert restarted.run_once(5)
    assert not server.uploads
    assert len(perturbations) == 1


@pytest.mark.parametrize("answer", [Answer(503), Answer(200), Answer(413, "body-too-large"), Answer(drop=True)])
def test_withdrawal_wins_over_an_answer_in_flight(
    make_client: MakeClient, server: FakeServer, tmp_path: Path, answer: Answer
) -> None:
    path = tmp_path / "device.db"
    client = make_client(storage=path)
    client.contribute(RECORD, "yes")
    arrived, withdrawn = threading.Event(), threading.Event()

    def meanwhile(number: int) -> Answer:
        arrived.set()
        withdrawn.wait(5)
        return answer

    server.answer_with = meanwhile
    sending = threading.Thread(target=client.run_once, args=(1e6,))
    sending.start()
    arrived.wait(5)
    client.withdraw()
    withdrawn.set()
    sending.join(5)
    assert client.run_once(1e6)
    restarted = make_client(storage=path, granted=False)
    assert restarted.run_once(1e6)
    restarted.grant()
    assert restarted.run_once(1e6)
    assert len(server.uploads) == 1
    assert restarted.status().queued == 0


def test_a_withdrawal_in_one_process_stops_the_others(
    make_client: MakeClient, server: FakeServer, tmp_path: Path
) -> None:
    path = tmp_path / "device.db"
    first, second = make_client(storage=path), make_client(storage=path)
    first.contribute(RECORD, "yes")
    second.withdraw()
    assert first.run_once(5)
    assert not server.uploads


class Untouchable(dict[str, object]):
    """A record that must not be read."""

    def get(self, *_: object) -> object:
        raise AssertionError("the record was read")

    __getitem__ = get


@pytest.mark.parametrize(
    ("caps", "code"),
    [({"max_epsilon": 0.99}, "loss-above-cap"), ({"max_total_epsilon": 0.5}, "total-above-cap")],
)
def test_a_campaign_above_a_cap_is_refused_before_the_record_is_read(
    make_client: MakeClient, server: FakeServer, caps: dict[str, float], code: str
) -> None:
    client = make_client(**caps)
    with pytest.raises(RefusedError) as caught:
        client.contribute(Untouchable(), "yes")
    assert caught.value.code == code
    assert client.ledger().total_epsilon == 0
    assert client.run_once(5)
    assert not server.uploads


def test_the_total_cap_holds_over_all_campaigns_of_an_install(
    make_client: MakeClient, server: FakeServer, draft: dict[str, Any]
) -> None:
    storage = MemoryStorage()
    ids = [server.publish({**draft, "title": f"Campaign {number}"}).id for number in range(4)]
    for number, campaign_id in enumerate(ids):
        client = make_client(storage=storage, campaign_id=campaign_id, max_total_epsilon=3)
        if number < 3:
            client.contribute(RECORD, "yes")
        else:
            with pytest.raises(RefusedError, match="cap over the life"):
                client.contribute(Untouchable(), "yes")
    assert 2.99 < client.ledger().total_epsilon <= 3


def test_a_device_answers_one_campaign_of_a_study(
    make_client: MakeClient, server: FakeServer, draft: dict[str, Any]
) -> None:
    storage = MemoryStorage()
    first, second = (server.publish({**draft, "study": "s", "title": title}).id for title in ("a", "b"))
    make_client(storage=storage, campaign_id=first).contribute(RECORD, "yes")
    with pytest.raises(RefusedError) as caught:
        make_client(storage=storage, campaign_id=second).contribute(Untouchable(), "yes")
    assert caught.value.code == "study-answered"


def test_a_document_that_lies_about_its_loss_is_refused(
    make_client: MakeClient, server: FakeServer, campaign: Campaign, perturbations: list[object]
) -> None:
    lying = json.loads(campaign.document)
    lying["privacy"]["epsilon"] = 0.1
    document = json.dumps(lying).encode()
    client = make_client(campaign_id=document_id(document))
    with pytest.raises(DocumentError) as caught:
        client.load_campaign(document)
    assert caught.value.code == "loss-above-epsilon"
    assert not perturbations


def test_a_document_with_another_hash_is_refused(make_client: MakeClient, campaign: Campaign) -> None:
    with pytest.raises(DocumentError) as caught:
        make_client().load_campaign(campaign.document + b" ")
    assert caught.value.code == "wrong-hash"


def test_a_stored_document_is_not_fetched_again(make_client: MakeClient, server: FakeServer, tmp_path: Path) -> None:
    make_client(storage=tmp_path / "device.db").campaign()
    make_client(storage=tmp_path / "device.db").campaign()
    assert len(server.requests) == 1


def test_an_unknown_campaign_is_a_clear_error(make_client: MakeClient) -> None:
    with pytest.raises(ServerError) as caught:
        make_client(campaign_id="A" * 43).contribute(RECORD, "yes")
    assert (caught.value.status, caught.value.code) == (404, "unknown-campaign")


def test_a_server_that_cannot_be_reached_is_a_clear_error(make_client: MakeClient) -> None:
    with pytest.raises(TransportError) as caught:
        make_client(url="http://127.0.0.1:9").contribute(RECORD, "yes")
    assert caught.value.code == "unreachable"


def test_an_undeclared_label_is_refused_before_anything_is_drawn(make_client: MakeClient) -> None:
    client = make_client(coins=ScriptedCoins([]))
    with pytest.raises(RecordError):
        client.contribute(Untouchable(), "perhaps")
    assert client.receipt() is None


def test_no_exception_tells_a_value_of_the_record(make_client: MakeClient) -> None:
    client = make_client(max_epsilon=0.5)
    for label in ("yes", "SECRET"):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever is raised must not tell
            client.contribute({"age": "SECRET", "income": "SECRET"}, label)
        assert "SECRET" not in "".join(traceback.format_exception(caught.value, limit=0))


def test_a_restored_device_meets_the_same_question_whatever_its_record(make_client: MakeClient) -> None:
    drawn = set()
    for record in (RECORD, {}, {"age": None, "income": "text", "hours": float("nan")}):
        storage = MemoryStorage()
        with storage.transaction(write=True) as transaction:
            write_installation(transaction, Installation(bytes(32), {}, ()))
        drawn.add(make_client(storage=storage).contribute(record, "yes").questions)
    assert len(drawn) == 1


def test_a_full_queue_refuses_before_anything_is_drawn(make_client: MakeClient) -> None:
    client = make_client(limits={"most_queued_reports": 0}, coins=ScriptedCoins([]))
    with pytest.raises(QuotaError):
        client.contribute(Untouchable(), "yes")
    assert client.receipt() is None


def test_a_report_the_server_refuses_is_dropped_and_counted(make_client: MakeClient, server: FakeServer) -> None:
    server.answer_with = lambda _: Answer(409, "campaign-closed")
    client = make_client()
    client.contribute(RECORD, "yes")
    assert client.run_once(5)
    assert client.status().dropped == {"campaign-closed": 1}
    assert client.run_once(5)
    assert len(server.uploads) == 1


def test_poison_is_quarantined_and_the_rest_arrives(
    make_client: MakeClient, server: FakeServer, all_campaign: Campaign
) -> None:
    def refuse_question_2(number: int) -> Answer | None:
        blocks = decode_upload(server.uploads[number], all_campaign)
        poisoned = any(all_campaign.questions[block.question].group == 2 for block in blocks)
        return Answer(400, "malformed-upload") if poisoned else None

    server.answer_with = refuse_question_2
    client = make_client(campaign_id=all_campaign.id)
    client.contribute(RECORD, "yes")
    assert client.run_once(1e6)
    status = client.status()
    assert (status.sent, status.queued, status.quarantined) == (3, 0, {"malformed-upload": 1})
    assert server.counted(all_campaign.id) == 3


def test_an_upload_that_is_too_large_is_split(
    make_client: MakeClient, server: FakeServer, all_campaign: Campaign
) -> None:
    client = make_client(campaign_id=all_campaign.id)
    client.contribute(RECORD, "yes")
    server.largest_upload = 75
    assert client.run_once(1e6)
    assert server.counted(all_campaign.id) == 4
    assert len(server.uploads) >= 2


def test_a_clock_that_jumps_a_day_changes_only_the_time_of_the_next_try(
    make_client: MakeClient, server: FakeServer, clock: FakeClock, campaign: Campaign
) -> None:
    for jump in (-86_400.0, 86_400.0):
        client = make_client(storage=MemoryStorage())
        before = server.counted(campaign.id)
        server.answer_with = lambda _: Answer(503, "overloaded", {"Retry-After": "60"})
        client.contribute(RECORD, "yes")
        assert not client.run_once(1)
        clock.jump(jump)
        server.answer_with = lambda _: None
        assert client.run_once(client.policy.longest_wait + 1)
        assert server.counted(campaign.id) == before + 1
        assert client.ledger().total_epsilon == campaign.realised_epsilon


def test_a_host_with_its_own_network_code_drives_next_task_and_on_result(
    make_client: MakeClient, server: FakeServer, campaign: Campaign
) -> None:
    client = make_client()
    assert client.next_task() == Idle()
    client.contribute(RECORD, "yes")
    task = client.next_task()
    assert isinstance(task, Send)
    client.on_result(task, Response(503, {"retry-after": "30"}))
    waiting = client.next_task()
    assert isinstance(waiting, Wait)
    assert waiting.seconds == pytest.approx(30, abs=1)
    transport = HttpTransport()
    client.on_result(task, transport.send(client.request(task), 5))
    assert client.next_task() == Idle()
    assert server.counted(campaign.id) == 1


def test_a_first_delay_is_drawn_once_and_survives_a_restart(
    make_client: MakeClient, clock: FakeClock, tmp_path: Path
) -> None:
    client = make_client(storage=tmp_path / "device.db")
    client.contribute(RECORD, "yes")
    first = client.next_task(600)
    assert isinstance(first, Wait)
    assert 0 < first.seconds < 600
    assert make_client(storage=tmp_path / "device.db").next_task(600) == first


def test_events_tell_what_happened_and_a_failing_callback_harms_nothing(
    make_client: MakeClient, server: FakeServer
) -> None:
    events: list[Event] = []

    def note(event: Event) -> None:
        events.append(event)
        raise ZeroDivisionError

    server.answer_with = lambda number: Answer(503, "overloaded") if number == 0 else None
    client = make_client(on_event=note)
    client.contribute(RECORD, "yes")
    assert client.run_once(1e6)
    assert events == [Event("retry", "overloaded", 1), Event("sent", None, 1)]


@pytest.mark.parametrize("failure", [ZeroDivisionError(), OSError("x"), KeyError("secret")])
def test_a_transport_that_raises_anything_never_reaches_the_host(
    make_client: MakeClient, campaign: Campaign, failure: Exception
) -> None:
    class Broken:
        def send(self, request: Request, timeout: float, cancellation: object = None) -> Response:
            raise failure

    client = make_client(transport=Broken())
    client.load_campaign(campaign.document)
    client.contribute(RECORD, "yes")
    assert not client.run_once(5)
    assert client.status().queued == 1
    assert client.status().problem == "unreachable"


def test_users_of_a_backend_have_ledgers_of_their_own(
    make_client: MakeClient, server: FakeServer, campaign: Campaign, tmp_path: Path
) -> None:
    shared = SqliteStorage(tmp_path / "users.db")
    for user in range(5):
        client = make_client(storage=ScopedStorage(shared, f"user-{user}"))
        client.contribute(RECORD, "yes")
        assert client.run_once(5)
        assert client.ledger().total_epsilon == campaign.realised_epsilon
    assert server.counted(campaign.id) == 5


def test_making_a_client_is_cheap_and_starts_nothing(campaign: Campaign) -> None:
    threads = threading.active_count()
    started = time.perf_counter()
    for _ in range(200):
        Client("http://127.0.0.1:9", campaign.id, storage=MemoryStorage(), max_epsilon=1, max_total_epsilon=1)
    assert (time.perf_counter() - started) / 200 < 1e-3
    assert threading.active_count() == threads


@pytest.mark.parametrize("cap", [0, -1, float("inf"), float("nan"), "1", True, None])
def test_a_cap_must_be_a_finite_number(campaign: Campaign, cap: Any) -> None:
    with pytest.raises(ValueError, match="max_epsilon"):
        Client("http://127.0.0.1:9", campaign.id, storage=":memory:", max_epsilon=cap, max_total_epsilon=1)


@pytest.mark.parametrize("campaign_id", ["", "short", "é" * 43, "../" + "a" * 40])
def test_a_campaign_id_must_be_one(campaign_id: str) -> None:
    with pytest.raises(ValueError, match="campaign_id"):
        Client("http://127.0.0.1:9", campaign_id, storage=":memory:", max_epsilon=1, max_total_epsilon=1)


# The model


def test_there_may_be_no_model_yet(make_client: MakeClient) -> None:
    with pytest.raises(ModelUnavailableError):
        make_client().predict(RECORD)


def test_a_model_classifies_on_the_device_without_consent(
    make_client: MakeClient, server: FakeServer, campaign: Campaign, model: str
) -> None:
    server.publish_model(campaign.id, model)
    client = make_client(granted=False)
    assert client.predict({"age": "old"}) == "no"
    assert client.predict_proba({"age": "old"}) == pytest.approx({"yes": 0.2 / 0.68, "no": 0.48 / 0.68})
    assert not server.uploads


def test_a_stored_model_serves_offline_and_is_asked_for_with_its_etag(
    make_client: MakeClient, server: FakeServer, campaign: Campaign, model: str, tmp_path: Path
) -> None:
    server.publish_model(campaign.id, model)
    assert make_client(storage=tmp_path / "device.db").refresh_model()
    offline = make_client(storage=tmp_path / "device.db", url="http://127.0.0.1:9")
    assert offline.predict({"age": "old"}) == "no"
    again = make_client(storage=tmp_path / "device.db")
    assert not again.refresh_model()
    changed = json.loads(model)
    changed["prior"] = [0.99, 0.01]
    server.publish_model(campaign.id, json.dumps(changed))
    assert again.refresh_model()
    assert again.predict({"age": "old"}) == "yes"


@pytest.mark.parametrize("bad", ["{}", "not json", '{"version": 1, "kind": "forest"}'])
def test_a_bad_model_never_replaces_a_good_one(
    make_client: MakeClient, server: FakeServer, campaign: Campaign, model: str, tmp_path: Path, bad: str
) -> None:
    server.publish_model(campaign.id, model)
    client = make_client(storage=tmp_path / "device.db")
    assert client.predict({"age": "old"}) == "no"
    server.publish_model(campaign.id, bad)
    with pytest.raises(ModelError):
        client.refresh_model()
    assert client.predict({"age": "old"}) == "no"
    assert make_client(storage=tmp_path / "device.db", url="http://127.0.0.1:9").predict({"age": "old"}) == "no"


def test_a_model_about_another_label_is_refused(
    make_client: MakeClient, server: FakeServer, campaign: Campaign, model: str
) -> None:
    server.publish_model(campaign.id, model.replace("missed_payment", "colour"))
    client = make_client()
    client.campaign()
    with pytest.raises(ModelError, match="another label"):
        client.predict(RECORD)


def test_a_stored_document_that_was_damaged_is_fetched_again(
    make_client: MakeClient, server: FakeServer, campaign: Campaign
) -> None:
    storage = MemoryStorage()
    make_client(storage=storage).campaign()
    with storage.transaction(write=True) as transaction:
        transaction.put(f"campaign/{campaign.id}", campaign.document[:-1])
    assert make_client(storage=storage).campaign() == campaign
    assert len(server.requests) == 2


def test_a_device_runs_the_auditors_check_too(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where parsing overlooked a loss, the independent formulas of ``protocols.document.verify`` still refuse the
    document.
    """
    honest = json.loads(campaign.document)
    greedy = {**honest, "privacy": {**honest["privacy"], "epsilon": honest["privacy"]["epsilon"] / 2}}
    for question in greedy["questions"]:
        question["epsilon"] /= 2
    document = json.dumps(greedy, separators=(",", ":")).encode()
    with pytest.raises(DocumentError):
        read_campaign(document, document_id(document))
    for mechanism in (DirectEncoding, SubsetSelection, UnaryEncoding):
        monkeypatch.setattr(mechanism, "loss", lambda self: Fraction(0))
    assert Campaign.parse(document).privacy.epsilon == greedy["privacy"]["epsilon"]
    with pytest.raises(DocumentError) as caught:
        read_campaign(document, document_id(document))
    assert caught.value.code == "loss-above-epsilon"
