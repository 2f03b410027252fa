"""Vectors of documents: with their ids, and those that no device may accept."""

import copy
import json

from value_vectors import COMPOSED, DECOMPOSED
from vector_campaigns import as_text

INVALID, PARAMETERS = "invalid-document", "invalid-parameters"
LOSS = "loss-above-epsilon"
TWICE = ["red", "green", COMPOSED, DECOMPOSED]
PRIVATE = {"fitted_on": "A" * 43, "fitted_study": "s", "fitted_epsilon": 1.5}


def documents(known):
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
            {"name": name, "document": as_text(document), "like": like}
            for like, changes in _ALL_ALIKE.items()
            for name, document in _changed(json.loads(known[like].document), changes)
        ],
        "refused": [
            dict(zip(("name", "document", "id", "code"), case, strict=True)) for case in refused_documents(known)
        ],
    }


_ALIKE = [
    ("an integer written with a point", lambda d: d["questions"][1].update(weight=1.0, group=1.0)),
    ("a small parameter as a text", lambda d: d["questions"][3]["parameters"].update(grid="12")),
    ("a subset's size as a text", lambda d: _parameter(d, 1, "w", str)),
    ("defaults left out", lambda d: [d.pop(key) for key in ("purpose", "projection", "asks", "study", "closes")]),
    ("a threshold of 1", lambda d: d["privacy"].update(theta=1)),
    ("releases at fixed counts", lambda d: d["privacy"].update(release_every=100)),
    ("no windows", lambda d: d.update(windows=None)),
    ("values in no order", lambda d: d["features"][0].update(ordered=False)),
    ("nothing about an order", lambda d: d["features"][0].update(ordered=None)),
    ("defaults as null", lambda d: d.update(purpose=None, asks=None) or d["label"].update(weight=None)),
    ("no evaluation", lambda d: d.update(evaluation=None)),
    *(
        (f"closed at {time}", lambda d, time=time: d.update(closes=time))
        for time in ("0001-01-01T00:00:00Z", "2028-02-29T23:59:59Z", "9999-12-31T23:59:59Z")
    ),
    ("a title of 200 characters beyond 16 bits", lambda d: d.update(title="\U0001d7d9" * 200)),
    ("a title of characters next to those that none may hold", lambda d: d.update(title=f"a{_NEAR_MARKS}b")),
]
"""Documents that say the same in other words."""

_ALIKE_EVALUATIONS = [
    ("weights written with a point", lambda d: d["evaluation"].update(weights=[3.0, 1.0])),
    ("weights left out", lambda d: d["evaluation"].pop("weights")),
    ("weights as null", lambda d: d["evaluation"].update(weights=None)),
    ("an edge below 0 by its sign", lambda d: d["evaluation"]["edges"].__setitem__(2, -0.0)),
    (
        "a model with a prior of one but for 0.0000005",
        lambda d: d["evaluation"]["model"].update(prior=[0.4, 0.6000005]),
    ),
    ("a model with its training", lambda d: d["evaluation"]["model"].update(training={"n": 9}, projection=None)),
]
"""The weights stand at the questions again; whether a number has a point, what trained the model, says nothing."""

_FITTED = [("fitted on a private round", lambda d: d.update(study="t") or d["projection"].update(PRIVATE))]
_WINDOWS = {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 52}


def _series(**change):
    return lambda d: d.update(opens=None, closes=None, windows={**_WINDOWS, **change})


_ALIKE_SERIES = [
    ("as many windows as cells allow", _series(count=868)),
    ("windows until the year 9000", _series(**{"from": "8900-01-01T00:00:00Z"}, length="P365D", count=100)),
]
_NEAR_MARKS = "\u00a0\u061b\u061d\u200d\u2010\u2027\u202f\u2065\u206a"
"""Next to the characters that no text holds."""

_UNLIKE_SERIES = [
    ("a window more than cells allow", _series(count=869)),
    ("windows until the year 9001", _series(**{"from": "8900-01-01T00:00:00Z"}, length="P365D", count=101)),
]
_PAIRS = [
    ("a pair with a second feature", lambda d: d["questions"][1].update(other="größe")),
    ("statistics of classes", lambda d: d.update(asks="statistics")),
    (
        "two features together beside a label",
        lambda d: d["questions"][1].update(kind="joint", group=4, other="größe", domain_size=4),
    ),
    ("a weight of a question beyond 2^30", lambda d: d["questions"][1].update(weight=2**30 + 1)),
]
_ALIKE_STATISTICS = [
    ("no label as null, and what follows from it left out", lambda d: d.update(label=None, asks=None)),
]
_LINE, _REVERSAL = "a\nb", "a\u202eb"
_ALIKE_OPERATOR = [
    ("nobody named, as null", lambda d: d.update(operator=None, contact=None, privacy_url=None, keep_days=None)),
    ("days written with a point", lambda d: d.update(keep_days=30.0)),
    ("the most days", lambda d: d.update(keep_days=36_500)),
    ("an operator of 200 characters beyond 16 bits", lambda d: d.update(operator="\U0001d7d9" * 200)),
    ("an address of a host alone", lambda d: d.update(privacy_url="https://A-1.example")),
    ("an address of 200 characters", lambda d: d.update(privacy_url="https://a/".ljust(200, "~"))),
]
_ADDRESSES = (
    "http://a.example/",
    "https://",
    "https:/a.example",
    "https://me@a.example",
    "https://.example",
    "https:///",
    "//a",
)
_ADDRESSES += ("https://a.example/ä", 'https://a.example/"', "https://a.example/ b", "a.example", "javascript:a", "")
_ADDRESSES += ("https://a.example/\n", "https://a.example\n", "https://ä.example/", "HTTPS://a.example", " https://a")
_UNLIKE_OPERATOR = [
    *(
        (f"the address {url!r}", lambda d, url=url: d.update(privacy_url=url))
        for url in (*_ADDRESSES, 1, "https://a/".ljust(201, "~"))
    ),
    *(
        (f"{name} as {value!r}"[:40], lambda d, name=name, value=value: d.update({name: value}))
        for name in ("operator", "contact")
        for value in ("", " ", 1, _LINE, _REVERSAL, "x" * 201)
    ),
    *(
        (f"answers kept for {days!r} days", lambda d, days=days: d.update(keep_days=days))
        for days in (0, -1, 1.5, 36_501, "30", True)
    ),
]
_ALL_ALIKE = {
    "ss-laplace": _ALIKE,
    "evaluation": _ALIKE_EVALUATIONS,
    "projection": _FITTED,
    "wide": _ALIKE_SERIES,
    "statistics": _ALIKE_STATISTICS,
    "operator": _ALIKE_OPERATOR,
}


def _changed(base, changes):
    for name, change in changes:
        value = copy.deepcopy(base)
        change(value)
        yield name, value


def _parameter(document, question, name, change):
    parameters = document["questions"][question]["parameters"]
    parameters[name] = change(parameters[name])


def _product_in(group):
    def change(document):
        next(one for one in document["questions"] if one["kind"] == "product")["group"] = group

    return change


def _joint(document):
    return next(one for one in document["questions"] if one["kind"] == "joint")


def _asked_alone(document):
    """With a mechanism whose loss does not depend on the number of cells."""
    document["questions"][0].update(
        kind="label",
        feature=None,
        group=0,
        mechanism="oue",
        domain_size=1,
        parameters={"p": str(2**63), "q": str(2**62)},
    )


def _named_like_the_label(document):
    document["features"][0]["name"] = document["questions"][1]["feature"] = document["label"]["name"]


def _missing_in_an_order(document):
    """As many cells as before: only the order is wrong."""
    feature = document["features"][0]
    feature.update(values=[*feature["values"], "missing"], missing=False)


_PROJECTED = {
    "method": "pca",
    "inputs": ["hours"],
    "mean": [50],
    "scale": [25],
    "matrix": [[1]],
    "fitted_on": "public",
    "outputs": [{"name": "first", "kind": "continuous", "low": -2, "high": 2}],
}
_UNLIKE_EDGES = [
    (f"edges {name}", lambda d, value=value: d["features"][1].update(value))
    for name, value in (
        ("that are one fewer than the bins", {"edges": [-1.5, -0.1, 1, 2]}),
        ("that are one too many", {"edges": [-1.5, -0.1, 0.5, 1, 1.5, 2]}),
        ("that begin above low", {"edges": [-1.4, -0.1, 0.5, 1, 2]}),
        ("that begin below low", {"edges": [-1.6, -1.5, 0.5, 1, 2]}),
        ("that end below high", {"edges": [-1.5, -0.1, 0.5, 1, 1.9]}),
        ("that end above high", {"edges": [-1.5, -0.1, 0.5, 2, 2.1]}),
        ("that fall", {"edges": [-1.5, 0.5, -0.1, 1, 2]}),
        ("of which two are one", {"edges": [-1.5, 0.5, 0.5, 1, 2]}),
        ("as texts", {"edges": ["-1.5", "-0.1", "0.5", "1", "2"]}),
        ("as a switch", {"edges": [-1.5, False, 0.5, 1, 2]}),
        ("in a text", {"edges": "-1.5 -0.1 0.5 1 2"}),
        ("without bins", {"bins": None}),
        ("that are no list", {"edges": False}),
    )
] + [("edges of values", lambda d: d["features"][0].update(edges=[0, 1]))]
_UNLIKE_STATISTICS = [
    ("a model of no label", lambda d: d.update(asks="model")),
    ("moments of no label", lambda d: d.update(asks="moments", study="s")),
    ("an evaluation of no label", lambda d: d.update(asks="score", study="s")),
    ("an empty label", lambda d: d.update(label={"name": "", "classes": [""]})),
    ("no label as false", lambda d: d.update(label=False)),
    ("a projection for no label", lambda d: d.update(projection=_PROJECTED)),
    ("pairs, which are questions", lambda d: d.update(pairs=[["colour", "age"]])),
    ("a question about no label", lambda d: d["questions"][0].update(kind="label", feature=None, group=0)),
    ("a question about a label of one class", _asked_alone),
    ("a joint in a feature's group", lambda d: _joint(d).update(group=2)),
    ("a joint beyond all groups", lambda d: _joint(d).update(group=5 + 8192)),
    ("a joint of one feature", lambda d: _joint(d).pop("other")),
    ("a joint of an unknown feature", lambda d: _joint(d).update(other="size")),
    ("a joint with a number without bins", lambda d: _joint(d).update(other="hours")),
    ("a joint of a number without bins", lambda d: _joint(d).update(feature="hours")),
    ("a joint of other cells", lambda d: _joint(d).update(domain_size=21)),
    ("a joint as a sign", lambda d: _joint(d).update(encoding="sign")),
    ("a product, which no moments are asked for", lambda d: _joint(d).update(kind="product")),
    ("a pair in the place of a joint", lambda d: _joint(d).update(kind="pair")),
    ("a value in the place of a joint", lambda d: _joint(d).update(kind="value", encoding="sign")),
]
_UNLIKE_WINDOWS = [
    (name, lambda d, change=change: d.update({"closes": None, "windows": change}))
    for name, change in (
        ("windows without a beginning", {"length": "P7D", "count": 52}),
        ("windows from a day", {**_WINDOWS, "from": "2027-01-04"}),
        ("windows of a month", {**_WINDOWS, "length": "P1M"}),
        ("windows of no time", {**_WINDOWS, "length": "P0D"}),
        ("windows of two units", {**_WINDOWS, "length": "P1DT1H"}),
        ("windows of days written in other digits", {**_WINDOWS, "length": "P1\u0662D"}),
        ("windows of a number", {**_WINDOWS, "length": 7}),
        ("one window", {**_WINDOWS, "count": 1}),
        ("4097 windows", {**_WINDOWS, "count": 4097}),
        ("windows until the year 9100", {**_WINDOWS, "length": "P9999W", "count": 38}),
        ("windows with an end", {**_WINDOWS, "until": "2028-01-01T00:00:00Z"}),
        ("windows in a list", [_WINDOWS]),
    )
] + [
    ("windows that open otherwise", lambda d: d.update(closes=None, opens=_WINDOWS["from"], windows=_WINDOWS)),
    ("windows that close otherwise", lambda d: d.update(closes="2029-01-04T00:00:00Z", windows=_WINDOWS)),
    (
        "windows with releases",
        lambda d: d["privacy"].update(release_every=9) or d.update(closes=None, windows=_WINDOWS),
    ),
]


def _edges(value):
    return lambda d: d["evaluation"].update(edges=value)


def _weights(value):
    return lambda d: d["evaluation"].update(weights=value)


def _of_model(change):
    return lambda d: change(d["evaluation"]["model"])


def _said(**change):
    return lambda d: d["projection"].update(change)


_MOMENT = {"encoding": "moment", "mechanism": "laplace", "domain_size": 3}
_MOMENT["parameters"] = {"grid": "12", "scale": str(1 << 60)}
_PLACES = [
    ("whether a value may be missing as a number", lambda d: d["features"][0].update(missing=0)),
    ("what may be missing among the values", lambda d: d["features"][0].update(values=["red", "green", "missing"])),
    ("values without a place for what is missing", lambda d: d["questions"][1].update(domain_size=9)),
    ("a place among values that are complete", lambda d: d["features"][0].update(missing=False)),
    ("a place among bins that are complete", lambda d: d["features"][1].update(missing=False)),
    ("a sign without a place for what is missing", lambda d: d["questions"][3].update(domain_size=6)),
    ("a third sign of what is complete", lambda d: d["features"][2].update(missing=False)),
    ("a moment of what may be missing", lambda d: d["questions"][3].update(_MOMENT)),
]
"""A question has a place for what is missing where that may be, and nowhere else."""

_ORDERS = [
    ("an order as a number", lambda d: d["features"][0].update(ordered=1)),
    ("an order as a text", lambda d: d["features"][0].update(ordered="true")),
    ("an order as a list", lambda d: d["features"][0].update(ordered=["red", "green", "0"])),
    ("an order with a place for what is missing", _missing_in_an_order),
    ("an order of bins", lambda d: d["features"][2].update(ordered=True)),
    ("no order of bins", lambda d: d["features"][2].update(ordered=False)),
]
"""Texts may be in their order, unless one is ``missing``; numbers are, and do not say so."""

_EVALUATIONS = [
    ("an evaluation of nothing", lambda d: d.pop("evaluation")),
    ("an evaluation as a list", lambda d: d.update(evaluation=[d["evaluation"]])),
    ("an evaluation with an unknown key", lambda d: d["evaluation"].update(name="m")),
    ("an evaluation without a model", lambda d: d["evaluation"].pop("model")),
    ("a model of another label", _of_model(lambda m: m.update(label="other"))),
    ("a model of other classes", _of_model(lambda m: m.update(classes=["no", "yes"]))),
    ("a model that is none", lambda d: d["evaluation"].update(model={})),
    ("a model as a text", lambda d: d["evaluation"].update(model=as_text(d["evaluation"]["model"]))),
    ("a model with a prior above one", _of_model(lambda m: m.update(prior=[1, 1]))),
    ("a model with a prior above one by 0.00001", _of_model(lambda m: m.update(prior=[0.4, 0.60001]))),
    (
        "a model with a column above one by 0.00001",
        _of_model(lambda m: m["features"][0]["likelihood"][0].__setitem__(0, 0.50001)),
    ),
    ("a model with other bounds", _of_model(lambda m: m["features"][2].update(high=99))),
    ("a model with other values", _of_model(lambda m: m["features"][0]["values"].__setitem__(0, "rot"))),
    ("a model of a feature that is not declared", lambda d: d["features"].pop()),
    ("a model with a variance of 0", _of_model(lambda m: m["features"][2].update(variance=[0, 1]))),
    ("a model with a feature twice", _of_model(lambda m: m["features"].append(m["features"][0]))),
    ("no edges for two classes", _edges(None)),
    ("edges left out", lambda d: d["evaluation"].pop("edges")),
    ("edges without 0", _edges([-1.5, -0.25, 0.125, 0.5, 2])),
    ("edges that fall", _edges([2, 0.5, 0, -0.25, -1.5])),
    ("an edge twice", _edges([-1.5, 0, 0, 0.5, 2])),
    ("an empty list of edges", _edges([])),
    ("eight edges", _edges([-2, -1, 0, 1, 2, 3, 4, 5])),
    ("edges as a number", _edges(0)),
    ("an edge as a text", _edges([-1.5, -0.25, "0", 0.5, 2])),
    ("an edge as a switch", _edges([-1.5, -0.25, False, 0.5, 2])),
    ("an edge fewer than the questions know", _edges([-1.5, -0.25, 0, 0.5])),
    ("weights of 0", _weights([0, 0])),
    ("one weight", _weights([1])),
    ("three weights", _weights([1, 1, 1])),
    ("a weight below 0", _weights([-1, 1])),
    ("half a weight", _weights([0.5, 1])),
    ("weights as texts", _weights(["1", "1"])),
    ("weights as switches", _weights([True, True])),
    ("a weight beyond 65536", _weights([65537, 1])),
    ("weights as a number", _weights(1)),
    ("an evaluation of no study", lambda d: d.update(study=None)),
    ("an evaluation with several answers", lambda d: d["privacy"].update(answers="all")),
    ("an evaluation in a round that learns", lambda d: d.update(asks="model")),
    ("a question about something else", lambda d: d["questions"][0].update(kind="label")),
    ("a question of another group", lambda d: d["questions"][1].update(group=1)),
    ("a question of a feature", lambda d: d["questions"][0].update(feature="colour")),
    ("a question of another feature", lambda d: d["questions"][0].update(other="colour")),
    ("a right of three cells", lambda d: d["questions"][0].update(domain_size=3)),
    ("a score without the class", lambda d: d["questions"][1].update(domain_size=6)),
    ("a right as a sign", lambda d: d["questions"][0].update(encoding="sign")),
    ("a score as a sign", lambda d: d["questions"][1].update(encoding="sign")),
    ("a right twice", lambda d: d["questions"].append(d["questions"][0])),
]
"""Evaluation rounds about a model that a device could not, or must not, tell about."""

_OF_A_PROJECTION = [
    ("a model whose projection has other bounds", lambda d: d["features"][1].update(high=11)),
    ("a projection beside the model's", lambda d: d.update(projection=_own_projection(d))),
]
_PROJECTIONS = [
    ("an unknown projection", _said(method="ica")),
    ("a row of zeros", _said(matrix=[[0, 0], [-0.8, 0.6]])),
    ("outputs beyond a double", _said(matrix=[[1e308, 1e308], [-0.8, 0.6]], scale=[1e-9, 3.0])),
    ("fitted on nobody knows what", _said(fitted_on="customers")),
    ("fitted on public data at a cost", _said(fitted_epsilon=1)),
    ("fitted on a private round of no study", _said(**PRIVATE | {"fitted_study": None})),
    ("fitted on a private round at no cost", _said(**PRIVATE | {"fitted_epsilon": 0})),
    ("fitted on a private round in no study", _said(**PRIVATE)),
]
_UNLIKE_A_SCHEMA = [
    ("a title of 201 characters", lambda d: d.update(title="x" * 201)),
    ("a title of 201 characters beyond 16 bits", lambda d: d.update(title="\U0001d7d9" * 201)),
    *(
        (f"a title with U+{ord(mark):04X}", lambda d, mark=mark: d.update(title=f"a{mark}b"))
        for mark in "\x00\x1f\x7f\x80\x9f\u061c\u200e\u200f\u2028\u202e\u2066\u2069"
    ),
    ("a blank title", lambda d: d.update(title=" \u00a0")),
    ("a title of two lines", lambda d: d.update(title=_LINE)),
    ("a title that turns the reading direction", lambda d: d.update(title=_REVERSAL)),
    ("a title with a control of the terminal", lambda d: d.update(title="a\x1b[2Jb")),
    ("a purpose of 2001 characters", lambda d: d.update(purpose="x" * 2001)),
    ("a purpose of two lines", lambda d: d.update(purpose=_LINE)),
    ("a study without a name", lambda d: d.update(study="")),
    ("a class of two lines", lambda d: d["label"].update(classes=["yes", "no", _LINE])),
    ("a value that turns the reading direction", lambda d: d["features"][0]["values"].__setitem__(0, _REVERSAL)),
    ("a negative weight of the label", lambda d: d["label"].update(weight=-3)),
    ("a weight of the label beyond 65536", lambda d: d["label"].update(weight=65537)),
    ("a weight and a half", lambda d: d["features"][2].update(weight=1.5)),
    ("a weight of a question and a half", lambda d: d["questions"][1].update(weight=1.5)),
    ("a weight as a text", lambda d: d["questions"][1].update(weight="1")),
    ("bounds too near to each other", lambda d: d["features"][2].update(high=1e-200)),
    ("bounds a little too near to each other", lambda d: d["features"][2].update(high=9e-151)),
    ("bounds a little too far from each other", lambda d: d["features"][2].update(high=1.1e150)),
    ("bounds too far from each other", lambda d: d["features"][2].update(high=1e200)),
    ("bins narrower than a double", lambda d: d["features"][1].update(low=2**52, high=2**52 + 8)),
    ("bins narrower than a double below 0", lambda d: d["features"][1].update(low=-(2**53) - 10, high=-(2**53) + 20)),
    ("no time", lambda d: d.update(closes="yesterday")),
    *(
        (f"a time that does not exist: {time}", lambda d, time=time: d.update(closes=time))
        for time in (
            *("2027-02-30T00:00:00Z", "2027-02-29T00:00:00Z", "2027-02-03T24:00:00Z", "2027-02-03T23:60:00Z"),
            *("2027-06-30T23:59:60Z", "2027-13-01T00:00:00Z", "2027-00-01T00:00:00Z", "0000-01-01T00:00:00Z"),
            *("2027-01-01t00:00:00z", "+002027-01-01T00:00:00Z", "2027-01-01T00:00:00.000Z", "2027-1-1T00:00:00Z"),
        )
    ),
    ("a time of another zone", lambda d: d.update(closes="2027-01-01T00:00:00+01:00")),
    ("closed when it opens", lambda d: d.update(opens="2027-01-01T00:00:00Z", closes="2027-01-01T00:00:00Z")),
    ("closed before it opens", lambda d: d.update(opens="2027-01-02T00:00:00Z", closes="2027-01-01T00:00:00Z")),
    *_UNLIKE_WINDOWS,
    ("asking for everything", lambda d: d.update(asks="everything")),
    ("a model asked as moments", lambda d: d.update(asks="moments", study="s")),
    ("an unknown choice of mechanism", lambda d: d["privacy"].update(discrete="rappor")),
    ("a threshold above 1", lambda d: d["privacy"].update(theta=1.0000001)),
    ("a threshold of 0", lambda d: d["privacy"].update(theta=0)),
    ("an epsilon as a text", lambda d: d["privacy"].update(epsilon="1")),
    ("a question's epsilon as a text", lambda d: d["questions"][1].update(epsilon="1")),
    ("a question's kind that every object has", lambda d: d["questions"][1].update(kind="constructor")),
    ("an encoding that every object has", lambda d: d["questions"][1].update(encoding="constructor")),
    ("a projection of nothing", lambda d: d.update(projection={})),
]
"""Texts, times, choices and numbers that a lazy reader would let pass; all are ``invalid-document``."""


def _own_projection(document):
    own = document["evaluation"]["model"]["projection"]
    return {key: value for key, value in own.items() if key != "features"}


_BEYOND = str(((2**31 - 1 - 2**12) << 36) + 1)
"""The least scale of which sixteen, and the unit of the finest grid, are no 32-bit integer; in units of 2^-40."""


def _lossy(promised, scale, of="questions"):
    """What a value loses, 2^53 / scale, is above the text of its epsilon or above the double, and not above both."""

    def change(document):
        document["questions"][3]["parameters"]["scale"] = str(scale)
        document["questions"][3]["epsilon"] = promised if of == "questions" else 0.5
        document["privacy"]["epsilon"] = 0.5 if of == "questions" else promised

    return change


_BETWEEN = [
    ("a loss between the text of its epsilon and the double above it", _lossy(0.1, 90071992547409919)),
    ("a loss between the double of its epsilon and the text above it", _lossy(0.3, 30023997515803307)),
    ("answers between the text of the total and the double above it", _lossy(0.1, 90071992547409919, "privacy")),
    ("answers between the double of the total and the text above it", _lossy(0.3, 30023997515803307, "privacy")),
]


def refused_documents(known):
    """(name, text, claimed id, code)."""
    base = json.loads(known["ss-laplace"].document)
    text = known["ss-laplace"].document.decode()
    yield "another campaign's id", text, known["de-onebit"].id, "wrong-hash"
    yield "a blank more at the end", text + " ", known["ss-laplace"].id, "wrong-hash"
    yield "not JSON", text[:-1], None, INVALID
    yield "not an object", "[]", None, INVALID
    yield "a key twice", text.replace('"version":1', '"version":1,"version":1'), None, INVALID
    yield "a key twice, deep inside", text.replace('"weight":2', '"weight":2,"weight":2', 1), None, INVALID
    yield "a number beyond a double", text.replace('"high":100', '"high":1e999'), None, INVALID
    yield "a number beyond a double below 0", text.replace('"low":-1.5', '"low":-1e999'), None, INVALID
    yield "half a character", text.replace('"Vectors"', '"\\ud800"'), None, INVALID
    changes = [
        ("another version", INVALID, lambda d: d.update(version=2)),
        ("an unknown key", INVALID, lambda d: d.update(colour="red")),
        ("a federation, which asks no device", INVALID, lambda d: d.update(federation={"groups": 3})),
        ("no title", INVALID, lambda d: d.pop("title")),
        ("one class", INVALID, lambda d: d["label"].update(classes=["yes"])),
        ("a class twice", INVALID, lambda d: d["label"].update(classes=["yes", "yes", "no"])),
        ("a value twice, an accent written in two ways", INVALID, lambda d: d["features"][0].update(values=TWICE)),
        ("a feature's name twice", INVALID, lambda d: d["features"][0].update(name="hours")),
        ("a feature with the label's name", INVALID, _named_like_the_label),
        ("bounds the wrong way round", INVALID, lambda d: d["features"][2].update(low=200)),
        ("one bin", INVALID, lambda d: d["features"][1].update(bins=1)),
        ("an epsilon of 0", INVALID, lambda d: d["privacy"].update(epsilon=0)),
        ("releases after every device", INVALID, lambda d: d["privacy"].update(release_every=1)),
        ("an unknown kind of answers", INVALID, lambda d: d["privacy"].update(answers="two")),
        ("no questions", INVALID, lambda d: d.update(questions=[])),
        ("a question twice", INVALID, lambda d: d["questions"].append(d["questions"][0])),
        ("a wrong domain size", INVALID, lambda d: d["questions"][1].update(domain_size=13)),
        ("another feature's group", INVALID, lambda d: d["questions"][1].update(group=2)),
        ("a weight of 0", INVALID, lambda d: d["questions"][0].update(weight=0)),
        ("an index mechanism for a value", INVALID, lambda d: d["questions"][3].update(mechanism="de")),
        ("an unknown mechanism", "unknown-mechanism", lambda d: d["questions"][1].update(mechanism="rappor")),
        ("a parameter too many", PARAMETERS, lambda d: d["questions"][1]["parameters"].update(q="1")),
        ("a probability of one", PARAMETERS, lambda d: d["questions"][1]["parameters"].update(p=str(1 << 64))),
        ("a leading zero", PARAMETERS, lambda d: d["questions"][1]["parameters"].update(p="01")),
        ("no signal", PARAMETERS, lambda d: d["questions"][1]["parameters"].update(p="1")),
        ("a subset of everything", PARAMETERS, lambda d: d["questions"][1]["parameters"].update(w=12)),
        ("noise beyond 32 bits", PARAMETERS, lambda d: d["questions"][3]["parameters"].update(scale="9" * 30)),
        ("noise a step beyond 32 bits", PARAMETERS, lambda d: d["questions"][3]["parameters"].update(scale=_BEYOND)),
        ("too fine a grid", PARAMETERS, lambda d: d["questions"][3]["parameters"].update(grid=13)),
        ("a question that costs nothing", LOSS, lambda d: d["questions"][1].update(epsilon=0)),
        ("a question that costs less than nothing", LOSS, lambda d: d["questions"][1].update(epsilon=-1)),
        ("an integer beyond 53 bits", PARAMETERS, lambda d: d["questions"][3]["parameters"].update(scale=2**53)),
        ("one unit too much", LOSS, lambda d: _parameter(d, 1, "p", lambda p: str(int(p) + 1))),
        ("a scale one unit too small", LOSS, lambda d: _parameter(d, 3, "scale", lambda scale: str(int(scale) - 1))),
        ("questions dearer than the total", LOSS, lambda d: d["privacy"].update(epsilon=0.99)),
    ]
    for name, code, change in changes:
        ((_, value),) = _changed(base, [(name, change)])
        yield name, as_text(value), None, code
    for name, refused in (
        ("ss-laplace", _UNLIKE_A_SCHEMA),
        ("evaluation", _EVALUATIONS),
        ("evaluation-three", [("edges for three classes", _edges([0]))]),
        ("evaluation-projection", _OF_A_PROJECTION),
        ("binary", _PAIRS),
        ("wide", _UNLIKE_SERIES),
        ("moments", [("windows of moments", _series()), ("a product in the group of a value", _product_in(3))]),
        ("evaluation", [("windows of an evaluation", _series())]),
        ("missing-oue", _PLACES),
        ("projection", _PROJECTIONS),
        ("ordered", _ORDERS),
        ("edges", _UNLIKE_EDGES),
        ("statistics", _UNLIKE_STATISTICS),
        ("operator", _UNLIKE_OPERATOR),
    ):
        yield from _invalid(json.loads(known[name].document), refused)
    ((_, trained),) = _changed(
        json.loads(known["evaluation"].document), [("", _of_model(lambda m: m.update(training=[9])))]
    )
    for number in ("1e999", "-1e999", "NaN"):
        yield (
            f"{number} where nobody reads it",
            as_text(trained).replace('"training":[9]', f'"training":{{"n":{number}}}'),
            None,
            INVALID,
        )
    for name, value in _changed(json.loads(known["small-epsilon"].document), _BETWEEN):
        yield name, as_text(value), None, LOSS
    value = json.loads(known["de-onebit"].document)
    value["questions"][1]["parameters"] = value["questions"][0]["parameters"]
    yield "the probability of fewer cells at a question of more", as_text(value), None, LOSS
    value = json.loads(known["all"].document)
    value["privacy"]["epsilon"] = 3.2
    yield "answers that add up to more than the total", as_text(value), None, LOSS


def _invalid(base, changes):
    for name, value in _changed(base, changes):
        yield name, as_text(value), None, INVALID
