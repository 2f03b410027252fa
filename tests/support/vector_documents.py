"""Vectors of documents: with their ids, and those that no device may accept."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from vector_campaigns import as_text

from protocols import Campaign


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
        yield name, as_text(value), None, code
    value = json.loads(known["all"].document)
    value["privacy"]["epsilon"] = 3.2
    yield "answers that add up to more than the total", as_text(value), None, "loss-above-epsilon"


def _one_unit_more(document: Any) -> None:
    parameters = document["questions"][1]["parameters"]
    parameters["p"] = str(int(parameters["p"]) + 1)


def _one_unit_less_noise(document: Any) -> None:
    parameters = document["questions"][3]["parameters"]
    parameters["scale"] = str(int(parameters["scale"]) - 1)
