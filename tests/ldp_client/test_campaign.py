"""One device in one campaign: consent, refusals before anybody is asked, one answer."""

import json
import traceback
from dataclasses import replace
from fractions import Fraction

import pytest
from records import RECORD, Untouchable, Watched

from ldp_client import ConsentError, Device, LdpError, MemoryStorage, RefusedError, StorageError
from ldp_client.network.aggregator import read_campaign
from ldp_client.testing import FakeServer, ScriptedCoins
from ldp_protocols import Campaign, DocumentError, RecordError, decode_upload
from ldp_protocols.campaign import document_id
from ldp_protocols.mechanisms import DirectEncoding, SubsetSelection, UnaryEncoding


def test_a_device_contributes_and_the_server_counts_it_once(join, server, campaign):
    device, part = join(max_total_epsilon=1)
    receipt = part.contribute(RECORD, "yes")
    assert part.refusal() is None, "not for its own cost"
    assert server.counted(campaign.id) == 0
    assert device.run_once(5)
    assert server.counted(campaign.id) == 1
    assert (receipt.campaign_id, receipt.title, receipt.url) == (campaign.id, campaign.title, server.url)
    assert receipt.epsilon == campaign.realised_epsilon
    (block,) = decode_upload(server.uploads[0], campaign)
    assert receipt.questions == (block.question,)
    status = part.status()
    assert (status.sent, status.queued, status.contributed, status.problem) == (1, 0, True, None)
    assert part.status().fate == "arrived"


def test_a_second_contribution_returns_the_first_receipt_and_spends_nothing(join, server, perturbations, tmp_path):
    device, part = join(storage=tmp_path / "device.db")
    first = part.contribute(RECORD, "yes")
    assert part.contribute({"age": "old"}, "no") == first
    assert device.run_once(5)
    device, again = join(storage=tmp_path / "device.db", granted=False)
    kept = device.ledger().receipt(again.id)
    assert kept == again.contribute({}, "not a class")
    assert kept.questions == first.questions
    assert device.run_once(5)
    assert len(perturbations) == 1
    assert len(server.uploads) == 1
    assert device.ledger().total_epsilon == first.epsilon


def test_without_consent_nothing_is_drawn_or_sent_or_written_not_even_the_secret_or_a_public_document(
    join, server, campaign, perturbations, tmp_path, threads_of
):
    device, part = join(storage=tmp_path / "device.db", granted=False)
    assert part.fetch().title == campaign.title
    assert part.refusal() is None
    part.preview(RECORD, "yes")
    part.explained()
    for ask in (device.ledger, device.status, part.status, device.export, device.sent):
        ask()
    with pytest.raises(ConsentError):
        part.contribute(RECORD, "yes")
    assert device.enabled
    assert device.run_once(1)
    assert not threads_of("ldp-client")
    device.close()
    assert (perturbations, server.uploads, list(tmp_path.iterdir())) == ([], [], [])
    part.grant()
    assert {path.name for path in tmp_path.iterdir()} == {"device.db", "device.db.cache", "device.db.here"}


def test_a_consent_keeps_when_to_whom_and_to_what(join, server, clock):
    device, part = join()
    granted_at = clock.now
    clock.advance(60)
    part.withdraw()
    (consent,) = device.export()["consents"].values()
    assert consent == {
        "url": server.url,
        "title": "Will a customer miss a payment?",
        "purpose": "credit-risk model 3",
        "epsilon": 1.0,
        "granted_at": granted_at,
        "withdrawn_at": granted_at + 60,
        "gateway": "",
    }


@pytest.mark.parametrize(
    ("caps", "code"), [({"max_epsilon": 0.99}, "loss-above-cap"), ({"max_total_epsilon": 0.5}, "total-above-cap")]
)
def test_a_campaign_above_a_cap_is_refused_before_anybody_is_asked_and_before_the_record_is_read(
    join, server, caps, code, tmp_path
):
    device, part = join(granted=False, storage=tmp_path / "device.db", **caps)
    refusal = part.refusal()
    assert (refusal.code, part.next_step()) == (code, ("nothing", code))
    with pytest.raises(RefusedError) as caught:
        part.grant()
    assert (caught.value.code, str(caught.value)) == (code, str(refusal))
    assert part.status().consent is None
    # The person agreed while the app's caps were larger.
    join(storage=tmp_path / "device.db")
    with pytest.raises(RefusedError) as caught:
        part.contribute(Untouchable(), "yes")
    assert (caught.value.code, str(caught.value)) == (code, str(refusal))
    assert device.ledger().total_epsilon == 0
    assert device.run_once(5)
    assert not server.uploads


def test_an_answer_goes_to_the_url_that_was_agreed_to_and_to_no_other(join, server, campaign, perturbations):
    with FakeServer() as other:
        other.publish(campaign)
        device, part = join()
        _, elsewhere = join(device=device, url=other.url, granted=False)
        assert elsewhere.next_step() == ("ask", "other-recipient")
        with pytest.raises(RefusedError):
            elsewhere.contribute(Untouchable(), "yes")
        elsewhere.grant()
        assert elsewhere.next_step().step == "contribute"
        part.grant()
        part.contribute(RECORD, "yes")
        assert device.run_once(5)
        assert (server.counted(campaign.id), other.counted(campaign.id)) == (1, 0)
        assert not other.uploads


@pytest.mark.parametrize(("record", "label"), [(Untouchable(), "perhaps"), ([("age", "old")], "yes")])
def test_a_wrong_label_or_record_is_refused_before_a_coin_is_drawn(join, record, label):
    _, part = join(coins=ScriptedCoins(range(4)))
    with pytest.raises(RecordError):
        part.contribute(record, label)
    assert not part.status().contributed


def test_no_exception_tells_a_value_of_the_record(join):
    device, part = join()
    _, capped = join(device=device, granted=False, max_epsilon=0.5)
    for asked, label in ((capped, "yes"), (capped, "SECRET"), (part, "SECRET")):
        with pytest.raises(LdpError) as caught:
            asked.contribute({"age": "SECRET", "income": "SECRET"}, label)
        assert "SECRET" not in "".join(traceback.format_exception(caught.value, limit=0))


def test_only_the_feature_asked_about_is_read_and_nothing_about_the_others_is_kept(join, campaign):
    asked = set()
    for number in range(40):
        coins = ScriptedCoins([number << 58, *range(1, 300)])
        device, part = join(coins=coins)
        typed = Watched({"age": "young", "income": 1, "hours": 1})
        wrong = Watched({"age": "?", "income": "?", "hours": "?", "other": 1})
        (question,) = part.contribute(typed, "yes").questions
        other, other_part = join(coins=ScriptedCoins([number << 58, *range(1, 300)]))
        other_part.contribute(wrong, "yes")
        feature = campaign.questions[question].feature
        assert {*typed.read} <= {feature}
        assert {*wrong.read} <= {feature}
        assert part.status() == other_part.status()
        kept, same = ([{**one, "payload": ""} for one in each.export()["waiting"]] for each in (device, other))
        assert kept == same
        asked.add(feature)
    assert len(asked) > 2


def test_a_full_queue_refuses_before_anything_is_drawn(join):
    _, part = join(limits={"most_queued_reports": 0}, coins=ScriptedCoins(range(4)))
    with pytest.raises(StorageError):
        part.contribute(Untouchable(), "yes")
    assert not part.status().contributed


@pytest.mark.parametrize(
    ("name", "least"), [("most_queued_reports", len), ("most_queued_bytes", lambda widths: sum(widths) + 4 * 32)]
)
def test_a_queue_has_room_for_all_the_answers_of_a_device_or_none_is_drawn(join, all_campaign, name, least):
    widest = [max(question.mechanism.width for question in pool) for pool in all_campaign.pools]
    _, part = join(of=all_campaign, limits={name: least(widest) - 1}, coins=ScriptedCoins(range(4)))
    with pytest.raises(StorageError, match="queue"):
        part.contribute(Untouchable(), "yes")
    _, part = join(of=all_campaign, limits={name: least(widest)}, answered=True)
    assert part.status().queued == 4


@pytest.mark.parametrize("cap", [0, -1, float("inf"), float("nan"), "1", True, None])
def test_a_cap_must_be_a_finite_number(join, campaign, cap):
    with pytest.raises(LdpError, match="max_epsilon"):
        join(max_epsilon=cap, granted=False)
    with pytest.raises(LdpError, match="max_total_epsilon"):
        Device(":memory:", max_total_epsilon=cap)


@pytest.mark.parametrize("kind", ["numpy.float64", "numpy.float32", "numpy.int32", "fractions.Fraction"])
def test_a_cap_may_be_any_kind_of_number(join, kind):
    module, _, name = kind.rpartition(".")
    number = getattr(pytest.importorskip(module), name)
    _, part = join(max_epsilon=number(1), max_total_epsilon=number(1))
    assert part.contribute(RECORD, "yes").epsilon == 1
    if "float" in name:
        with pytest.raises(LdpError, match="max_epsilon"):
            join(max_epsilon=number("nan"), granted=False)


def test_a_person_is_asked_once_and_answers_once(start, server, campaign):
    assert start()[1].next_step().step == "ask"
    device, part = start()
    assert part.next_step().step == "ask", "nobody has decided yet"
    part.grant()
    assert part.next_step().step == "contribute"
    device, part = start()
    assert part.next_step().step == "contribute"
    part.contribute(RECORD, "yes")
    assert part.next_step().step == "nothing"
    assert device.run_once(5)
    assert start()[1].next_step().step == "nothing"
    assert server.counted(campaign.id) == 1


@pytest.mark.parametrize("agreed_before", [False, True])
def test_a_no_is_remembered_without_a_request_and_a_later_yes_counts(start, server, agreed_before):
    _, part = start()
    if agreed_before:
        part.grant()
    assert part.withdraw().deleted == 0
    before = len(server.requests)
    assert part.next_step().step == "nothing"
    _, part = start()
    assert part.next_step().step == "nothing"
    assert part.status().consent is False
    assert len(server.requests) == before
    part.grant()
    assert part.next_step().step == "contribute"


def test_whoever_cannot_have_the_campaign_is_told_why(start, campaign):
    device, part = start()
    away = device.campaign("http://127.0.0.1:1", campaign.id, max_epsilon=2)
    assert away.next_step().step == "nothing"
    assert away.status().problem == "unreachable"
    assert part.next_step().step == "ask"
    assert part.status().problem is None


def test_what_was_agreed_to_needs_no_network_after_a_restart_neither(join, start, server):
    start()[1].grant()
    asked = len(server.requests)
    _, again = start()
    assert again.next_step().step == "contribute"
    again.contribute(RECORD, "yes")
    storage = MemoryStorage()
    join(storage=storage)
    with pytest.raises(RefusedError):  # The cache in memory is gone with its device.
        join(storage=storage, granted=False)[1].contribute(Untouchable(), "yes")
    paths = [path.rpartition("/")[2] for _, path in server.requests]
    assert (asked, paths.count("state"), len(paths)) == (2, 2, 3), "the other device has heard for itself how it stands"


def test_a_document_with_another_hash_is_refused_whoever_hands_it_over(join, server, campaign, code_of):
    _, part = join(granted=False)
    assert code_of(DocumentError, part.load, campaign.document + b" ") == "wrong-hash"
    server._campaigns[campaign.id] = replace(campaign, document=b"{}")
    assert part.next_step() == ("nothing", "wrong-hash")


def test_a_stored_document_that_was_damaged_is_fetched_again(join, server, campaign, tmp_path):
    join(storage=tmp_path / "device.db")
    (tmp_path / "device.db.cache").write_bytes(b"somebody's letter" * 100)
    _, again = join(storage=tmp_path / "device.db", granted=False)
    with pytest.raises(RefusedError):
        again.contribute(Untouchable(), "yes")
    assert again.fetch() == campaign
    again.contribute(RECORD, "yes")


def test_a_device_runs_the_auditors_check_too(campaign, monkeypatch, code_of):
    """Where parsing overlooked a loss, the independent formulas of ``ldp_protocols.verification`` still refuse the
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
    assert code_of(DocumentError, read_campaign, document, document_id(document)) == "loss-above-epsilon"
