"""Vectors of documents: with their ids, and those that no device may accept."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from value_vectors import COMPOSED, DECOMPOSED
from vector_campaigns import as_text

from protocols import Campaign

Change = Callable[[Any], Any]
LOSS = "loss-above-epsilon"
PRIVATE = {"fitted_on": "A" * 43, "fitted_study": "s", "fitted_epsilon": 1.5}


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
        "alike": [
            {"name": name, "document": as_text(document), "like": "ss-laplace"}
            for name, document in _alike(json.loads(known["ss-laplace"].document))
        ]
        + [
            {
                "name": "fitted on a private round",
                "document": as_text(_fitted_privately(json.loads(known["projection"].document))),
                "like": "projection",
            }
        ],
        "refused": [
            {"name": name, "document": text, "id": claimed, "code": code}
            for name, text, claimed, code in refused_documents(known)
        ],
    }


def _alike(base: Any) -> Iterator[tuple[str, Any]]:
    """Documents that say the same in other words."""
    changes: list[tuple[str, Change]] = [
        ("an integer written with a point", lambda d: d["questions"][1].update(weight=1.0, group=1.0)),
        ("a small parameter as a text", lambda d: d["questions"][3]["parameters"].update(grid="12")),
        ("a subset's size as a text", lambda d: _as_text_in(d["questions"][1]["parameters"], "w")),
        ("defaults left out", lambda d: [d.pop(key) for key in ("purpose", "projection", "asks", "study", "closes")]),
        ("releases at fixed counts", lambda d: d["privacy"].update(release_every=100)),
        ("values in no order", lambda d: d["features"][0].update(ordered=False)),
        ("nothing about an order", lambda d: d["features"][0].update(ordered=None)),
        ("defaults as null", lambda d: d.update(purpose=None, asks=None) or d["label"].update(weight=None)),
    ]
    for name, change in changes:
        value = copy.deepcopy(base)
        change(value)
        yield name, value


def _fitted_privately(base: Any) -> Any:
    return {**base, "study": "t", "projection": {**base["projection"], **PRIVATE}}


def _as_text_in(parameters: dict[str, Any], name: str) -> None:
    parameters[name] = str(parameters[name])


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
    yield "half a character", text.replace('"Vectors"', '"\\ud800"'), None, "invalid-document"
    changes: list[tuple[str, str, Change]] = [
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
        ("releases after every device", "invalid-document", lambda d: d["privacy"].update(release_every=1)),
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
        ("a question that costs nothing", LOSS, lambda d: d["questions"][1].update(epsilon=0)),
        ("a question that costs less than nothing", LOSS, lambda d: d["questions"][1].update(epsilon=-1)),
        (
            "an integer beyond 53 bits",
            "invalid-parameters",
            lambda d: d["questions"][3]["parameters"].update(scale=2**53),
        ),
        ("one unit too much", LOSS, _one_unit_more),
        ("a scale one unit too small", LOSS, _one_unit_less_noise),
        ("questions dearer than the total", LOSS, lambda d: d["privacy"].update(epsilon=0.99)),
    ]
    changes += _unlike_a_schema()
    for name, code, change in changes:
        value = copy.deepcopy(base)
        change(value)
        yield name, as_text(value), None, code
    yield from _refused_candidates(json.loads(known["score"].document))
    yield from _refused_bits(base, json.loads(known["xor"].document))
    yield from _refused_joint(json.loads(known["joint"].document))
    yield from _refused_joint_places(json.loads(known["joint-missing"].document))
    yield from _refused_places(json.loads(known["missing-oue"].document))
    yield from _refused_projections(json.loads(known["projection"].document))
    yield from _refused_orders(json.loads(known["ordered"].document))
    value = json.loads(known["all"].document)
    value["privacy"]["epsilon"] = 3.2
    yield "answers that add up to more than the total", as_text(value), None, LOSS


def _refused_bits(pairs: Any, bits: Any) -> Iterator[tuple[str, str, None, str]]:
    """Of two values and two classes there are bits, of more there are none."""
    for kind in ("xor", "marginal"):
        value = copy.deepcopy(pairs)
        value["questions"][1].update(kind=kind, domain_size=2, mechanism="de", parameters={"p": "13000000000000000000"})
        yield f"{kind} of more than two values", as_text(value), None, "invalid-document"
    changes: list[tuple[str, Change]] = [
        ("an xor of four cells", lambda d: d["questions"][1].update(domain_size=4)),
        ("an xor as a sign", lambda d: d["questions"][1].update(encoding="sign")),
        ("a weight of a question beyond 2^30", lambda d: d["questions"][1].update(weight=2**30 + 1)),
        ("a refusal as a number", lambda d: d["privacy"].update(xor=0)),
    ]
    for name, change in changes:
        value = copy.deepcopy(bits)
        change(value)
        yield name, as_text(value), None, "invalid-document"


def _refused_places(base: Any) -> Iterator[tuple[str, str, None, str]]:
    """A question has a place for what is missing where that may be, and nowhere else."""
    changes: list[tuple[str, Change]] = [
        ("whether a value may be missing as a number", lambda d: d["features"][0].update(missing=0)),
        ("what may be missing among the values", lambda d: d["features"][0].update(values=["red", "green", "missing"])),
        ("values without a place for what is missing", lambda d: d["questions"][1].update(domain_size=9)),
        ("a place among values that are complete", lambda d: d["features"][0].update(missing=False)),
        ("a place among bins that are complete", lambda d: d["features"][1].update(missing=False)),
        ("a sign without a place for what is missing", lambda d: d["questions"][3].update(domain_size=6)),
        ("a third sign of what is complete", lambda d: d["features"][2].update(missing=False)),
        ("a moment of what may be missing", lambda d: d["questions"][3].update(_moment())),
    ]
    for name, change in changes:
        value = copy.deepcopy(base)
        change(value)
        yield name, as_text(value), None, "invalid-document"


def _refused_orders(base: Any) -> Iterator[tuple[str, str, None, str]]:
    """Texts may be in their order, unless one is ``missing``; numbers are, and do not say so."""
    changes: list[tuple[str, Change]] = [
        ("an order as a number", lambda d: d["features"][0].update(ordered=1)),
        ("an order as a text", lambda d: d["features"][0].update(ordered="true")),
        ("an order as a list", lambda d: d["features"][0].update(ordered=["red", "green", "0"])),
        ("an order with a place for what is missing", _missing_in_an_order),
        ("an order of bins", lambda d: d["features"][2].update(ordered=True)),
        ("no order of bins", lambda d: d["features"][2].update(ordered=False)),
    ]
    for name, change in changes:
        value = copy.deepcopy(base)
        change(value)
        yield name, as_text(value), None, "invalid-document"


def _missing_in_an_order(document: Any) -> None:
    """As many cells as before: only the order is wrong."""
    feature = document["features"][0]
    feature.update(values=[*feature["values"], "missing"], missing=False)


def _refused_joint(base: Any) -> Iterator[tuple[str, str, None, str]]:
    """Two features of two values are a triple, value and square of a number are signs; nothing else is."""
    changes: list[tuple[str, Change]] = [
        ("a triple of one feature", lambda d: d["questions"][1].update(other="colour")),
        ("a triple without a second feature", lambda d: d["questions"][1].pop("other")),
        ("a triple with a number", lambda d: d["questions"][1].update(other="hours")),
        ("a triple with what nobody declared", lambda d: d["questions"][1].update(other="weight")),
        ("a triple of another group", lambda d: d["questions"][1].update(group=2)),
        ("a triple as a sign", lambda d: d["questions"][1].update(encoding="sign")),
        ("a triple of three values", lambda d: d["features"][0].update(values=["red", "green", "blue"])),
        ("a pair with a second feature", lambda d: d["questions"][1].update(kind="pair")),
        ("signs of four cells", lambda d: d["questions"][2].update(domain_size=4)),
        ("signs as an index", lambda d: d["questions"][2].update(encoding="index")),
        ("signs as a moment", lambda d: d["questions"][2].update(encoding="moment")),
        ("signs of bins", lambda d: d["features"][2].update(bins=4)),
        ("signs with a second feature", lambda d: d["questions"][2].update(other="colour")),
        ("joint as a number", lambda d: d["privacy"].update(joint=1)),
    ]
    for name, change in changes:
        value = copy.deepcopy(base)
        change(value)
        yield name, as_text(value), None, "invalid-document"


def _refused_joint_places(base: Any) -> Iterator[tuple[str, str, None, str]]:
    """Of value and square at once a class has a fifth cell where the number may be missing, and nowhere else."""
    changes: list[tuple[str, Change]] = [
        ("signs without a cell for what is missing", lambda d: d["questions"][2].update(domain_size=12)),
        ("signs with two cells for what is missing", lambda d: d["questions"][2].update(domain_size=18)),
        ("a fifth cell of what is complete", lambda d: d["features"][1].update(missing=False)),
        ("four cells of what may be missing", lambda d: d["features"][2].update(missing=True)),
        ("open signs as an index", lambda d: d["questions"][2].update(encoding="index")),
        ("open signs as a moment", lambda d: d["questions"][2].update(encoding="moment")),
        ("open signs of bins", lambda d: d["features"][1].update(bins=4)),
        ("a triple of what may be missing", _open_triple),
    ]
    for name, change in changes:
        value = copy.deepcopy(base)
        change(value)
        yield name, as_text(value), None, "invalid-document"


def _open_triple(document: Any) -> None:
    """Two features of two values, one of them open, in the place of the number."""
    document["features"][0].update(values=["red", "green"], missing=False)
    document["features"][1] = {"name": "hours", "kind": "categorical", "values": ["p", "q"], "weight": 2}
    document["questions"][1].update(kind="triple", other="hours", domain_size=12)
    del document["questions"][2]


def _moment() -> dict[str, Any]:
    noise = {"grid": "12", "scale": str(1 << 60)}
    return {"encoding": "moment", "mechanism": "laplace", "domain_size": 3, "parameters": noise}


def _refused_candidates(base: Any) -> Iterator[tuple[str, str, None, str]]:
    """Evaluation rounds whose models a device could not, or must not, vote on."""
    changes: list[tuple[str, Change]] = [
        ("one candidate", lambda d: d.update(candidates=d["candidates"][:1])),
        ("nine candidates", lambda d: d.update(candidates=[{**d["candidates"][0], "name": str(n)} for n in range(9)])),
        ("a candidate's name twice", lambda d: d["candidates"][1].update(name="everything")),
        ("a candidate of another label", lambda d: d["candidates"][0]["model"].update(label="other")),
        ("a candidate of other classes", lambda d: d["candidates"][0]["model"].update(classes=["no", "yes"])),
        ("a candidate that is no model", lambda d: d["candidates"][0].update(model={})),
        ("a candidate with a prior above one", lambda d: d["candidates"][0]["model"].update(prior=[1, 1])),
        ("a candidate with other bounds", lambda d: d["candidates"][1]["model"]["features"][0].update(high=99)),
        ("a candidate of a feature that is not declared", lambda d: d["features"].pop()),
        ("an evaluation of no study", lambda d: d.update(study=None)),
        ("an evaluation with several answers", lambda d: d["privacy"].update(answers="all")),
        ("an evaluation by another mechanism", lambda d: d["privacy"].update(discrete="oue")),
        ("a question about a candidate that is not there", lambda d: d["questions"][0].update(group=3)),
        ("a question about something else", lambda d: d["questions"][0].update(kind="label")),
        ("a score of three cells", lambda d: d["questions"][0].update(domain_size=3)),
        ("candidates of a round that learns", lambda d: d.update(asks="model")),
    ]
    for name, change in changes:
        value = copy.deepcopy(base)
        change(value)
        yield name, as_text(value), None, "invalid-document"


def _refused_projections(base: Any) -> Iterator[tuple[str, str, None, str]]:
    changes: dict[str, dict[str, Any]] = {
        "an unknown projection": {"method": "ica"},
        "a row of zeros": {"matrix": [[0, 0], [-0.8, 0.6]]},
        "outputs beyond a double": {"matrix": [[1e308, 1e308], [-0.8, 0.6]], "scale": [1e-9, 3.0]},
        "fitted on nobody knows what": {"fitted_on": "customers"},
        "fitted on public data at a cost": {"fitted_epsilon": 1},
        "fitted on a private round of no study": {**PRIVATE, "fitted_study": None},
        "fitted on a private round at no cost": {**PRIVATE, "fitted_epsilon": 0},
        "fitted on a private round in no study": PRIVATE,
    }
    for name, change in changes.items():
        yield name, as_text({**base, "projection": {**base["projection"], **change}}), None, "invalid-document"


def _unlike_a_schema() -> list[tuple[str, str, Change]]:
    """Documents whose texts, times, choices and numbers a lazy reader would let pass; all are ``invalid-document``."""
    line, reversal = "a\nb", "a\u202eb"
    changes: list[tuple[str, Change]] = [
        ("a title of 201 characters", lambda d: d.update(title="x" * 201)),
        ("a blank title", lambda d: d.update(title=" \u00a0")),
        ("a title of two lines", lambda d: d.update(title=line)),
        ("a title that turns the reading direction", lambda d: d.update(title=reversal)),
        ("a title with a control of the terminal", lambda d: d.update(title="a\x1b[2Jb")),
        ("a purpose of 2001 characters", lambda d: d.update(purpose="x" * 2001)),
        ("a purpose of two lines", lambda d: d.update(purpose=line)),
        ("a study without a name", lambda d: d.update(study="")),
        ("a class of two lines", lambda d: d["label"].update(classes=["yes", "no", line])),
        ("a value that turns the reading direction", lambda d: d["features"][0]["values"].__setitem__(0, reversal)),
        ("a negative weight of the label", lambda d: d["label"].update(weight=-3)),
        ("a weight of the label beyond 65536", lambda d: d["label"].update(weight=65537)),
        ("a weight and a half", lambda d: d["features"][2].update(weight=1.5)),
        ("a weight of a question and a half", lambda d: d["questions"][1].update(weight=1.5)),
        ("a weight as a text", lambda d: d["questions"][1].update(weight="1")),
        ("bounds too near to each other", lambda d: d["features"][2].update(high=1e-200)),
        ("bounds too far from each other", lambda d: d["features"][2].update(high=1e200)),
        ("bins narrower than a double", lambda d: d["features"][1].update(low=2**52, high=2**52 + 8)),
        ("no time", lambda d: d.update(closes="yesterday")),
        ("a day that does not exist", lambda d: d.update(closes="2027-02-30T00:00:00Z")),
        ("an hour that does not exist", lambda d: d.update(closes="2027-02-03T24:00:00Z")),
        ("a time of another zone", lambda d: d.update(closes="2027-01-01T00:00:00+01:00")),
        (
            "closed before it opens",
            lambda d: d.update(opens="2027-01-02T00:00:00Z", closes="2027-01-01T00:00:00Z"),
        ),
        ("asking for everything", lambda d: d.update(asks="everything")),
        ("a model asked as moments", lambda d: d.update(asks="moments", study="s")),
        ("an unknown choice of mechanism", lambda d: d["privacy"].update(discrete="rappor")),
        ("a threshold of 0", lambda d: d["privacy"].update(theta=0)),
        ("an epsilon as a text", lambda d: d["privacy"].update(epsilon="1")),
        ("a question's epsilon as a text", lambda d: d["questions"][1].update(epsilon="1")),
        ("a question's kind that every object has", lambda d: d["questions"][1].update(kind="constructor")),
        ("an encoding that every object has", lambda d: d["questions"][1].update(encoding="constructor")),
        ("a projection of nothing", lambda d: d.update(projection={})),
    ]
    return [(name, "invalid-document", change) for name, change in changes]


def _one_unit_more(document: Any) -> None:
    parameters = document["questions"][1]["parameters"]
    parameters["p"] = str(int(parameters["p"]) + 1)


def _one_unit_less_noise(document: Any) -> None:
    parameters = document["questions"][3]["parameters"]
    parameters["scale"] = str(int(parameters["scale"]) - 1)
