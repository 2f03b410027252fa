"""Campaigns with a crowd: the bound that a device recomputes, the caps that let it take part, what people are told."""

import json
from hashlib import sha512

from vector_words import URLS, ledger_case, receipt, sentence

from ldp_client.ledger import Installation
from ldp_client.refusals import Caps, refusal
from ldp_client.words import explained
from ldp_protocols import Campaign, DocumentError
from ldp_protocols.blanket import delta_bound, lot_of
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.document.issuer import Issuer

NOW = 1_800_000_000.0
GATEWAY = Gateway(1, (9).to_bytes(32, "little")).to_json()
COLOUR = {"name": "colour", "kind": "categorical", "values": ["red", "green", "blue"]}
HOURS = {"name": "hours", "kind": "continuous", "low": 0, "high": 60}
AGE = {"name": "age", "kind": "continuous", "low": 0, "high": 100, "bins": 8, "missing": False, "weight": 3}


def _modulus(seed):
    """An odd number of 2,048 bits, which is all that a reader looks at."""
    whole = int.from_bytes(b"".join(sha512(bytes([seed, part])).digest() for part in range(4)), "big")
    return whole | 1 << 2047 | 1


ISSUER = Issuer("tokens.example.org", _modulus(0), 1, _modulus(1)).to_json()


def _draft(crowd=(), features=(COLOUR, AGE), classes=("yes", "no"), **privacy):
    promise = {"epsilon": 1, "delta": 1e-9, "devices": 20_000, "honest": 0.5, **dict(crowd)}
    return {
        "version": 1,
        "title": "Sleep",
        "label": {"name": "slept", "classes": list(classes)},
        "features": list(features),
        "privacy": {"crowd": promise, **privacy},
        "issuer": ISSUER,
        "gateway": GATEWAY,
    }


def _drafts():
    yield "20,000", _draft()
    yield "as much as it allows", _draft(most_local=16)
    yield "a number without bins", _draft(features=[HOURS, {**HOURS, "name": "steps", "missing": False}], most_local=16)
    yield "the smallest", _draft({"devices": 100, "honest": 1, "delta": 1e-6}, most_local=16)
    yield "a million", _draft({"devices": 1_000_000, "epsilon": 0.25}, most_local=16)
    yield "a billion", _draft({"devices": 1 << 30, "epsilon": 0.01, "delta": 1e-15, "honest": 0.1}, most_local=16)
    yield "a local epsilon of the author's", _draft(epsilon=2.5)
    yield "many classes", _draft({"expires": 90}, classes=[f"class {number}" for number in range(40)], most_local=16)
    without = _draft({"without_issuer": "everybody who has the app is known to the relay"})
    yield "without an issuer", {name: value for name, value in without.items() if name != "issuer"}


def crowd():
    """Everything about crowds: documents with their bound, documents that are refused, caps, ledgers, explanations."""
    known = {name: Campaign.compile(draft) for name, draft in _drafts()}
    return {
        "accepted": [_accepted(name, campaign) for name, campaign in known.items()],
        "refused": list(_refused(known["as much as it allows"])),
        "caps": list(_caps(known["20,000"])),
        "explained": [_explained(name, campaign) for name, campaign in known.items()],
        "ledgers": list(_ledgers()),
    }


def _accepted(name, campaign):
    promise = campaign.privacy.crowd
    blanket = lot_of((question.mechanism, question.weight) for question in campaign.questions)
    tail = min(1e-14, 1e-5 * promise.delta)
    return {
        "name": name,
        "document": campaign.document.decode(),
        "id": campaign.id,
        "loss": campaign.realised_epsilon,
        "reports": promise.reports,
        "deltas": [
            [epsilon, delta_bound(blanket, promise.reports, epsilon, tail)]
            for epsilon in (promise.epsilon, promise.epsilon / 2, min(1.5 * promise.epsilon, campaign.privacy.epsilon))
        ],
    }


def _refused(campaign):
    document = json.loads(campaign.document)
    fewer = {"p": str(int(document["questions"][1]["parameters"]["p"]) - (1 << 40))}
    changes = (
        ("a hair more than it promises", lambda d: d["privacy"]["crowd"].update(epsilon=0.9999)),
        ("more than one answer reveals", lambda d: _promise(d, epsilon=5)),
        ("a device fewer", lambda d: d["privacy"].update(release_every=19_990) or _promise(d, devices=19_990)),
        ("fewer of them honest", lambda d: _promise(d, honest=0.4999)),
        ("a smaller delta", lambda d: _promise(d, delta=9.9e-10)),
        ("a delta that is no promise", lambda d: _promise(d, delta=1e-5)),
        ("a delta below what is computed", lambda d: _promise(d, delta=1e-16)),
        ("nobody honest", lambda d: _promise(d, honest=0)),
        ("more than all are honest", lambda d: _promise(d, honest=1.5)),
        ("too few devices", lambda d: d["privacy"].update(release_every=99) or _promise(d, devices=99)),
        ("epsilon 0", lambda d: _promise(d, epsilon=0)),
        ("an epsilon that is no promise", lambda d: _promise(d, epsilon=800)),
        ("a key that nobody knows", lambda d: _promise(d, most=1)),
        ("no number of devices", lambda d: d["privacy"]["crowd"].pop("devices")),
        ("a batch that never expires", lambda d: _promise(d, expires=0)),
        ("not sealed", lambda d: d.pop("gateway")),
        ("no issuer, and no reason", lambda d: d.pop("issuer")),
        ("an issuer, and a reason", lambda d: _promise(d, without_issuer="why")),
        ("no token for the relay", lambda d: d["issuer"].pop("relay_key")),
        ("two tokens", lambda d: d["issuer"].update(tokens=2)),
        ("releases at other counts", lambda d: d["privacy"].update(release_every=10_000)),
        ("releases whenever", lambda d: d["privacy"].pop("release_every")),
        ("all answers", lambda d: d["privacy"].update(answers="all")),
        ("another mechanism by name", lambda d: d["privacy"].update(discrete="ss")),
        ("numbers by noise", lambda d: d["privacy"].update(continuous="laplace")),
        ("a threshold", lambda d: d["privacy"].update(theta=0.5)),
        ("windows", lambda d: d.update(windows={"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 2})),
        ("a subset of two", lambda d: d["questions"][1].update(mechanism="ss", parameters=fewer | {"w": 2})),
        ("a question of less noise", lambda d: d["questions"][1]["parameters"].update(p=str((1 << 64) - 1))),
    )
    for name, change in changes:
        changed = json.loads(campaign.document)
        change(changed)
        text = json.dumps(changed, ensure_ascii=False, separators=(",", ":"))
        yield {"name": name, "document": text, "code": _code(text)}


def _promise(document, **changed):
    document["privacy"]["crowd"].update(changed)


def _code(text):
    try:
        Campaign.parse(text.encode())
    except DocumentError as error:
        return error.code
    raise ValueError("nothing refuses this document")


def _caps(campaign):
    loss = campaign.realised_epsilon
    for caps in (
        Caps(1.0, 8.0),
        Caps(64.0, 64.0, crowd_epsilon=1.0),
        Caps(64.0, 64.0, if_both_collude=64.0),
        Caps(1.0, 8.0, 1.0, loss),
        Caps(1.0, 8.0, 1.0, loss - 1e-9),
        Caps(64.0, 64.0, 1 - 1e-12, loss),
        Caps(1.0, loss - 1e-9, 1.0, 64.0),
        Caps(1e-6, loss, 64.0, 64.0),
    ):
        found = refusal(Installation(), campaign, caps, NOW)
        yield {"document": "20,000", **caps._asdict(), "code": found and found.code}


def _explained(name, campaign):
    told = explained(campaign, URLS[0])
    sentences = [sentence(one) for one in told.sentences]
    return {"document": name, "url": URLS[0], "sentences": sentences, "policy": sentence(told.policy)}


def _ledgers():
    one = receipt(epsilon=4.0, crowd_epsilon=1.0, crowd_delta=1e-9)
    yield ledger_case("one in a crowd", 8.0, one)
    yield ledger_case("two, and one that is not", 16.0, one, receipt(epsilon=0.5), one)
    yield ledger_case("numbers with decimals", 8.0, receipt(epsilon=3.99999, crowd_epsilon=0.1, crowd_delta=2.5e-12))
