"""The campaigns that the test vectors are about: every mechanism and encoding, every shape."""

import json

from ldp_protocols import Campaign


def text(name, *values, **said):
    return {"name": name, "kind": "categorical", "values": [*values], **said}


def number(name, low, high, **said):
    return {"name": name, "kind": "continuous", "low": low, "high": high, **said}


FEATURES = [
    text("colour", "red", "green", "0", "missing"),
    number("größe", -1.5, 2, bins=5, missing=False),
    number("hours", 0, 100, weight=2, missing=False),
]
INCOMPLETE = [
    text("colour", "red", "green", "0"),
    number("größe", -1.5, 2, bins=5),
    number("hours", 0, 100, weight=2),
    number("age", 0, 10, missing=False),
]
"""A value may be missing, but of the last one."""

LABEL = {"name": "class", "classes": ["yes", "no", "unknown"]}
PAIRS = ("de-onebit", "ss-laplace", "oue-sign", "sue-laplace", "the-sign", "she-onebit")
"""What asks for values, and what for numbers."""


COLOUR = {**FEATURES[0], "likelihood": [[0.5, 0.1], [0.2, 0.3], [0.2, 0.2], [0.1, 0.4]]}
SIZE = {**INCOMPLETE[1], "likelihood": [[0.6, 0.1], [0.1, 0.2], [0.1, 0.2], [0.1, 0.2], [0.1, 0.3]]}
HOURS = {"name": "hours", "kind": "gaussian", "low": 0, "high": 100, "mean": [20, 70], "variance": [400, 900]}
ONE_SURE = (
    {**COLOUR, "likelihood": [[0.5, 0.1], [0, 0.3], [0.25, 0.2], [0.25, 0.4]]},
    {**SIZE, "likelihood": [[0.6, 0.5], [0.1, 0.5], [0.1, 0], [0.1, 0], [0.1, 0]]},
)
"""Green is never of the first class, and large never of the second: what is both is impossible."""

THREE = (
    {**COLOUR, "likelihood": [[0.5, 0.1, 0.1], [0.2, 0.3, 0.1], [0.2, 0.2, 0.7], [0.1, 0.4, 0.1]]},
    {**HOURS, "mean": [20, 70, 45], "variance": [400, 900, 25.5]},
)


def model(label, *features):
    """A model of a label's two or three classes."""
    head = {"version": 1, "kind": "naive-bayes", "label": label["name"], "classes": label["classes"]}
    return {**head, "prior": [0.4, 0.6] if len(label["classes"]) == 2 else [0.5, 0.2, 0.3], "features": [*features]}


def draft(**changes):
    base = {"version": 1, "title": "Vectors", "label": LABEL, "features": FEATURES, "privacy": {"epsilon": 1.0}}
    return base | changes


def campaigns():
    """Every mechanism and encoding, every shape of campaign, by name."""
    drafts = {
        pair: draft(privacy={"epsilon": 1.0} | dict(zip(("discrete", "continuous"), pair.split("-"), strict=True)))
        for pair in PAIRS
    }
    drafts["small-epsilon"] = draft(privacy={"epsilon": 0.1, "discrete": "she", "continuous": "laplace"})
    drafts["odd-epsilon"] = draft(privacy={"epsilon": 0.7, "discrete": "she", "continuous": "laplace"})
    drafts["all"] = draft(title="Alle Fragen – ja", privacy={"epsilon": 3.3, "answers": "all"}, study="s")
    drafts["wide"] = draft(
        label={"name": "class", "classes": ["yes", "no"], "weight": 0},
        features=[text("colour", *(f"v{i}" for i in range(150)), missing=False)],
        privacy={"epsilon": 4, "discrete": "de"},
        opens="2026-01-01T00:00:00Z",
        closes="2027-01-01T00:00:00Z",
    )
    for discrete, epsilon in (("de", 2.0), ("oue", 1.0), ("she", 0.5)):
        drafts[f"missing-{discrete}"] = draft(features=INCOMPLETE, privacy={"epsilon": epsilon, "discrete": discrete})
    drafts["missing-all"] = draft(features=INCOMPLETE, privacy={"epsilon": 2.5, "answers": "all"})
    windows = {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 52}
    drafts["series"] = draft(windows=windows, features=INCOMPLETE)
    drafts["series-all"] = draft(
        windows={**windows, "length": "PT6H", "count": 3}, privacy={"epsilon": 3.3, "answers": "all"}
    )
    numbers = [number(name, 0, 10, missing=False) for name in ("größe", "hours", "age")]
    drafts["projection"] = draft(
        features=[FEATURES[0], *numbers],
        projection={
            "method": "pca",
            "inputs": ["größe", "hours"],
            "mean": [5.0, 4.25],
            "scale": [2.5, 3.0],
            "matrix": [[0.6, 0.8], [-0.8, 0.6]],
            "outputs": [number("first", -3, 3, missing=False), number("second", -2, 2, bins=4, missing=False)],
            "fitted_on": "public",
        },
    )
    drafts["projection-missing"] = copied = json.loads(json.dumps(drafts["projection"]))
    for described in (copied["features"][1], *copied["projection"]["outputs"]):
        del described["missing"]
    drafts["binary"] = draft(
        label={"name": "class", "classes": ["yes", "no"]},
        features=[text("colour", "red", "green", weight=3, missing=False), {**FEATURES[1], "bins": 2}, FEATURES[2]],
    )
    drafts["moments"] = draft(features=numbers, asks="moments", study="s")
    drafts["moments-missing"] = draft(features=[INCOMPLETE[2], *numbers[::2]], asks="moments", study="s")
    drafts["many-classes"] = draft(
        label={"name": "class", "classes": [*LABEL["classes"], *(f"c{n}" for n in range(9))]},
        features=[INCOMPLETE[2]],
        privacy={"epsilon": 2.5},
    )
    drafts["missing-large-epsilon"] = draft(features=INCOMPLETE, privacy={"epsilon": 15.0, "answers": "all"})
    ordered = [INCOMPLETE[0] | {"ordered": True}, text("age", "5", "6", ordered=True)]
    drafts["ordered"] = draft(features=[*ordered, INCOMPLETE[1]])
    drafts |= evaluations(drafts["projection"]["projection"], numbers)
    drafts |= statistics(windows)
    uneven = {"name": "größe", "kind": "continuous", "edges": [-1.5, -0.1, 0.5, 1, 2], "missing": False}
    drafts["edges"] = draft(features=[FEATURES[0], uneven, FEATURES[2]])
    contact = {"contact": "privacy@example.org", "privacy_url": "https://example.org:8443/privacy?page=1#notice"}
    drafts["operator"] = draft(operator='Clinic "Süd"\u00a0GmbH', **contact, keep_days=30)
    drafts["statistics-operator"] = drafts["statistics"] | {"operator": "City of Example", "keep_days": 1}
    return {name: Campaign.compile(one) for name, one in drafts.items()}


def statistics(windows):
    """Drafts without a label, by name: some values missing or none, numbers by signs, noise and single bits, a pair of
    features of which both, one or none may lack a value, in one window or some.
    """
    no_label = draft(features=[*FEATURES[:2], number("hours", 0, 100), text("age", "5", "6", weight=3)])
    del no_label["label"]
    pairs = [["größe", "colour"], ["colour", "age"], ["age", "größe"]]
    whole = no_label | {"features": [*FEATURES, number("age", 0, 10, bins=3)]}
    return {
        "statistics": no_label | {"pairs": pairs, "purpose": "What people have"},
        "statistics-all": no_label | {"pairs": pairs[1:], "privacy": {"epsilon": 4.2, "answers": "all"}, "study": "s"},
        "statistics-laplace": whole | {"privacy": {"epsilon": 1.5, "discrete": "she", "continuous": "laplace"}},
        "statistics-onebit": whole | {"pairs": [pairs[0]], "privacy": {"epsilon": 0.5, "continuous": "onebit"}},
        "statistics-series": no_label | {"pairs": pairs[:1], "windows": {**windows, "count": 4}},
    }


def evaluations(projection, numbers):
    """Drafts of rounds that ask about a model, by name: of two classes and three, with edges and without, with one
    question and both, of records that the model holds impossible.
    """
    two = {"name": "class", "classes": ["yes", "no"]}
    everything = model(two, COLOUR, SIZE, HOURS)
    outputs = [
        {"name": "first", "kind": "gaussian", "low": -3, "high": 3, "mean": [-1, 0.5], "variance": [1, 0.25]},
        {**projection["outputs"][1], "likelihood": [[0.1, 0.4], [0.2, 0.3], [0.3, 0.2], [0.4, 0.1]]},
    ]
    del outputs[1]["missing"]
    projected = {**model(two, *outputs), "projection": {"features": numbers, **projection}}

    def asking(of, label=two, privacy=None, **changes):
        evaluation = {"model": of, **changes}
        return draft(label=label, asks="score", study="s", privacy=privacy or {"epsilon": 1.0}, evaluation=evaluation)

    return {
        "evaluation": asking(everything, edges=[-1.5, -0.25, 0, 0.5, 2], weights=[3, 1]),
        "evaluation-chosen": asking(everything, privacy={"epsilon": 3.0, "discrete": "oue"}),
        "evaluation-right": asking(model(two, HOURS), weights=[1, 0], edges=[0]),
        "evaluation-score": asking(model(two), weights=[0, 7], edges=[-2, -1, 0, 1, 2, 3, 4]),
        "evaluation-even": asking({**model(two), "prior": [0.5, 0.5]}, edges=[-1, 0, 1]),
        "evaluation-impossible": asking(model(two, *ONE_SURE), edges=[-3, 0, 1.25]),
        "evaluation-three": asking(model(LABEL, *THREE), LABEL, {"epsilon": 2.0, "discrete": "ss"}),
        "evaluation-projection": asking(projected, edges=[-1, 0, 1]) | {"features": [FEATURES[0], *numbers]},
    }


def as_text(value):
    """JSON without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
