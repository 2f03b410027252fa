"""The whole traffic of devices is looked at: what is planted there is found, whoever keeps the promise passes.

Every run asks few devices; at length all clients are asked as often as the command does, three times each. The audit is
wrong about a sound client with probability 2e-5 at most.
"""

import hashlib
import json
import re
from pathlib import Path

import leaking_answers
import leaking_around
import numpy as np
import pytest
from audited import AT_LENGTH, cases
from leaking_traffic import BOTH, HONEST, LEAKING, PLAIN, SEALED, Planted

from ldp_aggregator.audit import audit, traffic
from ldp_aggregator.audit.asking import asked_again
from ldp_aggregator.audit.asking.black_box import Person
from ldp_aggregator.audit.asking.parties import ForeignError, Parties
from ldp_aggregator.audit.asking.people import people_of
from ldp_aggregator.audit.searching.comparisons import Claims
from ldp_aggregator.audit.verdict import _TRAFFIC_CODES, REFUSED, _loss_findings
from ldp_protocols import Campaign

FEW = (
    "blinds-with-one",
    "class-in-the-salt",
    "token-of-other-ids",
    "the-same-seal-again",
    "a-header-beside-the-seal",
    "in-the-clear-after-two-tries",
    "class-in-the-padding",
    "query-in-the-address",
    "other-noise-at-the-fifth-send",
    "erase-keeps-the-secret",
    "erase-keeps-a-copy",
    "refuses-to-erase",
)
ALPHA = 2e-5


def codes(planted: Planted, trials: int, seed: int = 1) -> set[str]:
    parties = Parties(planted.document)
    people = people_of(json.loads(parties.document), np.random.default_rng(seed))
    sent = traffic.ask_traffic(parties, planted.talk, people, trials, False)
    if planted in HONEST.values():
        # What is asked once only never differs from the second time.
        asked = [[2] * len(parties.issuers)] * len(sent.devices)
        assert [[len(each) for each in device.token_requests.values()] for device in sent.devices] == asked
        assert {(device.process, len(device.turns)) for device in sent.devices} == {(0, 4), (1, 4)}
    noticed, events = traffic.findings(parties, sent, Claims(1.0, lambda number: 1.0), ALPHA)
    return {_TRAFFIC_CODES[rule] for rule, _ in noticed} | {found.code for found in _loss_findings(events)}


@pytest.mark.parametrize(("name", "trials"), cases(LEAKING, dict.fromkeys(FEW, 100)))
def test_what_is_planted_in_the_traffic_is_found_or_is_a_miss_that_is_told(name, trials):
    for seed in range(3 if trials == AT_LENGTH else 1):
        found = codes(LEAKING[name], trials, seed)
        assert found & LEAKING[name].codes if LEAKING[name].codes else not found


@pytest.mark.parametrize(("name", "trials"), cases(HONEST, dict.fromkeys(HONEST, 40), at_length=5_000))
def test_whoever_keeps_the_promise_passes(name, trials):
    assert codes(HONEST[name], trials) == set()


@pytest.mark.long  # a thousand audits, of one to five seconds of processor time each
@pytest.mark.parametrize("name", HONEST)
def test_of_a_thousand_audits_of_honest_traffic_none_is_wrong(name):
    """Each is wrong with probability 2e-5 at most."""
    found = {seed: codes(HONEST[name], 40, seed) for seed in range(2, 2 + -(-1000 // len(HONEST)))}
    assert not {seed: told for seed, told in found.items() if told}


@pytest.mark.long  # asks devices one by one, each in a storage of its own
@pytest.mark.parametrize("name", HONEST)
def test_the_audit_of_a_campaign_with_gateway_and_issuer_asks_devices_again(name, monkeypatch):
    monkeypatch.setattr(asked_again, "LIVES", 4)
    planted = HONEST[name]
    assert audit(planted.document, planted.client, 40, talk=planted.talk, rng=np.random.default_rng(1)).findings == ()


def test_a_check_of_which_all_lines_are_refused_is_a_finding(monkeypatch):
    """As the client of lines answered for long in campaigns with a gateway: ``no-relay`` to every device."""
    monkeypatch.setattr(asked_again, "LIVES", 4)
    refusing = LEAKING["refuses-devices"]
    found = audit(refusing.document, refusing.client, 8, rng=np.random.default_rng(1)).findings
    told = [finding.text for finding in found if finding.code == REFUSED]
    assert any("devices with a storage: the client refused all" in text and "no-relay" in text for text in told)


def test_each_line_of_what_it_cannot_find_has_an_example_that_is_not_found():
    page = (Path(__file__).resolve().parents[3] / "docs" / "audit.md").read_text(encoding="utf-8")
    table = page[page.index("## What it cannot find") :]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| ") and not row.startswith("| leak |")]
    missed = {name for name, of in (leaking_answers.LEAKING | leaking_around.LEAKING).items() if of.code is None}
    missed |= {name for name, of in LEAKING.items() if not of.codes}
    told = [set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", row)) for row in rows]
    assert all(told), rows
    assert set().union(*told) == missed


def test_the_audits_own_gateway_and_issuer_read_what_a_device_sends(tmp_path):
    """By another implementation than the device's: what is inside is the upload, and the token is of its ids."""
    parties = Parties(BOTH)
    campaign = Campaign.parse(parties.document.encode())
    line = {"record": {"f0": "1"}, "label": "c0", "device": "1"}
    with HONEST["both"].talk(parties.document, None) as ask:
        ((request,),) = ask([line | {"token": ""}])
        token = parties.signed(0, "", (request,))
        ((sealed,),) = ask([line | {"token": token}])
    opened = parties.gateway.open(sealed)
    assert opened.url == f"https://127.0.0.1:1/v1/campaigns/{campaign.id}/reports"
    assert opened.padding.strip(b"\0") == b""
    shown = parties.issuers[0].read(dict(opened.headers)["authorization"])
    (number,) = traffic._ids(opened.body)
    assert shown.nonce == hashlib.sha256(b"ldp-bayes answer 1\n" + number).digest()
    blinding = int.from_bytes(parties.issuers[0].factor(int(token, 16), shown), "big")
    encoded = pow(shown.signature, 65537, parties.issuers[0].modulus)
    assert encoded * pow(blinding, 65537, parties.issuers[0].modulus) % parties.issuers[0].modulus == int.from_bytes(
        request[3:], "big"
    )
    ask = parties.client(lambda document, people, storage: [(sealed,) for _ in people])
    for document, bodies in ((parties.document, (opened.body,)), (SEALED, ())):
        assert ask(document, [Person(line["record"], "c0", device="1")], tmp_path) == [bodies], "others wait there"
    for damaged in (sealed[:-1], sealed[:40] + bytes([sealed[40] ^ 1]) + sealed[41:], b"", bytes(100)):
        with pytest.raises(ForeignError):
            parties.gateway.open(damaged)
    with pytest.raises(ForeignError):
        parties.issuers[0].read(dict(opened.headers)["authorization"][:-8] + "AAAAAA==")


def test_a_campaign_without_gateway_issuer_and_days_is_asked_as_it_is():
    assert Parties(PLAIN).document == PLAIN
    closed = json.loads(PLAIN) | {"closes": "2026-01-01T00:00:00Z"}
    assert Parties(json.dumps(closed, separators=(",", ":"))).document == PLAIN
    own = json.loads(Parties(SEALED).document)
    assert own["gateway"] != json.loads(SEALED)["gateway"]
    assert {**own, "gateway": None} == {**json.loads(SEALED), "gateway": None}
