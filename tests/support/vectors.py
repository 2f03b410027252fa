"""Makes the test vectors that a port to another language is held to (see protocols/vectors/README.md).

    python tests/support/vectors.py protocols/vectors

Everything is drawn from fixed seeds, so that the same code gives the same files.
"""

from __future__ import annotations

import copy
import json
import random
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from value_vectors import COMPOSED, DECOMPOSED, values

from ldp_aggregator import Tally, estimate, train
from ldp_client import Classifier, perturb
from ldp_client.answering import draw_questions
from protocols import Campaign, Coins, Report, encode_upload
from protocols.document.campaign import document_id
from protocols.encoding import encode
from protocols.mechanisms import Moment
from protocols.model import Model
from protocols.wire.upload import Block, encode_blocks

SECRET = bytes(range(32))
TRAINING_REPORTS = 120

FEATURES = [
    {"name": "colour", "kind": "categorical", "values": ["red", "green", "0", "missing"]},
    {"name": "größe", "kind": "continuous", "low": -1.5, "high": 2, "bins": 5},
    {"name": "hours", "kind": "continuous", "low": 0, "high": 100, "weight": 2},
]
LABEL = {"name": "class", "classes": ["yes", "no", "unknown"]}
PAIRS = {
    "de-onebit": ("de", "onebit"),
    "ss-laplace": ("ss", "laplace"),
    "oue-sign": ("oue", "sign"),
    "sue-laplace": ("sue", "laplace"),
    "the-sign": ("the", "sign"),
    "she-onebit": ("she", "onebit"),
}
RECORDS = [
    {"colour": "green", "größe": 0.25, "hours": 41.5},
    {"colour": "blue", "größe": -20, "hours": 1e9},
    {"colour": 0, "größe": 2},
    {"größe": "tall", "hours": 12.25},
    {},
]


class RecordingCoins(Coins):
    """Words from a script, or from a seed, kept as they are taken."""

    def __init__(self, seed: object, script: Sequence[int] | None = None) -> None:
        self._random = random.Random(repr(seed))
        self._script = script
        self.taken: list[int] = []

    def words(self, count: int) -> Sequence[int]:
        if self._script is None:
            fresh: Sequence[int] = [self._random.getrandbits(64) for _ in range(count)]
        else:
            fresh = self._script[len(self.taken) : len(self.taken) + count]
        self.taken += fresh
        return fresh


def draft(**changes: Any) -> dict[str, Any]:
    base = {"version": 1, "title": "Vectors", "label": LABEL, "features": FEATURES, "privacy": {"epsilon": 1.0}}
    return base | changes


def campaigns() -> dict[str, Campaign]:
    """Every mechanism and encoding, every shape of campaign, by name."""
    drafts = {
        name: draft(privacy={"epsilon": 1.0, "discrete": discrete, "continuous": continuous})
        for name, (discrete, continuous) in PAIRS.items()
    }
    drafts["small-epsilon"] = draft(privacy={"epsilon": 0.1, "discrete": "she", "continuous": "laplace"})
    drafts["all"] = draft(title="Alle Fragen – ja", privacy={"epsilon": 3.3, "answers": "all"}, study="s")
    drafts["wide"] = draft(
        label={"name": "class", "classes": ["yes", "no"], "weight": 0},
        features=[{"name": "colour", "kind": "categorical", "values": [f"v{i}" for i in range(150)]}],
        privacy={"epsilon": 4, "discrete": "de"},
        opens="2026-01-01T00:00:00Z",
        closes="2027-01-01T00:00:00Z",
    )
    numbers = [{"name": n, "kind": "continuous", "low": 0, "high": 10} for n in ("größe", "hours", "age")]
    drafts["projection"] = draft(
        features=[FEATURES[0], *numbers],
        projection={
            "method": "pca",
            "inputs": ["größe", "hours"],
            "mean": [5.0, 4.25],
            "scale": [2.5, 3.0],
            "matrix": [[0.6, 0.8], [-0.8, 0.6]],
            "outputs": [
                {"name": "first", "kind": "continuous", "low": -3, "high": 3},
                {"name": "second", "kind": "continuous", "low": -2, "high": 2, "bins": 4},
            ],
            "fitted_on": "public",
        },
    )
    drafts["moments"] = draft(features=numbers, asks="moments", study="s")
    return {name: Campaign.compile(one) for name, one in drafts.items()}


def documents(known: dict[str, Campaign]) -> dict[str, Any]:
    """Documents with their ids, and what must not be accepted as a document."""
    return {
        "accepted": [
            {
                "name": name,
                "document": campaign.document.decode(),
                "id": campaign.id,
                "bytes": len(campaign.document),
                "realised_epsilon": campaign.realised_epsilon,
            }
            for name, campaign in known.items()
        ],
        "refused": [
            {"name": name, "document": text, "id": claimed, "code": code}
            for name, text, claimed, code in refused_documents(known)
        ],
    }


def refused_documents(known: dict[str, Campaign]) -> Iterator[tuple[str, str, str | None, str]]:
    """(name, text, claimed id, code)."""
    base = json.loads(known["ss-laplace"].document)
    text = known["ss-laplace"].document.decode()
    yield "another campaign's id", text, known["de-onebit"].id, "wrong-hash"
    yield "a blank more at the end", text + " ", known["ss-laplace"].id, "wrong-hash"
    yield "not JSON", text[:-1], None, "invalid-document"
    yield "not an object", "[]", None, "invalid-document"
    yield "a key twice", text.replace('"version":1', '"version":1,"version":1'), None, "invalid-document"
    yield "a key twice, deep inside", text.replace('"weight":2', '"weight":2,"weight":2', 1), None, "invalid-document"
    yield "a number beyond a double", text.replace('"high":100', '"high":1e999'), None, "invalid-document"
    changes: list[tuple[str, str, Callable[[Any], Any]]] = [
        ("another version", "invalid-document", lambda d: d.update(version=2)),
        ("an unknown key", "invalid-document", lambda d: d.update(colour="red")),
        ("no title", "invalid-document", lambda d: d.pop("title")),
        ("one class", "invalid-document", lambda d: d["label"].update(classes=["yes"])),
        ("a class twice", "invalid-document", lambda d: d["label"].update(classes=["yes", "yes", "no"])),
        (
            "a value twice, an accent written in two ways",
            "invalid-document",
            lambda d: d["features"][0].update(values=["red", "green", COMPOSED, DECOMPOSED]),
        ),
        ("a feature's name twice", "invalid-document", lambda d: d["features"][0].update(name="hours")),
        ("bounds the wrong way round", "invalid-document", lambda d: d["features"][2].update(low=200)),
        ("one bin", "invalid-document", lambda d: d["features"][1].update(bins=1)),
        ("an epsilon of 0", "invalid-document", lambda d: d["privacy"].update(epsilon=0)),
        ("an unknown kind of answers", "invalid-document", lambda d: d["privacy"].update(answers="two")),
        ("no questions", "invalid-document", lambda d: d.update(questions=[])),
        ("a question twice", "invalid-document", lambda d: d["questions"].append(d["questions"][0])),
        ("a wrong domain size", "invalid-document", lambda d: d["questions"][1].update(domain_size=13)),
        ("another feature's group", "invalid-document", lambda d: d["questions"][1].update(group=2)),
        ("a weight of 0", "invalid-document", lambda d: d["questions"][0].update(weight=0)),
        ("an index mechanism for a value", "invalid-document", lambda d: d["questions"][3].update(mechanism="de")),
        ("an unknown mechanism", "unknown-mechanism", lambda d: d["questions"][1].update(mechanism="rappor")),
        ("a parameter too many", "invalid-parameters", lambda d: d["questions"][1]["parameters"].update(q="1")),
        (
            "a probability of one",
            "invalid-parameters",
            lambda d: d["questions"][1]["parameters"].update(p=str(1 << 64)),
        ),
        ("a leading zero", "invalid-parameters", lambda d: d["questions"][1]["parameters"].update(p="01")),
        ("no signal", "invalid-parameters", lambda d: d["questions"][1]["parameters"].update(p="1")),
        ("a subset of everything", "invalid-parameters", lambda d: d["questions"][1]["parameters"].update(w=12)),
        (
            "noise beyond 32 bits",
            "invalid-parameters",
            lambda d: d["questions"][3]["parameters"].update(scale="9" * 30),
        ),
        ("too fine a grid", "invalid-parameters", lambda d: d["questions"][3]["parameters"].update(grid=13)),
        ("one unit too much", "loss-above-epsilon", _one_unit_more),
        ("a scale one unit too small", "loss-above-epsilon", _one_unit_less_noise),
        ("questions dearer than the total", "loss-above-epsilon", lambda d: d["privacy"].update(epsilon=0.99)),
    ]
    for name, code, change in changes:
        value = copy.deepcopy(base)
        change(value)
        yield name, _text(value), None, code
    value = json.loads(known["all"].document)
    value["privacy"]["epsilon"] = 3.2
    yield "answers that add up to more than the total", _text(value), None, "loss-above-epsilon"


def _one_unit_more(document: Any) -> None:
    parameters = document["questions"][1]["parameters"]
    parameters["p"] = str(int(parameters["p"]) + 1)


def _one_unit_less_noise(document: Any) -> None:
    parameters = document["questions"][3]["parameters"]
    parameters["scale"] = str(int(parameters["scale"]) - 1)


def reports(known: dict[str, Campaign]) -> dict[str, Any]:
    """From scripted words to the bytes of an upload, every question of every campaign; and records refused."""
    made = []
    for name, campaign in known.items():
        missing = {question.index for question in campaign.questions}
        seed = 0
        while missing or seed < len(RECORDS):
            case = _case(name, campaign, seed)
            drawn = {report["question"] for report in case["reports"]}
            if drawn & missing or seed < len(RECORDS):
                made.append(case)
            missing -= drawn
            seed += 1
    made += [
        _case("she-onebit", known["she-onebit"], 0, _loud(0)),
        _case("ss-laplace", known["ss-laplace"], 0, _loud(3, 0)),
    ]
    return {
        "secret": SECRET.hex(),
        "accepted": made,
        "refused": [
            {"document": "de-onebit", "record": RECORDS[0], "label": label, "code": "undeclared-label"}
            for label in ("maybe", "", None, True, 1)
        ],
    }


def _loud(ticket: int, *before_noise: int) -> list[int]:
    """Words that draw a question, and noise of 60 scales, up and down in turn, which the device must cut."""
    offset, periods = [0, 0], [0, 1] * 60 + [1]
    return [ticket, *before_noise, *(word for sign in (0, 1, 0) for word in (*offset, *periods, sign))]


def _case(name: str, campaign: Campaign, seed: int, script: Sequence[int] | None = None) -> dict[str, Any]:
    record, classes = RECORDS[seed % len(RECORDS)], campaign.label.classes
    label = classes[seed % len(classes)]
    coins = RecordingCoins((name, seed), script)
    sent = perturb(campaign, record, label, secret=SECRET, coins=coins)
    items = _items(campaign, record, label, RecordingCoins((name, seed), script))
    return {
        "document": name,
        "record": record,
        "label": label,
        "words": [f"{word:016x}" for word in coins.taken],
        "reports": [
            {"question": r.question, "item": item, "id": r.id.hex(), "payload": r.payload.hex()}
            for r, item in zip(sent, items, strict=True)
        ],
        "upload": encode_upload(sent).hex(),
    }


def _items(campaign: Campaign, record: dict[str, Any], label: str, coins: Coins) -> list[Any]:
    """What was encoded before it was perturbed: an index, or a cell with a value in units of 2**-52."""
    items: list[Any] = []
    class_index = campaign.label.classes.index(label)
    for question in draw_questions(campaign, coins):
        item = encode(campaign, question, record, class_index, coins)
        question.perturb(item, coins)
        items.append({"cell": item.cell, "value": str(item.value)} if isinstance(item, Moment) else item)
    return items


def uploads(known: dict[str, Campaign]) -> dict[str, Any]:
    """What a server must refuse: whole uploads, and single reports of well-framed ones."""
    campaign = known["ss-laplace"]
    sent = [
        report
        for seed in range(40)
        for report in perturb(campaign, {}, "no", coins=RecordingCoins(seed), secret=SECRET)
    ]
    two = sorted({report.question: report for report in sent}.values(), key=lambda report: report.question)[:2]
    good = encode_upload(two)
    first, second = ([report.question, report.id, report.payload] for report in two)
    malformed = {
        "nothing": b"",
        "cut off": good[:-1],
        "a byte too many": good + b"\0",
        "another version": b"\x92\x02" + good[2:],
        "no blocks": bytes.fromhex("920190"),
        "not an array": bytes.fromhex("01"),
        "a map": bytes.fromhex("80"),
        "a length that lies": bytes.fromhex("9201ddffffffff"),
        "a longer encoding of the version": b"\x92\xcc\x01" + good[2:],
        "blocks in the wrong order": _pack([second, first]),
        "a question twice": _pack([first, first]),
        "a question that does not exist": _pack([[len(campaign.questions), *first[1:]]]),
        "half an id": _pack([[first[0], first[1][:8], first[2]]]),
        "no report": _pack([[first[0], b"", b""]]),
        "a payload too short": _pack([[first[0], first[1], first[2][:-1]]]),
        "two ids and one payload": _pack([[first[0], first[1] * 2, first[2]]]),
    }
    impossible = []
    least_refused = struct.pack("<3i", known["ss-laplace"].questions[3].mechanism.bound + 1, 0, 0).hex()
    for name, question, payload, code in (
        ("de-onebit", 1, "0c", "index-out-of-range"),
        ("de-onebit", 3, "0300", "index-out-of-range"),
        ("de-onebit", 3, "0002", "bit-out-of-range"),
        ("ss-laplace", 1, "ff0f", "wrong-subset-size"),
        ("ss-laplace", 1, "0000", "wrong-subset-size"),
        ("ss-laplace", 1, "0080", "padding-bits-set"),
        ("oue-sign", 1, "0010", "padding-bits-set"),
        ("ss-laplace", 3, "ffffff7f" + "00" * 8, "value-out-of-range"),
        ("ss-laplace", 3, "00000080" + "00" * 8, "value-out-of-range"),
        ("ss-laplace", 3, least_refused, "value-out-of-range"),
        ("she-onebit", 1, "00" * 44 + "ffff0000", "value-out-of-range"),
        ("wide", 0, "2c01", "index-out-of-range"),
    ):
        block = Block(question, bytes(16), bytes.fromhex(payload))
        impossible.append({"document": name, "upload": encode_blocks([block]).hex(), "code": code})
    return {
        "document": "ss-laplace",
        "malformed": [
            {"name": name, "upload": data.hex(), "code": "malformed-upload"} for name, data in malformed.items()
        ],
        "impossible": impossible,
    }


def _pack(blocks: list[list[Any]]) -> bytes:
    return encode_blocks([Block(*block) for block in blocks])


def training(known: dict[str, Campaign]) -> list[dict[str, Any]]:
    """From an upload to tally, estimates, model and predictions."""
    cases = []
    for name in ("ss-laplace", "oue-sign", "de-onebit", "projection"):
        campaign = known[name]
        people = random.Random(name)
        sent: list[Report] = []
        for seed in range(TRAINING_REPORTS):
            number = people.random()
            label = campaign.label.classes[int(number * 3)]
            record = {"colour": "red" if number < 0.5 else "green", "größe": 2 * number, "hours": 60 * number, "age": 5}
            secret = seed.to_bytes(32, "little")
            sent += perturb(campaign, record, label, secret=secret, coins=RecordingCoins((name, "training", seed)))
        upload = encode_upload(sent)
        tally = Tally.of_uploads(campaign, [upload])
        estimates = estimate(campaign, tally)
        model = train(campaign, tally).to_json()
        classifier = Classifier(Model.from_json(model))
        cases.append(
            {
                "document": name,
                "upload": upload.hex(),
                "n": tally.n.tolist(),
                "counts": [counts.tolist() for counts in tally.counts],
                "estimates": [
                    {
                        "value": e.cells.value.tolist(),
                        "low": e.cells.low.tolist(),
                        "high": e.cells.high.tolist(),
                        "processed": None if e.processed is None else e.processed.tolist(),
                    }
                    for e in estimates.questions
                ],
                "model": model,
                "predictions": [
                    {
                        "record": record,
                        "scores": classifier.joint_log_likelihood(record),
                        "class": classifier.predict(record),
                    }
                    for record in RECORDS
                ],
            }
        )
    return cases


def models(trained: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Model documents that must be refused."""
    changes: list[tuple[str, Callable[[Any], Any]]] = [
        ("another version", lambda m: m.update(version=2)),
        ("another kind", lambda m: m.update(kind="tree")),
        ("a prior that does not add up", lambda m: m.update(prior=[0.5, 0.5, 0.5])),
        ("a negative likelihood", lambda m: m["features"][0]["likelihood"][0].__setitem__(0, -0.1)),
        ("a variance of 0", lambda m: m["features"][2]["variance"].__setitem__(0, 0)),
        ("a table too short", lambda m: m["features"][0]["likelihood"].pop()),
    ]
    refused = []
    for name, change in changes:
        value = json.loads(trained[0]["model"])
        change(value)
        refused.append({"name": name, "model": _text(value), "code": "invalid-model"})
    return refused


def generate() -> dict[str, Any]:
    """File name to content."""
    known = campaigns()
    for campaign in known.values():
        assert campaign.id == document_id(campaign.document)
    trained = training(known)
    return {
        "documents.json": documents(known),
        "reports.json": reports(known),
        "uploads.json": uploads(known),
        "training.json": {"accepted": trained, "refused": models(trained)},
        "values.json": values(),
    }


def render(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main(folder: str) -> None:
    for name, content in generate().items():
        (Path(folder) / name).write_text(render(content), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
