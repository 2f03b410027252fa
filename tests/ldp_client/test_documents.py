"""The campaign's document on a device: verified, kept, and never asked for by a contribution."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from records import RECORD, Untouchable

from ldp_client import MemoryStorage, RefusedError, TransportError
from ldp_client.network.aggregator import read_campaign
from protocols import Campaign, DocumentError
from protocols.document.campaign import document_id
from protocols.mechanisms import DirectEncoding, SubsetSelection, UnaryEncoding


def test_contributing_never_asks_the_network_after_a_restart_neither(join, server, tmp_path):
    join(storage=tmp_path / "device.db", granted=False)[1].grant()
    asked = len(server.requests)
    _, again = join(storage=tmp_path / "device.db", granted=False)
    again.contribute(RECORD, "yes")
    storage = MemoryStorage()
    join(storage=storage)
    with pytest.raises(RefusedError):  # The cache in memory is gone with its device.
        join(storage=storage, granted=False)[1].contribute(Untouchable(), "yes")
    assert len(server.requests) == asked == 1


def test_a_document_that_lies_about_its_loss_is_refused(join, campaign, perturbations, code_of):
    lying = json.loads(campaign.document)
    lying["privacy"]["epsilon"] = 0.1
    document = json.dumps(lying).encode()
    device, _ = join(granted=False)
    part = device.campaign("http://127.0.0.1:9", document_id(document), max_epsilon=1)
    assert code_of(DocumentError, part.load, document) == "loss-above-epsilon"
    assert not perturbations


def test_a_document_with_another_hash_is_refused_whoever_hands_it_over(join, server, campaign, code_of):
    _, part = join(granted=False)
    assert code_of(DocumentError, part.load, campaign.document + b" ") == "wrong-hash"
    server._campaigns[campaign.id] = replace(campaign, document=b"{}")
    assert code_of(DocumentError, part.next_step) == "wrong-hash"


def test_a_server_that_cannot_be_reached_is_a_clear_error_and_nothing_is_granted(join, tmp_path, code_of):
    _, part = join(url="http://127.0.0.1:9", granted=False, storage=tmp_path / "device.db")
    assert code_of(TransportError, part.grant, timeout=0.1) == "unreachable"
    assert list(tmp_path.iterdir()) == []


def test_a_stored_document_that_was_damaged_is_fetched_again(join, server, campaign, tmp_path):
    join(storage=tmp_path / "device.db")
    (tmp_path / "device.db.cache").write_bytes(b"somebody's letter" * 100)
    _, again = join(storage=tmp_path / "device.db", granted=False)
    with pytest.raises(RefusedError):
        again.contribute(Untouchable(), "yes")
    assert again.fetch() == campaign
    again.contribute(RECORD, "yes")


def test_a_device_runs_the_auditors_check_too(campaign, monkeypatch, code_of):
    """Where parsing overlooked a loss, the independent formulas of ``protocols.document.verification`` still refuse the
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
